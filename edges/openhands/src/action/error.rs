//! Errors of actions.

use std::{path::PathBuf, time::Duration};

use bridge_protocol::{ErrorKind as WireKind, WireError};
use serde_json::Value;

/// Why an action was not carried out. No error affects the next action.
#[derive(Debug, thiserror::Error)]
pub enum ActionError {
    /// This machine or this server cannot do it. The text says what is missing.
    #[error("{0}")]
    Unavailable(String),
    /// The shell or kernel ended during the action. The next action gets a new one.
    #[error("{0}")]
    Gone(String),
    /// The shell does not exist, or has ended. Nothing was run in it.
    #[error("{0}")]
    NoShell(String),
    /// The time limit has passed.
    #[error("it took longer than {:?} s: allow more time", .0.as_secs_f64())]
    TimedOut(Duration),
    /// The action was cancelled.
    #[error("the action was cancelled")]
    Cancelled,
    /// It is not possible now, or not in this way.
    #[error("{0}")]
    Refused(String),
    /// The arguments contradict each other; the text says which to change.
    #[error("{0}")]
    Invalid(String),
    /// One argument is not valid.
    #[error("Invalid `{name}` parameter: {value}. {hint}")]
    Argument {
        /// The name of the argument.
        name: &'static str,
        /// The value of the argument.
        value: String,
        /// A description of valid values.
        hint: String,
    },
    /// The file is not encoded in UTF-8, which this action needs.
    #[error("{} is not encoded in UTF-8: convert it, or view it", .0.display())]
    NotUtf8(PathBuf),
    /// The text is more than one command.
    #[error("the text is {} commands: run them one by one, or join them with && or ;", .0.len())]
    SeveralCommands(Vec<String>),
    /// A file could not be found, read or removed.
    #[error(transparent)]
    File(#[from] FileError),
    /// A file could not be written.
    #[error(transparent)]
    Unwritten(FileError),
    /// The runtime could not be called: there is none, several fit, it is gone, or the caller may
    /// not call it.
    #[error("{}", .0.message())]
    Call(WireError),
    /// An error in the edge, or of the operating system.
    #[error("{0}")]
    Internal(String),
}

/// The error of a `file/*` tool.
#[derive(Debug, thiserror::Error)]
#[error("{text}")]
pub struct FileError {
    /// The problem, for programs.
    pub problem: FileProblem,
    /// The message of the runtime, for people.
    pub text: String,
}

/// The problem of an operation on a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileProblem {
    /// The path leads out of the workspace.
    Escapes,
    /// The path does not exist.
    NotFound,
    /// The path exists already.
    Exists,
    /// The path is a directory.
    IsDirectory,
    /// The user of the runtime has no permission.
    Denied,
    /// The file has more bytes than the limit.
    TooLarge {
        /// Size of the file in bytes.
        size: u64,
        /// The limit.
        limit: u64,
    },
    /// The content is not text.
    Binary,
    /// The text to replace and the new text are equal.
    SameText,
    /// The text to replace does not occur.
    NoMatch,
    /// The text to replace occurs more than once, in these lines.
    SeveralMatches(Vec<usize>),
    /// No edit of this file is remembered.
    NoHistory,
    /// The file has changed since it was read.
    Changed,
    /// An error of the operating system.
    System,
    /// Another problem; the text describes it.
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
    /// The path leads out of the workspace.
    OutsideWorkspace,
    /// The file does not exist.
    NotFound,
    /// The user of the server has no permission.
    Permission,
    /// See [`ActionError::Invalid`].
    Invalid,
    /// See [`ActionError::Internal`].
    Internal,
}

impl ActionError {
    /// The class of the error.
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
    /// An error that the edge itself has detected.
    pub(super) fn new(problem: FileProblem, text: impl Into<String>) -> Self {
        Self { problem, text: text.into() }
    }

    /// Reads the error of a `file/*` tool; `None` if the tool was not called.
    fn read(error: &WireError) -> Option<Self> {
        let problem = match reason(error)?.as_str() {
            "escapes" => FileProblem::Escapes,
            "noSuchPath" => FileProblem::NotFound,
            "exists" => FileProblem::Exists,
            "isDirectory" => FileProblem::IsDirectory,
            "denied" => FileProblem::Denied,
            "binary" => FileProblem::Binary,
            "sameText" => FileProblem::SameText,
            // Code that shows the size looks it up.
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

/// The reason of an error, for programs (`data.reason`).
pub(super) fn reason(error: &WireError) -> Option<String> {
    let data: Value = serde_json::from_str(error.data()?.get()).ok()?;
    Some(data.get("reason")?.as_str()?.to_owned())
}

impl ErrorKind {
    /// All classes.
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

    /// The name of the class on the wire.
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
