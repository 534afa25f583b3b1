//! The caller of a tool, as the tools see it.

use std::sync::atomic::{AtomicBool, Ordering};

use bridge_protocol::WireError;
use bridge_protocol::answer::print_value;
use serde::Serialize;
use serde_json::value::RawValue;
use tokio::sync::mpsc;

/// Takes the progress of one call, and knows whether its caller has cancelled it.
///
/// Dropping the future of [`Sandbox::answer`](crate::Sandbox::answer) abandons a call. That ends
/// only the wait: commands and cells go on. If [`cancel`](Self::cancel) was called before, a cell
/// is interrupted, too.
#[derive(Debug, Default)]
pub struct Caller {
    progress: Option<mpsc::Sender<Box<RawValue>>>,
    has_cancelled: AtomicBool,
}

impl Caller {
    /// A caller that receives progress. The receiver must be read during the call: tools that
    /// stream wait while it is full.
    pub fn new(progress: mpsc::Sender<Box<RawValue>>) -> Self {
        Self { progress: Some(progress), has_cancelled: AtomicBool::new(false) }
    }

    /// A caller that ignores progress.
    pub fn without_progress() -> Self {
        Self::default()
    }

    /// Records that the caller has cancelled the call. Must be called before the call is dropped.
    pub fn cancel(&self) {
        self.has_cancelled.store(true, Ordering::Relaxed);
    }

    /// Whether the caller has cancelled the call. A disconnect or a deadline is not a cancel.
    pub fn has_cancelled(&self) -> bool {
        self.has_cancelled.load(Ordering::Relaxed)
    }

    /// Sends a piece of the answer. Waits while the receiver is full.
    pub(crate) async fn progress(&self, value: &impl Serialize) -> Result<(), WireError> {
        let Some(progress) = &self.progress else { return Ok(()) };
        let value = print_value(value)?;
        // A receiver that is gone does not matter: the answer contains everything.
        let _ = progress.send(value).await;
        Ok(())
    }
}
