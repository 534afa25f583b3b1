//! All printing. Results go to stdout, words about them to stderr.
//!
//! Writing to stdout is asynchronous: a reader that pauses (a pager, Ctrl-S) must not keep us from
//! answering the daemon's pings. Texts from elsewhere may hold anything, so what goes to a terminal
//! has its control characters made visible; a pipe gets every byte as it came.

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};

use bridge_protocol::text::visible;
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

    /// The text of a file: as it is, so that its last line ends as it does there.
    pub async fn text(&mut self, text: &str) -> Result<(), Failure> {
        self.piece(text).await?;
        match self.is_terminal && !text.is_empty() && !text.ends_with('\n') {
            true => self.write("\n").await,
            false => Ok(()),
        }
    }

    /// Bytes that are passed on as they are: what a command printed for a terminal, on a terminal.
    pub async fn bytes(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.stdout.write_all(bytes).await.map_err(Failure::Output)?;
        self.stdout.flush().await.map_err(Failure::Output)
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
