//! `file/*`: the files of a workspace. Paths are relative to the workspace, or absolute and inside it. A path
//! that leads outside fails, also through symbolic links.
//!
//! [`Read`] returns the [`Version`] of the file. [`Write`] and [`Edit`] accept it as `ifVersion`. If the file
//! is no longer at that version, they change nothing and fail with *Conflict*: `data.reason` is `changed`, and
//! `data.version` is the version that the file is at, if it has one.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Empty, is_true, methods, yes};

methods! {
    /// `file/read`: reads a file, or some of its lines.
    Read = "file/read": ReadParams => ReadResult { needs: [Read], time: Tool };
    /// `file/write`: writes a whole file atomically.
    Write = "file/write": WriteParams => WriteResult { needs: [Write], time: Tool };
    /// `file/edit`: replaces a text that occurs exactly once, inserts lines, or creates a file.
    Edit = "file/edit": EditParams => EditResult { needs: [Write], time: Tool };
    /// `file/undo`: undoes the latest edit of a file.
    Undo = "file/undo": UndoParams => EditResult { needs: [Write], time: Tool };
    /// `file/list`: lists the entries of a directory.
    List = "file/list": ListParams => ListResult { needs: [Read], time: Tool };
    /// `file/glob`: finds files whose paths match a pattern.
    Glob = "file/glob": SearchParams => GlobResult { needs: [Read], time: Tool };
    /// `file/grep`: finds lines that match a pattern.
    Grep = "file/grep": GrepParams => GrepResult { needs: [Read], time: Tool };
    /// `file/stat`: type, size, owner and times of a path.
    Stat = "file/stat": StatParams => StatResult { needs: [Read], time: Tool };
    /// `file/hash`: SHA-256, size and version of a file.
    Hash = "file/hash": PathParams => HashResult { needs: [Read], time: Tool };
    /// `file/makeDirectory`: creates a directory.
    MakeDirectory = "file/makeDirectory": MakeDirectoryParams => Empty { needs: [Write], time: Tool };
    /// `file/removeDirectory`: removes an empty directory.
    RemoveDirectory = "file/removeDirectory": PathParams => Empty { needs: [Write], time: Tool };
    /// `file/remove`: removes a file or, with `recursive`, a whole tree.
    Remove = "file/remove": RemoveParams => Empty { needs: [Write], time: Tool };
    /// `file/move`: moves a file or tree.
    Move = "file/move": TransferParams => Empty { needs: [Write], time: Tool };
    /// `file/copy`: copies a file or tree.
    Copy = "file/copy": TransferParams => CopyResult { needs: [Write], time: Tool };
}

/// Identifies the content of a file: equal versions mean equal content. Callers may only compare versions and
/// send them back. Their form depends on the runtime: a content hash in a sandbox, a document version in a
/// window.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Version(pub String);

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Size of the largest file that has a version. `file/read` returns the version of the whole file even if only
/// some lines were asked for. Larger files have no version, and `ifVersion` cannot be used with them.
pub const VERSIONED_BYTES: u64 = 64 << 20;

/// Parameters of methods that need only a path.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct PathParams {
    /// Path of the file or directory.
    #[serde(default)]
    pub path: String,
}

/// Parameters of `file/read`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReadParams {
    /// Path of the file.
    #[serde(default)]
    pub path: String,
    /// First line to return, counted from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_line: Option<usize>,
    /// Last line to return, inclusive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_line: Option<usize>,
    /// Return this many lines at the end of the file, instead of `firstLine` and `lastLine`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tail: Option<usize>,
    /// Return the bytes in base64, without decoding them as text.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub raw: bool,
    /// Fail instead of returning more bytes than this; 10 MiB when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_bytes: Option<u64>,
}

