//! Changes a part of a text file: create, replace exactly one match, insert, undo.
//!
//! The caller's text has `\n` as line end, whatever the file has. Searching treats both kinds of
//! line ends as equal, and new lines get the line end of the lines around them. Bytes outside the
//! change stay as they are, and so does the encoding. Results show text with `\n` only.
//!
//! An [`Editor`] locks each file that it changes, so two changes of one file happen one after the
//! other, and none overwrites another that it has not seen. With a [`Version`], a change is made
//! only if the file is still at it; no other change through this editor can come between the check
//! and the change.

use std::borrow::Cow;
use std::sync::Mutex;

use memchr::memmem;
use rustix::fs::{AtFlags, unlinkat};
use rustix::io::Errno;

use super::document::{Document, LineEnding, Unencodable};
use super::exclusive::key;
use super::file_locks::{FileLocks, lock};
use super::history::{FileKey, Fingerprint, History, PastEdit};
use super::lines::{distinct_lines, line_ends, line_start};
use super::read::decode;
use super::{
    Error, Existing, FileOwner, Parents, VERSIONED_BYTES, Version, WorkspacePath, WriteOptions,
    Written, line_count, open_file, read_bytes, write,
};

/// The largest file that is edited, in bytes.
pub const EDIT_BYTES: u64 = 10 * 1024 * 1024;

/// Changes files, one change per file at a time, and remembers former contents for undo.
#[derive(Debug, Default)]
pub struct Editor {
    history: Mutex<History>,
    pub(super) locks: FileLocks,
}

/// The result of an edit. Texts have `\n` as line end, whatever the file has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edited {
    /// The text before; `None` if the file did not exist.
    pub before: Option<String>,
    /// The text now; `None` if the file is gone (undo of create).
    pub after: Option<String>,
    /// Number of the line where the change begins; 1 after undo and create.
    pub line: usize,
    /// Line ends in the removed text.
    pub lines_removed: usize,
    /// Line ends in the new text.
    pub lines_added: usize,
    /// Whether the file owner is still the same.
    pub owner: FileOwner,
    /// The bytes of the file now.
    content: Option<Vec<u8>>,
}

impl Edited {
    /// The version of the file now; `None` if the file is gone.
    pub fn version(&self) -> Option<Version> {
        self.content.as_deref().map(Version::of)
    }
}

/// A change of a part of a text file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edit<'a> {
    /// Replace the only occurrence of `old`. If there is none, or more than one, nothing is
    /// changed.
    Replace {
        /// The text to remove.
        old: &'a str,
        /// The text to put in its place.
        new: &'a str,
    },
    /// Insert lines after a line; 0 inserts before the first. If the text, or the line before it,
    /// has no final line end, it gets one.
    Insert {
        /// The line number.
        after: usize,
        /// The text to insert.
        text: &'a str,
    },
}

/// When undo may restore the former content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Undo {
    /// Only if the file is what the edit left, else [`Error::ChangedSinceEdit`].
    IfUnchanged,
    /// Always.
    Anyway,
}

impl Editor {
    /// Writes a whole file like [`write()`]. With `expected`, only if the file is at this version,
    /// else [`Error::Changed`]. A write cannot be undone.
    pub fn write(
        &self,
        path: &WorkspacePath,
        bytes: &[u8],
        options: WriteOptions,
        expected: Option<&str>,
    ) -> Result<Written, Error> {
        let file = target_key(path, options.parents)?;
        let file_lock = self.locks.of(&file);
        let _guard = lock(&file_lock);
        if let Some(expected) = expected {
            check_version(path, expected)?;
        }
        write(path, bytes, options)
    }

    /// Creates a file with exactly this text. Fails with [`Error::Exists`] if the path exists.
    pub fn create(
        &self,
        path: &WorkspacePath,
        text: &str,
        options: WriteOptions,
    ) -> Result<Edited, Error> {
        let file = target_key(path, options.parents)?;
        let file_lock = self.locks.of(&file);
        let _guard = lock(&file_lock);
        write(path, text.as_bytes(), WriteOptions { existing: Existing::Refuse, ..options })?;
        let past = PastEdit { before: None, after: Fingerprint::of(text.as_bytes()) };
        lock(&self.history).push(file, past);
        let after = unified(text).into_owned();
        let lines_added = line_ends(&after);
        Ok(Edited {
            before: None,
            after: Some(after),
            line: 1,
            lines_removed: 0,
            lines_added,
            owner: FileOwner::Kept,
            content: Some(text.as_bytes().to_vec()),
        })
    }

    /// Replaces the only occurrence of `old`; see [`Edit::Replace`].
    pub fn replace_once(
        &self,
        path: &WorkspacePath,
        old: &str,
        new: &str,
    ) -> Result<Edited, Error> {
        self.edit(path, Edit::Replace { old, new }, None)
    }

