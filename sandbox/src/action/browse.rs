//! Web pages as text.
//!
//! A page is shown by a headless Chromium where there is one: its scripts run, and there is a picture
//! of it. Otherwise it is fetched as it is. Either way an agent gets its text, with the links as a
//! list at the end.

use std::{
    fs, io,
    path::Path,
    process::Stdio,
    time::{Duration, SystemTime},
};

use tokio::process::Command;

use super::{ActionError, BrowserSettings, Page, Screenshot};

/// How long a page may take if nobody says otherwise.
const USUAL_LIMIT: Duration = Duration::from_secs(30);
/// Bytes of a page.
const PAGE_BYTES: u64 = 16 << 20;
/// Columns of the text.
const COLUMNS: usize = 120;
/// Where pictures are kept, in the initial directory.
const SCREENSHOTS: &str = ".browser_screenshots";

/// Shows a page. What is not there is a page too, with an error on it.
pub(super) async fn browse(
    settings: &BrowserSettings,
    url: &str,
    home: &Path,
    timeout: Option<Duration>,
) -> Result<Page, ActionError> {
    let limit = timeout.unwrap_or(USUAL_LIMIT);
    match settings {
        BrowserSettings::None | BrowserSettings::Fetch => fetch_page(url, limit).await,
        BrowserSettings::Chromium(program) => {
            let shown = tokio::time::timeout(limit, chromium(program, url, home, limit)).await;
            match shown {
                Ok(Ok(page)) => Ok(page),
                Ok(Err(_)) => fetch_page(url, limit).await,
                Err(_) => Ok(failed(url, format!("it took longer than {limit:?}"))),
            }
        }
    }
}

/// A file as a page.
pub(super) fn file_page(url: String, html: &[u8]) -> Page {
    Page { url, text: readable(html), screenshot: None, error: None }
}

async fn fetch_page(url: &str, limit: Duration) -> Result<Page, ActionError> {
    let address = url.to_owned();
    let fetched = tokio::task::spawn_blocking(move || fetch(&address, limit)).await;
    let fetched = fetched.map_err(|error| ActionError::Internal(error.to_string()))?;
    Ok(match fetched {
        Ok(text) => Page { url: url.to_owned(), text, screenshot: None, error: None },
        Err(reason) => failed(url, reason),
    })
}

fn fetch(url: &str, limit: Duration) -> Result<String, String> {
    let config = ureq::Agent::config_builder().timeout_global(Some(limit)).build();
    let mut answer =
        ureq::Agent::from(config).get(url).call().map_err(|error| error.to_string())?;
    let is_html = answer.body().mime_type().is_none_or(|kind| kind.contains("html"));
    let body = answer.body_mut().with_config().limit(PAGE_BYTES).read_to_vec();
    let body = body.map_err(|error| error.to_string())?;
    Ok(if is_html { readable(&body) } else { String::from_utf8_lossy(&body).into_owned() })
}

async fn chromium(program: &Path, url: &str, home: &Path, limit: Duration) -> io::Result<Page> {
    let profile = tempfile::tempdir()?;
    let directory = home.join(SCREENSHOTS);
    fs::create_dir_all(&directory)?;
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let picture = directory.join(format!("screenshot_{}.png", now.as_millis()));
    let mut command = Command::new(program);
    command.args(["--headless", "--disable-gpu", "--hide-scrollbars", "--window-size=1280,960"]);
    command.arg(format!("--user-data-dir={}", profile.path().display()));
    command.arg(format!("--screenshot={}", picture.display())).arg("--dump-dom");
    command.arg(format!("--timeout={}", (limit / 2).as_millis()));
    if rustix::process::geteuid().is_root() {
        // Chromium refuses to start otherwise; containers are usually like that.
        command.arg("--no-sandbox");
    }
    command.arg("--").arg(url).stdin(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    let output = command.output().await?;
    if !output.status.success() || output.stdout.is_empty() {
        return Err(io::Error::other("the browser failed"));
    }
    let png = fs::read(&picture).ok();
    Ok(Page {
        url: url.to_owned(),
        text: readable(&output.stdout),
        screenshot: png.map(|png| Screenshot { png, path: picture }),
        error: None,
    })
}

/// The text of a page, with its links numbered and listed at the end.
fn readable(html: &[u8]) -> String {
    let text = html2text::config::plain().no_table_borders().no_link_wrapping();
    match text.string_from_read(html, COLUMNS) {
        Ok(text) => text.trim().to_owned(),
        // Then the page as it is tells more than nothing.
        Err(_) => String::from_utf8_lossy(html).into_owned(),
    }
}

fn failed(url: &str, reason: String) -> Page {
    Page { url: url.to_owned(), text: String::new(), screenshot: None, error: Some(reason) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_becomes_text_with_its_links() {
        let html = b"<html><head><title>T</title><script>x()</script></head><body><h1>Head</h1>\
            <p>See <a href='https://example.org/a'>this</a> &amp; that.</p></body></html>";
        let text = readable(html);
        assert!(text.contains("Head") && text.contains("[this][1] & that."), "{text}");
        assert!(text.ends_with("[1]: https://example.org/a"), "{text}");
        assert!(!text.contains("x()"), "{text}");
    }
}
