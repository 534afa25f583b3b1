//! The messages that wait to be written to one connection, and the instructions for its tasks.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::time::Duration;

use tokio::sync::{Notify, watch};

use crate::broker::CloseReason;

/// How long a connection that is being closed may take to write its queue, before it is cut.
const CLOSE_TIME: Duration = Duration::from_secs(2);

/// The outbox of a connection. The hub fills it, the connection's writer empties it.
#[derive(Debug)]
pub struct Outbox {
    queue: Mutex<Queue>,
    filled: Notify,
    reading: watch::Sender<bool>,
    closing: watch::Sender<Option<(CloseReason, Duration)>>,
}

#[derive(Debug, Default)]
struct Queue {
    texts: VecDeque<String>,
    /// Whether messages were taken and are not written yet.
    writing: bool,
    ping: bool,
    close: Option<CloseReason>,
}

/// What the writer has to do next.
#[derive(Debug)]
pub enum Next {
    /// Write these messages, then report them as sent.
    Texts(Vec<String>),
    /// Send a ping.
    Ping,
    /// End the connection.
    Close(CloseReason),
}

impl Default for Outbox {
    fn default() -> Self {
        Self {
            queue: Mutex::default(),
            filled: Notify::new(),
            reading: watch::Sender::new(true),
            closing: watch::Sender::new(None),
        }
    }
}

impl Outbox {
    /// Adds a message.
    pub fn push(&self, text: String) {
        let mut queue = self.lock();
        queue.texts.push_back(text);
        // Wake the writer only for the first text: it continues until the queue is empty.
        if queue.texts.len() == 1 {
            self.filled.notify_one();
        }
    }

    /// Asks for a ping, to be sent before the queued messages.
    pub fn ping(&self) {
        self.lock().ping = true;
        self.filled.notify_one();
    }

    /// Ends the connection after the queue has been written, or when that takes too long.
    pub fn close(&self, reason: CloseReason) {
        self.lock().close = Some(reason);
        self.filled.notify_one();
        self.closing.send_replace(Some((reason, CLOSE_TIME)));
    }

    /// Ends the connection at once, even while a write blocks.
    pub fn close_now(&self, reason: CloseReason) {
        self.lock().texts.clear();
        self.closing.send_replace(Some((reason, Duration::ZERO)));
    }

    /// Reverses [`close`](Self::close): the writer continues when the queue is empty.
    pub fn keep_writing(&self) {
        self.lock().close = None;
    }

    /// Reports that the messages from [`next`](Self::next) have been written.
    pub fn written(&self) {
        self.lock().writing = false;
    }

    /// Whether nothing waits to be written.
    pub fn is_empty(&self) -> bool {
        let queue = self.lock();
        queue.texts.is_empty() && !queue.writing
    }

    /// Waits until there is something to do. Returns at most `most` messages at a time.
    pub async fn next(&self, most: usize) -> Next {
        loop {
            if let Some(next) = self.lock().take(most) {
                return next;
            }
            self.filled.notified().await;
        }
    }

    /// Returns when the connection must be cut, even if messages have not been written.
    pub async fn overdue(&self) -> CloseReason {
        let mut closing = self.closing.subscribe();
        // The sender lives in `self`, so this returns only on the change.
        let closing = closing.wait_for(Option::is_some).await.ok().and_then(|closing| *closing);
        match closing {
            Some((reason, time)) => {
                tokio::time::sleep(time).await;
                reason
            }
            None => std::future::pending().await,
        }
    }

    /// Sets whether requests of the connection are read.
    pub fn set_reading(&self, enabled: bool) {
        self.reading.send_replace(enabled);
    }

    /// Whether requests of the connection are read.
    pub fn is_reading(&self) -> bool {
        *self.reading.borrow()
    }

    /// Returns when requests of the connection may be read.
    pub async fn may_read(&self) {
        // The sender lives in `self`, so this returns only on the change.
        let _ = self.reading.subscribe().wait_for(|reading| *reading).await;
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Queue> {
        self.queue.lock().expect("no holder of this lock panics")
    }
}

impl Queue {
    fn take(&mut self, most: usize) -> Option<Next> {
        let count = self.texts.len().min(most);
        if std::mem::take(&mut self.ping) {
            Some(Next::Ping)
        } else if count > 0 {
            self.writing = true;
            Some(Next::Texts(self.texts.drain(..count).collect()))
        } else {
            self.close.map(Next::Close)
        }
    }
}