    /// Inserts lines after line `line`; see [`Edit::Insert`].
    pub fn insert_after(
        &self,
        path: &WorkspacePath,
        line: usize,
        text: &str,
    ) -> Result<Edited, Error> {
        self.edit(path, Edit::Insert { after: line, text }, None)
    }

    /// Edits a file. With `expected`, only if the file is at this version, else [`Error::Changed`].
    pub fn edit(
        &self,
        path: &WorkspacePath,
        edit: Edit<'_>,
        expected: Option<&str>,
    ) -> Result<Edited, Error> {
        let file = target_key(path, Parents::MustExist)?;
        let file_lock = self.locks.of(&file);
        let _guard = lock(&file_lock);
        let old = match (read_bytes(path, EDIT_BYTES), expected) {
            (Ok(old), Some(expected)) => {
                compare(path, expected, Version::of(&old))?;
                old
            }
            (Err(Error::NotFound { .. }), Some(_)) => return Err(changed(path, None)),
            (Err(Error::TooLarge { path: shown, size, limit }), expected) => {
                if let Some(expected) = expected {
                    check_version(path, expected)?;
                }
                return Err(Error::TooLargeToEdit { path: shown, size, limit });
            }
            (old, _) => old?,
        };
        let mut document = decode(path, old.clone())?;
        let change = match edit {
            Edit::Replace { old, new } => replace_once(path, &document.text, old, new)?,
            Edit::Insert { after, text } => insert_after(path, &document.text, after, text)?,
        };
        let before = unified(&document.text).into_owned();
        document.text = change.text;
        let new = encode(path, &document)?;
        let owner = write(path, &new, WriteOptions::default())?.owner;
        let past = PastEdit { before: Some(old), after: Fingerprint::of(&new) };
        lock(&self.history).push(file, past);
        Ok(Edited {
            before: Some(before),
            after: Some(unified(&document.text).into_owned()),
            line: change.line,
            lines_removed: change.lines_removed,
            lines_added: change.lines_added,
            owner,
            content: Some(new),
        })
    }

    /// Undoes the last edit of this file. Its bytes are then exactly what they were before; a file
    /// that the edit created is removed.
    pub fn undo(&self, path: &WorkspacePath, undo: Undo) -> Result<Edited, Error> {
        let file = target_key(path, Parents::MustExist)?;
        let file_lock = self.locks.of(&file);
        let _guard = lock(&file_lock);
        let shown = || path.as_path().to_path_buf();
        let past = lock(&self.history).last(&file).cloned();
        let PastEdit { before: content, after } =
            past.ok_or_else(|| Error::NoHistory { path: shown() })?;
        let current = match read_bytes(path, EDIT_BYTES) {
            Ok(bytes) => Some(bytes),
            // A missing or very large file is certainly not what the edit left.
            Err(Error::NotFound { .. } | Error::TooLarge { .. }) => None,
            Err(error) => return Err(error),
        };
        let unchanged = current.as_deref().map(Fingerprint::of) == Some(after);
        if undo == Undo::IfUnchanged && !unchanged {
            return Err(Error::ChangedSinceEdit { path: shown() });
        }
        let owner = match &content {
            Some(bytes) => write(path, bytes, WriteOptions::default())?.owner,
            None => {
                remove_target(path)?;
                FileOwner::Kept
            }
        };
        // Nothing to pop means that the history dropped this edit for space, and all before it.
        lock(&self.history).pop(&file);
        let before = current.and_then(text_of);
        let after = content.clone().and_then(text_of);
        let (lines_removed, lines_added) =
            (before.as_deref().map_or(0, line_ends), after.as_deref().map_or(0, line_ends));
        Ok(Edited { before, after, line: 1, lines_removed, lines_added, owner, content })
    }

    /// Remembers the present content of a file, as if an edit had left it unchanged. For callers
    /// that write the file in their own way and want undo to restore this content.
    pub fn remember(&self, path: &WorkspacePath) -> Result<(), Error> {
        let bytes = read_bytes(path, EDIT_BYTES)?;
        let after = Fingerprint::of(&bytes);
        let file = target_key(path, Parents::MustExist)?;
        lock(&self.history).push(file, PastEdit { before: Some(bytes), after });
        Ok(())
    }
}

/// Fails if the file is not at the expected version.
fn check_version(path: &WorkspacePath, expected: &str) -> Result<(), Error> {
    let (file, size) = match open_file(path) {
        Err(Error::NotFound { .. }) => return Err(changed(path, None)),
        opened => opened?,
    };
    if size > VERSIONED_BYTES {
        return Err(changed(path, None));
    }
    let current = Version::of_file(&file).map_err(|source| path.failed(source))?;
    compare(path, expected, current)
}

fn compare(path: &WorkspacePath, expected: &str, current: Version) -> Result<(), Error> {
    match current.to_string() == expected {
        true => Ok(()),
        false => Err(changed(path, Some(current))),
    }
}

