//! All printing. Results go to stdout, words about them to stderr.
//!
//! Writing to stdout is asynchronous: a reader that pauses (a pager, Ctrl-S) must not keep us from
//! answering the daemon's pings. Texts from elsewhere may hold anything, so what goes to a terminal
//! has its control characters made visible; a pipe gets every byte as it came.

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};

use serde_json::value::RawValue;
use tokio::io::{AsyncWriteExt, Stdout};

use crate::failure::Failure;
use crate::json_text::{self, Layout};

/// Stdout, and how results shall look on it.
pub struct Output {
    stdout: Stdout,
    pub style: Style,
}

/// Who reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// A person.
    Terminal,
    /// A program that takes what a person would, but without decoration.
    Pipe,
    /// A program that asked for JSON.
    Json,
}

impl Output {
    pub fn new(json: bool) -> Self {
        let style = match (json, io::stdout().is_terminal()) {
            (true, _) => Style::Json,
            (false, true) => Style::Terminal,
            (false, false) => Style::Pipe,
        };
        Self { stdout: tokio::io::stdout(), style }
    }

    /// A line of text.
    pub async fn line(&mut self, text: &str) -> Result<(), Failure> {
        let text = self.shown(text);
        self.write(&format!("{text}\n")).await
    }

    /// A piece of text that others follow.
    pub async fn piece(&mut self, text: &str) -> Result<(), Failure> {
        let text = self.shown(text);
        self.write(&text).await
    }

    /// A JSON value in the style asked for.
    pub async fn json(&mut self, value: &RawValue) -> Result<(), Failure> {
        let text = match self.style {
            Style::Json => Cow::Borrowed(value.get()),
            Style::Pipe => json_text::reformat(value.get(), Layout::Compact).into(),
            Style::Terminal => json_text::reformat(value.get(), Layout::Indented).into(),
        };
        self.write(&format!("{text}\n")).await
    }

    fn shown<'t>(&self, text: &'t str) -> Cow<'t, str> {
        match self.style {
            Style::Terminal => visible(text),
            Style::Pipe | Style::Json => Cow::Borrowed(text),
        }
    }

    async fn write(&mut self, text: &str) -> Result<(), Failure> {
        self.stdout.write_all(text.as_bytes()).await.map_err(Failure::Output)?;
        self.stdout.flush().await.map_err(Failure::Output)
    }
}

/// A word to the person, on stderr. Nothing can be done if nobody hears it.
pub fn note(text: &str) {
    let _ = writeln!(io::stderr(), "{}", visible(text));
}

/// An error, on stderr, after the program's name.
pub fn complain(text: &str) {
    note(&format!("bridge-client: {text}"));
}

/// The text without what a terminal would obey: escape sequences show as `␛[31m`. Line ends and
/// tabs stay; a carriage return, which would let a text overwrite itself, does not.
pub fn visible(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_obeyed) {
        return Cow::Borrowed(text);
    }
    let picture = |c: char| match c {
        '\r' => None,
        '\u{7f}' => Some('␡'),
        c if (c as u32) < 0x20 => char::from_u32(0x2400 + c as u32),
        _ => Some(char::REPLACEMENT_CHARACTER),
    };
    text.chars().filter_map(|c| if is_obeyed(c) { picture(c) } else { Some(c) }).collect()
}

fn is_obeyed(c: char) -> bool {
    c.is_control() && c != '\n' && c != '\t'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_made_visible() {
        assert!(matches!(visible("plain\ttext\nütf ✓"), Cow::Borrowed(_)));
        assert_eq!(visible("\x1b]0;title\x07\x1b[31mred"), "␛]0;title␇␛[31mred");
        assert_eq!(visible("safe\rEVIL\r\n"), "safeEVIL\n");
        assert_eq!(visible("\u{9b}31m\x7f"), "\u{fffd}31m␡");
    }
}
