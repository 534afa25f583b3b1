//! Types into the pane, one thing after the other.
//!
//! Keys are never overtaken by later ones. Where nothing is being typed, a key of ours goes to tmux at once and
//! nobody waits for the answer: what becomes of it the markers tell.

use std::{collections::VecDeque, pin::Pin};

use crate::{Result, owner::CallId, tmux::Tmux};

/// Bytes per `send-keys`, so that no line to tmux gets long.
const TYPED_AT_ONCE: usize = 512;

type Typing = Pin<Box<dyn Future<Output = Result<()>> + Send>>;

/// What is to be typed, in its order.
pub(super) struct Typist {
    tmux: Tmux,
    queue: VecDeque<Typed>,
    /// The first of the queue is on its way.
    typing: Option<Typing>,
}

struct Typed {
    commands: VecDeque<[String; 2]>,
    /// Who is answered when all of it was taken.
    call: Option<CallId>,
}

impl Typist {
    pub(super) fn new(tmux: Tmux) -> Self {
        Self { tmux, queue: VecDeque::new(), typing: None }
    }

    /// Presses keys of ours.
    pub(super) fn press(&mut self, pane: &str, keys: &str) -> Result<()> {
        let commands = pressing(pane, keys);
        if self.queue.is_empty() {
            return self.tmux.tell_now(&[&commands[0], &commands[1]]);
        }
        self.queue.push_back(Typed { commands: [commands].into(), call: None });
        Ok(())
    }

    /// Presses keys for a caller.
    pub(super) fn press_for(&mut self, call: CallId, pane: &str, keys: &str) {
        let commands = [pressing(pane, keys)].into();
        self.add(Typed { commands, call: Some(call) });
    }

    /// Types bytes for a caller, exactly as they are.
    pub(super) fn type_for(&mut self, call: CallId, pane: &str, bytes: &[u8]) {
        let chunks = bytes.chunks(TYPED_AT_ONCE);
        let commands = chunks.map(|chunk| pressing(pane, &in_hexadecimal(chunk))).collect();
        self.add(Typed { commands, call: Some(call) });
    }

    fn add(&mut self, typed: Typed) {
        self.queue.push_back(typed);
        self.begin();
    }

    fn begin(&mut self) {
        if self.typing.is_some() {
            return;
        }
        let Some(Typed { commands, .. }) = self.queue.front_mut() else { return };
        let (tmux, commands) = (self.tmux.clone(), std::mem::take(commands));
        self.typing = Some(Box::pin(async move {
            for [leave_mode, press] in commands {
                tmux.ask_all(&[&leave_mode, &press]).await?;
            }
            Ok(())
        }));
    }

    /// Returns when the first of the queue was typed; then [`Self::finish`] must be called.
    pub(super) async fn typed(&mut self) -> Result<()> {
        match &mut self.typing {
            Some(typing) => typing.await,
            None => std::future::pending().await,
        }
    }

    /// Goes on with the next, and says who waits for the answer.
    pub(super) fn finish(&mut self) -> Option<CallId> {
        self.typing = None;
        let done = self.queue.pop_front();
        self.begin();
        done.and_then(|typed| typed.call)
    }
}

/// Bytes as `send-keys` takes them.
pub(super) fn in_hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold("-H".to_owned(), |mut keys, byte| {
        keys.push_str(&format!(" {byte:02x}"));
        keys
    })
}

/// The tmux commands that press keys. While a person looks through the history of the pane (`copy-mode`), tmux would
/// take them for its own.
fn pressing(pane: &str, keys: &str) -> [String; 2] {
    [format!("copy-mode -q -t {pane}"), format!("send-keys -t {pane} {keys}")]
}
