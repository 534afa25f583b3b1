//! The states of a shell and of a command, and what is known in each.

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
    /// The shell is on its way to its first prompt.
    Starting,
    /// The shell waits at its prompt.
    Idle,
    /// This command is running.
    Running(Seq),
    /// The shell is over.
    Closed,
    /// It is over because the tmux server has died.
    Lost,
}

impl Phase {
    /// Whether nothing more can come of the shell.
    pub fn is_over(&self) -> bool {
        matches!(self, Self::Closed | Self::Lost)
    }
}

/// A shell at a glance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// What it is doing.
    pub phase: Phase,
    /// The shell's directory at its latest prompt.
    pub cwd: PathBuf,
    /// The shell.
    pub shell: ProcessId,
    /// The size of its terminal.
    pub size: Size,
    /// How often bash has died and been replaced.
    pub restarts: u32,
}

/// How a command came to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// The shell is at its prompt again.
    AtPrompt,
    /// The shell itself ended (`exit`, `exec`, `set -e`, a signal). A new one has been started in
    /// the directory of the latest prompt; variables and functions are gone.
    ShellExited,
    /// The shell was closed under it.
    ShellClosed,
    /// The tmux server died, and the shell with it.
    ServerGone,
}

/// What is known of a command that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandResult {
    /// The command.
    pub seq: Seq,
    /// The status as `$?` shows it; 128 + n after signal n, and -1 where there is none to know.
    pub exit_code: i32,
    /// How it ended.
    pub ended: Ended,
    /// The shell's directory afterwards.
    pub cwd: PathBuf,
    /// From the start of the evaluation to its end, as the recorder saw them.
    pub duration: Duration,
    /// The latest background process of the shell (`$!`).
    pub background_pid: Option<u32>,
    /// The `python` (or `python3`) that the shell would run.
    pub python: Option<PathBuf>,
    /// The shell's user name.
    pub user: String,
    /// The name of the machine.
    pub host: String,
    /// Where in the shell's log the output lies.
    pub output: Range<u64>,
    /// Bytes of output that could not be kept (quota, disk full); 0 as a rule.
    pub lost: u64,
}

/// What a job's handle can see.
#[derive(Debug, Clone, Default)]
pub(crate) struct JobStatus {
    pub(crate) started: Option<Started>,
    /// Bytes of output that could not be kept, as far as is known.
    pub(crate) lost: u64,
    pub(crate) result: Option<Arc<CommandResult>>,
}

/// The start marker's place in the log and in time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Started {
    pub(crate) offset: u64,
    pub(crate) at: SystemTime,
}

/// A path as the shell reports it.
pub(crate) fn path(bytes: Vec<u8>) -> PathBuf {
    OsString::from_vec(bytes).into()
}
