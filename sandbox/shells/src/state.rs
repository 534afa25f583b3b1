//! The public states of a shell and of a command.

use std::{
    ffi::OsString,
    ops::Range,
    os::unix::ffi::OsStringExt as _,
    path::PathBuf,
    sync::Arc,
    time::{Duration, SystemTime},
};

use super::{ledger::Size, marker::Seq};
use process_identity::ProcessId;

/// What a shell is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Phase {
    /// The shell has not reached its first prompt yet.
    Starting,
    /// The shell waits at its prompt.
    Idle,
    /// This command is running.
    Running(Seq),
    /// The shell is closed.
    Closed,
    /// The shell ended because the tmux server died.
    Lost,
}

impl Phase {
    /// Whether the shell has ended for good.
    pub fn is_over(&self) -> bool {
        matches!(self, Self::Closed | Self::Lost)
    }
}

/// The present status of a shell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// What the shell is doing.
    pub phase: Phase,
    /// The shell's directory at its latest prompt.
    pub cwd: PathBuf,
    /// The process of the shell.
    pub shell: ProcessId,
    /// The size of its terminal.
    pub size: Size,
    /// How often bash has died and been replaced.
    pub restarts: u32,
}

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// The shell is at its prompt again.
    AtPrompt,
    /// The shell itself ended (`exit`, `exec`, `set -e`, a signal). A new one was started in the directory of the
    /// latest prompt; variables and functions are lost.
    ShellExited,
    /// The shell was closed while the command ran.
    ShellClosed,
    /// The tmux server died, and the shell with it.
    ServerGone,
}

/// The result of a command that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandResult {
    /// The number of the command.
    pub seq: Seq,
    /// The exit status as `$?` shows it; 128 + n after signal n, and -1 if it is unknown.
    pub exit_code: i32,
    /// How it ended.
    pub ended: Ended,
    /// The shell's directory afterwards.
    pub cwd: PathBuf,
    /// The time from start to end of the command, as the recorder saw its markers.
    pub duration: Duration,
    /// The latest background process of the shell (`$!`).
    pub background_pid: Option<u32>,
    /// The path of the `python` (or `python3`) that the shell would run.
    pub python: Option<PathBuf>,
    /// The shell's user name.
    pub user: String,
    /// The name of the machine (its host name).
    pub machine: String,
    /// The range of the shell's log that holds the output.
    pub output: Range<u64>,
    /// Bytes of output that could not be recorded (quota, full disk); usually 0.
    pub lost: u64,
}

/// The status of a command, as its handle sees it.
#[derive(Debug, Clone, Default)]
pub(crate) struct JobStatus {
    pub(crate) started: Option<Started>,
    /// Bytes of output that could not be recorded, as far as is known.
    pub(crate) lost: u64,
    pub(crate) result: Option<Arc<CommandResult>>,
}

/// The log offset and the time of the start marker.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Started {
    pub(crate) offset: u64,
    pub(crate) at: SystemTime,
}

/// Converts a path as the shell reports it.
pub(crate) fn path(bytes: Vec<u8>) -> PathBuf {
    OsString::from_vec(bytes).into()
}
