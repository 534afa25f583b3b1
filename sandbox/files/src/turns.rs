//! Turns: two changes of one file through one [`Editor`](super::Editor) happen one after the other.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::history::FileKey;

/// A lock for each file that is being changed.
#[derive(Debug, Default)]
pub(super) struct Turns(Mutex<HashMap<FileKey, Arc<Mutex<()>>>>);

impl Turns {
    /// The lock of a file. Those that nobody holds are forgotten.
    pub fn of(&self, key: &FileKey) -> Arc<Mutex<()>> {
        let mut turns = lock(&self.0);
        turns.retain(|_, turn| Arc::strong_count(turn) > 1);
        Arc::clone(turns.entry(key.clone()).or_default())
    }
}

/// Locks also after a panic: what is guarded is changed in single steps.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
