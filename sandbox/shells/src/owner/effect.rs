//! The effects of the owner: the driver carries them out and reports the outcome as an event.

use std::path::PathBuf;

use super::event::{AfterLedger, CallId, TakeBackReason, Text};
use crate::{
    Error,
    input::{Key, Signal},
    ledger::{Entry, Size},
    marker::{Kind, Seq},
    state::JobStatus,
};
use process_identity::ProcessId;

/// An action for the driver. Effects are carried out in order. Those that take time (tmux, the ledger, long texts)
/// continue in the background.
#[derive(Debug)]
pub(crate) enum Effect {
    /// Inspect the terminal and `/proc`; answered by [`Event::Inspected`](super::Event::Inspected) with the same
    /// number.
    Inspect {
        seq: Seq,
        inspection: Inspection,
    },
    /// The shell is at its first prompt: find its process, and unlink the pipe, so that only the shell and the owner
    /// can reach it.
    FindShell,
    /// Write the text to the file from which the shell takes it.
    WriteText {
        seq: Seq,
        call: CallId,
        text: Text,
    },
    /// Write fresh nonces to the pipe, and after that their digests to the file `expected`.
    WriteNonces {
        seq: Seq,
        kind: Kind,
    },
    /// Empty the nonce pipe, and report whether a start nonce was in it.
    TakeNoncesBack {
        seq: Seq,
        why: TakeBackReason,
    },
    /// Give the shell another nonce for the end of its command, in case it has lost the first.
    RenewEndNonce,
    /// Run an empty command with fresh nonces in a starting shell, so that it reports its prompt once more.
    ProbeStartingShell {
        seq: Seq,
    },
    WriteLedger {
        entry: Box<Entry>,
        after: AfterLedger,
    },
    /// Start a shell in the pane whose shell has died, in this directory or its nearest existing ancestor.
    LaunchShell {
        seq: Seq,
        cwd: PathBuf,
        is_recorded: bool,
    },
    /// Ask tmux to start a recorder for the pane.
    StartRecorder,
    /// Ask tmux for the exit code of the shell in the pane.
    QueryPane,
    /// Send SIGCHLD to the tmux server, so that it checks for ended children once more.
    SendServerSigchld,
    /// Press keys that control the builtin.
    Press(OwnKeys),
    /// Type bytes for a caller, and answer it when tmux has accepted them.
    Type {
        call: CallId,
        bytes: Text,
    },
    /// Press keys for a caller, and answer it when tmux has accepted them.
    PressFor {
        call: CallId,
        keys: Vec<Key>,
    },
    /// Send a signal to the foreground process group for a caller, and answer the caller.
    Signal {
        call: CallId,
        signal: Signal,
    },
    /// Empty the file `exports`, press the key on which the shell writes its environment there, and answer the
    /// caller.
    Export {
        call: CallId,
    },
    Resize {
        call: CallId,
        size: Size,
    },
    /// Send SIGINT to the shell itself.
    InterruptShell,
    KillLeader,
    /// Publish the new status of the shell ([`Owner::status`](super::Owner::status)).
    Publish,
    /// Publish the new status of a command. A number not seen before is a new command.
    PublishJob {
        seq: Seq,
        status: JobStatus,
    },
    Answer {
        call: CallId,
        reply: Result<Reply, Error>,
    },
    /// Kill the pane, all processes of the shell and the recorder, and remove the files.
    CleanUp {
        recorder: Option<ProcessId>,
    },
    /// Stop the driver: the owner has nothing more to do.
    Finish,
}

/// What to inspect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Inspection {
    /// Whether a program other than the shell has the terminal.
    Foreground,
    /// Whether the shell is at its prompt.
    Shell,
    /// Whether a shell that is starting is at its prompt.
    Starting,
}

/// Keys by which the owner controls the builtin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OwnKeys {
    /// The key bound by the builtin that runs the command in the file.
    Run,
    /// Runs the command in the file by typing the builtin's name, with keys that bash binds by default.
    TypeRun,
    /// Makes the builtin report the end of its last command again.
    Recover,
}

/// A successful answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reply {
    Done,
    /// The command was handed over with this number; its status was published.
    Command(Seq),
}
