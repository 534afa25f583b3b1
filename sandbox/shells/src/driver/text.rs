//! Writes the texts of commands to the file from which the shell takes them.

use std::{collections::VecDeque, os::unix::ffi::OsStrExt as _};

use super::{BackgroundResult, Driver};
use crate::{
    Error, Result,
    ledger::ShellDir,
    marker::Seq,
    owner::{CallId, Event, Text, TextState},
};

/// Longer texts are written on another thread.
const SHORT_TEXT: usize = 64 << 10;

/// Texts that wait until the previous one is written. A slow write may outlast its shell; the next shell would evaluate
/// the old text if that were written after the new one.
#[derive(Default)]
pub(super) struct TextQueue {
    is_writing: bool,
    waiting: VecDeque<(Seq, CallId, Text)>,
}

impl TextQueue {
    /// Whether a text is being written on another thread.
    pub(super) fn is_writing(&self) -> bool {
        self.is_writing
    }
}

impl Driver {
    /// Writes a text, after those that are being written. Returns the resulting event if it is known at once.
    pub(super) fn write_text(&mut self, seq: Seq, call: CallId, text: Text) -> Option<Event> {
        if self.texts.is_writing || !self.texts.waiting.is_empty() {
            self.texts.waiting.push_back((seq, call, text));
            return None;
        }
        self.write_next_text(seq, call, text)
    }

    /// Passes on the result of a write on another thread, and writes the texts that have waited for it.
    pub(super) fn text_written(&mut self, written: Event) {
        self.texts.is_writing = false;
        self.handle(written);
        while !self.texts.is_writing
            && let Some((seq, call, text)) = self.texts.waiting.pop_front()
        {
            if let Some(event) = self.write_next_text(seq, call, text) {
                self.handle(event);
            }
        }
    }

    /// Writes a text, unless its caller has gone away.
    fn write_next_text(&mut self, seq: Seq, call: CallId, text: Text) -> Option<Event> {
        if !self.callers.is_waiting(call) {
            self.callers.forget(call);
            return Some(Event::TextWritten { seq, result: Ok(TextState::Abandoned) });
        }
        let write = move |dir: &ShellDir, text: Text| {
            let written = write_text(dir, text.0);
            Event::TextWritten { seq, result: written.map(|()| TextState::Wanted) }
        };
        if text.0.len() <= SHORT_TEXT {
            return Some(write(&self.setup.dir, text));
        }
        self.texts.is_writing = true;
        let (dir, lock) = (self.setup.dir.clone(), self.setup.lock.upgrade());
        let background = self.background.clone();
        self.tasks.spawn_blocking(move || {
            // While this task holds the lock, the next owner waits until the text is written. If the lock is gone,
            // the next owner may be active already.
            let Some(_lock) = lock else { return };
            // Fails only if the driver has ended; then nobody needs the event.
            let _ = background.send(BackgroundResult::TextWritten(write(&dir, text)));
        });
        None
    }
}

/// Writes the text of a command. A text that turns line editing off goes to a separate file that bash sources:
/// evaluated directly, it would make bash read the rest of the text from the terminal, but in a file bash ignores it.
fn write_text(dir: &ShellDir, mut text: Vec<u8>) -> Result<()> {
    let writing = || Error::io("writing the command");
    if turns_line_editing_off(&text) {
        private_files::overwrite(&dir.script(), &text).map_err(writing())?;
        let script = dir.script();
        let script = shlex::bytes::try_quote(script.as_os_str().as_bytes());
        text = [b"\\. ", &*script.expect("no path has a NUL byte")].concat();
    }
    dir.write_command(text).map_err(writing())
}

/// Whether a text may contain `set +o emacs`, `shopt -uo vi` or the like. A false positive still runs; it merely does
/// not show the numbers of its background jobs.
fn turns_line_editing_off(text: &[u8]) -> bool {
    let has = |word: &[u8]| memchr::memmem::find(text, word).is_some();
    // A cheap test for the texts that do not.
    if !has(b"+o") && !has(b"shopt") {
        return false;
    }
    let between = |byte: &u8| byte.is_ascii_whitespace() || b";&|(){}'\"\\".contains(byte);
    let words: Vec<_> = text.split(between).filter(|word| !word.is_empty()).collect();
    let is_mode = |word: &[u8]| matches!(word, b"emacs" | b"vi");
    let is_off = |word: &[u8]| word.starts_with(b"+") && word.ends_with(b"o");
    words.windows(2).any(|pair| is_off(pair[0]) && is_mode(pair[1]))
        || words.contains(&&b"shopt"[..]) && words.iter().any(|word| is_mode(word))
}
