//! Why an action was not carried out.

use std::{path::PathBuf, time::Duration};

use bridge_protocol::{ErrorKind as WireKind, WireError};
use serde_json::Value;

/// Why an action was not carried out. Whatever it is, the next action is tried afresh.
#[derive(Debug, thiserror::Error)]
pub enum ActionError {
    /// This machine or this server cannot do that. The text says what is missing.
    #[error("{0}")]
    Unavailable(String),
    /// The shell or kernel of the action ended under it. Ask again for a new one.
    #[error("{0}")]
    Gone(String),
    /// There is no such shell, or it has ended. Nothing was run in it.
    #[error("{0}")]
    NoShell(String),
    /// It took too long and was given up.
    #[error("it took longer than {:?} s and was given up; allow more time", .0.as_secs_f64())]
    TimedOut(Duration),
    /// Somebody cancelled it.
    #[error("it was called off")]
    Cancelled,
    /// Not now, or not like this.
    #[error("{0}")]
    Refused(String),
    /// The arguments make no sense together; the text says which to change.
    #[error("{0}")]
    Invalid(String),
    /// One argument cannot be right.
    #[error("Invalid `{name}` parameter: {value}. {hint}")]
    Argument {
        /// Its name.
        name: &'static str,
        /// Its value.
        value: String,
        /// A description of a good one.
        hint: String,
    },
    /// A file whose text is not in UTF-8, where nothing else will do.
    #[error("{} is not encoded in UTF-8; convert it, or look at it with a view", .0.display())]
    NotUtf8(PathBuf),
    /// A text that is several commands.
    #[error("the text is {} commands; run them one by one or join them with && or ;", .0.len())]
    SeveralCommands(Vec<String>),
    /// A file could not be found, read, removed and so on.
    #[error(transparent)]
    File(#[from] FileError),
    /// A file could not be written.
    #[error(transparent)]
    Unwritten(FileError),
    /// The runtime could not be called: there is none, several fit, it went away, or the caller may not.
    #[error("{}", .0.message())]
    Call(WireError),
    /// Our fault, or the operating system's.
    #[error("{0}")]
    Internal(String),
}

/// Why a `file/*` tool did nothing.
#[derive(Debug, thiserror::Error)]
#[error("{text}")]
pub struct FileError {
    /// The problem, for programs.
    pub problem: FileProblem,
    /// A sentence for people, in the words of the runtime.
    pub text: String,
}

/// A problem of a file, or of a change of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileProblem {
    /// The path leads out of the workspace.
    Escapes,
    /// Nothing is there.
    NotFound,
    /// Something is there already.
    Exists,
    /// It is a directory.
    IsDirectory,
    /// The user of the runtime may not do that.
    Denied,
    /// The file has more bytes than the limit.
    TooLarge {
        /// Its bytes.
        size: u64,
        /// The limit.
        limit: u64,
    },
    /// Its content is not text.
    Binary,
    /// The text to replace and the new text are equal.
    SameText,
    /// The text to replace does not occur.
    NoMatch,
    /// The text to replace occurs more than once, in these lines.
    Several(Vec<usize>),
    /// No edit of this file is remembered.
    NoHistory,
    /// The file has changed since it was read.
    Changed,
    /// The operating system failed.
    System,
    /// Another reason; the text says which.
    Other,
}

/// The classes of errors, for programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// See [`ActionError::Unavailable`].
    Unavailable,
    /// See [`ActionError::Gone`].
    Gone,
    /// See [`ActionError::TimedOut`].
    TimedOut,
    /// See [`ActionError::Cancelled`].
    Cancelled,
    /// See [`ActionError::Refused`].
    Refused,
    /// A path that leads out of the workspace.
    OutsideWorkspace,
    /// There is no such file.
    NotFound,
    /// The user of the server may not do that.
    Permission,
    /// See [`ActionError::Invalid`].
    Invalid,
    /// See [`ActionError::Internal`].
    Internal,
}

