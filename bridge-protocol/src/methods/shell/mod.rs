//! `shell/*`: persistent shells, the commands that run in them, and what they print.
//!
//! Times are in milliseconds, offsets count the bytes of a shell's log from its start, and bytes that need
//! not be text travel in base64.

mod command;

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Empty, methods};

pub use command::{
    AwaitedInput, CommandEnding, CommandOutput, CommandState, HowEnded, OutputProgress, ReadParams,
    ReadResult, RunParams, RunState, Span, WaitOptions, WaitParams, WhyRunning,
};

methods! {
    /// `shell/create`: starts a shell and answers when it is at its first prompt.
    Create = "shell/create": CreateParams => ShellInfo { needs: [Run], within: Tool };
    /// `shell/list`: all shells, by name.
    List = "shell/list": Empty => ListResult { needs: [Read], within: Tool };
    /// `shell/run`: runs a text in a shell, and waits as long as asked. When the wait ends, by a limit, a
    /// cancel or the caller's end, the command goes on.
    Run = "shell/run": RunParams => CommandState { needs: [Run], within: Work };
    /// `shell/wait`: waits for the latest command of a shell.
    Wait = "shell/wait": WaitParams => CommandState { needs: [Read], within: Work };
    /// `shell/read`: what a shell has printed, from an offset.
    Read = "shell/read": ReadParams => ReadResult { needs: [Read], within: Tool };
    /// `shell/input`: types a text into the terminal.
    Input = "shell/input": InputParams => Empty { needs: [Run], within: Tool };
    /// `shell/keys`: presses keys.
    Keys = "shell/keys": KeysParams => Empty { needs: [Run], within: Tool };
    /// `shell/signal`: signals the programs in the foreground.
    Signal = "shell/signal": SignalParams => Empty { needs: [Run], within: Tool };
    /// `shell/resize`: changes the size of the terminal.
    Resize = "shell/resize": ResizeParams => Empty { needs: [Run], within: Tool };
    /// `shell/close`: ends a shell with all its programs, and removes its log.
    Close = "shell/close": ShellRef => Empty { needs: [Run], within: Tool };
    /// `shell/attach`: the command with which a person can watch a shell, or type along.
    Attach = "shell/attach": AttachParams => AttachResult { needs: [Run], within: Tool };
}

/// The name of a shell, `[A-Za-z0-9_-]{1,64}`. Where none is given it is `main`, which is started when it
/// is first needed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ShellName(pub String);

impl ShellName {
    /// The shell that needs no name.
    pub const MAIN: &'static str = "main";

    /// The shell of an agent that does not choose one.
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

/// Names a shell.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ShellRef {
    /// Which shell.
    #[serde(default)]
    pub shell: ShellName,
}

/// What a new shell should be like.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct CreateParams {
    /// Its name; drawn when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shell: Option<ShellName>,
    /// If there is a shell of this name, use it as it is. Otherwise an existing name is a *Conflict*.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reuse: bool,
    /// Where it starts; the workspace when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Variables to add to the environment of the runtime that serves it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, String>,
    /// Width of its terminal; 160 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub columns: Option<u16>,
    /// Height of its terminal; 48 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows: Option<u16>,
}

/// A shell at a glance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ShellInfo {
    /// Its name.
    pub shell: ShellName,
    /// What it is doing.
    pub state: ShellState,
    /// The command that runs in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<u64>,
    /// Its directory at the latest prompt.
    pub cwd: String,
    /// Process of the shell itself.
    pub pid: u32,
    /// Width of its terminal.
    pub columns: u16,
    /// Height of its terminal.
    pub rows: u16,
    /// How many shells under this name have ended and been replaced.
    pub restarts: u32,
    /// Bytes in its log so far.
    pub log_end: u64,
}

/// What a shell is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ShellState {
    /// On its way to its first prompt.
    Starting,
    /// At its prompt.
    Idle,
    /// A command is running.
    Running,
    /// Over.
    Closed,
}

/// All shells.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ListResult {
    /// By name.
    pub shells: Vec<ShellInfo>,
}

/// What to type.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct InputParams {
    /// Into which shell.
    #[serde(default)]
    pub shell: ShellName,
    /// The text, as it is.
    #[serde(default)]
    pub text: String,
    /// Press Enter after it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub enter: bool,
}

/// Which keys to press.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct KeysParams {
    /// In which shell.
    #[serde(default)]
    pub shell: ShellName,
    /// `C-c`, `C-d`, `M-x`, `UP`, `ENTER`, `TAB`, `ESC`, `F1` and so on, one after the other.
    #[serde(default)]
    pub keys: Vec<String>,
}

/// Which signal to send.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SignalParams {
    /// To the foreground of which shell.
    #[serde(default)]
    pub shell: ShellName,
    /// Which.
    pub signal: SignalName,
}

/// Signals by their usual names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum SignalName {
    /// As Ctrl-C does.
    Int,
    /// Asks to end.
    Term,
    /// Ends without asking.
    Kill,
    /// As Ctrl-\ does.
    Quit,
    /// The terminal is gone.
    Hup,
    /// Goes on after a stop.
    Cont,
    /// Stops.
    Stop,
    /// For the program's own use.
    Usr1,
    /// For the program's own use.
    Usr2,
}

/// The new size of a terminal.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ResizeParams {
    /// Of which shell.
    #[serde(default)]
    pub shell: ShellName,
    /// Characters in a line.
    pub columns: u16,
    /// Lines on the screen.
    pub rows: u16,
}

/// How to attach.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AttachParams {
    /// To which shell.
    #[serde(default)]
    pub shell: ShellName,
    /// Watch only.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub read_only: bool,
}

/// What a person runs to attach.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AttachResult {
    /// A line for a shell.
    pub command: String,
    /// The same as program and arguments.
    pub arguments: Vec<String>,
}
