//! `page/*`: web pages as text and as a picture.

use serde::{Deserialize, Serialize};

use super::methods;

methods! {
    /// `page/browse`: fetches a page and answers with what a person would read on it.
    Browse = "page/browse": BrowseParams => BrowseResult { needs: [Run], within: Tool };
}

/// Which page.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BrowseParams {
    /// Its address (`http:` or `https:`), or the path of an HTML file of the workspace.
    #[serde(default)]
    pub url: String,
    /// Give up after so long; 30 s when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_ms: Option<f64>,
}

/// What the page shows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BrowseResult {
    /// The address that was shown.
    pub url: String,
    /// Its text, with its links.
    pub text: String,
    /// A picture of it as PNG, where a browser is installed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub png_base64: Option<String>,
    /// Why it could not be shown, or not in full.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}
