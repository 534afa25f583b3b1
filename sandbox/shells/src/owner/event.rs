//! The events of a shell: every fact on which its owner bases a decision.

use std::{
    fmt,
    time::{Instant, SystemTime},
};

use crate::{
    Result,
    input::{Key, Signal},
    ledger::Size,
    marker::Seq,
    output::index::{IndexEvent, IndexLine},
};
use process_identity::ProcessId;

/// The clocks and the length of the log, read by the driver before each event.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment {
    /// The monotonic clock, for deadlines.
    pub(crate) now: Instant,
    /// The wall clock, for reports.
    pub(crate) wall: SystemTime,
    /// Length of the log, valid for events that [need it](Event::needs_log_end). It bounds the output of a command
    /// whose marker is missing.
    pub(crate) log_end: u64,
}

/// Identifies a caller that waits for one answer.
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

/// A request of a caller to the shell.
#[derive(Debug)]
pub(crate) enum Request {
    Run(Text),
    /// Types these bytes into the terminal.
    Type(Text),
    Press(Vec<Key>),
    Signal(Signal),
    Resize(Size),
    /// Makes the shell write its environment to the file `exports`.
    Export,
    Close,
}

/// An event that the owner decides about.
#[derive(Debug)]
pub(crate) enum Event {
    /// A caller sent a request and waits for the answer.
    Requested {
        call: CallId,
        request: Request,
    },
    /// A caller waiting for a command found it quiet and the shell at a prompt.
    LooksIdle,
    /// The recorder wrote a line to the index.
    Recorded(IndexLine),
    /// The answer to [`Effect::Inspect`](super::Effect::Inspect).
    Inspected {
        seq: Seq,
        finding: Finding,
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
        found: PipeContent,
        why: TakeBackReason,
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
    /// The answer to [`Effect::QueryPane`](super::Effect::QueryPane).
    PaneQueried(Result<PaneStatus>),
    /// The answer to [`Effect::StartRecorder`](super::Effect::StartRecorder).
    RecorderStarted(Result<()>),
    /// The answer to [`Effect::Resize`](super::Effect::Resize).
    Resized {
        call: CallId,
        size: Size,
        result: Result<()>,
    },
    /// The process that tmux started in the pane has ended.
    LeaderEnded(ProcessId),
    RecorderEnded(ProcessId),
    /// The tmux server has ended.
    ServerGone,
    /// tmux did not kill the pane in time; cleanup continues without it.
    TmuxSilent,
    /// All processes and files of the shell are gone.
    CleanedUp,
    /// A deadline has passed.
    TimePassed,
}

impl Event {
    /// Whether a decision about this event may need the length of the log. The events of an ordinary command do not,
    /// which saves it a few system calls.
    pub(crate) fn needs_log_end(&self) -> bool {
        match self {
            Self::Recorded(line) => matches!(line.event, IndexEvent::Opened { .. }),
            Self::Requested { .. }
            | Self::LooksIdle
            | Self::Inspected { .. }
            | Self::ShellFound(_)
            | Self::TextWritten { .. }
            | Self::NoncesWritten { .. } => false,
            _ => true,
        }
    }
}

/// The result of one inspection of `/proc` and the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Finding {
    /// Whether a program other than the shell has the terminal.
    Foreground { is_taken: bool },
    /// How the shell reads from its terminal.
    Shell { mode: ReadMode },
    /// Whether a shell that is starting has reached its prompt.
    Starting { is_at_prompt: bool },
}

/// How a shell reads from its terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReadMode {
    /// It edits a line, and no command text is reading that line: it is at its prompt.
    AtPrompt,
    /// It reads the rest of a command text from the terminal, because the text has turned line editing off.
    PlainLines,
    /// Neither of these, or another program has the terminal.
    Nothing,
}

/// Whether the caller of a command still waits once its text has been written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TextState {
    Wanted,
    /// The caller went away before the command was handed over.
    Abandoned,
}

/// What the owner found when it emptied the nonce pipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PipeContent {
    /// The start nonce. The shell can no longer take it: the command has not begun, and will not.
    Nonces,
    /// No start nonce: the shell took it and has begun. An end nonce alone may be a replacement.
    Nothing,
}

/// Why the owner takes nonces back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TakeBackReason {
    /// To send the command again, if it has not begun.
    Resend,
    /// To prevent an interrupted command from beginning.
    Cancel,
    /// To remove nonces that were not written completely.
    Discard,
}

/// The next step after the ledger was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AfterLedger {
    /// Launch the next shell.
    Launch(Seq),
    /// Answer a caller.
    Answer(CallId),
    /// Report a command that was given up.
    Report(Seq),
    Nothing,
}

/// The state of a pane, as tmux reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PaneStatus {
    Alive,
    /// Dead, but tmux does not know the exit status yet.
    Dying,
    /// Dead with this exit code.
    Dead(i32),
}
