//! Web pages as text.
//!
//! A headless Chromium renders a page where it is installed: scripts run, and there is a
//! screenshot. Otherwise the page is fetched without running scripts. In both cases the result has
//! the text, with a list of the links at the end.
//!
//! Pages are hostile input. A helper process fetches each of them ([`PageJob`]), and another one,
//! with a limit on its memory, turns HTML into text ([`HtmlJob`]). The helpers get addresses and
//! pages on standard input, since an address can hold secrets, and all users can see arguments.

mod bytes;
mod depth;
mod fetch;
mod html;

use std::{path::PathBuf, time::Duration};

use sandbox_worker::{Error, Worker};
use serde::{Deserialize, Serialize};

pub use fetch::{PageJob, PageRequest};
pub use html::{HTML_BYTES, HTML_DEPTH, Html, HtmlJob, Unreadable};

/// The usual path of Chromium.
pub const CHROMIUM: &str = "/usr/bin/chromium";

/// How much longer than the page's own limit its helper may take.
const EXTRA_TIME: Duration = Duration::from_secs(10);

/// Renders pages.
#[derive(Debug, Clone)]
pub struct Browser {
    /// The path of Chromium. It need not exist.
    pub chromium: PathBuf,
    /// Starts the helpers. Its program must know [`PageJob`] and [`HtmlJob`].
    pub worker: Worker,
}

/// The page to render.
#[derive(Debug, Clone)]
pub enum Source {
    /// The page at this address, which begins with `http`.
    Web(String),
    /// This HTML. It is not given to Chromium, which would load whatever it refers to.
    Html(Vec<u8>),
}

/// A rendered page, or the reason why it could not be rendered.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Page {
    /// The readable text.
    pub text: String,
    /// A screenshot as a PNG file.
    #[serde(with = "bytes::optional")]
    pub png: Option<Vec<u8>>,
    /// Why the page could not be rendered.
    pub error: Option<String>,
}

impl Browser {
    /// Renders a page. A page that cannot be loaded or rendered is a result with an error; an error
    /// means that no page can be rendered at all. If the future is dropped, everything that was
    /// started for it ends.
    pub async fn render(&self, source: Source, limit: Duration) -> Result<Page, Error> {
        let rendered = match source {
            Source::Html(html) => html::text_of(&self.worker, html, limit).await,
            Source::Web(url) => {
                let request = PageRequest { url, chromium: self.chromium.clone(), limit };
                let limit = limit.saturating_add(EXTRA_TIME);
                self.worker.run::<PageJob>(&request, limit).await
            }
        };
        match rendered {
            Err(error @ Error::Unusable { .. }) => Err(error),
            Err(error) => Ok(Page::failed(error.to_string())),
            Ok(page) => Ok(page),
        }
    }
}

impl Page {
    fn failed(reason: impl Into<String>) -> Self {
        Self { error: Some(reason.into()), ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_survives_serialization() {
        let page = Page { text: "ü\n".into(), png: Some(vec![0, 255]), error: None };
        let text = serde_json::to_string(&page).unwrap();
        assert_eq!(serde_json::from_str::<Page>(&text).unwrap(), page);
    }
}
