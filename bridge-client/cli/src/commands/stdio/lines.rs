//! Reads messages from stdin, one per line, of limited length.

use std::io;

use bridge_protocol::limits::MESSAGE_BYTES;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt};

/// Reads lines. An unfinished line is kept here, so nothing is lost when the future of [`next`](Self::next) is dropped.
pub struct Lines<R> {
    input: R,
    line: Vec<u8>,
    /// Whether the rest of a line that was too long is being skipped.
    skipping: bool,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Line {
    Message(String),
    /// A line that cannot be sent. The sentence says why.
    Unusable(&'static str),
}

impl<R: AsyncBufRead + Unpin> Lines<R> {
    pub fn new(input: R) -> Self {
        Self { input, line: Vec::new(), skipping: false }
    }

    /// The next line that is not blank, or `None` at the end of the input.
    pub async fn next(&mut self) -> io::Result<Option<Line>> {
        loop {
            let room = MESSAGE_BYTES + 2 - self.line.len();
            let mut bounded = (&mut self.input).take(room as u64);
            let count = bounded.read_until(b'\n', &mut self.line).await?;
            let whole = self.line.ends_with(b"\n");
            if self.line.len() - usize::from(whole) > MESSAGE_BYTES {
                self.line.clear();
                self.skipping = true;
            }
            if !whole && count > 0 {
                // Cut by the limit, or by the end of the input; the next read shows which.
                continue;
            }
            let ended = !whole;
            let mut line = std::mem::take(&mut self.line);
            if whole {
                line.pop();
            }
            if std::mem::take(&mut self.skipping) {
                let reason = "a line is longer than 16 MiB: send less";
                return Ok(Some(Line::Unusable(reason)));
            }
            match String::from_utf8(line) {
                Ok(text) if text.trim().is_empty() => {}
                Ok(text) => return Ok(Some(Line::Message(text))),
                Err(_) => return Ok(Some(Line::Unusable("a line is not UTF-8: send JSON text"))),
            }
            if ended {
                return Ok(None);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn all(input: &[u8]) -> Vec<Line> {
        let mut lines = Lines::new(input);
        let mut found = Vec::new();
        while let Some(line) = lines.next().await.unwrap() {
            found.push(line);
        }
        assert_eq!(lines.next().await.unwrap(), None);
        found
    }

    fn message(text: &str) -> Line {
        Line::Message(text.to_owned())
    }

    #[tokio::test]
    async fn each_line_is_a_message_as_it_is() {
        assert_eq!(all(b"").await, []);
        assert_eq!(all(b"\n \n\r\n").await, []);
        assert_eq!(
            all(b"{ }\n\n[1]\r\nlast").await,
            [message("{ }"), message("[1]\r"), message("last")]
        );
    }

    #[tokio::test]
    async fn what_cannot_be_sent_is_skipped_and_told() {
        let long = vec![b'x'; MESSAGE_BYTES + 1];
        let fits = vec![b'y'; MESSAGE_BYTES];
        let input = [&long[..], b"\n{}\n", &fits, b"\n\xff\n{}\n", &long].concat();
        let found = all(&input).await;
        assert!(matches!(found[0], Line::Unusable(_)), "a line that is too long");
        assert_eq!(found[1], message("{}"));
        assert!(matches!(&found[2], Line::Message(text) if text.len() == MESSAGE_BYTES));
        assert!(matches!(found[3], Line::Unusable(_)), "not UTF-8");
        assert_eq!(found[4], message("{}"));
        assert!(matches!(found[5], Line::Unusable(_)), "too long and without an end");
        assert_eq!(found.len(), 6);
    }
}
