//! What the owner wants to be done: the driver does it, and tells how it went by an event.

use std::path::PathBuf;

use super::event::{AfterLedger, CallId, TakeBack, Text};
use crate::{
    Error,
    input::{Key, Signal},
    ledger::{Entry, Size},
    marker::{Kind, Seq},
    state::JobStatus,
};
use process_identity::ProcessId;

/// Something to be done. Effects are carried out in order. Those that take time (tmux, the ledger, long texts)
/// go on in the background.
#[derive(Debug)]
pub(crate) enum Effect {
    /// Look at the kernel's tables; answered by [`Event::Seen`](super::Event::Seen) with the same number.
    Look {
        seq: Seq,
        look: Look,
    },
    /// The shell is at its first prompt: find its process, and remove the name of the pipe, so that only the
    /// shell and the owner can reach it.
    FindShell,
    /// Put the text where the shell takes it from.
    WriteText {
        seq: Seq,
        call: CallId,
        text: Text,
    },
    /// Put fresh nonces into the pipe, and after that their digests into the file `expected`.
    WriteNonces {
        seq: Seq,
        kind: Kind,
    },
    /// Read the pipe empty.
    TakeNoncesBack {
        seq: Seq,
        why: TakeBack,
    },
    /// Give the shell another nonce for the end of its command, in case it has lost the first.
    RenewEndNonce,
    /// Call a starting shell with an empty text and fresh nonces, so that it reports its prompt once more.
    CallWithNothing {
        seq: Seq,
    },
    WriteLedger {
        entry: Box<Entry>,
        after: AfterLedger,
    },
    /// Start a shell in the pane whose shell has died, in this directory or the nearest one above it that exists.
    LaunchShell {
        seq: Seq,
        cwd: PathBuf,
        is_recorded: bool,
    },
    /// Have tmux start a recorder for the pane.
    OrderRecorder,
    /// Ask tmux how the shell in the pane has ended.
    AskPane,
    /// Make the server look for ended children once more.
    NudgeServer,
    /// Press keys of ours.
    Press(OwnKeys),
    /// Type bytes for a caller, and answer it when tmux has taken them.
    Type {
        call: CallId,
        bytes: Text,
    },
    /// Press keys for a caller, and answer it when tmux has taken them.
    PressFor {
        call: CallId,
        keys: Vec<Key>,
    },
    /// Signal the foreground for a caller, and answer it.
    Signal {
        call: CallId,
        signal: Signal,
    },
    /// Press the key on which the shell writes its environment to the emptied file `exports`, and answer.
    Export {
        call: CallId,
    },
    Resize {
        call: CallId,
        size: Size,
    },
    /// Send the shell itself an interrupt.
    InterruptShell,
    KillLeader,
    /// The status of a shell has changed ([`Owner::status`](super::Owner::status)).
    Publish,
    /// The status of a command has changed; a number that is new is a new command.
    PublishJob {
        seq: Seq,
        status: JobStatus,
    },
    Answer {
        call: CallId,
        reply: Result<Reply, Error>,
    },
    /// End the pane, all processes of the shell and the recorder, and remove the files.
    Tidy {
        recorder: Option<ProcessId>,
    },
    /// The owner has nothing more to do.
    Finish,
}

/// What to look at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Look {
    /// Whether a program other than the shell has the terminal.
    Foreground,
    /// Whether the shell is at its prompt.
    Shell,
    /// Whether a shell that is starting is at its prompt.
    Starting,
}

/// Keys that the builtin binds, or that bash has from birth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OwnKeys {
    /// Runs the command that lies ready.
    Run,
    /// The same with keys that bash has from birth.
    Call,
    /// The builtin tells again how its last command has ended.
    Recover,
}

/// A good answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reply {
    Done,
    /// The command has this number; its status was published.
    Command(Seq),
}
