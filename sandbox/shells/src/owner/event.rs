//! What can happen to a shell: every fact that its owner decides by.

use std::{
    fmt,
    time::{Instant, SystemTime},
};

use crate::{
    Result,
    input::{Key, Signal},
    ledger::Size,
    marker::Seq,
    output::index::{Line, What},
};
use process_identity::ProcessId;

/// The clocks and the length of the log, as the driver reads them before each event.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment {
    /// For deadlines.
    pub(crate) now: Instant,
    /// For reports.
    pub(crate) wall: SystemTime,
    /// Length of the log, for an event that [needs it](Event::needs_log_end). Where a marker is missing, this bounds
    /// the output of its command.
    pub(crate) log_end: u64,
}

/// A caller that waits for one answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct CallId(pub(crate) u64);

/// The text of a command. Its `Debug` shows only the length: texts may hold passwords, and traces are kept.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Text(pub(crate) Vec<u8>);

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Text({} bytes)", self.0.len())
    }
}

/// Something that callers ask of a shell.
#[derive(Debug)]
pub(crate) enum Request {
    Run(Text),
    /// Bytes for the terminal, as if typed.
    Type(Text),
    Press(Vec<Key>),
    Signal(Signal),
    Resize(Size),
    /// The shell writes its environment to the file `exports`.
    Export,
    Close,
}

/// Something that has happened.
#[derive(Debug)]
pub(crate) enum Event {
    /// A caller asks for something and waits for the answer.
    Asked {
        call: CallId,
        request: Request,
    },
    /// A waiting caller found the command quiet and the shell at a prompt.
    LooksIdle,
    /// The recorder has written a line to the index.
    Recorded(Line),
    /// The answer to [`Effect::Look`](super::Effect::Look).
    Seen {
        seq: Seq,
        sight: Sight,
    },
    /// The answer to [`Effect::FindShell`](super::Effect::FindShell).
    ShellFound(ProcessId),
    /// The answer to [`Effect::WriteText`](super::Effect::WriteText).
    TextWritten {
        seq: Seq,
        result: Result<TextState>,
    },
    /// The answer to [`Effect::WriteNonces`](super::Effect::WriteNonces).
    NoncesWritten {
        seq: Seq,
        result: Result<()>,
    },
    /// The answer to [`Effect::TakeNoncesBack`](super::Effect::TakeNoncesBack).
    NoncesTakenBack {
        seq: Seq,
        held: Held,
        why: TakeBack,
    },
    /// The answer to [`Effect::WriteLedger`](super::Effect::WriteLedger).
    LedgerWritten {
        after: AfterLedger,
        result: Result<()>,
    },
    /// The answer to [`Effect::LaunchShell`](super::Effect::LaunchShell): the new leader.
    Launched {
        seq: Seq,
        result: Result<ProcessId>,
    },
    /// The answer to [`Effect::AskPane`](super::Effect::AskPane).
    PaneSeen(Result<PaneSight>),
    /// The answer to [`Effect::OrderRecorder`](super::Effect::OrderRecorder).
    RecorderOrdered(Result<()>),
    /// The answer to [`Effect::Resize`](super::Effect::Resize).
    Resized {
        call: CallId,
        size: Size,
        result: Result<()>,
    },
    /// The process that tmux has started in the pane has ended.
    LeaderEnded(ProcessId),
    RecorderEnded(ProcessId),
    /// The tmux server has ended.
    ServerGone,
    /// tmux has answered [`Effect::Tidy`](super::Effect::Tidy)'s question to end the pane.
    PaneKilled,
    /// tmux has not answered that question soon.
    TmuxSilent,
    /// Nothing is left of the shell: neither processes nor files.
    Tidied,
    /// A deadline has passed.
    TimePassed,
}

impl Event {
    /// Whether a decision about it may need the length of the log. The events of a plain command do not, which saves
    /// it a few system calls.
    pub(crate) fn needs_log_end(&self) -> bool {
        match self {
            Self::Recorded(line) => matches!(line.what, What::Opened { .. }),
            Self::Asked { .. }
            | Self::LooksIdle
            | Self::Seen { .. }
            | Self::ShellFound(_)
            | Self::TextWritten { .. }
            | Self::NoncesWritten { .. } => false,
            _ => true,
        }
    }
}

/// What one look at the kernel's tables has shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sight {
    /// Whether a program other than the shell has the terminal.
    Foreground { is_taken: bool },
    /// How the shell reads from its terminal.
    Shell { reads: Reads },
    /// The same for a shell that is starting.
    Starting { is_at_prompt: bool },
}

/// How a shell reads from its terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reads {
    /// It edits a line, and not because a text reads one: it is at its prompt.
    AtPrompt,
    /// It reads the rest of a text from the terminal, because the text has turned line editing off.
    PlainLines,
    /// Neither, or something else has the terminal.
    Nothing,
}

/// Whether a text still has a caller who waits for it when it lies ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TextState {
    Wanted,
    /// The caller has gone away before the command was handed over.
    Abandoned,
}

/// What lay in the pipe of the nonces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Held {
    /// The nonce of the start, which the shell now cannot take: the command has not begun, and does not.
    Nonces,
    /// Not that one: the shell has taken it, and has begun. A nonce of the end alone may be a second one.
    Nothing,
}

/// Why nonces are taken back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TakeBack {
    /// To send the command again, if it has not begun.
    Resend,
    /// To keep an interrupted command from beginning.
    Cancel,
    /// They could not be handed over whole.
    Discard,
}

/// What follows the writing of the ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AfterLedger {
    /// The next shell is launched.
    Launch(Seq),
    /// A caller is answered.
    Answer(CallId),
    /// A command that was given up is reported.
    Report(Seq),
    Nothing,
}

/// What tmux says about a pane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PaneSight {
    Alive,
    /// Dead, and its exit status is not known yet.
    Dying,
    /// Dead with this exit code.
    Dead(i32),
}
