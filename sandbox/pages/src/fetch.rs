//! Renders a page with Chromium, or fetches it without.

use std::{
    fs, io,
    path::Path,
    process::Stdio,
    time::{Duration, Instant},
};

use tokio::process::Command;

use super::{Page, Source};

/// The largest page in bytes.
const PAGE_BYTES: u64 = 16 << 20;
/// Width of the text in columns.
const COLUMNS: usize = 120;

pub(super) async fn render(chromium: &Path, source: Source, limit: Duration) -> Page {
    let url = match source {
        Source::Html(html) => return Page { text: readable(&html), ..Page::default() },
        Source::Web(url) => url,
    };
    let began = Instant::now();
    if chromium.exists() {
        match tokio::time::timeout(limit, render_with_chromium(chromium, &url, limit)).await {
            Ok(Ok(page)) => return page,
            // If the browser fails, fetch the page without it.
            Ok(Err(_)) => {}
            Err(_) => return Page::failed(format!("it took longer than {limit:?}")),
        }
    }
    let left = limit.saturating_sub(began.elapsed());
    let fetched = tokio::task::spawn_blocking(move || fetch(&url, left)).await;
    match fetched {
        Ok(Ok(text)) => Page { text, ..Page::default() },
        Ok(Err(reason)) => Page::failed(reason),
        Err(error) => Page::failed(error.to_string()),
    }
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

async fn render_with_chromium(program: &Path, url: &str, limit: Duration) -> io::Result<Page> {
    let home = tempfile::tempdir()?;
    let picture = home.path().join("picture.png");
    let mut command = Command::new(program);
    command.args(["--headless", "--disable-gpu", "--hide-scrollbars", "--window-size=1280,960"]);
    command.arg(format!("--user-data-dir={}", home.path().join("profile").display()));
    command.arg(format!("--screenshot={}", picture.display())).arg("--dump-dom");
    command.arg(format!("--timeout={}", (limit / 2).as_millis()));
    if rustix::process::geteuid().is_root() {
        // As root, Chromium refuses to start without this. Containers usually run as root.
        command.arg("--no-sandbox");
    }
    command.arg("--").arg(url).stdin(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    let output = command.output().await?;
    if !output.status.success() || output.stdout.is_empty() {
        return Err(io::Error::other("the browser failed"));
    }
    Ok(Page { text: readable(&output.stdout), png: fs::read(&picture).ok(), error: None })
}

/// The text of a page, with its links numbered and listed at the end.
fn readable(html: &[u8]) -> String {
    let text = html2text::config::plain().no_table_borders().no_link_wrapping();
    match text.string_from_read(html, COLUMNS) {
        Ok(text) => text.trim().to_owned(),
        // The raw page is better than nothing.
        Err(_) => String::from_utf8_lossy(html).into_owned(),
    }
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
