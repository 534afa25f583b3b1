//! Changing a part of a text file: create, replace exactly one match, insert, undo.
//!
//! Text given by the caller ends its lines with `\n`, whatever the file has: while searching, the
//! two kinds of line ends are the same, and new lines get the ends of their surroundings. Bytes
//! outside the change stay as they are, so does the encoding. Callers see text with `\n` only.
//!
//! Changes of one file through one [`Editor`] happen one after the other, so none overwrites another
//! that it has not seen. With a [`Version`], a change is made only if the file is still at it; others
//! that change the file through this editor cannot come in between.

use std::borrow::Cow;
use std::sync::{Arc, Mutex};

use memchr::memmem;
use rustix::fs::{AtFlags, unlinkat};
use rustix::io::Errno;

use super::document::{Document, LineEnding, Unencodable};
use super::history::{FileKey, Fingerprint, History, Past};
use super::lines::line_start;
use super::read::decode;
use super::turns::{Turns, lock};
use super::{
    Error, Existing, Owner, Parents, VERSIONED_BYTES, Version, WorkspacePath, WriteOptions,
    Written, line_count, open_file, read_bytes, write,
};

/// Larger files are not edited.
pub const EDIT_BYTES: u64 = 10 * 1024 * 1024;

/// How many lines [`Error::Several`] lists.
pub const LINES_REPORTED: usize = 1000;

/// Edits files and remembers what they were.
#[derive(Debug, Default)]
pub struct Editor {
    history: Mutex<History>,
    turns: Turns,
}

/// What an edit did. Texts have `\n` as line end, whatever the file has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edited {
    /// The text before, none if the file did not exist.
    pub before: Option<String>,
    /// The text now, none if the file is gone (undo of create).
    pub after: Option<String>,
    /// Number of the line where the change begins. After undo and create that is 1.
    pub line: usize,
    /// Line ends in the text that was taken out.
    pub lines_removed: usize,
    /// Line ends in the text that was put in.
    pub lines_added: usize,
    /// Whose file it is.
    pub owner: Owner,
    /// The bytes of the file now.
    content: Option<Vec<u8>>,
}

impl Edited {
    /// The version of the file now, none if the file is gone.
    pub fn version(&self) -> Option<Version> {
        self.content.as_deref().map(Version::of)
    }
}

/// A change of a part of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edit<'a> {
    /// Replace the only occurrence of `old`. Without one, or with several, nothing is changed.
    Replace {
        /// The text to take out.
        old: &'a str,
        /// The text to put in its place.
        new: &'a str,
    },
    /// Insert lines after a line; 0 inserts before the first. The text gets a final line end if it
    /// has none, and so does the line before it.
    Insert {
        /// The line.
        after: usize,
        /// The text.
        text: &'a str,
    },
}

/// When undo may restore the former state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Undo {
    /// Only if the file is what the edit left, else [`Error::ChangedSince`].
    IfUnchanged,
    /// In any case.
    Anyway,
}

impl Editor {
    /// Writes a whole file as [`write()`] does. With `expected`, only if the file is at this version,
    /// else [`Error::Changed`]. This is not remembered for undo.
    pub fn write(
        &self,
        path: &WorkspacePath,
        bytes: &[u8],
        options: WriteOptions,
        expected: Option<&str>,
    ) -> Result<Written, Error> {
        let turn = self.turn(path, options.parents)?;
        let _turn = lock(&turn);
        if let Some(expected) = expected {
            check_version(path, expected)?;
        }
        write(path, bytes, options)
    }

    /// Creates a file with exactly this text. [`Error::Exists`] if there is something.
    pub fn create(
        &self,
        path: &WorkspacePath,
        text: &str,
        options: WriteOptions,
    ) -> Result<Edited, Error> {
        let turn = self.turn(path, options.parents)?;
        let _turn = lock(&turn);
        write(path, text.as_bytes(), WriteOptions { existing: Existing::Refuse, ..options })?;
        let past = Past { before: None, after: Fingerprint::of(text.as_bytes()) };
        lock(&self.history).push(key(path)?, past);
        let after = unified(text).into_owned();
        let lines_added = line_ends(&after);
        Ok(Edited {
            before: None,
            after: Some(after),
            line: 1,
            lines_removed: 0,
            lines_added,
            owner: Owner::Kept,
            content: Some(text.as_bytes().to_vec()),
        })
    }

    /// Replaces the only occurrence of `old`, see [`Edit::Replace`].
    pub fn replace_once(
        &self,
        path: &WorkspacePath,
        old: &str,
        new: &str,
    ) -> Result<Edited, Error> {
        self.edit(path, Edit::Replace { old, new }, None)
    }

