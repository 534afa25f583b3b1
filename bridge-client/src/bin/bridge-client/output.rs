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
    is_terminal: bool,
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
        let is_terminal = io::stdout().is_terminal();
        let style = match (json, is_terminal) {
            (true, _) => Style::Json,
            (false, true) => Style::Terminal,
            (false, false) => Style::Pipe,
        };
        Self { stdout: tokio::io::stdout(), is_terminal, style }
    }

    /// A line of text; with [`Style::Json`] it must be JSON.
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
            Style::Json => return self.line(value.get()).await,
            Style::Pipe => json_text::reformat(value.get(), Layout::Compact),
            Style::Terminal => {
                let indented = json_text::reformat(value.get(), Layout::Indented);
                json_text::without_controls(&indented).into_owned()
            }
        };
        self.write(&format!("{text}\n")).await
    }

    fn shown<'t>(&self, text: &'t str) -> Cow<'t, str> {
        match (self.is_terminal, self.style) {
            (false, _) => Cow::Borrowed(text),
            (true, Style::Json) => json_text::without_controls(text),
            (true, _) => visible(text),
        }
    }

    async fn write(&mut self, text: &str) -> Result<(), Failure> {
        self.stdout.write_all(text.as_bytes()).await.map_err(Failure::Output)?;
        self.stdout.flush().await.map_err(Failure::Output)
    }
}

/// A word to the person, on stderr. Nothing can be done if nobody hears it. The line is written in
/// one piece, so that those of several programs do not mix.
pub fn note(text: &str) {
    let line = format!("{}\n", visible(text));
    let _ = io::stderr().write_all(line.as_bytes());
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
