//! Files of a workspace: read, write, edit, list, search, hash, move, copy and remove them.
//!
//! A [`Workspace`] makes [`WorkspacePath`]s, and every function here takes one. Linux enforces what
//! a workspace may touch when a path is opened. The text of a path is never compared, so links and
//! renames that happen meanwhile cannot lead outside. The same functions serve a workspace that is
//! the whole file system.
//!
//! Nothing is lost by accident: files are replaced in one step and keep mode and owner. An edit
//! keeps line endings and encoding of everything that it does not touch, and can be undone. Undo
//! refuses to overwrite what somebody else has changed since. A caller that has read a [`Version`]
//! of a file can ask an [`Editor`] to change it only if it is still at that version.
//!
//! All functions block on the disk; asynchronous callers run them on a blocking thread. How a
//! result looks on the wire is not decided here.

mod diff;
mod document;
mod edit;
mod error;
mod exclusive;
mod file_locks;
mod hash;
mod history;
mod ignore_rules;
mod lines;
mod list;
mod media;
mod pattern;
mod read;
mod root;
mod search;
mod stat;
mod tree;
mod version;
mod write;

#[cfg(test)]
mod tests;

pub use diff::{unified_diff, unified_diff_of_lines};
pub use document::{Encoding, LineEnding};
pub use edit::{EDIT_BYTES, Edit, Edited, Editor, Undo};
pub use error::Error;
pub use hash::{HASHED_BYTES, Hashed, Sha256, hash};
pub use history::{HISTORY_BYTES, HISTORY_PER_FILE};
pub use lines::{LINES_REPORTED, distinct_lines, line_count, line_ends, numbered, select_lines};
pub use list::{Depth, ListOptions, ListedEntry, Listing, list};
pub use media::{media_type_by_content, media_type_by_name};
pub use pattern::{GLOB_BYTES, GLOB_CHOICES, REGEX_BYTES};
pub use read::{
    Content, LineRange, READ_BYTES, Text, open_file, read_any, read_any_versioned, read_bytes,
    read_text,
};
pub use root::{Workspace, WorkspacePath};
pub use search::{
    Case, Filter, GlobResult, Grep, GrepLine, GrepResult, LINE_CHARACTERS, MAX_CONTEXT,
    MAX_GREP_BYTES, MAX_RESULTS, check_limit, glob, grep,
};
pub use stat::{Kind, Links, Stat, stat};
pub use tree::{
    Destination, Parents, Removal, copy, create_directory, move_entry, remove, remove_directory,
};
pub use version::{VERSIONED_BYTES, Version, Versioned};
pub use write::{
    Durability, Existing, FileOwner, WriteOptions, Written, set_mode, write, write_from,
};
