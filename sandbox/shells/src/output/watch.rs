//! Notifies waiters when a file has grown, with inotify instead of polling.
//!
//! One inotify instance serves all shells, because a user may have only about a hundred. A [`FileWatch`] wakes its
//! waiters after any change. It carries no data, so a slow reader costs nothing: the file itself is the queue.

use std::{
    collections::HashMap,
    io,
    mem::MaybeUninit,
    os::fd::OwnedFd,
    path::Path,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use tokio::{io::unix::AsyncFd, sync::Notify, task::JoinHandle};

use process_identity::register_readable;

/// Watches files for growth.
#[derive(Debug)]
pub(crate) struct Watcher {
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

#[derive(Debug)]
struct Shared {
    inotify: AsyncFd<OwnedFd>,
    watches: Mutex<HashMap<i32, Weak<Watched>>>,
}

/// A watch on one file. Several may share a file; the inotify watch ends with the last of them.
#[derive(Debug, Clone)]
pub(crate) struct FileWatch(Arc<Watched>);

#[derive(Debug)]
struct Watched {
    descriptor: i32,
    grown: Notify,
    shared: Arc<Shared>,
}

impl Watcher {
    pub(crate) fn start() -> io::Result<Self> {
        let inotify = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
        let shared = Arc::new(Shared {
            inotify: register_readable(inotify)?,
            watches: Mutex::new(HashMap::new()),
        });
        let task = tokio::spawn(dispatch(Arc::clone(&shared)));
        Ok(Self { shared, task })
    }

    pub(crate) fn watch(&self, path: &Path) -> io::Result<FileWatch> {
        let mut watches = self.shared.lock();
        let descriptor =
            inotify::add_watch(self.shared.inotify.get_ref(), path, WatchFlags::MODIFY)?;
        // inotify returns the same watch descriptor for the same file.
        if let Some(watched) = watches.get(&descriptor).and_then(Weak::upgrade) {
            return Ok(FileWatch(watched));
        }
        let shared = Arc::clone(&self.shared);
        let watched = Arc::new(Watched { descriptor, grown: Notify::new(), shared });
        watches.insert(descriptor, Arc::downgrade(&watched));
        Ok(FileWatch(watched))
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl FileWatch {
    /// Waits for the next change. It listens from this call on, so a change before the future is polled is not
    /// missed.
    pub(crate) fn grown(&self) -> impl Future<Output = ()> + '_ {
        let mut notified = Box::pin(self.0.grown.notified());
        notified.as_mut().enable();
        notified
    }
}

impl Shared {
    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<i32, Weak<Watched>>> {
        self.watches.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        let mut watches = self.shared.lock();
        // Another watch of the same file may have replaced this one in the meantime.
        if watches.get(&self.descriptor).is_some_and(|watched| watched.strong_count() == 0) {
            watches.remove(&self.descriptor);
            // Fails if the file is gone, because then inotify has removed the watch itself.
            let _ = inotify::remove_watch(self.shared.inotify.get_ref(), self.descriptor);
        }
    }
}

async fn dispatch(shared: Arc<Shared>) {
    let mut buffer = [MaybeUninit::<u8>::uninit(); 4096];
    loop {
        let Ok(mut ready) = shared.inotify.readable().await else { return };
        let mut reader = Reader::new(shared.inotify.get_ref(), &mut buffer);
        while let Ok(event) = reader.next() {
            let woken: Vec<_> = if event.events().contains(ReadFlags::QUEUE_OVERFLOW) {
                shared.lock().values().filter_map(Weak::upgrade).collect()
            } else {
                shared.lock().get(&event.wd()).and_then(Weak::upgrade).into_iter().collect()
            };
            for watched in woken {
                watched.grown.notify_waiters();
            }
        }
        ready.clear_ready();
    }
}