impl ActionError {
    /// Its class.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Unavailable(_) => ErrorKind::Unavailable,
            Self::Gone(_) | Self::NoShell(_) => ErrorKind::Gone,
            Self::TimedOut(_) => ErrorKind::TimedOut,
            Self::Cancelled => ErrorKind::Cancelled,
            Self::Refused(_) => ErrorKind::Refused,
            Self::Invalid(_)
            | Self::Argument { .. }
            | Self::NotUtf8(_)
            | Self::SeveralCommands(_) => ErrorKind::Invalid,
            Self::File(error) | Self::Unwritten(error) => match error.problem {
                FileProblem::Escapes => ErrorKind::OutsideWorkspace,
                FileProblem::NotFound => ErrorKind::NotFound,
                FileProblem::Denied => ErrorKind::Permission,
                FileProblem::System => ErrorKind::Internal,
                _ => ErrorKind::Invalid,
            },
            Self::Call(error) => match WireKind::from_code(error.code()) {
                Some(WireKind::HostGone | WireKind::ShuttingDown) => ErrorKind::Gone,
                Some(WireKind::Timeout) => ErrorKind::TimedOut,
                Some(WireKind::RequestCancelled) => ErrorKind::Cancelled,
                Some(WireKind::NotAllowed | WireKind::BlockedByUser) => ErrorKind::Permission,
                Some(WireKind::InternalError | WireKind::BadHostResponse) => ErrorKind::Internal,
                _ => ErrorKind::Unavailable,
            },
            Self::Internal(_) => ErrorKind::Internal,
        }
    }

    /// The error of a `shell/*` tool.
    pub(super) fn of_shell(error: WireError) -> Self {
        let text = error.message().to_owned();
        match reason(&error).as_deref() {
            Some("noSuchShell" | "closed" | "serverGone") => Self::NoShell(text),
            Some("busy" | "occupiedByHand" | "exists" | "tooManyShells") => Self::Refused(text),
            Some("unavailable") => Self::Unavailable(text),
            Some("shellDidNotStart" | "system" | "full") => Self::Internal(text),
            _ => match WireKind::from_code(error.code()) {
                Some(WireKind::InvalidParams | WireKind::NotFound | WireKind::Conflict) => {
                    Self::Invalid(text)
                }
                Some(WireKind::OutsideWorkspace) => {
                    FileError::new(FileProblem::Escapes, text).into()
                }
                _ => Self::Call(error),
            },
        }
    }

    /// The error of a `file/*` or `page/*` tool.
    pub(super) fn of_file(error: WireError) -> Self {
        match FileError::read(&error) {
            Some(error) => Self::File(error),
            None => Self::Call(error),
        }
    }
}

impl FileError {
    /// An error that the edge itself has found.
    pub(super) fn new(problem: FileProblem, text: impl Into<String>) -> Self {
        Self { problem, text: text.into() }
    }

    /// The error of a `file/*` tool; none if the tool was not called at all.
    fn read(error: &WireError) -> Option<Self> {
        let problem = match reason(error)?.as_str() {
            "escapes" => FileProblem::Escapes,
            "noSuchPath" => FileProblem::NotFound,
            "exists" => FileProblem::Exists,
            "isDirectory" => FileProblem::IsDirectory,
            "denied" => FileProblem::Denied,
            "binary" => FileProblem::Binary,
            "sameText" => FileProblem::SameText,
            // Where the size counts, the edge looks it up.
            "tooLarge" => FileProblem::TooLarge { size: 0, limit: 0 },
            "noMatch" => FileProblem::NoMatch,
            "noHistory" => FileProblem::NoHistory,
            "changed" | "changedSince" => FileProblem::Changed,
            "system" => FileProblem::System,
            _ => FileProblem::Other,
        };
        Some(Self { problem, text: error.message().to_owned() })
    }
}

/// The exact reason of an error, for programs (`data.reason`).
pub(super) fn reason(error: &WireError) -> Option<String> {
    let data: Value = serde_json::from_str(error.data()?.get()).ok()?;
    Some(data.get("reason")?.as_str()?.to_owned())
}

impl ErrorKind {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Unavailable,
        Self::Gone,
        Self::TimedOut,
        Self::Cancelled,
        Self::Refused,
        Self::OutsideWorkspace,
        Self::NotFound,
        Self::Permission,
        Self::Invalid,
        Self::Internal,
    ];

    /// Its name on a wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::Unavailable => "unavailable",
            Self::Gone => "gone",
            Self::TimedOut => "timed_out",
            Self::Cancelled => "cancelled",
            Self::Refused => "refused",
            Self::OutsideWorkspace => "outside_workspace",
            Self::NotFound => "not_found",
            Self::Permission => "permission",
            Self::Invalid => "invalid",
            Self::Internal => "internal",
        }
    }
}
