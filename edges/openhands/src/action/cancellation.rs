//! Cancels a running action.

use tokio::sync::SetOnce;

/// Cancels an action, permanently. A running command or cell is interrupted as by Ctrl-C; an action
/// that has not begun does not begin.
#[derive(Debug, Default)]
pub struct Cancellation(SetOnce<()>);

impl Cancellation {
    /// Cancels the action. A second call changes nothing.
    pub fn cancel(&self) {
        // Fails only if it was cancelled before.
        let _ = self.0.set(());
    }

    /// Whether the action is cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.0.initialized()
    }

    /// Returns when the action is cancelled.
    pub async fn cancelled(&self) {
        self.0.wait().await;
    }
}
