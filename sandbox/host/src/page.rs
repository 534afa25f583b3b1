//! Serves `page/*`: web pages, and HTML files of the workspace.
//!
//! Helper processes fetch and render a page, and end with the call: HTML from anywhere is hostile
//! input. An HTML file is read here, confined to the workspace, and passed to a helper.

use std::time::Duration;

use base64::prelude::{BASE64_STANDARD, Engine};
use bridge_protocol::methods::page::{BrowseParams, BrowseResult};
use bridge_protocol::{ErrorKind, WireError};
use percent_encoding::percent_decode_str;
use sandbox_files::{READ_BYTES, Workspace, read_bytes};
use sandbox_pages::{Browser, Page, Source};
use tokio::sync::Semaphore;

use crate::error::{self, invalid, with_reason};
use crate::required;

/// The default time limit of a page.
const DEFAULT_LIMIT: Duration = Duration::from_secs(30);

/// How many pages are rendered at once; each takes a browser.
const MAX_PAGES: usize = 4;

/// Renders pages, if there is a browser.
#[derive(Debug)]
pub(crate) struct PageService {
    browser: Option<Browser>,
    workspace: Workspace,
    permits: Semaphore,
}

impl PageService {
    pub fn new(browser: Option<Browser>, workspace: Workspace) -> Self {
        Self { browser, workspace, permits: Semaphore::new(MAX_PAGES) }
    }

    /// `page/browse`. When the future is dropped, everything that was started for it ends.
    pub async fn browse(&self, params: BrowseParams) -> Result<BrowseResult, WireError> {
        required(&params.url, "url")?;
        let limit = match params.limit_ms {
            None => DEFAULT_LIMIT,
            Some(ms) => Duration::try_from_secs_f64(ms / 1000.0)
                .map_err(|_| invalid("limitMs must be a number of milliseconds, 0 or more"))?,
        };
        let Some(browser) = &self.browser else {
            let reason =
                "this sandbox does not show web pages: fetch them with a command such as curl";
            return Err(with_reason(ErrorKind::NotAllowed, reason, "unavailable"));
        };
        let (url, source) = self.source(params.url).await?;
        let _permit = self.permits.acquire().await;
        let rendered = browser.render(source, limit).await;
        let remedy = "fetch it with a command such as curl";
        let Page { text, png, error } =
            rendered.map_err(|error| error::work("showing the page", error, remedy))?;
        let png_base64 = png.map(|png| BASE64_STANDARD.encode(png));
        Ok(BrowseResult { url, text, png_base64, error })
    }

    /// The page to render, and its full address.
    async fn source(&self, url: String) -> Result<(String, Source), WireError> {
        if url.starts_with("http://") || url.starts_with("https://") {
            return Ok((url.clone(), Source::Web(url)));
        }
        let path = match url.strip_prefix("file://") {
            Some(path) => percent_decode_str(path)
                .decode_utf8()
                .map_err(|_| invalid("the path of the file: address is not UTF-8"))?
                .into_owned(),
            None => url,
        };
        let place = self.workspace.path(path).map_err(error::file)?;
        let url = format!("file://{}", place.absolute().display());
        let reading = tokio::task::spawn_blocking(move || read_bytes(&place, READ_BYTES)).await;
        let html = reading.map_err(|error| {
            ErrorKind::InternalError.error(format!("reading the file failed: {error}"))
        })?;
        Ok((url, Source::Html(html.map_err(error::file)?)))
    }
}
