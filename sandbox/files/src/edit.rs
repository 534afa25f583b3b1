//! Changing a part of a text file: create, replace exactly one match, insert, undo.
//!
//! Text given by the caller ends its lines with `\n`, whatever the file has: while searching, the
//! two kinds of line ends are the same, and new lines get the ends of their surroundings. Bytes
//! outside the change stay as they are, so does the encoding. Callers see text with `\n` only.
//!
//! Edits through one [`Editor`] happen one after the other, so none overwrites another that it
//! has not seen.

use std::borrow::Cow;
use std::sync::{Mutex, MutexGuard, PoisonError};

use memchr::memmem;
use rustix::fs::{AtFlags, unlinkat};
use rustix::io::Errno;

use super::document::{Document, LineEnding, Unencodable};
use super::history::{FileKey, Fingerprint, History, Past};
use super::lines::line_start;
use super::read::decode;
use super::{Error, Existing, Owner, WorkspacePath, WriteOptions, line_count, read_bytes, write};

/// Larger files are not edited.
pub const EDIT_BYTES: u64 = 10 * 1024 * 1024;

/// How many lines [`Error::Several`] lists.
pub const LINES_REPORTED: usize = 1000;

/// Edits files and remembers what they were.
#[derive(Debug, Default)]
pub struct Editor {
    history: Mutex<History>,
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
    /// Creates a file with exactly this text. [`Error::Exists`] if there is something.
    pub fn create(
        &self,
        path: &WorkspacePath,
        text: &str,
        options: WriteOptions,
    ) -> Result<Edited, Error> {
        let mut history = self.lock();
        write(path, text.as_bytes(), WriteOptions { existing: Existing::Refuse, ..options })?;
        history.push(key(path)?, Past { before: None, after: Fingerprint::of(text.as_bytes()) });
        let after = unified(text).into_owned();
        let lines_added = line_ends(&after);
        Ok(Edited {
            before: None,
            after: Some(after),
            line: 1,
            lines_removed: 0,
            lines_added,
            owner: Owner::Kept,
        })
    }

    /// Replaces the only occurrence of `old`. Without one, or with several, nothing is changed.
    pub fn replace_once(
        &self,
        path: &WorkspacePath,
        old: &str,
        new: &str,
    ) -> Result<Edited, Error> {
        self.change(path, |text| replace_once(path, text, old, new))
    }

    /// Inserts lines after line `line`; 0 inserts before the first. The text gets a final line end
    /// if it has none, and so does the line before it.
    pub fn insert_after(
        &self,
        path: &WorkspacePath,
        line: usize,
        text: &str,
    ) -> Result<Edited, Error> {
        self.change(path, |document| insert_after(path, document, line, text))
    }

    /// Takes the last edit of this file back. The file's bytes are then exactly what they were; a
    /// file that the edit created is removed.
    pub fn undo(&self, path: &WorkspacePath, undo: Undo) -> Result<Edited, Error> {
        let mut history = self.lock();
        let key = key(path)?;
        let shown = || path.as_path().to_path_buf();
        let past = history.last(&key).ok_or_else(|| Error::NoHistory { path: shown() })?;
        let current = match read_bytes(path, EDIT_BYTES) {
            Ok(bytes) => Some(bytes),
            // Whatever it has become, it is not what the edit left.
            Err(Error::NotFound { .. } | Error::TooLarge { .. }) => None,
            Err(error) => return Err(error),
        };
        let unchanged = current.as_deref().map(Fingerprint::of) == Some(past.after);
        if undo == Undo::IfUnchanged && !unchanged {
            return Err(Error::ChangedSince { path: shown() });
        }
        let owner = match &past.before {
            Some(bytes) => write(path, bytes, WriteOptions::default())?.owner,
            None => {
                remove_target(path)?;
                Owner::Kept
            }
        };
        let before = current.and_then(text_of);
        let after = past.before.clone().and_then(text_of);
        let (lines_removed, lines_added) =
            (before.as_deref().map_or(0, line_ends), after.as_deref().map_or(0, line_ends));
        history.pop(&key);
        Ok(Edited { before, after, line: 1, lines_removed, lines_added, owner })
    }

    /// Remembers the file as it is now, as if an edit had left it unchanged. For callers whose
    /// own way of writing shall be undone to this state.
    pub fn remember(&self, path: &WorkspacePath) -> Result<(), Error> {
        let mut history = self.lock();
        let bytes = read_bytes(path, EDIT_BYTES)?;
        let after = Fingerprint::of(&bytes);
        history.push(key(path)?, Past { before: Some(bytes), after });
        Ok(())
    }

    fn change(
        &self,
        path: &WorkspacePath,
        edit: impl FnOnce(&str) -> Result<Change, Error>,
    ) -> Result<Edited, Error> {
        let mut history = self.lock();
        let old = read_bytes(path, EDIT_BYTES)?;
        let mut document = decode(path, old.clone())?;
        let change = edit(&document.text)?;
        let before = unified(&document.text).into_owned();
        document.text = change.text;
        let new = encode(path, &document)?;
        let owner = write(path, &new, WriteOptions::default())?.owner;
        history.push(key(path)?, Past { before: Some(old), after: Fingerprint::of(&new) });
        Ok(Edited {
            before: Some(before),
            after: Some(unified(&document.text).into_owned()),
            line: change.line,
            lines_removed: change.lines_removed,
            lines_added: change.lines_added,
            owner,
        })
    }

    fn lock(&self) -> MutexGuard<'_, History> {
        // The history is changed in single steps, so it is whole even after a panic.
        self.history.lock().unwrap_or_else(PoisonError::into_inner)
    }
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
