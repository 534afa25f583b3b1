//! Turns HTML into text, in a helper process.

use std::time::Duration;

use sandbox_worker::{Error, Job, Worker};
use serde::{Deserialize, Serialize};

use crate::{Page, bytes, depth::is_deeper_than};

/// The largest page in bytes.
pub const HTML_BYTES: usize = 8 << 20;
/// How deep the elements of a page may be nested, as in browsers.
pub const HTML_DEPTH: usize = 512;
/// Width of the text in columns.
const COLUMNS: usize = 120;

/// Turns HTML into text.
#[derive(Debug)]
pub struct HtmlJob;

/// A page.
#[derive(Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Html(#[serde(with = "bytes")] pub Vec<u8>);

/// Why a page is not turned into text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum Unreadable {
    /// It has more than [`HTML_BYTES`].
    #[error("it has more than {HTML_BYTES} bytes of HTML: fetch it with a command such as curl")]
    TooLarge,
    /// It is nested deeper than [`HTML_DEPTH`].
    #[error(
        "its elements are nested more than {HTML_DEPTH} levels deep: fetch it with a command such as curl"
    )]
    TooDeep,
}

impl Job for HtmlJob {
    type Request = Html;
    type Answer = Result<String, Unreadable>;

    const NAME: &'static str = "html";
    const MEMORY: Option<u64> = Some(1 << 30);
    const ANSWER_BYTES: u64 = 64 << 20;

    fn carry_out(Html(html): Html) -> Result<String, Unreadable> {
        if html.len() > HTML_BYTES {
            return Err(Unreadable::TooLarge);
        }
        if is_deeper_than(&html, HTML_DEPTH) {
            return Err(Unreadable::TooDeep);
        }
        Ok(readable(&html))
    }
}

/// Turns HTML into text in a helper process.
pub(crate) async fn text_of(
    worker: &Worker,
    html: Vec<u8>,
    limit: Duration,
) -> Result<Page, Error> {
    Ok(match worker.run::<HtmlJob>(&Html(html), limit).await? {
        Ok(text) => Page { text, ..Page::default() },
        Err(unreadable) => Page::failed(unreadable.to_string()),
    })
}

/// The text of a page, with its links numbered and listed at the end.
fn readable(html: &[u8]) -> String {
    // The renderer never ends on a tab in a narrow column of a table.
    let html: Vec<u8> = match memchr::memchr(b'\t', html) {
        Some(_) => html.split(|&byte| byte == b'\t').collect::<Vec<_>>().join(&b"    "[..]),
        None => html.to_vec(),
    };
    let text = html2text::config::plain().no_table_borders().no_link_wrapping();
    match text.string_from_read(&html[..], COLUMNS) {
        Ok(text) => text.trim().to_owned(),
        // The raw page is better than nothing.
        Err(_) => String::from_utf8_lossy(&html).into_owned(),
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

    #[test]
    fn pages_beyond_all_bounds_are_refused() {
        let convert = |html: String| HtmlJob::carry_out(Html(html.into_bytes()));
        assert_eq!(convert("<div>".repeat(100_000)), Err(Unreadable::TooDeep));
        assert_eq!(convert("x".repeat(HTML_BYTES + 1)), Err(Unreadable::TooLarge));
        let deep = "<div>".repeat(HTML_DEPTH - 10) + "end";
        assert!(convert(deep).unwrap().ends_with("end"));
    }

    #[test]
    fn a_tab_in_a_table_is_shown() {
        for html in
            ["<table><tr><td><dd><pre>\ta\tb</pre></td></tr></table>", "<table><td><dd><pre>\ta"]
        {
            let text = readable(html.as_bytes());
            assert!(text.contains('a'), "{html}: {text:?}");
        }
    }
}
