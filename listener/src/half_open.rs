//! The connections that have not passed the gate: few, and the oldest makes room for a new one.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use tokio::task::AbortHandle;

/// Maximum number of connections that have not passed the gate. One more drops the oldest.
pub const HALF_OPEN: usize = 64;

/// All half-open connections, in the order in which they came.
#[derive(Debug, Default)]
pub(crate) struct HalfOpen {
    next: u64,
    /// A task is missing while it is being started.
    tasks: BTreeMap<u64, Option<AbortHandle>>,
}

/// The place of a connection among the half-open ones. Drop it when the connection has passed the gate, or has ended.
#[derive(Debug)]
pub struct Place {
    ticket: u64,
    all: Arc<Mutex<HalfOpen>>,
}

impl Drop for Place {
    fn drop(&mut self) {
        lock(&self.all).tasks.remove(&self.ticket);
    }
}

/// Gives a new connection a place, starts its task, and ends the oldest half-open one if there are too many.
pub(crate) fn enter(all: &Arc<Mutex<HalfOpen>>, start: impl FnOnce(Place) -> AbortHandle) {
    let ticket = {
        let mut half_open = lock(all);
        half_open.next += 1;
        let ticket = half_open.next;
        half_open.tasks.insert(ticket, None);
        ticket
    };
    let task = start(Place { ticket, all: Arc::clone(all) });
    let mut half_open = lock(all);
    // The connection may have left already.
    if let Some(entry) = half_open.tasks.get_mut(&ticket) {
        *entry = Some(task);
    }
    if half_open.tasks.len() > HALF_OPEN
        && let Some((_, Some(oldest))) = half_open.tasks.pop_first()
    {
        // Without the lock: the place of the task may be dropped at once.
        drop(half_open);
        oldest.abort();
    }
}

fn lock(all: &Mutex<HalfOpen>) -> MutexGuard<'_, HalfOpen> {
    all.lock().expect("no holder of this lock panics")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_oldest_makes_room_and_places_become_free() {
        let all = Arc::default();
        let mut tasks = Vec::new();
        let mut open = |keep: bool| {
            enter(&all, |place| {
                let task = tokio::spawn(async move {
                    let _place = keep.then_some(place);
                    std::future::pending::<()>().await;
                });
                let handle = task.abort_handle();
                tasks.push(task);
                handle
            });
        };
        for _ in 0..HALF_OPEN {
            open(true);
        }
        tokio::task::yield_now().await;
        // A connection that ends at once gives its place back.
        open(false);
        open(true);
        assert_eq!(lock(&all).tasks.len(), HALF_OPEN);
        let ended = tasks.remove(0).await.unwrap_err();
        assert!(ended.is_cancelled());
        assert!(!tasks.last().unwrap().is_finished());
        for task in &tasks {
            task.abort();
        }
        for task in tasks {
            let _ = task.await;
        }
        assert!(lock(&all).tasks.is_empty());
    }
}
