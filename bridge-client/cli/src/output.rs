//! Prints results to stdout, and notes and errors to stderr.
//!
//! Writing to stdout is asynchronous: a reader that pauses (a pager, Ctrl-S) must not keep the program from answering the
//! daemon's pings. Texts from elsewhere are not trusted, so their control characters are made visible on a terminal; a
//! pipe gets every byte unchanged.

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};

use bridge_protocol::text::visible;
use serde_json::value::RawValue;
use tokio::io::{AsyncWriteExt, Stdout};

use crate::failure::Failure;
use crate::json_text::{self, Layout};

/// Stdout, and the style of results on it.
pub struct Output {
    stdout: Stdout,
    is_terminal: bool,
    pub style: Style,
}

/// The style of results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// For a person at a terminal.
    Terminal,
    /// For a pipe: the same text, without decoration.
    Pipe,
    /// As JSON, because `--json` was given.
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

    /// Prints a line of text. With [`Style::Json`] it must be JSON.
    pub async fn line(&mut self, text: &str) -> Result<(), Failure> {
        let text = self.shown(text);
        self.write(&format!("{text}\n")).await
    }

    /// Prints a piece of text without a line end.
    pub async fn piece(&mut self, text: &str) -> Result<(), Failure> {
        let text = self.shown(text);
        self.write(&text).await
    }

    /// Prints the text of a file. If its last line has no end, one is added only on a terminal.
    pub async fn text(&mut self, text: &str) -> Result<(), Failure> {
        self.piece(text).await?;
        match self.is_terminal && !text.is_empty() && !text.ends_with('\n') {
            true => self.write("\n").await,
            false => Ok(()),
        }
    }

    /// Prints bytes unchanged, for instance the output of a command.
    pub async fn bytes(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.stdout.write_all(bytes).await.map_err(Failure::Output)?;
        self.stdout.flush().await.map_err(Failure::Output)
    }

    /// Prints a JSON value in the chosen style.
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

/// Prints a note for the person to stderr. The line is written in one piece, so that lines of several
/// programs do not mix.
pub fn note(text: &str) {
    let line = format!("{}\n", visible(text));
    // If stderr cannot be written, there is nowhere left to report that.
    let _ = io::stderr().write_all(line.as_bytes());
}

/// Prints an error to stderr, after the program's name.
pub fn complain(text: &str) {
    note(&format!("bridge-client: {text}"));
}
