//! Commands that run in shells, and their output.

use serde::{Deserialize, Serialize};

use super::ShellName;

/// How long to wait for a command, and how to return its output.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WaitOptions {
    /// End the wait when the command has printed nothing for this many milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quiet_ms: Option<f64>,
    /// End the wait after this many milliseconds in any case. When absent, the wait ends with the command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_ms: Option<f64>,
    /// End the wait as soon as the command seems to wait for input.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub return_on_input: bool,
    /// Stream the output as `$/progress` with [`OutputProgress`].
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stream: bool,
    /// Most bytes of output in the result: 30,000 when absent, never more than 4 MiB. Of longer output it has the
    /// beginning and the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_bytes: Option<u64>,
    /// Return only the end of the output, at most this many lines. `outputBytes` then limits how many bytes at the
    /// end are searched for these lines; 7 MiB when absent, never more than 64 MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_lines: Option<usize>,
    /// Keep colours in the text of the result.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub colours: bool,
}

/// Parameters of `shell/run`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct RunParams {
    /// Name of the shell.
    #[serde(default)]
    pub shell: ShellName,
    /// Text of the command, of any number of lines.
    #[serde(default)]
    pub command: String,
    /// Start the shell, in the workspace, if it does not exist. `main` is always started.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub create: bool,
    /// How long to wait.
    #[serde(flatten)]
    pub wait: WaitOptions,
}

/// Parameters of `shell/wait`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct WaitParams {
    /// Name of the shell.
    #[serde(default)]
    pub shell: ShellName,
    /// Number of the command to wait for; the latest command when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<u64>,
    /// Stream and return only the output from this offset on, for instance from the `end` of an earlier result;
    /// from the beginning of the command's output when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<u64>,
    /// How long to wait.
    #[serde(flatten)]
    pub wait: WaitOptions,
}

/// A piece of output in `$/progress`, in the order of the log. The daemon may drop pieces for a slow caller;
/// the offset of the next piece shows the gap, and `shell/read` returns the missing bytes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OutputProgress {
    /// Offset of the first byte in the log.
    pub offset: u64,
    /// The bytes in base64.
    pub base64: String,
}

/// Result of `shell/run` and `shell/wait`: the state of a command when the wait ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CommandState {
    /// Name of the shell.
    pub shell: ShellName,
    /// Number of the command in its shell.
    pub command: u64,
    /// Whether the command has ended.
    pub state: RunState,
    /// Output of the command so far.
    pub output: CommandOutput,
    /// Why the wait ended before the command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<WaitEnd>,
    /// Kind of input that the command seems to wait for. This is a guess.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<AwaitedInput>,
    /// Exit code and other facts. Present only if the command has ended.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub ending: Option<CommandEnding>,
}

/// Whether a command has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum RunState {
    /// The command has ended.
    Finished,
    /// The command is still running.
    Running,
    /// The command is still running and seems to wait for input from the terminal.
    WaitingForInput,
}

/// Why a wait ended before the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum WaitEnd {
    /// The command printed nothing for `quietMs`.
    Quiet,
    /// `limitMs` has passed.
    Limit,
    /// The command seems to wait for input.
    Input,
}

/// Kind of input that a command seems to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum AwaitedInput {
    /// A line of text.
    Line,
    /// A line of text that the terminal does not show, such as a password.
    Hidden,
    /// Single keys, as in a pager or an editor.
    Keys,
}

/// The output of a command, as a terminal would show it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CommandOutput {
    /// The whole output, or its beginning and end with a line between them that says what is missing, or its
    /// last lines.
    pub text: String,
    /// Offset of the output's first byte in the log, or `from` of `shell/wait` if that is larger.
    pub start: u64,
    /// Offset after the output's last byte so far. While the command runs, it is never within a character or an
    /// escape sequence, so that a later wait can continue from it.
    pub end: u64,
    /// The bytes that the text leaves out; `shell/read` returns them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub omitted: Option<Span>,
    /// With `outputLines`: the number of lines in the text. Present only if the output has more lines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_lines: Option<usize>,
    /// Number of bytes that could not be recorded, because the log was full.
    #[serde(default, skip_serializing_if = "crate::methods::is_zero")]
    pub lost: u64,
}

/// A range of bytes in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    /// Offset of the first byte.
    pub start: u64,
    /// Offset after the last byte.
    pub end: u64,
}

/// Facts about a command that has ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CommandEnding {
    /// Exit code as in `$?`; 128 + n after signal n. Absent if the shell ended before it could report one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// State of the shell after the command.
    pub ended: ShellAfterCommand,
    /// Working directory of the shell after the command.
    pub cwd: String,
    /// How long the command ran, in milliseconds.
    pub duration_ms: f64,
    /// Process id of the shell's latest background process (`$!`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub background_pid: Option<u32>,
    /// Path of the Python interpreter that the shell would run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub python: Option<String>,
    /// User name in the shell.
    pub user: String,
    /// Name of the machine.
    pub machine: String,
}

/// State of the shell after a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ShellAfterCommand {
    /// The shell is at its prompt again.
    AtPrompt,
    /// The shell ended, too (`exit`, `exec`), and a new one was started in the same directory.
    ShellExited,
    /// The shell was closed.
    ShellClosed,
    /// The tmux server died, and all shells with it.
    ServerGone,
}

/// Parameters of `shell/read`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ReadParams {
    /// Name of the shell.
    #[serde(default)]
    pub shell: ShellName,
    /// Offset from which to read. When absent, only the output of the latest command is read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<u64>,
    /// Most bytes to return: 65,536 when absent, never more than 4 MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Return only the end, as text, at most this many lines. `bytes` then limits how many bytes at the end are
    /// searched for these lines; 7 MiB when absent, never more than 64 MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines: Option<usize>,
    /// Return the bytes in base64, instead of text as a terminal would show it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub raw: bool,
    /// Keep colours in the text.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub colours: bool,
}

/// Result of `shell/read`: `text` or, with `raw`, `base64`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReadResult {
    /// Offset of the first byte.
    pub start: u64,
    /// Offset after the last byte. The next read begins here.
    pub end: u64,
    /// Bytes in the log so far.
    pub log_end: u64,
    /// Whether there is more after `end`: of the log or, without `from`, of the command's output.
    pub more: bool,
    /// The output as a terminal would show it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The bytes of the output in base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base64: Option<String>,
    /// With `lines`: the number of lines in the text. Present only if there are more lines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_lines: Option<usize>,
}