/// Result of `file/read`: the content of a file, by its kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum ReadResult {
    /// A text file.
    Text {
        /// The lines, with their line ends unchanged.
        text: String,
        /// Number of the first returned line, from 1. Absent for the `tail` of a file that is too large to
        /// count its lines.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        first_line: Option<usize>,
        /// Number of lines in the whole file, if all of it was read.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        total_lines: Option<usize>,
        /// Character encoding of the file, for instance `UTF-8`.
        encoding: String,
        /// Version of the file. Absent if it is larger than [`VERSIONED_BYTES`].
        #[serde(default, skip_serializing_if = "Option::is_none")]
        version: Option<Version>,
    },
    /// An image, audio, video or PDF file.
    Media {
        /// Media type, for instance `image/png`.
        media_type: String,
        /// The whole file in base64.
        base64: String,
        /// Version of the file. Absent if it is larger than [`VERSIONED_BYTES`].
        #[serde(default, skip_serializing_if = "Option::is_none")]
        version: Option<Version>,
    },
    /// Another binary file. Pass `raw` to get its content.
    Binary {
        /// Media type; `application/octet-stream` if it is unknown.
        media_type: String,
        /// Size of the file in bytes.
        size: u64,
        /// Version of the file. Absent if it is larger than [`VERSIONED_BYTES`].
        #[serde(default, skip_serializing_if = "Option::is_none")]
        version: Option<Version>,
    },
    /// The bytes of any file, because `raw` was set.
    Raw {
        /// The whole file in base64.
        base64: String,
        /// Version of the file. Absent if it is larger than [`VERSIONED_BYTES`].
        #[serde(default, skip_serializing_if = "Option::is_none")]
        version: Option<Version>,
    },
}

/// Parameters of `file/write`: the content is either `text` or `base64`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WriteParams {
    /// Path of the file. Missing parent directories are created.
    #[serde(default)]
    pub path: String,
    /// The content as text, stored as UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The content as bytes in base64, if it is no text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base64: Option<String>,
    /// Replace an existing file. Default: true.
    #[serde(default = "yes", skip_serializing_if = "is_true")]
    pub replace: bool,
    /// Permission bits of a file that did not exist. When absent, the runtime's umask decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<u32>,
    /// Write only if the file is still at this version. Otherwise nothing changes, and the call fails with
    /// *Conflict*.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub if_version: Option<Version>,
}

/// Result of `file/write`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WriteResult {
    /// Whether the file is new.
    pub created: bool,
    /// The version of the file after the write.
    pub version: Version,
    /// Whether owner and group of the file are unchanged. If not, they are those of the runtime's user.
    pub owner_kept: bool,
}

/// Parameters of `file/edit`. `oldText` with `newText` replaces; `insertAfter` with `newText` inserts;
/// `newText` alone creates a file.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EditParams {
    /// Path of the file.
    #[serde(default)]
    pub path: String,
    /// The text to replace. It must occur exactly once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old_text: Option<String>,
    /// Number of the line after which to insert; 0 inserts before the first line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub insert_after: Option<usize>,
    /// The new text, with `\n` at the ends of its lines. They become the line ends that the file uses.
    #[serde(default)]
    pub new_text: String,
    /// Edit only if the file is still at this version. Otherwise nothing changes, and the call fails with
    /// *Conflict*.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub if_version: Option<Version>,
}

/// Result of `file/edit` and `file/undo`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EditResult {
    /// Number of the first changed line.
    pub line: usize,
    /// Number of lines removed.
    pub lines_removed: usize,
    /// Number of lines added.
    pub lines_added: usize,
    /// The change as a unified diff.
    pub diff: String,
    /// The version of the file after the edit. Absent if undoing an edit has removed the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<Version>,
    /// Whether owner and group of the file are unchanged. If not, they are those of the runtime's user.
    pub owner_kept: bool,
}

/// Parameters of `file/undo`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct UndoParams {
    /// Path of the file whose latest edit to undo.
    #[serde(default)]
    pub path: String,
    /// Undo even if the file has changed since the edit; that change is lost.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub force: bool,
}

/// Default path: the workspace itself.
fn here() -> String {
    ".".to_owned()
}

/// Parameters of `file/list`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ListParams {
    /// Path of the directory; the workspace when absent.
    #[serde(default = "here")]
    pub path: String,
    /// Also list the entries of subdirectories.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub nested: bool,
    /// Also list entries whose names begin with a dot.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hidden: bool,
    /// Most entries to return: 10,000 when absent, never more than 100,000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
}

/// Result of `file/list`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListResult {
    /// The entries, sorted by path.
    pub entries: Vec<FileEntry>,
    /// Number of hidden entries that were left out.
    pub hidden_left_out: usize,
    /// Whether there are more entries than the limit.
    pub truncated: bool,
    /// Paths of directories that could not be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<String>,
}

/// One entry of a directory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FileEntry {
    /// Path relative to the directory that was listed.
    pub path: String,
    /// Type of the entry.
    pub kind: FileKind,
    /// For a symbolic link that leads to a place inside the workspace: the type of its target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<FileKind>,
}

