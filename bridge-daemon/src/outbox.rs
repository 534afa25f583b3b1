//! What waits to be written to one connection, and what its tasks are told.

use std::collections::VecDeque;
use std::sync::Mutex;

use tokio::sync::{Notify, watch};

use crate::broker::CloseReason;

/// Filled by the hub, emptied by the connection's writer.
#[derive(Debug)]
pub struct Outbox {
    queue: Mutex<Queue>,
    filled: Notify,
    reading: watch::Sender<bool>,
    cut: Notify,
}

#[derive(Debug, Default)]
struct Queue {
    texts: VecDeque<String>,
    close: Option<CloseReason>,
}

/// What the writer shall do next.
#[derive(Debug)]
pub enum Next {
    /// Write these, then report them as sent.
    Texts(Vec<String>),
    /// End the connection.
    Close(CloseReason),
}

impl Default for Outbox {
    fn default() -> Self {
        Self {
            queue: Mutex::default(),
            filled: Notify::new(),
            reading: watch::Sender::new(true),
            cut: Notify::new(),
        }
    }
}

impl Outbox {
    /// Adds a message.
    pub fn push(&self, text: String) {
        self.lock().texts.push_back(text);
        self.filled.notify_one();
    }

    /// Ends the connection after what is queued.
    pub fn close(&self, reason: CloseReason) {
        self.lock().close = Some(reason);
        self.filled.notify_one();
    }

    /// Ends the connection at once, even while a write is stuck.
    pub fn close_now(&self, reason: CloseReason) {
        let mut queue = self.lock();
        queue.texts.clear();
        queue.close = Some(reason);
        self.cut.notify_one();
    }

    /// Waits until there is something to do: at most `most` messages at a time.
    pub async fn next(&self, most: usize) -> Next {
        loop {
            {
                let mut queue = self.lock();
                let count = queue.texts.len().min(most);
                if count > 0 {
                    return Next::Texts(queue.texts.drain(..count).collect());
                }
                if let Some(reason) = queue.close {
                    return Next::Close(reason);
                }
            }
            self.filled.notified().await;
        }
    }

    /// Returns when the connection must be cut.
    pub async fn cut(&self) {
        self.cut.notified().await;
    }

    /// Says whether the connection shall be read.
    pub fn set_reading(&self, enabled: bool) {
        self.reading.send_replace(enabled);
    }

    /// Returns when the connection may be read.
    pub async fn may_read(&self) {
        if !*self.reading.borrow() {
            // The sender lives in `self`, so this can only return on the change.
            let _ = self.reading.subscribe().wait_for(|reading| *reading).await;
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Queue> {
        self.queue.lock().expect("no holder of this lock panics")
    }
}