fn changed(path: &WorkspacePath, version: Option<Version>) -> Error {
    Error::Changed { path: path.as_path().to_path_buf(), version }
}

/// The new text, and where it differs from the old one.
#[derive(Debug)]
struct Change {
    text: String,
    line: usize,
    lines_removed: usize,
    lines_added: usize,
}

fn replace_once(path: &WorkspacePath, text: &str, old: &str, new: &str) -> Result<Change, Error> {
    let shown = || path.as_path().to_path_buf();
    let (old, new) = (unified(old), unified(new));
    if old.is_empty() {
        return Err(Error::EmptyPattern { path: shown() });
    }
    if old == new {
        return Err(Error::SameText { path: shown() });
    }
    let seen = unified(text);
    let mut matches = memmem::find_iter(seen.as_bytes(), old.as_bytes());
    let Some(start) = matches.next() else {
        return Err(Error::NoMatch { path: shown() });
    };
    if let Some(second) = matches.next() {
        let rest = matches.collect::<Vec<_>>();
        let starts = [start, second].into_iter().chain(rest.iter().copied());
        let (count, lines) = (2 + rest.len(), distinct_lines(&seen, starts));
        return Err(Error::SeveralMatches { path: shown(), count, lines });
    }
    let carriage_returns = dropped_carriage_returns(text);
    let [from, to] = [start, start + old.len()]
        .map(|at| at + carriage_returns.partition_point(|&dropped| dropped < at));
    let ending = LineEnding::of(&text[from..to]).or_else(|| LineEnding::of(text));
    let inserted = with_ending(&new, ending.unwrap_or(LineEnding::Lf));
    Ok(Change {
        text: [&text[..from], &*inserted, &text[to..]].concat(),
        line: 1 + line_ends(&seen[..start]),
        lines_removed: line_ends(&old),
        lines_added: line_ends(&new),
    })
}

fn insert_after(path: &WorkspacePath, text: &str, line: usize, new: &str) -> Result<Change, Error> {
    let lines = line_count(text);
    if line > lines {
        return Err(Error::NoSuchLine { path: path.as_path().to_path_buf(), line, lines });
    }
    let ending = LineEnding::of(text).unwrap_or(LineEnding::Lf);
    let mut new = unified(new).into_owned();
    if !new.ends_with('\n') {
        new.push('\n');
    }
    let at = line_start(text, line + 1);
    let joint = match at == text.len() && !text.is_empty() && !text.ends_with('\n') {
        true => ending.as_str(),
        false => "",
    };
    Ok(Change {
        text: [&text[..at], joint, &*with_ending(&new, ending), &text[at..]].concat(),
        line: line + 1,
        lines_removed: 0,
        lines_added: line_ends(&new),
    })
}

/// The text with `\n` as every line end.
fn unified(text: &str) -> Cow<'_, str> {
    match memmem::find(text.as_bytes(), b"\r\n") {
        Some(_) => Cow::Owned(text.replace("\r\n", "\n")),
        None => Cow::Borrowed(text),
    }
}

/// Offsets in the unified text before which a carriage return was dropped.
fn dropped_carriage_returns(text: &str) -> Vec<usize> {
    let found = memmem::find_iter(text.as_bytes(), b"\r\n");
    found.enumerate().map(|(earlier, at)| at - earlier).collect()
}

fn with_ending(text: &str, ending: LineEnding) -> Cow<'_, str> {
    match ending {
        LineEnding::Lf => Cow::Borrowed(text),
        LineEnding::CrLf => Cow::Owned(text.replace('\n', "\r\n")),
    }
}

/// Decodes bytes for display; `None` if they are not text.
fn text_of(bytes: Vec<u8>) -> Option<String> {
    Document::decode(bytes).ok().map(|document| unified(&document.text).into_owned())
}

fn encode(path: &WorkspacePath, document: &Document) -> Result<Vec<u8>, Error> {
    document.encode().map_err(|Unencodable(character)| Error::Unencodable {
        path: path.as_path().to_path_buf(),
        encoding: document.encoding.name(),
        character,
    })
}

/// Removes the file that the path leads to, if it exists.
fn remove_target(path: &WorkspacePath) -> Result<(), Error> {
    let (entry, _) = path.target()?;
    match unlinkat(&entry.dir, &entry.name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(path.failed(error.into())),
    }
}

/// Identifies the file that the path leads to. Creates missing parent directories if `parents` says so, because a file
/// is identified by its directory.
pub(super) fn target_key(path: &WorkspacePath, parents: Parents) -> Result<FileKey, Error> {
    let entry = match path.target() {
        Err(Error::NotFound { .. }) if parents == Parents::Create => {
            path.create_parents()?;
            path.target()?.0
        }
        target => target?.0,
    };
    key(path, &entry)
}
