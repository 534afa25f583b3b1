//! Types into the pane, one item after the other.
//!
//! Keys keep their order. If the queue is empty, a control key goes to tmux at once and nobody waits for tmux's
//! answer: the markers show whether it worked.

use std::{collections::VecDeque, pin::Pin};

use crate::{
    Result,
    owner::CallId,
    tmux::{Delivery, Tmux},
};

/// Bytes per `send-keys` command, so that no line to tmux gets long.
const BYTES_PER_COMMAND: usize = 512;

type Typing = Pin<Box<dyn Future<Output = Result<()>> + Send>>;

/// The queue of keys for one pane.
pub(super) struct Typist {
    tmux: Tmux,
    queue: VecDeque<QueuedKeys>,
    /// The first item of the queue, while it is being sent.
    typing: Option<Typing>,
    /// The latest control key that went to tmux directly. tmux carries out commands in order, so earlier ones have
    /// arrived when this one has.
    pressed: Option<Delivery>,
}

struct QueuedKeys {
    commands: VecDeque<[String; 2]>,
    /// The caller to answer when tmux has accepted all keys.
    call: Option<CallId>,
}

impl Typist {
    pub(super) fn new(tmux: Tmux) -> Self {
        Self { tmux, queue: VecDeque::new(), typing: None, pressed: None }
    }

    /// Presses control keys of the owner.
    pub(super) fn press(&mut self, pane: &str, keys: &str) -> Result<()> {
        let commands = pressing(pane, keys);
        if self.queue.is_empty() {
            let delivery = self.tmux.send_without_waiting(&[&commands[0], &commands[1]])?;
            self.pressed = Some(delivery);
            return Ok(());
        }
        self.queue.push_back(QueuedKeys { commands: [commands].into(), call: None });
        Ok(())
    }

    /// Whether tmux has not accepted all keys yet: it is stopped or busy, and the shell cannot have read them.
    pub(super) fn has_undelivered_keys(&mut self) -> bool {
        !self.queue.is_empty() || self.pressed.as_mut().is_some_and(Delivery::is_pending)
    }

    /// Presses keys for a caller.
    pub(super) fn press_for(&mut self, call: CallId, pane: &str, keys: &str) {
        let commands = [pressing(pane, keys)].into();
        self.add(QueuedKeys { commands, call: Some(call) });
    }

    /// Types bytes for a caller, exactly as they are.
    pub(super) fn type_for(&mut self, call: CallId, pane: &str, bytes: &[u8]) {
        let chunks = bytes.chunks(BYTES_PER_COMMAND);
        let commands = chunks.map(|chunk| pressing(pane, &in_hexadecimal(chunk))).collect();
        self.add(QueuedKeys { commands, call: Some(call) });
    }

    fn add(&mut self, keys: QueuedKeys) {
        self.queue.push_back(keys);
        self.begin();
    }

    fn begin(&mut self) {
        if self.typing.is_some() {
            return;
        }
        let Some(QueuedKeys { commands, .. }) = self.queue.front_mut() else { return };
        let (tmux, commands) = (self.tmux.clone(), std::mem::take(commands));
        self.typing = Some(Box::pin(async move {
            for [leave_mode, press] in commands {
                tmux.ask_all(&[&leave_mode, &press]).await?;
            }
            Ok(())
        }));
    }

    /// Returns when the first item of the queue has been typed; the caller must then call [`Self::finish`].
    pub(super) async fn typed(&mut self) -> Result<()> {
        match &mut self.typing {
            Some(typing) => typing.await,
            None => std::future::pending().await,
        }
    }

    /// Starts the next item, and returns the caller that waits for the finished one.
    pub(super) fn finish(&mut self) -> Option<CallId> {
        self.typing = None;
        let done = self.queue.pop_front();
        self.begin();
        done.and_then(|keys| keys.call)
    }
}

/// Bytes as arguments of `send-keys`.
pub(super) fn in_hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold("-H".to_owned(), |mut keys, byte| {
        keys.push_str(&format!(" {byte:02x}"));
        keys
    })
}

/// The tmux commands that press keys. The first leaves `copy-mode`: while a person scrolls through the history of the
/// pane, tmux would treat the keys as its own.
fn pressing(pane: &str, keys: &str) -> [String; 2] {
    [format!("copy-mode -q -t {pane}"), format!("send-keys -t {pane} {keys}")]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_undelivered_until_tmux_answers() {
        let (tmux, mut control_client) = Tmux::unconnected();
        let mut typist = Typist::new(tmux);
        assert!(!typist.has_undelivered_keys());
        for outcome in [Ok(Vec::new()), Err(crate::Error::ServerGone)] {
            typist.press("%1", "-H 1e").unwrap();
            assert!(typist.has_undelivered_keys());
            let sent = control_client.try_recv().unwrap();
            assert_eq!(sent.line, "copy-mode -q -t %1 ; send-keys -t %1 -H 1e\n");
            sent.answer.send(outcome).unwrap();
            assert!(!typist.has_undelivered_keys());
        }
        typist.press("%1", "-H 1e").unwrap();
        drop(control_client);
        assert!(!typist.has_undelivered_keys(), "a lost client leaves nobody to answer");
    }
}
