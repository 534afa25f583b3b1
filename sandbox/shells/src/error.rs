//! The errors of shells, and what the caller can do about each.

use std::{io, path::PathBuf};

use crate::{ShellId, Size};

/// The result of every fallible call on shells.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A failed operation on a shell. No failure affects another shell.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// tmux is missing or did not start. Install tmux 3.3 or later.
    #[error(
        "tmux could not be started ({reason}); install tmux 3.3 or later in a directory of PATH"
    )]
    TmuxMissing {
        /// The error of the operating system or of tmux.
        reason: String,
    },
    /// tmux rejected a command. This is a bug of ours, or an unsupported version of tmux.
    #[error("tmux refused `{command}`: {reason}; check `tmux -V` (3.3 or later is needed)")]
    TmuxRefused {
        /// The name of the tmux command.
        command: String,
        /// The error message of tmux.
        reason: String,
    },
    /// tmux did not report whether it has carried out a command. Try again.
    #[error("tmux did not answer `{command}`: {reason}; try again")]
    TmuxSilent {
        /// The name of the tmux command.
        command: String,
        /// Why there was no answer.
        reason: String,
    },
    /// The tmux server has ended, and with it all its shells. Create the shell again; it gets a new server.
    #[error("the tmux server has ended, and its shells with it; create the shell again")]
    ServerGone,
    /// Another process owns this state directory. Use the shells through that process, or choose another directory.
    #[error("{} is in use by another process; choose another directory or end that process", root.display())]
    RootInUse {
        /// The state directory.
        root: PathBuf,
    },
    /// The state directory cannot be used, for instance because it has files that are not ours. Choose another.
    #[error("{} cannot hold the shells: {reason}", root.display())]
    UnusableRoot {
        /// The state directory.
        root: PathBuf,
        /// Why it cannot be used, and what to choose instead.
        reason: String,
    },
    /// The terminal is too small or too large. Choose a size between 2 × 2 and [`Size::LARGEST`].
    #[error("a terminal cannot have {size}; choose 2 to {} columns and 2 to {} rows", Size::LARGEST.columns, Size::LARGEST.rows)]
    TerminalSize {
        /// The size that was asked for.
        size: Size,
    },
    /// A shell with this name exists. Choose another name, or close that shell first.
    #[error("a shell named {0} exists; choose another name or close it first")]
    ShellExists(ShellId),
    /// The shell was closed. Create a new one.
    #[error("shell {0} is closed; create a new one")]
    ShellClosed(ShellId),
    /// A command is still running in this shell. Wait for it, send it input or interrupt it.
    #[error(
        "command {seq} is still running in shell {shell}; wait for it, send it input or interrupt it"
    )]
    Busy {
        /// The busy shell.
        shell: ShellId,
        /// The running command.
        seq: u64,
    },
    /// A person attached to the shell runs a program in it. Wait until it ends.
    #[error("a person has started a program in shell {0}; wait until it ends")]
    OccupiedByHand(ShellId),
    /// The shell did not reach its first prompt in time. Check its start-up files.
    #[error("shell {shell} did not reach its first prompt: {reason}")]
    ShellDidNotStart {
        /// The shell that did not start.
        shell: ShellId,
        /// What happened instead.
        reason: String,
    },
    /// An invalid request. The message names the part to change.
    #[error("{0}")]
    Invalid(String),
    /// An operating system error; `what` says what was attempted.
    #[error("{what}: {source}")]
    Io {
        /// What was attempted.
        what: String,
        /// The error of the operating system.
        #[source]
        source: io::Error,
    },
}

impl Error {
    /// For `map_err`: adds what was attempted to an operating system error.
    pub(crate) fn io<E: Into<io::Error>>(what: impl Into<String>) -> impl FnOnce(E) -> Self {
        move |source| Self::Io { what: what.into(), source: source.into() }
    }
}
