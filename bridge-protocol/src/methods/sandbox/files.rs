//! Files of the workspace. Paths are relative to it, or absolute and inside it; nothing outside can be
//! reached, through links neither.

use serde::{Deserialize, Serialize};

use super::{MethodType, is_yes, methods, yes};
use crate::methods::Empty;

methods! {
    /// `sandbox/readFile`: a file, or some lines of it.
    ReadFile = "sandbox/readFile": ReadFileParams => ReadFileResult;
    /// `sandbox/writeFile`: writes a whole file in one step.
    WriteFile = "sandbox/writeFile": WriteFileParams => WriteFileResult;
    /// `sandbox/editFile`: replaces the one occurrence of a text, inserts lines, or creates a file.
    EditFile = "sandbox/editFile": EditFileParams => EditFileResult;
    /// `sandbox/undoEdit`: takes the latest edit of a file back.
    UndoEdit = "sandbox/undoEdit": UndoEditParams => EditFileResult;
    /// `sandbox/listFiles`: the entries of a directory.
    ListFiles = "sandbox/listFiles": ListFilesParams => ListFilesResult;
    /// `sandbox/glob`: files whose paths match a pattern.
    Glob = "sandbox/glob": SearchParams => GlobResult;
    /// `sandbox/grep`: lines of files that match a pattern.
    Grep = "sandbox/grep": GrepParams => GrepResult;
    /// `sandbox/stat`: what is known of a path.
    Stat = "sandbox/stat": StatParams => StatResult;
    /// `sandbox/makeDirectory`: creates a directory.
    MakeDirectory = "sandbox/makeDirectory": MakeDirectoryParams => Empty;
    /// `sandbox/removeDirectory`: removes an empty directory.
    RemoveDirectory = "sandbox/removeDirectory": PathParams => Empty;
    /// `sandbox/remove`: removes a file or, if asked for, a whole tree.
    Remove = "sandbox/remove": RemoveParams => Empty;
    /// `sandbox/move`: gives a file or tree another name.
    Move = "sandbox/move": TransferParams => Empty;
    /// `sandbox/copy`: copies a file or tree.
    Copy = "sandbox/copy": TransferParams => CopyResult;
}

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
pub struct ReadFileParams {
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
pub enum ReadFileResult {
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
    },
    /// An image, sound, film or PDF.
    Media {
        /// For instance `image/png`.
        media_type: String,
        /// The whole file.
        base64: String,
    },
    /// Something else. Its content comes with `raw`.
    Binary {
        /// `application/octet-stream` if nobody knows better.
        media_type: String,
        /// Bytes of the file.
        size: u64,
    },
    /// The bytes, as asked for by `raw`.
    Raw {
        /// The whole file.
        base64: String,
    },
}

/// What to write: `text` or `base64`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WriteFileParams {
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
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub replace: bool,
}

/// What writing did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WriteFileResult {
    /// Whether there was no file before.
    pub created: bool,
    /// Whether owner and group are what they were; otherwise the file is ours now.
    pub owner_kept: bool,
}

/// What to change. `oldText` and `newText` replace; `insertAfter` and `newText` insert; `newText` alone
/// creates a file.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EditFileParams {
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
}

/// What an edit did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EditFileResult {
    /// Where the change begins.
    pub line: usize,
    /// Lines taken out.
    pub lines_removed: usize,
    /// Lines put in.
    pub lines_added: usize,
    /// The change as a unified diff.
    pub diff: String,
    /// Whether owner and group are what they were; otherwise the file is ours now.
    pub owner_kept: bool,
}

/// Which edit to take back.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct UndoEditParams {
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
pub struct ListFilesParams {
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
pub struct ListFilesResult {
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
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
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
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
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
