//! Outputs and results of cells.

use std::{path::PathBuf, time::Duration};

use serde::Deserialize;
use serde_json::{Map, Value};
use tokio::sync::mpsc;

/// How to run a cell.
#[derive(Debug, Clone, Default)]
pub struct ExecuteOptions {
    /// The working directory for the cell. The kernel changes to it only if it differs from the
    /// directory of the last call, so a cell's own `os.chdir` stays in effect until the caller asks
    /// for another directory.
    pub cwd: Option<PathBuf>,
    /// The timeout, after which the cell is interrupted.
    pub timeout: Option<Duration>,
    /// Receives the outputs as they come. They have the same limit as the result, so a subscriber
    /// that does not read costs no more memory than that.
    pub subscriber: Option<mpsc::UnboundedSender<CellOutput>>,
}

/// One piece of output. Outputs are in the order in which the kernel sent them.
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
    /// A result, or something that was displayed: one value in several formats.
    Display {
        /// By MIME type: text as it is, images and other binary formats in Base64, JSON as JSON.
        data: Map<String, Value>,
    },
    /// An exception.
    Error {
        /// The class of the exception.
        ename: String,
        /// The message of the exception.
        evalue: String,
        /// The traceback, one text for each frame.
        traceback: Vec<String>,
    },
    /// Marks a gap: the output was larger than the limit. The beginning and the end are kept.
    Omitted {
        /// Number of omitted bytes.
        bytes: u64,
    },
}

/// How a cell ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CellEnd {
    /// It ran to its end without an exception.
    Finished,
    /// An exception ended it, which is in the outputs. An interrupt is an exception, too.
    Raised,
    /// Its timeout passed, and it was interrupted.
    TimedOut,
    /// Its timeout passed, but it ignores interrupts and goes on. The kernel is busy until the cell
    /// ends; a restart ends it.
    Stuck,
    /// The kernel's process ended during the cell. A new kernel was started; variables are lost.
    KernelDied,
    /// The kernel was restarted during the cell.
    Restarted,
}

/// The result of a cell.
#[derive(Debug, Clone, PartialEq)]
pub struct CellResult {
    /// The output of the cell: printed text, displays and tracebacks.
    pub outputs: Vec<CellOutput>,
    /// How it ended.
    pub ended: CellEnd,
    /// The number in brackets, as IPython counts.
    pub execution_count: Option<u64>,
    /// How long it took.
    pub duration: Duration,
}

impl CellResult {
    /// All outputs as plain text, as a notebook without pictures would show them: printed text,
    /// displays as text, tracebacks, and notes about omitted output.
    pub fn text(&self) -> String {
        self.outputs.iter().map(CellOutput::text).collect()
    }

    /// Number of bytes that were omitted because the output was too large; usually 0.
    pub fn omitted_bytes(&self) -> u64 {
        let missing =
            self.outputs.iter().filter(|output| matches!(output, CellOutput::Omitted { .. }));
        missing.map(CellOutput::bytes).sum()
    }

    /// The pictures: MIME type and content, in Base64 (SVG: as plain text).
    pub fn images(&self) -> impl Iterator<Item = (&str, &str)> {
        self.outputs.iter().flat_map(CellOutput::images)
    }
}

impl CellOutput {
    /// The output as plain text; empty if it has none.
    pub fn text(&self) -> String {
        match self {
            Self::Stream { text, .. } => text.clone(),
            Self::Display { data } => {
                data.get("text/plain").and_then(Value::as_str).unwrap_or_default().to_owned()
            }
            Self::Error { traceback, .. } => traceback.join("\n"),
            Self::Omitted { bytes } => format!("\n[{bytes} bytes of output were omitted here.]\n"),
        }
    }

    /// Size of the output; for a gap, the omitted bytes.
    pub(super) fn bytes(&self) -> u64 {
        let bytes = match self {
            Self::Stream { text, .. } => text.len(),
            Self::Display { data } => {
                data.values().map(|value| value.as_str().map_or(0, str::len)).sum()
            }
            Self::Error { traceback, .. } => traceback.iter().map(String::len).sum(),
            Self::Omitted { bytes } => return *bytes,
        };
        bytes as u64
    }

    /// The pictures in this output: MIME type and content.
    pub fn images(&self) -> impl Iterator<Item = (&str, &str)> {
        let data = match self {
            Self::Display { data } => Some(data),
            Self::Stream { .. } | Self::Error { .. } | Self::Omitted { .. } => None,
        };
        data.into_iter().flatten().filter_map(|(mime, content)| {
            mime.starts_with("image/").then(|| Some((mime.as_str(), content.as_str()?))).flatten()
        })
    }
}
