//! `cell/*`: Python code in a persistent IPython kernel. Each shell has a kernel of its own, which starts with
//! the first cell, in the shell's directory and with what the shell has exported.

use serde::{Deserialize, Serialize};

use super::shell::{ShellName, ShellRef};
use super::{Empty, methods};

methods! {
    /// `cell/run`: runs a cell and waits for its end. Streams [`CellProgress`] if asked to.
    Run = "cell/run": RunParams => RunResult { needs: [Run], within: Work };
    /// `cell/restart`: ends the kernel of a shell, also under a running cell. The next cell gets a new one.
    Restart = "cell/restart": ShellRef => Empty { needs: [Run], within: Tool };
}

/// What to run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunParams {
    /// The shell whose kernel runs it.
    #[serde(default)]
    pub shell: ShellName,
    /// The code.
    #[serde(default)]
    pub code: String,
    /// Run it in a new kernel. The former kernel ends, also under a running cell.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub restart: bool,
    /// Interrupt the cell after so long; 120 s when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_ms: Option<f64>,
    /// Send what it prints as it comes, as `$/progress` with [`CellProgress`].
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stream: bool,
}

/// A piece of what a cell prints, in order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CellProgress {
    /// The text, with the escape sequences of a terminal.
    pub text: String,
}

/// What a cell did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunResult {
    /// What it printed and displayed, as plain text, exceptions included. Of very much output, both ends with
    /// a line between them that says what is missing.
    pub text: String,
    /// Bytes left out there.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub omitted_bytes: u64,
    /// The pictures that it displayed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pictures: Vec<Picture>,
    /// How it ended.
    pub ended: CellEnding,
    /// Why the kernel is a new one, if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_kernel: Option<NewKernel>,
    /// The directory in which it ran: the shell's.
    pub cwd: String,
    /// The Python that ran it.
    pub python: String,
}

/// A picture that a cell displayed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Picture {
    /// `image/png`, `image/jpeg`, `image/gif` or `image/webp`.
    pub media_type: String,
    /// Its bytes.
    pub base64: String,
}

/// How a cell ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum CellEnding {
    /// It ran to its end.
    Finished,
    /// An exception ended it; its text is in the output.
    Raised,
    /// It took longer than `limitMs`.
    TimedOut,
    /// The kernel's process died under it. The next cell gets a new one.
    KernelDied,
}

/// Why a cell ran in a new kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum NewKernel {
    /// `restart` asked for it.
    Restarted,
    /// An earlier cell could not be interrupted.
    WasStuck,
}
