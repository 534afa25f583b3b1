//! `page/*`: web pages, as text and as a picture.

use serde::{Deserialize, Serialize};

use super::methods;

methods! {
    /// `page/browse`: fetches a page and returns the text that a person would read on it.
    Browse = "page/browse": BrowseParams => BrowseResult { needs: [Run], time: Tool };
}

/// Parameters of `page/browse`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BrowseParams {
    /// Address of the page (`http:` or `https:`), or the path of an HTML file in the workspace.
    #[serde(default)]
    pub url: String,
    /// Timeout in milliseconds; 30 s when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_ms: Option<f64>,
}

/// Result of `page/browse`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BrowseResult {
    /// Address of the page that was shown.
    pub url: String,
    /// Text of the page, with its links.
    pub text: String,
    /// Picture of the page as PNG in base64. Absent if no browser is installed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub png_base64: Option<String>,
    /// Why the page could not be shown, or not completely.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}
