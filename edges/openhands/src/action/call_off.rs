//! How an action that is under way is called off.

use tokio::sync::SetOnce;

/// Calls an action off, once and for all. A command or a cell is interrupted as by Ctrl-C, and what has
/// not begun does not begin.
#[derive(Debug, Default)]
pub struct CallOff(SetOnce<()>);

impl CallOff {
    /// Calls it off. Doing it twice is harmless.
    pub fn call_off(&self) {
        let _ = self.0.set(());
    }

    /// Returns when it is called off.
    pub(super) async fn called_off(&self) {
        self.0.wait().await;
    }
}
