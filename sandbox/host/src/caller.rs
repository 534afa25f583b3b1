//! The caller of a tool, as the tools see it.

use std::sync::atomic::{AtomicBool, Ordering};

use bridge_protocol::{ErrorKind, WireError};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use tokio::sync::mpsc;

/// Takes the progress of one call, and knows whether its caller has cancelled it.
///
/// A call is given up by dropping the future of [`Sandbox::answer`](crate::Sandbox::answer). That alone ends only
/// the wait: commands and cells go on. With [`cancel`](Self::cancel) before it, a cell is interrupted, too.
#[derive(Debug, Default)]
pub struct Caller {
    progress: Option<mpsc::Sender<Box<RawValue>>>,
    has_cancelled: AtomicBool,
}

impl Caller {
    /// A caller that wants progress. The receiver must be read while the call is under way: tools that stream wait
    /// for it.
    pub fn new(progress: mpsc::Sender<Box<RawValue>>) -> Self {
        Self { progress: Some(progress), has_cancelled: AtomicBool::new(false) }
    }

    /// A caller that does not look at progress.
    pub fn without_progress() -> Self {
        Self::default()
    }

    /// Says that the caller no longer wants the answer, before the call is dropped.
    pub fn cancel(&self) {
        self.has_cancelled.store(true, Ordering::Relaxed);
    }

    /// Whether the caller has said so. It has not if it has gone, or if its time is over.
    pub fn has_cancelled(&self) -> bool {
        self.has_cancelled.load(Ordering::Relaxed)
    }

    /// Sends a piece of the answer, and waits while the receiver is full.
    pub(crate) async fn progress(&self, value: &impl Serialize) -> Result<(), WireError> {
        let Some(progress) = &self.progress else { return Ok(()) };
        let value = to_raw_value(value).map_err(|error| {
            ErrorKind::InternalError.error(format!("cannot print the progress: {error}"))
        })?;
        // A receiver that has gone does not matter: the answer tells all.
        let _ = progress.send(value).await;
        Ok(())
    }
}
