//! What went wrong, in the words of the wire: one kind for each thing that a caller can do about it, and
//! the exact reason in `data.reason`.

use std::io;

use bridge_protocol::{ErrorKind, WireError};
use sandbox_files::Error as FileError;
use sandbox_shells::Error as ShellError;
use serde_json::{Map, json};

/// The error of a shell.
pub(super) fn shell(error: ShellError) -> WireError {
    let (kind, reason) = match &error {
        ShellError::Invalid(_) => (ErrorKind::InvalidParams, "invalid"),
        ShellError::ShellExists(_) => (ErrorKind::Conflict, "exists"),
        ShellError::ShellClosed(_) => (ErrorKind::NotFound, "closed"),
        ShellError::Busy { .. } => (ErrorKind::Conflict, "busy"),
        ShellError::OccupiedByHand(_) => (ErrorKind::Conflict, "occupiedByHand"),
        ShellError::ServerGone => return server_gone(),
        ShellError::Io { source, .. } if source.kind() == io::ErrorKind::StorageFull => {
            (ErrorKind::NoSpace, "full")
        }
        ShellError::ShellDidNotStart { .. } => (ErrorKind::InternalError, "shellDidNotStart"),
        ShellError::TmuxMissing { .. }
        | ShellError::TmuxRefused { .. }
        | ShellError::TmuxSilent { .. }
        | ShellError::RootInUse { .. }
        | ShellError::UnusableRoot { .. }
        | ShellError::Io { .. } => (ErrorKind::InternalError, "system"),
    };
    with_reason(kind, error.to_string(), reason)
}

/// For a shell that is gone because tmux has died.
pub(super) fn server_gone() -> WireError {
    let reason = "the tmux server of the shells has died, and the shell with it: start the shell again \
                  with shell/create";
    with_reason(ErrorKind::HostGone, reason.to_owned(), "serverGone")
}

/// The error of a file.
pub(super) fn file(error: FileError) -> WireError {
    let (kind, reason) = match &error {
        FileError::Escapes { .. } => (ErrorKind::OutsideWorkspace, "escapes"),
        FileError::NotFound { .. } => (ErrorKind::NotFound, "noSuchPath"),
        FileError::NoSuchLine { .. } => (ErrorKind::NotFound, "noSuchLine"),
        FileError::NoMatch { .. } => (ErrorKind::NotFound, "noMatch"),
        FileError::NoHistory { .. } => (ErrorKind::NotFound, "noHistory"),
        FileError::Exists { .. } => (ErrorKind::Conflict, "exists"),
        FileError::IsDirectory { .. } => (ErrorKind::Conflict, "isDirectory"),
        FileError::NotDirectory { .. } => (ErrorKind::Conflict, "notDirectory"),
        FileError::NotRegular { .. } => (ErrorKind::Conflict, "notRegular"),
        FileError::NotEmpty { .. } => (ErrorKind::Conflict, "notEmpty"),
        FileError::TooDeep { .. } => (ErrorKind::Conflict, "tooDeep"),
        FileError::IntoItself { .. } => (ErrorKind::Conflict, "intoItself"),
        FileError::LongLines { .. } => (ErrorKind::Conflict, "longLines"),
        FileError::Binary { .. } => (ErrorKind::Conflict, "binary"),
        FileError::Several { .. } => (ErrorKind::Conflict, "several"),
        FileError::ChangedSince { .. } => (ErrorKind::Conflict, "changedSince"),
        FileError::TooLarge { .. } | FileError::NoMemory { .. } => {
            (ErrorKind::OversizedResponse, "tooLarge")
        }
        FileError::Denied { .. } => (ErrorKind::NotAllowed, "denied"),
        FileError::Full { .. } => (ErrorKind::NoSpace, "full"),
        FileError::InvalidPath { .. } => (ErrorKind::InvalidParams, "invalidPath"),
        FileError::Unencodable { .. } => (ErrorKind::InvalidParams, "unencodable"),
        FileError::EmptyPattern { .. } => (ErrorKind::InvalidParams, "emptyPattern"),
        FileError::SameText { .. } => (ErrorKind::InvalidParams, "sameText"),
        FileError::BadRange { .. } => (ErrorKind::InvalidParams, "badRange"),
        FileError::BadPattern { .. } => (ErrorKind::InvalidParams, "badPattern"),
        FileError::TooMany { .. } => (ErrorKind::InvalidParams, "tooMany"),
        _ => (ErrorKind::InternalError, "system"),
    };
    with_reason(kind, error.to_string(), reason)
}

/// An error with its exact reason for programs.
pub(super) fn with_reason(kind: ErrorKind, message: String, reason: &str) -> WireError {
    kind.error_with(message, Map::from_iter([("reason".to_owned(), json!(reason))]))
}
