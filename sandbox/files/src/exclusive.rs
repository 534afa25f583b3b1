//! Moves, copies and removals that wait for other changes of the same files.
//!
//! They take the locks that writes and edits take. So none of them can come between the version
//! check of a conditional write and the write. Only the named paths are locked, not the files of a
//! tree below them.

use super::edit::Editor;
use super::file_locks::lock;
use super::history::FileKey;
use super::root::Entry;
use super::tree::{copy, move_entry, remove};
use super::{Destination, Error, FileOwner, Links, Parents, Removal, WorkspacePath, stat};

impl Editor {
    /// Moves like [`move_entry`].
    pub fn move_entry(
        &self,
        from: &WorkspacePath,
        to: &WorkspacePath,
        destination: Destination,
    ) -> Result<(), Error> {
        // A missing source must not create the parents of the destination.
        stat(from, Links::Keep)?;
        prepare_parents(to, destination)?;
        let keys = vec![key(from, &from.entry()?)?, key(to, &to.entry()?)?];
        self.exclusively(keys, || move_entry(from, to, destination))
    }

    /// Copies like [`copy`]. Links are followed, so the locks are those of their targets.
    pub fn copy(
        &self,
        from: &WorkspacePath,
        to: &WorkspacePath,
        destination: Destination,
    ) -> Result<FileOwner, Error> {
        stat(from, Links::Keep)?;
        prepare_parents(to, destination)?;
        let keys = vec![key(from, &from.target()?.0)?, key(to, &to.target()?.0)?];
        self.exclusively(keys, || copy(from, to, destination))
    }

    /// Removes like [`remove`].
    pub fn remove(&self, path: &WorkspacePath, removal: Removal) -> Result<(), Error> {
        self.exclusively(vec![key(path, &path.entry()?)?], || remove(path, removal))
    }

    /// Holds the locks of all these files during a change.
    fn exclusively<T>(
        &self,
        keys: Vec<FileKey>,
        change: impl FnOnce() -> Result<T, Error>,
    ) -> Result<T, Error> {
        let keys = in_lock_order(keys);
        let locks: Vec<_> = keys.iter().map(|key| self.locks.of(key)).collect();
        let _guards: Vec<_> = locks.iter().map(|file_lock| lock(file_lock)).collect();
        change()
    }
}

/// The keys in the one order in which locks are taken, each once: two changes of the same files, such
/// as opposite moves, cannot deadlock, and a move onto itself takes its lock once.
pub(super) fn in_lock_order(mut keys: Vec<FileKey>) -> Vec<FileKey> {
    keys.sort();
    keys.dedup();
    keys
}

fn prepare_parents(to: &WorkspacePath, destination: Destination) -> Result<(), Error> {
    match destination.parents {
        Parents::Create => to.create_parents(),
        Parents::MustExist => Ok(()),
    }
}

pub(super) fn key(path: &WorkspacePath, entry: &Entry) -> Result<FileKey, Error> {
    FileKey::of(entry).map_err(|source| path.failed(source))
}
