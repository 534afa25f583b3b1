//! `file/*`: the files of a workspace. Paths are relative to it, or absolute and inside it; nothing outside
//! can be reached, not even through links.
//!
//! [`Read`] gives the [`Version`] of what it returns. [`Write`] and [`Edit`] take it back as `ifVersion` and
//! fail with *Conflict*, with nothing changed, when the file is no longer at that version: `data.reason` is
//! `changed` and `data.version` the version that it is at, if it has one.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Empty, is_true, methods, yes};

methods! {
    /// `file/read`: a file, or some lines of it.
    Read = "file/read": ReadParams => ReadResult { needs: [Read], within: Tool };
    /// `file/write`: writes a whole file in one step.
    Write = "file/write": WriteParams => WriteResult { needs: [Write], within: Tool };
    /// `file/edit`: replaces the one occurrence of a text, inserts lines, or creates a file.
    Edit = "file/edit": EditParams => EditResult { needs: [Write], within: Tool };
    /// `file/undo`: takes the latest edit of a file back.
    Undo = "file/undo": UndoParams => EditResult { needs: [Write], within: Tool };
    /// `file/list`: the entries of a directory.
    List = "file/list": ListParams => ListResult { needs: [Read], within: Tool };
    /// `file/glob`: files whose paths match a pattern.
    Glob = "file/glob": SearchParams => GlobResult { needs: [Read], within: Tool };
    /// `file/grep`: lines of files that match a pattern.
    Grep = "file/grep": GrepParams => GrepResult { needs: [Read], within: Tool };
    /// `file/stat`: what is known of a path.
    Stat = "file/stat": StatParams => StatResult { needs: [Read], within: Tool };
    /// `file/makeDirectory`: creates a directory.
    MakeDirectory = "file/makeDirectory": MakeDirectoryParams => Empty { needs: [Write], within: Tool };
    /// `file/removeDirectory`: removes an empty directory.
    RemoveDirectory = "file/removeDirectory": PathParams => Empty { needs: [Write], within: Tool };
    /// `file/remove`: removes a file or, if asked for, a whole tree.
    Remove = "file/remove": RemoveParams => Empty { needs: [Write], within: Tool };
    /// `file/move`: gives a file or tree another name.
    Move = "file/move": TransferParams => Empty { needs: [Write], within: Tool };
    /// `file/copy`: copies a file or tree.
    Copy = "file/copy": TransferParams => CopyResult { needs: [Write], within: Tool };
}

/// The state of a file's content: equal versions mean equal content. Callers compare it and hand it back;
/// only the runtime that gave it knows what it is made of (a content hash in a sandbox, a document version in
/// a window).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Version(pub String);

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Reading a file of at most so many bytes gives the version of the whole file, also where only some lines
/// were asked for. Larger files have none, and `ifVersion` cannot be used with them.
pub const VERSIONED_BYTES: u64 = 64 << 20;

/// Names a file or directory.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct PathParams {
    /// Which.
    #[serde(default)]
    pub path: String,
}

/// What to read.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReadParams {
    /// Which file.
    #[serde(default)]
    pub path: String,
    /// First line, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_line: Option<usize>,
    /// Last line, included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_line: Option<usize>,
    /// So many lines at the end instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tail: Option<usize>,
    /// The bytes as they are, whatever they mean.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub raw: bool,
    /// Refuse to return more bytes; 10 MiB when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_bytes: Option<u64>,
}

/// What a file holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum ReadResult {
    /// Text.
    Text {
        /// The lines with their ends as they are.
        text: String,
        /// Number of the first of them; absent at the end of a file too large to be counted.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        first_line: Option<usize>,
        /// Lines of the whole file, if all of it was read.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        total_lines: Option<usize>,
        /// How the file stores its characters, for instance `UTF-8`.
        encoding: String,
        /// See [`VERSIONED_BYTES`].
        #[serde(default, skip_serializing_if = "Option::is_none")]
        version: Option<Version>,
    },
    /// An image, sound, film or PDF.
    Media {
        /// For instance `image/png`.
        media_type: String,
        /// The whole file.
        base64: String,
        /// See [`VERSIONED_BYTES`].
        #[serde(default, skip_serializing_if = "Option::is_none")]
        version: Option<Version>,
    },
    /// Something else. Its content comes with `raw`.
    Binary {
        /// `application/octet-stream` if nobody knows better.
        media_type: String,
        /// Bytes of the file.
        size: u64,
        /// See [`VERSIONED_BYTES`].
        #[serde(default, skip_serializing_if = "Option::is_none")]
        version: Option<Version>,
    },
    /// The bytes, as asked for by `raw`.
    Raw {
        /// The whole file.
        base64: String,
        /// See [`VERSIONED_BYTES`].
        #[serde(default, skip_serializing_if = "Option::is_none")]
        version: Option<Version>,
    },
}

/// What to write: `text` or `base64`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WriteParams {
    /// Which file. Missing directories are created.
    #[serde(default)]
    pub path: String,
    /// The content, as UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The content, if it is no text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base64: Option<String>,
    /// Replace a file that exists.
    #[serde(default = "yes", skip_serializing_if = "is_true")]
    pub replace: bool,
    /// Permission bits of a file that did not exist; as the runtime's user has it when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<u32>,
    /// Change the file only if it is still at this version. Otherwise: *Conflict*, nothing changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub if_version: Option<Version>,
}

/// What writing did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WriteResult {
    /// Whether there was no file before.
    pub created: bool,
    /// The version of the file now.
    pub version: Version,
    /// Whether owner and group are what they were; otherwise the file is ours now.
    pub owner_kept: bool,
}

