//! `cell/*`: Python code in a persistent IPython kernel. Each shell has a kernel of its own. It starts with the
//! first cell, in the shell's working directory and with the variables that the shell has exported.

use serde::{Deserialize, Serialize};

use super::shell::{ShellName, ShellRef};
use super::{Empty, methods};

methods! {
    /// `cell/run`: runs a cell and waits for its end. With `stream`, sends [`CellProgress`].
    Run = "cell/run": RunParams => RunResult { needs: [Run], time: Job };
    /// `cell/restart`: ends the kernel of a shell, even while a cell runs. The next cell gets a new kernel.
    Restart = "cell/restart": ShellRef => Empty { needs: [Run], time: Tool };
}

/// Parameters of `cell/run`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunParams {
    /// Name of the shell whose kernel runs the cell.
    #[serde(default)]
    pub shell: ShellName,
    /// Python code of the cell.
    #[serde(default)]
    pub code: String,
    /// Run the cell in a new kernel. The former kernel ends, even while a cell runs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub restart: bool,
    /// Interrupt the cell after this many milliseconds; 120 s when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_ms: Option<f64>,
    /// Stream the output as `$/progress` with [`CellProgress`].
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stream: bool,
}

/// A piece of a cell's output in `$/progress`, in order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CellProgress {
    /// The text, including terminal escape sequences.
    pub text: String,
}

/// Result of `cell/run`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunResult {
    /// Everything that the cell printed and displayed, as plain text, including exceptions. Of very long output
    /// it has the beginning and the end, with a line between them that says what is missing.
    pub text: String,
    /// Number of bytes that the text leaves out.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub omitted_bytes: u64,
    /// The pictures that the cell displayed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pictures: Vec<Picture>,
    /// How the cell ended.
    pub ended: CellEnding,
    /// Why the cell ran in a new kernel, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_kernel: Option<NewKernel>,
    /// Working directory of the cell, which is that of its shell.
    pub cwd: String,
    /// Path of the Python interpreter that ran the cell.
    pub python: String,
}

/// A picture that a cell displayed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Picture {
    /// Media type: `image/png`, `image/jpeg`, `image/gif` or `image/webp`.
    pub media_type: String,
    /// The bytes in base64.
    pub base64: String,
}

/// How a cell ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum CellEnding {
    /// The cell ran to its end.
    Finished,
    /// An exception ended the cell; the text of the exception is in the output.
    Raised,
    /// The cell took longer than `limitMs`.
    TimedOut,
    /// The kernel's process died while the cell ran. The next cell gets a new kernel.
    KernelDied,
}

/// Why a cell ran in a new kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum NewKernel {
    /// The caller set `restart`.
    Restarted,
    /// An earlier cell could not be interrupted.
    WasStuck,
}
