//! Errors of file operations, and what the caller can do about them.

use std::io;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use super::Version;
use super::stat::Kind;

/// Every error of file operations. Paths are shown as the caller gave them.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The path, or a symbolic link on it, leads out of the workspace. Use a path inside; inside a
    /// workspace links must be relative.
    #[error("{path} leads out of the workspace: use a path inside it")]
    Escapes {
        /// The path as given.
        path: PathBuf,
    },
    /// The text is not a valid path here. The reason says what a valid one looks like.
    #[error("{path:?} is not usable as a path: {reason}")]
    InvalidPath {
        /// The path as given.
        path: PathBuf,
        /// Why it is not usable.
        reason: &'static str,
    },
    /// The path does not exist. List the directory, or create the file.
    #[error("{path} does not exist: check the name, or create it")]
    NotFound {
        /// The path as given.
        path: PathBuf,
    },
    /// The path exists already. Choose another name, or ask for replacement.
    #[error("{path} exists already: choose another name, or ask to replace it")]
    Exists {
        /// The path as given.
        path: PathBuf,
    },
    /// A file was expected. List the directory instead, or ask for a recursive operation.
    #[error("{path} is a directory: list it, or name a file in it")]
    IsDirectory {
        /// The path as given.
        path: PathBuf,
    },
    /// A directory was expected, here or further up the path.
    #[error("{path} is not a directory, or a part of it is a file: check the path")]
    NotDirectory {
        /// The path as given.
        path: PathBuf,
    },
    /// A device, pipe or socket: reading might never end and replacing would destroy it. Use a
    /// shell.
    #[error("{path} is a {kind}, not a regular file: use a shell for it")]
    NotRegular {
        /// The path as given.
        path: PathBuf,
        /// The kind of the entry.
        kind: Kind,
    },
    /// The directory is not empty. Only recursive removal removes its content.
    #[error("{path} is not empty: remove its content first, or ask for recursive removal")]
    NotEmpty {
        /// The path as given.
        path: PathBuf,
    },
    /// The user of this process has no permission.
    #[error("no permission for {path}: change its mode or owner, or use another place")]
    Denied {
        /// The path as given.
        path: PathBuf,
    },
    /// The tree is deeper than one removal can go. A part of it was removed.
    #[error("{path} is nested too deeply: remove its innermost directories first, or use a shell")]
    TooDeep {
        /// The path as given.
        path: PathBuf,
    },
    /// The destination is inside the directory that is moved or copied.
    #[error("{path} is inside the directory that is moved or copied: choose another destination")]
    IntoItself {
        /// The destination as given.
        path: PathBuf,
    },
    /// More bytes than the caller's limit. Read a range of lines or the tail, or raise the limit.
    #[error("{path} has {size} bytes, the limit is {limit}: read a range of lines or the tail")]
    TooLarge {
        /// The path as given.
        path: PathBuf,
        /// Size of the file, or the bytes of the requested range that were read so far.
        size: u64,
        /// The limit that applied.
        limit: u64,
    },
    /// The file has more bytes than [`crate::EDIT_BYTES`]. Change it with a command in a shell.
    #[error(
        "{path} has {size} bytes, at most {limit} are edited: change it with a command such as sed in a shell"
    )]
    TooLargeToEdit {
        /// The path as given.
        path: PathBuf,
        /// Size of the file.
        size: u64,
        /// The limit.
        limit: u64,
    },
    /// The file has more bytes than [`crate::HASHED_BYTES`]. Hash it in a shell, where that can be interrupted.
    #[error("{path} has {size} bytes, at most {limit} are hashed: run sha256sum in a shell")]
    TooLargeToHash {
        /// The path as given.
        path: PathBuf,
        /// Bytes of the file, as far as it was read.
        size: u64,
        /// The limit.
        limit: u64,
    },
    /// This machine does not have enough memory for the file. Read a range of lines or the tail.
    #[error(
        "{path} has {size} bytes, more than there is memory for: read a range of lines or the tail"
    )]
    NoMemory {
        /// The path as given.
        path: PathBuf,
        /// Bytes of the file.
        size: u64,
    },
    /// The content is not text. Read it as bytes or as media.
    #[error("{path} is binary ({media_type}): read it as bytes")]
    Binary {
        /// The path as given.
        path: PathBuf,
        /// The detected type, `application/octet-stream` if it is unknown.
        media_type: &'static str,
    },
    /// The new text holds a character that the file's encoding does not have. Omit it, or
    /// rewrite the whole file in UTF-8.
    #[error(
        "{path} is encoded in {encoding}, which has no {character:?}: omit it, or rewrite the whole file in UTF-8"
    )]
    Unencodable {
        /// The path as given.
        path: PathBuf,
        /// Name of the file's encoding.
        encoding: &'static str,
        /// The first such character.
        character: char,
    },
    /// The text to replace does not occur. Read the file again and copy the text exactly.
    #[error("the text to replace does not occur in {path}: read it again and copy exactly")]
    NoMatch {
        /// The path as given.
        path: PathBuf,
    },
    /// The text to replace occurs more than once. Give more lines around it.
    #[error(
        "the text to replace occurs {count} times in {path}, in lines {lines:?}: include more of its surroundings"
    )]
    SeveralMatches {
        /// The path as given.
        path: PathBuf,
        /// Number of occurrences.
        count: usize,
        /// Distinct lines (from 1) where they begin, the first [`super::LINES_REPORTED`] of them.
        lines: Vec<usize>,
    },
    /// The text to replace is empty. Use insert, or write the whole file.
    #[error("the text to replace in {path} is empty: use insert, or write the whole file")]
    EmptyPattern {
        /// The path as given.
        path: PathBuf,
    },
    /// Old and new text are equal.
    #[error("old and new text for {path} are the same: nothing was changed")]
    SameText {
        /// The path as given.
        path: PathBuf,
    },
    /// The file has no such line.
    #[error("{path} has {lines} lines, there is no line {line}: use a number in that range")]
    NoSuchLine {
        /// The path as given.
        path: PathBuf,
        /// The line that was asked for.
        line: usize,
        /// Lines of the file.
        lines: usize,
    },
    /// Lines are counted from 1, and the last line must not be before the first.
    #[error(
        "lines {first} to {last} of {path} are not a range: count from 1, and put the smaller number first"
    )]
    BadRange {
        /// The path as given.
        path: PathBuf,
        /// First line asked for.
        first: usize,
        /// Last line asked for.
        last: usize,
    },
    /// No edit of this file is remembered. Write the former text, if you still have it.
    #[error(
        "no edit of {path} is left to undo, because none was made here or it was forgotten: write the former text yourself"
    )]
    NoHistory {
        /// The path as given.
        path: PathBuf,
    },
    /// The file is no longer what the last edit left. Read it, then force the undo if that is
    /// right.
    #[error(
        "{path} was changed after the last edit: undo would lose that change, read the file first"
    )]
    ChangedSinceEdit {
        /// The path as given.
        path: PathBuf,
    },
    /// The file is no longer at the version that the caller gave; nothing was changed. Read it
    /// again, then decide.
    #[error("{path} is no longer at the given version, and nothing was changed: read it again")]
    Changed {
        /// The path as given.
        path: PathBuf,
        /// The current version. `None` if the file is gone, or too large to have a version.
        version: Option<Version>,
    },
    /// The glob or regular expression is not valid.
    #[error("{pattern:?} is not a usable pattern: {reason}")]
    BadPattern {
        /// The pattern as given.
        pattern: String,
        /// The parser's message.
        reason: String,
    },
    /// The request asks for more than one answer can hold. Ask for less, or search directory by
    /// directory.
    #[error(
        "{asked} {what} are too many, the limit is {most}: ask for fewer, or search a smaller directory"
    )]
    TooMany {
        /// The kind of thing that was asked for, in the plural.
        what: &'static str,
        /// How many were asked for.
        asked: usize,
        /// The limit.
        most: usize,
    },
    /// A line, with the context that was asked for, does not fit into the search buffer. Ask for
    /// less context, or use a shell.
    #[error(
        "{path} has lines that are too long to search (with context more than {limit} bytes): ask for less context, or use a shell"
    )]
    LongLines {
        /// The path as given.
        path: PathBuf,
        /// Size of the search buffer in bytes.
        limit: u64,
    },
    /// The disk or the user's quota is full. Remove something first; nothing was changed.
    #[error("no space left for {path}: remove something first; nothing was changed")]
    Full {
        /// The path as given.
        path: PathBuf,
    },
    /// An error of the system that no other variant names.
    #[error("cannot use {path}: {source}")]
    Io {
        /// The path as given.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
}

impl Error {
    /// Chooses the variant for an error of the system about `path`.
    pub(super) fn from_io(path: &Path, source: io::Error) -> Self {
        let path = path.to_path_buf();
        let Some(code) = source.raw_os_error() else {
            // cap-std reports an escape as PermissionDenied without an OS error code.
            return match source.kind() {
                io::ErrorKind::PermissionDenied => Self::Escapes { path },
                _ => Self::Io { path, source },
            };
        };
        match Errno::from_raw_os_error(code) {
            Errno::NOENT => Self::NotFound { path },
            Errno::EXIST => Self::Exists { path },
            Errno::ISDIR => Self::IsDirectory { path },
            Errno::NOTDIR => Self::NotDirectory { path },
            Errno::NOTEMPTY => Self::NotEmpty { path },
            Errno::ACCESS | Errno::PERM | Errno::ROFS => Self::Denied { path },
            Errno::NOSPC | Errno::DQUOT => Self::Full { path },
            Errno::LOOP => Self::InvalidPath { path, reason: "its symbolic links form a loop" },
            Errno::NAMETOOLONG => Self::InvalidPath { path, reason: "it is too long" },
            _ => Self::Io { path, source },
        }
    }
}
