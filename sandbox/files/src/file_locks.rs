//! Locks that let two changes of one file through one [`Editor`](super::Editor) happen one after
//! the other.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::history::FileKey;

/// A lock for each file that is being changed.
#[derive(Debug, Default)]
pub(super) struct FileLocks(Mutex<HashMap<FileKey, Arc<Mutex<()>>>>);

impl FileLocks {
    /// The lock of a file. Locks that nobody holds are dropped from the map.
    pub fn of(&self, key: &FileKey) -> Arc<Mutex<()>> {
        let mut locks = lock(&self.0);
        locks.retain(|_, held| Arc::strong_count(held) > 1);
        Arc::clone(locks.entry(key.clone()).or_default())
    }
}

/// Locks even after a panic of another holder: guarded values are changed in single steps, so they
/// are never half changed.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
