//! Why an action was not carried out.

use std::{path::PathBuf, time::Duration};

use sandbox_files as files;
use sandbox_pages as browser;
use sandbox_shells::Error as ShellError;

/// Why an action was not carried out. Whatever it is, the next action is tried afresh.
#[derive(Debug, thiserror::Error)]
pub enum ActionError {
    /// This machine or this server cannot do that. The text says what is missing.
    #[error("{0}")]
    Unavailable(String),
    /// What the action was for has ended under it. Ask again for a new one.
    #[error("{0}")]
    Gone(String),
    /// It took too long and was given up.
    #[error("it took longer than {:?} s and was given up; allow more time", .0.as_secs_f64())]
    TimedOut(Duration),
    /// Somebody called it off.
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
        /// What a good one looks like.
        hint: String,
    },
    /// A file whose text is not in UTF-8, where nothing else will do.
    #[error("{} is not encoded in UTF-8; convert it, or look at it with a view", .0.display())]
    NotUtf8(PathBuf),
    /// A text that is several commands.
    #[error("the text is {} commands; run them one by one or join them with && or ;", .0.len())]
    SeveralCommands(Vec<String>),
    /// Something about a file.
    #[error(transparent)]
    File(#[from] files::Error),
    /// The same, while it was to be written.
    #[error(transparent)]
    Unwritten(files::Error),
    /// Our fault, or the operating system's.
    #[error("{0}")]
    Internal(String),
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
            Self::Gone(_) => ErrorKind::Gone,
            Self::TimedOut(_) => ErrorKind::TimedOut,
            Self::Cancelled => ErrorKind::Cancelled,
            Self::Refused(_) => ErrorKind::Refused,
            Self::Invalid(_)
            | Self::Argument { .. }
            | Self::NotUtf8(_)
            | Self::SeveralCommands(_) => ErrorKind::Invalid,
            Self::File(error) | Self::Unwritten(error) => match error {
                files::Error::Escapes { .. } => ErrorKind::OutsideWorkspace,
                files::Error::NotFound { .. } => ErrorKind::NotFound,
                files::Error::Denied { .. } => ErrorKind::Permission,
                files::Error::Io { .. } => ErrorKind::Internal,
                _ => ErrorKind::Invalid,
            },
            Self::Internal(_) => ErrorKind::Internal,
        }
    }
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

impl From<browser::Error> for ActionError {
    fn from(error: browser::Error) -> Self {
        match error {
            browser::Error::Missing => Self::Unavailable(error.to_string()),
            browser::Error::Failed { .. } => Self::Internal(error.to_string()),
        }
    }
}

impl From<ShellError> for ActionError {
    fn from(error: ShellError) -> Self {
        let text = error.to_string();
        match error {
            ShellError::TmuxMissing { .. } | ShellError::UnusableRoot { .. } => {
                Self::Unavailable(text)
            }
            ShellError::ServerGone | ShellError::ShellClosed(_) => Self::Gone(text),
            ShellError::Busy { .. }
            | ShellError::OccupiedByHand(_)
            | ShellError::RootInUse { .. }
            | ShellError::ShellExists(_) => Self::Refused(text),
            ShellError::Invalid(_) => Self::Invalid(text),
            _ => Self::Internal(text),
        }
    }
}