/// What to change. `oldText` and `newText` replace; `insertAfter` and `newText` insert; `newText` alone
/// creates a file.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EditParams {
    /// Which file.
    #[serde(default)]
    pub path: String,
    /// The text to replace. It must occur exactly once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old_text: Option<String>,
    /// The line after which to insert; 0 inserts before the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub insert_after: Option<usize>,
    /// The new text. Its lines end with `\n`, whatever the file has.
    #[serde(default)]
    pub new_text: String,
    /// Change the file only if it is still at this version. Otherwise: *Conflict*, nothing changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub if_version: Option<Version>,
}

/// What an edit did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EditResult {
    /// Where the change begins.
    pub line: usize,
    /// Lines taken out.
    pub lines_removed: usize,
    /// Lines put in.
    pub lines_added: usize,
    /// The change as a unified diff.
    pub diff: String,
    /// The version of the file now; absent if taking an edit back has removed the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<Version>,
    /// Whether owner and group are what they were; otherwise the file is ours now.
    pub owner_kept: bool,
}

/// Which edit to take back.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct UndoParams {
    /// The latest of this file.
    #[serde(default)]
    pub path: String,
    /// Even if the file was changed since; that change is lost.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub force: bool,
}

/// The workspace itself, where no path is given.
fn here() -> String {
    ".".to_owned()
}

/// What to list.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ListParams {
    /// Which directory.
    #[serde(default = "here")]
    pub path: String,
    /// Also the entries of its directories.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub nested: bool,
    /// Also entries whose names begin with a dot.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hidden: bool,
    /// At most so many entries, 100,000 at most; 10,000 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
}

/// The entries of a directory, sorted by path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListResult {
    /// The entries.
    pub entries: Vec<FileEntry>,
    /// Hidden entries that were left out.
    pub hidden_left_out: usize,
    /// Whether there are more than the limit.
    pub truncated: bool,
    /// Directories that could not be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<String>,
}

/// One entry.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FileEntry {
    /// Relative to the directory that was listed.
    pub path: String,
    /// What it is.
    pub kind: FileKind,
    /// For a link, what it leads to inside the workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<FileKind>,
}

/// What an entry is.
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
    /// Something else.
    Other,
}

/// What to find, and where.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SearchParams {
    /// In which file, or below which directory.
    #[serde(default = "here")]
    pub path: String,
    /// For names: `*` stops at slashes, `**` does not; `{a,b}` and `[ab]` choose. For lines: a regular
    /// expression.
    #[serde(default)]
    pub pattern: String,
    /// Also hidden files.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hidden: bool,
    /// Also what `.gitignore` and `.ignore` exclude.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ignored: bool,
    /// At most so many, 100,000 at most; 1,000 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
}

/// Files that match.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GlobResult {
    /// Relative to the directory that was searched.
    pub paths: Vec<String>,
    /// Whether there are more than the limit.
    pub truncated: bool,
    /// Directories that could not be read.
    pub unreadable: usize,
}

/// Which lines to find.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GrepParams {
    /// What to find, and where.
    #[serde(flatten)]
    pub search: SearchParams,
    /// The pattern is plain text.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub literal: bool,
    /// Upper and lower case are the same.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ignore_case: bool,
    /// Only files whose path matches this glob.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<String>,
    /// Lines to show before and after each match, 1,000 at most.
    #[serde(default)]
    pub context: usize,
}

/// Lines that match, and those beside them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GrepResult {
    /// In order of files and lines.
    pub lines: Vec<GrepLine>,
    /// Whether there are more than the limit, or than fit into an answer.
    pub truncated: bool,
    /// Files and directories that could not be read, or not to their end.
    pub unreadable: usize,
}

/// One line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GrepLine {
    /// Relative to the directory that was searched; empty if a file was.
    pub path: String,
    /// Its number, from 1.
    pub line: u64,
    /// The line without its end, cut after 2,000 characters.
    pub text: String,
    /// Whether it matches; otherwise it is context.
    pub matches: bool,
}

/// What to look at.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StatParams {
    /// Which path.
    #[serde(default)]
    pub path: String,
    /// Look at what a link leads to.
    #[serde(default = "yes", skip_serializing_if = "is_true")]
    pub follow: bool,
}

/// What is known of a path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StatResult {
    /// What it is.
    pub kind: FileKind,
    /// Bytes of a file.
    pub size: u64,
    /// Permission bits.
    pub mode: u32,
    /// Id of the owner.
    pub user: u32,
    /// Id of the group.
    pub group: u32,
    /// When the content changed last, in milliseconds since 1970.
    pub modified_ms: f64,
    /// Where a link points to, when it is not followed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
}

/// Which directory to create.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MakeDirectoryParams {
    /// Its path.
    #[serde(default)]
    pub path: String,
    /// Create missing directories above it, and accept one that is there already.
    #[serde(default = "yes", skip_serializing_if = "is_true")]
    pub parents: bool,
}

/// What to remove.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct RemoveParams {
    /// Its path.
    #[serde(default)]
    pub path: String,
    /// Also a directory, with everything in it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub recursive: bool,
}

/// What to move or copy, and where to. Missing directories are created.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct TransferParams {
    /// What.
    #[serde(default)]
    pub from: String,
    /// Where to.
    #[serde(default)]
    pub to: String,
    /// Take the place of a file that is there.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub replace: bool,
}

/// What copying did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CopyResult {
    /// Whether owner and group of a file that was replaced are what they were; otherwise it is ours now.
    pub owner_kept: bool,
}
