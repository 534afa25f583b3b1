//! `shell/*`: persistent shells, the commands that run in them, and their output.
//!
//! Times are in milliseconds. Offsets count the bytes of a shell's log from its start. Bytes that may not be
//! text are encoded in base64.

mod command;

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Empty, methods};

pub use command::{
    AwaitedInput, CommandEnding, CommandOutput, CommandState, OutputProgress, ReadParams,
    ReadResult, RunParams, RunState, ShellAfterCommand, Span, WaitEnd, WaitOptions, WaitParams,
};

methods! {
    /// `shell/create`: starts a shell and answers when it is at its first prompt.
    Create = "shell/create": CreateParams => ShellInfo { needs: [Run], time: Tool };
    /// `shell/list`: all shells, sorted by name.
    List = "shell/list": Empty => ListResult { needs: [Read], time: Tool };
    /// `shell/run`: runs a command in a shell and waits for it. When the wait ends early (by a limit, by
    /// `$/cancelRequest`, or because the caller disconnects), the command keeps running.
    Run = "shell/run": RunParams => CommandState { needs: [Run], time: Job };
    /// `shell/wait`: waits for the latest command of a shell.
    Wait = "shell/wait": WaitParams => CommandState { needs: [Read], time: Job };
    /// `shell/read`: reads the output of a shell, from an offset.
    Read = "shell/read": ReadParams => ReadResult { needs: [Read], time: Tool };
    /// `shell/input`: types a text into the terminal.
    Input = "shell/input": InputParams => Empty { needs: [Run], time: Tool };
    /// `shell/keys`: presses keys.
    Keys = "shell/keys": KeysParams => Empty { needs: [Run], time: Tool };
    /// `shell/signal`: sends a signal to the foreground process group.
    Signal = "shell/signal": SignalParams => Empty { needs: [Run], time: Tool };
    /// `shell/resize`: changes the size of the terminal.
    Resize = "shell/resize": ResizeParams => Empty { needs: [Run], time: Tool };
    /// `shell/close`: ends a shell with all its programs, and removes its log.
    Close = "shell/close": ShellRef => Empty { needs: [Run], time: Tool };
    /// `shell/attach`: the command line with which a person can watch a shell or type into it.
    Attach = "shell/attach": AttachParams => AttachResult { needs: [Run], time: Tool };
}

/// The name of a shell: `[A-Za-z0-9_-]{1,64}`. The default is `main`, which starts when it is first needed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ShellName(pub String);

impl ShellName {
    /// Name of the default shell.
    pub const MAIN: &'static str = "main";

    /// Name of the default shell for `action/execute`.
    pub fn agent() -> Self {
        Self("agent".to_owned())
    }

    pub(crate) fn is_agent(&self) -> bool {
        *self == Self::agent()
    }
}

impl Default for ShellName {
    fn default() -> Self {
        Self(Self::MAIN.to_owned())
    }
}

impl fmt::Display for ShellName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Parameters of methods that need only a shell.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ShellRef {
    /// Name of the shell.
    #[serde(default)]
    pub shell: ShellName,
}

/// Parameters of `shell/create`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct CreateParams {
    /// Name of the shell. When absent, a random name is chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shell: Option<ShellName>,
    /// If a shell of this name exists, use it unchanged. Without this flag, an existing name is a *Conflict*.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reuse: bool,
    /// Working directory of the new shell; the workspace when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Variables to add to the environment, which is otherwise that of the runtime.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, String>,
    /// Columns of the terminal; 160 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub columns: Option<u16>,
    /// Rows of the terminal; 48 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows: Option<u16>,
}

/// State of a shell, as `shell/create` and `shell/list` return it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ShellInfo {
    /// Name of the shell.
    pub shell: ShellName,
    /// Whether the shell is starting, idle, running a command, or closed.
    pub state: ShellState,
    /// Number of the running command, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<u64>,
    /// Working directory at the latest prompt.
    pub cwd: String,
    /// Process id of the shell itself.
    pub pid: u32,
    /// Columns of the terminal.
    pub columns: u16,
    /// Rows of the terminal.
    pub rows: u16,
    /// How often the shell process has ended and been replaced by a new one under this name.
    pub restarts: u32,
    /// Bytes in the log so far.
    pub log_end: u64,
}

/// Whether a shell is starting, idle, running a command, or closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ShellState {
    /// The shell has not shown its first prompt yet.
    Starting,
    /// The shell is at its prompt.
    Idle,
    /// A command is running.
    Running,
    /// The shell has been closed.
    Closed,
}

/// Result of `shell/list`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ListResult {
    /// All shells, sorted by name.
    pub shells: Vec<ShellInfo>,
}

/// Parameters of `shell/input`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct InputParams {
    /// Name of the shell.
    #[serde(default)]
    pub shell: ShellName,
    /// The text, typed unchanged.
    #[serde(default)]
    pub text: String,
    /// Press Enter after the text.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub enter: bool,
}

/// Parameters of `shell/keys`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct KeysParams {
    /// Name of the shell.
    #[serde(default)]
    pub shell: ShellName,
    /// Names of keys, pressed in this order: `C-c`, `C-d`, `M-x`, `UP`, `ENTER`, `TAB`, `ESC`, `F1` and so on.
    #[serde(default)]
    pub keys: Vec<String>,
}

/// Parameters of `shell/signal`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SignalParams {
    /// Name of the shell.
    #[serde(default)]
    pub shell: ShellName,
    /// The signal for the shell's foreground process group.
    pub signal: SignalName,
}

/// A signal, by its usual name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum SignalName {
    /// `SIGINT`, as Ctrl-C sends it.
    Int,
    /// `SIGTERM`: asks a process to end.
    Term,
    /// `SIGKILL`: ends a process at once; it cannot be caught.
    Kill,
    /// `SIGQUIT`, as Ctrl-\ sends it.
    Quit,
    /// `SIGHUP`: the terminal has been closed.
    Hup,
    /// `SIGCONT`: continues a stopped process.
    Cont,
    /// `SIGSTOP`: stops a process; it cannot be caught.
    Stop,
    /// `SIGUSR1`: its meaning is defined by the program.
    Usr1,
    /// `SIGUSR2`: its meaning is defined by the program.
    Usr2,
}

/// Parameters of `shell/resize`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ResizeParams {
    /// Name of the shell.
    #[serde(default)]
    pub shell: ShellName,
    /// New number of columns.
    pub columns: u16,
    /// New number of rows.
    pub rows: u16,
}

/// Parameters of `shell/attach`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AttachParams {
    /// Name of the shell.
    #[serde(default)]
    pub shell: ShellName,
    /// Watch only, without typing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub read_only: bool,
}

/// Result of `shell/attach`: a command that a person runs on the same machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AttachResult {
    /// The command as one line, quoted for a shell.
    pub command: String,
    /// The command as a list: program and arguments.
    pub arguments: Vec<String>,
}