/// Type of a directory entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum FileKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink,
    /// A named pipe.
    Pipe,
    /// A socket.
    Socket,
    /// A device.
    Device,
    /// Another type.
    Other,
}

/// Parameters of `file/glob`, and those that `file/grep` has in common with it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SearchParams {
    /// The file to search, or the directory below which to search; the workspace when absent.
    #[serde(default = "here")]
    pub path: String,
    /// For `file/glob` a glob: `*` stops at slashes, `**` does not; `{a,b}` and `[ab]` are alternatives. For
    /// `file/grep` a regular expression.
    #[serde(default)]
    pub pattern: String,
    /// Also search hidden files.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hidden: bool,
    /// Also search files that `.gitignore` and `.ignore` exclude.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ignored: bool,
    /// Most results to return: 1,000 when absent, never more than 100,000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
}

/// Result of `file/glob`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GlobResult {
    /// Paths of the files that match, relative to the directory that was searched.
    pub paths: Vec<String>,
    /// Whether there are more results than the limit.
    pub truncated: bool,
    /// Number of directories that could not be read.
    pub unreadable: usize,
}

/// Parameters of `file/grep`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GrepParams {
    /// Pattern, path and limits.
    #[serde(flatten)]
    pub search: SearchParams,
    /// Treat the pattern as plain text, not as a regular expression.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub literal: bool,
    /// Ignore the difference between upper and lower case.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ignore_case: bool,
    /// Search only files whose path matches this glob.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<String>,
    /// Lines of context to return before and after each match, at most 1,000.
    #[serde(default)]
    pub context: usize,
}

/// Result of `file/grep`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GrepResult {
    /// Matching lines and their context, sorted by file and line.
    pub lines: Vec<GrepLine>,
    /// Whether there are more results than the limit, or than fit into an answer.
    pub truncated: bool,
    /// Number of files and directories that could not be read, or not to their end.
    pub unreadable: usize,
}

/// One line that `file/grep` found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GrepLine {
    /// Path relative to the directory that was searched; empty if a single file was searched.
    pub path: String,
    /// Number of the line, from 1.
    pub line: u64,
    /// The line without its line end, cut after 2,000 characters.
    pub text: String,
    /// Whether the line matches; otherwise it is context.
    pub matches: bool,
}

/// Parameters of `file/stat`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StatParams {
    /// The path.
    #[serde(default)]
    pub path: String,
    /// Follow symbolic links. Default: true.
    #[serde(default = "yes", skip_serializing_if = "is_true")]
    pub follow: bool,
}

/// Result of `file/stat`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StatResult {
    /// Type of the entry.
    pub kind: FileKind,
    /// Size in bytes.
    pub size: u64,
    /// Permission bits.
    pub mode: u32,
    /// User id of the owner.
    pub user: u32,
    /// Group id.
    pub group: u32,
    /// Time of the last change of the content, in milliseconds since 1970.
    pub modified_ms: f64,
    /// Target of a symbolic link that was not followed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
}

/// Result of `file/hash`: all members describe the same bytes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HashResult {
    /// SHA-256 of the bytes, as 64 lower-case hexadecimal digits.
    pub sha256: String,
    /// Number of bytes.
    pub size: u64,
    /// Version of the file. Absent if it is larger than [`VERSIONED_BYTES`] or was changed while it was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<Version>,
}

/// Parameters of `file/makeDirectory`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MakeDirectoryParams {
    /// Path of the new directory.
    #[serde(default)]
    pub path: String,
    /// Create missing parent directories, and succeed if the directory already exists. Default: true.
    #[serde(default = "yes", skip_serializing_if = "is_true")]
    pub parents: bool,
}

/// Parameters of `file/remove`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct RemoveParams {
    /// Path of the file or directory.
    #[serde(default)]
    pub path: String,
    /// Also remove a directory with everything in it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub recursive: bool,
}

/// Parameters of `file/move` and `file/copy`. Missing directories are created.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct TransferParams {
    /// Path of the file or directory to move or copy.
    #[serde(default)]
    pub from: String,
    /// The new path.
    #[serde(default)]
    pub to: String,
    /// Replace an existing file at the new path.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub replace: bool,
}

/// Result of `file/copy`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CopyResult {
    /// Whether owner and group of a replaced file are unchanged. If not, they are those of the runtime's user.
    pub owner_kept: bool,
}