    /// Inserts lines after line `line`, see [`Edit::Insert`].
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
        let turn = self.turn(path, Parents::MustExist)?;
        let _turn = lock(&turn);
        let old = match (read_bytes(path, EDIT_BYTES), expected) {
            (Ok(old), Some(expected)) => {
                compare(path, expected, Version::of(&old))?;
                old
            }
            (Err(Error::NotFound { .. }), Some(_)) => return Err(changed(path, None)),
            (Err(Error::TooLarge { path: shown, size, limit }), Some(expected)) => {
                check_version(path, expected)?;
                return Err(Error::TooLarge { path: shown, size, limit });
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
        let past = Past { before: Some(old), after: Fingerprint::of(&new) };
        lock(&self.history).push(key(path)?, past);
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

    /// Takes the last edit of this file back. The file's bytes are then exactly what they were; a
    /// file that the edit created is removed.
    pub fn undo(&self, path: &WorkspacePath, undo: Undo) -> Result<Edited, Error> {
        let turn = self.turn(path, Parents::MustExist)?;
        let _turn = lock(&turn);
        let key = key(path)?;
        let shown = || path.as_path().to_path_buf();
        let past = lock(&self.history).last(&key).cloned();
        let Past { before: content, after } =
            past.ok_or_else(|| Error::NoHistory { path: shown() })?;
        let current = match read_bytes(path, EDIT_BYTES) {
            Ok(bytes) => Some(bytes),
            // Whatever it has become, it is not what the edit left.
            Err(Error::NotFound { .. } | Error::TooLarge { .. }) => None,
            Err(error) => return Err(error),
        };
        let unchanged = current.as_deref().map(Fingerprint::of) == Some(after);
        if undo == Undo::IfUnchanged && !unchanged {
            return Err(Error::ChangedSince { path: shown() });
        }
        let owner = match &content {
            Some(bytes) => write(path, bytes, WriteOptions::default())?.owner,
            None => {
                remove_target(path)?;
                Owner::Kept
            }
        };
        // If it was forgotten meanwhile, for want of space, so were all before it.
        lock(&self.history).pop(&key);
        let before = current.and_then(text_of);
        let after = content.clone().and_then(text_of);
        let (lines_removed, lines_added) =
            (before.as_deref().map_or(0, line_ends), after.as_deref().map_or(0, line_ends));
        Ok(Edited { before, after, line: 1, lines_removed, lines_added, owner, content })
    }

    /// Remembers the file as it is now, as if an edit had left it unchanged. For callers whose
    /// own way of writing shall be undone to this state.
    pub fn remember(&self, path: &WorkspacePath) -> Result<(), Error> {
        let bytes = read_bytes(path, EDIT_BYTES)?;
        let after = Fingerprint::of(&bytes);
        lock(&self.history).push(key(path)?, Past { before: Some(bytes), after });
        Ok(())
    }

    /// The lock of the file that the path leads to. Missing directories above it are created if they are to be: a
    /// file is known by its directory.
    fn turn(&self, path: &WorkspacePath, parents: Parents) -> Result<Arc<Mutex<()>>, Error> {
        let key = match key(path) {
            Err(Error::NotFound { .. }) if parents == Parents::Create => {
                path.create_parents()?;
                key(path)?
            }
            key => key?,
        };
        Ok(self.turns.of(&key))
    }
}

/// Fails if the file is not at this version.
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

/// A new text and where it differs.
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
        return Err(Error::Several { path: shown(), count, lines });
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

/// The text with `\n` for every line end.
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

fn distinct_lines(text: &str, starts: impl Iterator<Item = usize>) -> Vec<usize> {
    let (mut line, mut at) = (1, 0);
    let mut lines = Vec::new();
    for start in starts {
        line += line_ends(&text[at..start]);
        at = start;
        if lines.last() != Some(&line) {
            lines.push(line);
        }
        if lines.len() == LINES_REPORTED {
            break;
        }
    }
    lines
}

fn line_ends(text: &str) -> usize {
    memchr::memchr_iter(b'\n', text.as_bytes()).count()
}

/// Bytes of some moment as text to show, if they are text.
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

/// Removes the file that the path leads to, if it is there.
fn remove_target(path: &WorkspacePath) -> Result<(), Error> {
    let (entry, _) = path.target()?;
    match unlinkat(&entry.dir, &entry.name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(path.failed(error.into())),
    }
}

fn key(path: &WorkspacePath) -> Result<FileKey, Error> {
    let (entry, _) = path.target()?;
    FileKey::of(&entry).map_err(|source| path.failed(source))
}
