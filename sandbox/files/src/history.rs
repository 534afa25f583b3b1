//! The contents of files before they were edited, for undo.
//!
//! The history is kept in memory and has two limits: states per file, and bytes in total. At a
//! limit the oldest states are dropped. A state that alone exceeds the byte limit is not kept.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::hash::{DefaultHasher, Hasher};

use rustix::fs::fstat;

use super::root::Entry;
use super::stat::identity;

/// How many states are kept for each file.
pub const HISTORY_PER_FILE: usize = 10;

/// How many bytes are kept for all files together.
pub const HISTORY_BYTES: usize = 64 * 1024 * 1024;

/// Added to the cost of each state, so that many empty states reach the byte limit too.
const STATE_OVERHEAD: usize = 256;

/// Identifies a file by the directory it is in and its name there. Unlike a path, this is the same
/// by whatever path the file is reached; unlike the inode number, it stays the same when the file
/// is replaced.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct FileKey {
    directory: (u64, u64),
    name: OsString,
}

/// One edit that can be undone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PastEdit {
    /// The bytes before the edit; `None` if the file did not exist.
    pub before: Option<Vec<u8>>,
    /// The content that the edit left, to detect later changes by others.
    pub after: Fingerprint,
}

/// A hash to see whether a file has changed. It guards against accidents only, so 64 bits are
/// enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fingerprint(u64);

#[derive(Debug, Default)]
pub(super) struct History {
    /// Oldest first.
    states: VecDeque<(FileKey, PastEdit)>,
    bytes: usize,
}

impl FileKey {
    pub fn of(entry: &Entry) -> std::io::Result<Self> {
        Ok(Self { directory: identity(&fstat(&entry.dir)?), name: entry.name.clone() })
    }
}

impl Fingerprint {
    pub fn of(bytes: &[u8]) -> Self {
        let mut hasher = DefaultHasher::new();
        hasher.write(bytes);
        Self(hasher.finish())
    }
}

impl History {
    pub fn push(&mut self, key: FileKey, past: PastEdit) {
        if past.cost() > HISTORY_BYTES {
            return;
        }
        if self.states.iter().filter(|(other, _)| *other == key).count() >= HISTORY_PER_FILE {
            let oldest = self.states.iter().position(|(other, _)| *other == key);
            self.forget(oldest);
        }
        self.bytes += past.cost();
        self.states.push_back((key, past));
        while self.bytes > HISTORY_BYTES {
            self.forget(Some(0));
        }
    }

    /// The last edit of a file that was not undone.
    pub fn last(&self, key: &FileKey) -> Option<&PastEdit> {
        self.states.iter().rev().find(|(other, _)| other == key).map(|(_, past)| past)
    }

    /// Removes the last edit of a file from the history.
    pub fn pop(&mut self, key: &FileKey) {
        self.forget(self.states.iter().rposition(|(other, _)| other == key));
    }

    fn forget(&mut self, index: Option<usize>) {
        if let Some((_, past)) = index.and_then(|index| self.states.remove(index)) {
            self.bytes -= past.cost();
        }
    }
}

impl PastEdit {
    fn cost(&self) -> usize {
        STATE_OVERHEAD + self.before.as_ref().map_or(0, Vec::len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> FileKey {
        FileKey { directory: (1, 2), name: name.into() }
    }

    fn past(bytes: Vec<u8>) -> PastEdit {
        PastEdit { before: Some(bytes), after: Fingerprint::of(b"") }
    }

    fn before(history: &History, name: &str) -> Option<Vec<u8>> {
        history.last(&key(name)).and_then(|past| past.before.clone())
    }

    #[test]
    fn each_file_has_its_own_bounded_stack() {
        let mut history = History::default();
        history.push(key("other"), past(vec![99]));
        for state in 0..=HISTORY_PER_FILE {
            history.push(key("a"), past(vec![u8::try_from(state).unwrap()]));
        }
        for state in (1..=HISTORY_PER_FILE).rev() {
            assert_eq!(before(&history, "a"), Some(vec![u8::try_from(state).unwrap()]));
            history.pop(&key("a"));
        }
        assert_eq!(before(&history, "a"), None);
        assert_eq!(before(&history, "other"), Some(vec![99]));
    }

    #[test]
    fn bytes_are_bounded_over_all_files() {
        let mut history = History::default();
        history.push(key("a"), past(vec![0; HISTORY_BYTES / 2]));
        history.push(key("b"), past(vec![0; HISTORY_BYTES / 2]));
        assert_eq!(before(&history, "a"), None);
        assert!(before(&history, "b").is_some());
        history.push(key("c"), past(vec![0; HISTORY_BYTES]));
        assert_eq!(before(&history, "c"), None);
        history.pop(&key("b"));
        assert_eq!(history.bytes, 0);
    }
}
