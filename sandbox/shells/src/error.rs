//! What can go wrong with a shell, and what the caller can do about it.

use std::{io, path::PathBuf};

use crate::ShellId;

/// The result of every fallible call on shells.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A failure of a shell operation. None of them harms another shell.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// tmux is missing or did not start. Install tmux 3.3 or later.
    #[error("tmux could not be started ({reason}); install tmux 3.3 or later, where PATH finds it")]
    TmuxMissing {
        /// What the operating system or tmux said.
        reason: String,
    },
    /// tmux refused a command. This is a bug of ours or a tmux of an unknown kind.
    #[error("tmux refused `{command}`: {reason}; check `tmux -V` (3.3 or later is needed)")]
    TmuxRefused {
        /// The tmux command's name.
        command: String,
        /// tmux's own words.
        reason: String,
    },
    /// tmux did not say whether it has carried out a command. Try again.
    #[error("tmux did not answer `{command}`: {reason}; try again")]
    TmuxSilent {
        /// The tmux command's name.
        command: String,
        /// Why there was no answer.
        reason: String,
    },
    /// The tmux server has ended, and with it every shell that it had. New ones get a new server.
    #[error("the tmux server has ended, and its shells with it; create the shell again")]
    ServerGone,
    /// Another process owns this state directory. Use its shells through it, or another directory.
    #[error("{} is in use by another process; choose another directory or end that process", root.display())]
    RootInUse {
        /// The contested directory.
        root: PathBuf,
    },
    /// The path of the state directory cannot be used for a Unix socket or inside tmux commands.
    #[error("{} cannot hold the shells: {reason}", root.display())]
    UnusableRoot {
        /// The offending directory.
        root: PathBuf,
        /// Why, and what would do.
        reason: &'static str,
    },
    /// A shell of this name exists. Choose another name, or close it first.
    #[error("a shell named {0} exists; choose another name or close it first")]
    ShellExists(ShellId),
    /// The shell was closed. Create a new one.
    #[error("shell {0} is closed; create a new one")]
    ShellClosed(ShellId),
    /// A command is still running in this shell. Wait for it, feed it or interrupt it.
    #[error(
        "command {seq} is still running in shell {shell}; wait for it, feed it or interrupt it"
    )]
    Busy {
        /// The busy shell.
        shell: ShellId,
        /// The running command.
        seq: u64,
    },
    /// Somebody attached to the shell runs a program in it. Wait until it ends.
    #[error(
        "a program that was started by hand is in the foreground of shell {0}; wait until it ends"
    )]
    OccupiedByHand(ShellId),
    /// The shell did not reach its first prompt in time; its start-up files may be at fault.
    #[error("shell {shell} did not reach its first prompt: {reason}")]
    ShellDidNotStart {
        /// The shell in question.
        shell: ShellId,
        /// What was seen instead.
        reason: String,
    },
    /// A request that can never succeed as it stands: the message names the part to change.
    #[error("{0}")]
    Invalid(String),
    /// The operating system refused something; the text says what was attempted.
    #[error("{what}: {source}")]
    Io {
        /// What was attempted.
        what: String,
        /// The system's answer.
        #[source]
        source: io::Error,
    },
}

impl Error {
    /// For `map_err`: names what was attempted when the system refused.
    pub(crate) fn io<E: Into<io::Error>>(what: impl Into<String>) -> impl FnOnce(E) -> Self {
        move |source| Self::Io { what: what.into(), source: source.into() }
    }
}
