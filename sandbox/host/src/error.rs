//! Turns errors of shells, files, cells and pages into errors of the wire: the kind says what the
//! caller can do, and `data.reason` names the exact reason.

use std::io;

pub(crate) use bridge_protocol::error::with_reason;
use bridge_protocol::{ErrorKind, WireError};
use sandbox_cells::Error as CellError;
use sandbox_files::Error as FileError;
use sandbox_shells::Error as ShellError;
use sandbox_worker::Error as WorkError;
use serde_json::{Map, json};

/// The error of a shell.
pub(crate) fn shell(error: ShellError) -> WireError {
    let (kind, reason) = match &error {
        ShellError::Invalid(_) => (ErrorKind::InvalidParams, "invalid"),
        ShellError::TerminalSize { .. } => (ErrorKind::InvalidParams, "terminalSize"),
        ShellError::ShellExists(_) => (ErrorKind::Conflict, "exists"),
        ShellError::ShellClosed(_) => (ErrorKind::NotFound, "closed"),
        ShellError::Busy { .. } => (ErrorKind::Conflict, "busy"),
        ShellError::OccupiedByHand(_) => (ErrorKind::Conflict, "occupiedByHand"),
        ShellError::ServerGone => return server_gone(),
        ShellError::Io { source, .. } if source.kind() == io::ErrorKind::StorageFull => {
            (ErrorKind::NoSpace, "full")
        }
        ShellError::ShellDidNotStart { .. } => (ErrorKind::InternalError, "shellDidNotStart"),
        ShellError::TmuxMissing { .. } | ShellError::UnusableRoot { .. } => {
            (ErrorKind::InternalError, "unavailable")
        }
        ShellError::TmuxRefused { .. }
        | ShellError::TmuxSilent { .. }
        | ShellError::RootInUse { .. }
        | ShellError::Io { .. } => (ErrorKind::InternalError, "system"),
    };
    with_reason(kind, error.to_string(), reason)
}

/// The error for a shell that is gone because tmux has died.
pub(crate) fn server_gone() -> WireError {
    let reason = "the tmux server of the shells has died, and the shell with it: start the shell again \
                  with shell/create";
    with_reason(ErrorKind::HostGone, reason, "serverGone")
}

/// The error of a file.
pub(crate) fn file(error: FileError) -> WireError {
    let (kind, reason) = match &error {
        FileError::Changed { version, .. } => {
            let mut facts = Map::from_iter([("reason".to_owned(), json!("changed"))]);
            if let Some(version) = version {
                facts.insert("version".to_owned(), json!(version.to_string()));
            }
            return ErrorKind::Conflict.error_with(error.to_string(), facts);
        }
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
        FileError::TooLarge { .. }
        | FileError::TooLargeToEdit { .. }
        | FileError::TooLargeToHash { .. }
        | FileError::NoMemory { .. } => (ErrorKind::Conflict, "tooLarge"),
        FileError::Binary { .. } => (ErrorKind::Conflict, "binary"),
        FileError::SeveralMatches { .. } => (ErrorKind::Conflict, "several"),
        FileError::ChangedSinceEdit { .. } => (ErrorKind::Conflict, "changedSince"),
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

/// The error of a kernel.
pub(crate) fn cell(error: CellError) -> WireError {
    let (kind, reason) = match &error {
        CellError::Missing { .. }
        | CellError::Unusable { .. }
        | CellError::DidNotStart { .. }
        | CellError::Confinement(_)
        | CellError::NeedsTcp => (ErrorKind::NotAllowed, "unavailable"),
        CellError::Busy { .. } => (ErrorKind::Conflict, "busy"),
        CellError::Directory { .. } => (ErrorKind::InvalidParams, "directory"),
        CellError::Ended { .. } => {
            let facts = [("reason", json!("kernelEnded")), ("mayHaveExecuted", json!(true))];
            let facts = facts.map(|(name, fact)| (name.to_owned(), fact));
            return ErrorKind::HostGone.error_with(error.to_string(), Map::from_iter(facts));
        }
        _ => (ErrorKind::InternalError, "system"),
    };
    with_reason(kind, error.to_string(), reason)
}

/// The error of a helper process: `what` was done there, and `remedy` is what the caller can do.
pub(crate) fn work(what: &str, error: WorkError, remedy: &str) -> WireError {
    let (kind, reason) = match &error {
        WorkError::TookTooLong { .. } => (ErrorKind::Timeout, "tookTooLong"),
        WorkError::TooMuchMemory { .. } => (ErrorKind::NotAllowed, "tooMuchMemory"),
        WorkError::TooLong { .. } => (ErrorKind::OversizedResponse, "tooLong"),
        WorkError::Crashed { .. } => (ErrorKind::InternalError, "crashed"),
        WorkError::Unusable { .. } => (ErrorKind::InternalError, "system"),
    };
    let message = match &error {
        WorkError::Unusable { .. } => format!("{what} failed: {error}"),
        _ => format!("{what} failed, because {error}: {remedy}"),
    };
    with_reason(kind, message, reason)
}

/// The error for an invalid parameter.
pub(crate) fn invalid(message: impl Into<String>) -> WireError {
    with_reason(ErrorKind::InvalidParams, message, "invalid")
}
