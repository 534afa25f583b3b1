//! What a cell says and how it ends.

use std::{path::PathBuf, time::Duration};

use serde::Deserialize;
use serde_json::{Map, Value};
use tokio::sync::mpsc;

/// How to run a cell.
#[derive(Debug, Clone, Default)]
pub struct ExecuteOptions {
    /// The directory to be in. The kernel goes there only if it differs from the one named last, so
    /// that a cell's own `os.chdir` holds until the caller moves.
    pub cwd: Option<PathBuf>,
    /// How long it may take before it is interrupted.
    pub timeout: Option<Duration>,
    /// Who wants the outputs as they come. What goes here is bounded like the result, so a
    /// subscriber that does not read costs no more than that.
    pub subscriber: Option<mpsc::UnboundedSender<CellOutput>>,
}

/// One piece of output, in the order in which the kernel sent them.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CellOutput {
    /// Text that was printed.
    Stream {
        /// `stdout` or `stderr`.
        name: String,
        /// The text.
        text: String,
    },
    /// A result, or something that was displayed: the same thing in several formats.
    Display {
        /// By MIME type: text as it is, images and other binary formats in Base64, JSON as JSON.
        data: Map<String, Value>,
    },
    /// An exception.
    Error {
        /// Its class.
        ename: String,
        /// Its message.
        evalue: String,
        /// The traceback, a piece for each frame.
        traceback: Vec<String>,
    },
    /// Here something is missing: there was more than is kept. The beginning is there, and the end.
    LeftOut {
        /// How much.
        bytes: u64,
    },
}

/// How a cell came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CellEnd {
    /// It ran to its end.
    Finished,
    /// An exception ended it, which is in the outputs; also when somebody has interrupted it.
    Raised,
    /// Its time was over, and it was interrupted.
    TimedOut,
    /// Its time was over, but it does not heed interrupts and goes on. The kernel is busy until it
    /// ends; a restart ends it.
    Stuck,
    /// The kernel's process ended under it. There is a new one; variables are gone.
    KernelDied,
    /// The kernel was restarted under it.
    Restarted,
}

/// What a cell came to.
#[derive(Debug, Clone, PartialEq)]
pub struct CellResult {
    /// What it said.
    pub outputs: Vec<CellOutput>,
    /// How it ended.
    pub ended: CellEnd,
    /// The number in brackets, as IPython counts.
    pub execution_count: Option<u64>,
    /// How long it took.
    pub duration: Duration,
}

impl CellResult {
    /// Everything that can be read, as a notebook without pictures would show it: printed text,
    /// displays as plain text, tracebacks, and what is missing.
    pub fn text(&self) -> String {
        self.outputs.iter().map(CellOutput::text).collect()
    }

    /// Bytes of output that were too much to keep, 0 as a rule.
    pub fn left_out(&self) -> u64 {
        let missing =
            self.outputs.iter().filter(|output| matches!(output, CellOutput::LeftOut { .. }));
        missing.map(CellOutput::bytes).sum()
    }

    /// The pictures: MIME type and content, in Base64 (SVG: as it is).
    pub fn images(&self) -> impl Iterator<Item = (&str, &str)> {
        self.outputs.iter().flat_map(CellOutput::images)
    }
}

impl CellOutput {
    /// The piece as plain text; empty if it has none.
    pub fn text(&self) -> String {
        match self {
            Self::Stream { text, .. } => text.clone(),
            Self::Display { data } => {
                data.get("text/plain").and_then(Value::as_str).unwrap_or_default().to_owned()
            }
            Self::Error { traceback, .. } => traceback.join("\n"),
            Self::LeftOut { bytes } => format!("\n[{bytes} bytes of output were left out here.]\n"),
        }
    }

    /// How much it is, or would be.
    pub(super) fn bytes(&self) -> u64 {
        let bytes = match self {
            Self::Stream { text, .. } => text.len(),
            Self::Display { data } => {
                data.values().map(|value| value.as_str().map_or(0, str::len)).sum()
            }
            Self::Error { traceback, .. } => traceback.iter().map(String::len).sum(),
            Self::LeftOut { bytes } => return *bytes,
        };
        bytes as u64
    }

    /// The pictures in this piece.
    pub fn images(&self) -> impl Iterator<Item = (&str, &str)> {
        let data = match self {
            Self::Display { data } => Some(data),
            Self::Stream { .. } | Self::Error { .. } | Self::LeftOut { .. } => None,
        };
        data.into_iter().flatten().filter_map(|(mime, content)| {
            mime.starts_with("image/").then(|| Some((mime.as_str(), content.as_str()?))).flatten()
        })
    }
}
