//! Limits the number of shells, including those that are being started.

use std::collections::HashSet;
use std::sync::Mutex;

use sandbox_shells::ShellId;

use crate::lock;

/// The names of the shells that are being started. They count against the limit before they are
/// listed; otherwise callers that start shells at the same time would all find room.
#[derive(Debug, Default)]
pub(super) struct Reservations(Mutex<HashSet<ShellId>>);

/// Room for a shell that is being started. Dropped when the shell is listed or has failed.
#[derive(Debug)]
pub(super) struct Reservation<'a> {
    all: &'a Reservations,
    id: ShellId,
}

impl Reservations {
    /// Reserves room for a shell, unless there are `limit` others. A name is reserved by one caller
    /// at a time.
    pub fn reserve(
        &self,
        id: &ShellId,
        limit: usize,
        listed: impl FnOnce() -> Vec<ShellId>,
    ) -> Option<Reservation<'_>> {
        let mut reserved = lock(&self.0);
        // Listed under the lock: a shell that leaves `reserved` meanwhile would be in neither.
        let listed = listed();
        let others = listed.iter().filter(|it| *it != id && !reserved.contains(it));
        if others.count() + reserved.len() >= limit {
            return None;
        }
        reserved.insert(id.clone());
        Some(Reservation { all: self, id: id.clone() })
    }
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        lock(&self.all.0).remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(names: &[&str]) -> Vec<ShellId> {
        names.iter().map(|name| name.parse().unwrap()).collect()
    }

    #[test]
    fn shells_that_are_being_started_count() {
        let reservations = Reservations::default();
        let [a, b, c, d] = ids(&["a", "b", "c", "d"]).try_into().unwrap();
        let reserve = |id, listed: &[&str]| reservations.reserve(id, 3, || ids(listed));
        let first = reserve(&b, &["a"]).expect("a and b");
        let second = reserve(&c, &["a"]).expect("a, b and c");
        assert!(reserve(&d, &["a"]).is_none(), "three are listed or being started");
        // A shell is listed before its start is over, and counts once.
        assert!(reserve(&d, &["a", "b"]).is_none());
        drop(first);
        assert!(reserve(&d, &["a", "b"]).is_none());
        drop(second);
        let third = reserve(&d, &["a", "b"]).expect("c has failed");
        drop(third);
        // Starting a listed shell needs no more room; it fails for another reason.
        assert!(reserve(&a, &["a", "b", "c"]).is_some());
        assert!(reserve(&d, &["a", "b", "c"]).is_none());
    }
}
