//! Commands that run in shells, and what they print.

use serde::{Deserialize, Serialize};

use super::ShellName;

/// How long to wait for a command, and what to tell of it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WaitOptions {
    /// End the wait when nothing was printed for so long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quiet_ms: Option<f64>,
    /// End the wait after so long in any case. Without it, it ends with the command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_ms: Option<f64>,
    /// Whether to end the wait as soon as the command seems to wait for input.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub return_on_input: bool,
    /// Send the output as it comes, as `$/progress` with [`OutputProgress`].
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stream: bool,
    /// How many bytes of output the result may show; 30,000 when absent, never more than 4 MiB. Of more output
    /// it shows the beginning and the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_bytes: Option<u64>,
    /// Show only the end of the output: at most so many lines. Then `outputBytes` limits how many bytes at the
    /// end are looked at for them; 7 MiB when absent, never more than 64 MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_lines: Option<usize>,
    /// Keep colours in the text of the result.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub colours: bool,
}

/// What to run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct RunParams {
    /// In which shell.
    #[serde(default)]
    pub shell: ShellName,
    /// The text, of any number of lines.
    #[serde(default)]
    pub command: String,
    /// Start the shell, in the workspace, if it does not exist. `main` always is.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub create: bool,
    /// How long to wait.
    #[serde(flatten)]
    pub wait: WaitOptions,
}

/// What to wait for.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct WaitParams {
    /// In which shell.
    #[serde(default)]
    pub shell: ShellName,
    /// The number of the command, if it must be that one. Otherwise the latest is meant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<u64>,
    /// Stream and show only the output from this offset on, for instance from the `end` of an earlier result;
    /// from the command's beginning when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<u64>,
    /// How long to wait.
    #[serde(flatten)]
    pub wait: WaitOptions,
}

/// A piece of output, in the order of the log. A piece may be dropped on the way to a caller that is
/// slow; the next one's offset shows the gap, and `shell/read` fills it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OutputProgress {
    /// Where in the log it begins.
    pub offset: u64,
    /// Its bytes.
    pub base64: String,
}

/// What is known of a command when a wait for it has ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CommandState {
    /// In which shell.
    pub shell: ShellName,
    /// Its number there.
    pub command: u64,
    /// Whether it has ended.
    pub state: RunState,
    /// What it has printed.
    pub output: CommandOutput,
    /// Why the wait ended before the command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<WhyRunning>,
    /// What it seems to wait for. A guess.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<AwaitedInput>,
    /// What is known since it has ended.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub ending: Option<CommandEnding>,
}

/// Whether a command has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum RunState {
    /// It has.
    Finished,
    /// It goes on.
    Running,
    /// It goes on, and seems to wait for somebody to type.
    WaitingForInput,
}

/// Why a wait ended before the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum WhyRunning {
    /// Nothing was printed for `quietMs`.
    Quiet,
    /// `limitMs` has passed.
    Limit,
    /// It seems to wait for input.
    Input,
}

/// What a command seems to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum AwaitedInput {
    /// A line.
    Line,
    /// A line that is not shown, such as a password.
    Hidden,
    /// Single keys, as a pager or an editor does.
    Keys,
}

/// The output of a command, as a terminal would show it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CommandOutput {
    /// All of it, or its beginning and end with a line between them that says what is missing, or its last
    /// lines.
    pub text: String,
    /// Offset of its first byte in the log, or `from` of `shell/wait` where that lies behind it.
    pub start: u64,
    /// Offset behind its last byte so far. While the command runs, it lies behind a whole character and a whole
    /// escape sequence, so that a later wait can go on from it.
    pub end: u64,
    /// The bytes that the text leaves out; `shell/read` has them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub omitted: Option<Span>,
    /// With `outputLines`: how many lines the text has, if the output has more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_lines: Option<usize>,
    /// Bytes that could not be kept, since the log was full.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub lost: u64,
}

/// A part of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    /// Offset of the first byte.
    pub start: u64,
    /// Offset behind the last.
    pub end: u64,
}

/// What is known of a command that has ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CommandEnding {
    /// As `$?` shows it, 128 + n after signal n. Absent if the shell was taken away under it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// What became of the shell.
    pub ended: HowEnded,
    /// The shell's directory afterwards.
    pub cwd: String,
    /// How long it ran.
    pub duration_ms: f64,
    /// The latest background process of the shell (`$!`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub background_pid: Option<u32>,
    /// The Python that the shell would run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub python: Option<String>,
    /// The shell's user.
    pub user: String,
    /// The machine's name.
    pub machine: String,
}

/// What became of the shell when a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum HowEnded {
    /// It is at its prompt again.
    AtPrompt,
    /// It ended, too (`exit`, `exec`), and a new one was started in the same directory.
    ShellExited,
    /// It was closed.
    ShellClosed,
    /// The tmux server died, and all shells with it.
    ServerGone,
}

/// Which output to read.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ReadParams {
    /// Of which shell.
    #[serde(default)]
    pub shell: ShellName,
    /// From this offset on. When absent, the output of the latest command and no more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<u64>,
    /// At most so many bytes; 65,536 when absent, never more than 4 MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Only the end of it, as text: at most so many lines. Then `bytes` limits how many bytes at the end are looked
    /// at for them; 7 MiB when absent, never more than 64 MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines: Option<usize>,
    /// As the bytes that they are, in base64, instead of as text that a terminal would show.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub raw: bool,
    /// Keep colours in the text.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub colours: bool,
}

/// Output from the log: `text` or, if asked for, `base64`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReadResult {
    /// Offset of the first byte.
    pub start: u64,
    /// Offset behind the last; the next read begins here.
    pub end: u64,
    /// Bytes in the log by now.
    pub log_end: u64,
    /// Whether what was asked for, the command's output or the log, goes on behind `end`.
    pub more: bool,
    /// As a terminal would show it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// As it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base64: Option<String>,
    /// With `lines`: how many lines the text has, if there are more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_lines: Option<usize>,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // The signature that serde asks for.
const fn is_zero(value: &u64) -> bool {
    *value == 0
}
