//! Relays the output of a command as it comes.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use bridge_protocol::methods::shell::{self, OutputProgress, ShellName};
use sandbox_shells::boundary::whole_length;
use serde_json::value::RawValue;

use super::{ActionError, OutputPiece, OutputSink, terminal_filter::TerminalFilter};
use crate::tools::{Listener, Tools};

/// How many bytes one `shell/read` fetches to fill a gap.
const READ_BYTES: u64 = 1 << 20;

/// Turns pieces of a shell's log into pieces of text: complete characters, without escape sequences
/// that query a terminal. Fetches pieces that were dropped on the way.
pub(super) struct Relay<'a, T> {
    tools: &'a T,
    shell: &'a ShellName,
    sink: &'a OutputSink,
    /// Offset of the next expected byte; `None` before the first piece.
    next: Option<u64>,
    /// An incomplete character or escape sequence at the end. It ends at `next`.
    held: Vec<u8>,
    filter: TerminalFilter,
}

impl<'a, T: Tools> Relay<'a, T> {
    /// Expects output from this offset on, or from the beginning of the command's output.
    pub(super) fn new(
        tools: &'a T,
        shell: &'a ShellName,
        sink: &'a OutputSink,
        from: Option<u64>,
    ) -> Self {
        Self { tools, shell, sink, next: from, held: Vec::new(), filter: TerminalFilter::default() }
    }

    /// Relays one piece of progress.
    pub(super) async fn pass_on(&mut self, progress: &RawValue) -> Result<(), ActionError> {
        let malformed = |error: &dyn std::fmt::Display| {
            ActionError::Internal(format!("cannot parse a piece of output: {error}"))
        };
        let OutputProgress { offset, base64 } =
            serde_json::from_str(progress.get()).map_err(|error| malformed(&error))?;
        let bytes = BASE64_STANDARD.decode(base64).map_err(|error| malformed(&error))?;
        self.catch_up(offset).await?;
        self.take(&bytes).await;
        Ok(())
    }

    /// Relays the rest of the output up to `end`, after which there is no more.
    pub(super) async fn finish(&mut self, start: u64, end: u64) -> Result<(), ActionError> {
        self.next.get_or_insert(start);
        self.catch_up(end).await?;
        // No more bytes will come, so an incomplete sequence is sent, too.
        let rest = std::mem::take(&mut self.held);
        self.send(rest).await;
        Ok(())
    }

    /// Fetches the bytes between `next` and this offset. Stops if the receiver is gone.
    async fn catch_up(&mut self, offset: u64) -> Result<(), ActionError> {
        while let Some(next) = self.next.filter(|&next| next < offset && !self.sink.is_closed()) {
            let params = shell::ReadParams {
                shell: self.shell.clone(),
                from: Some(next),
                bytes: Some(READ_BYTES.min(offset - next)),
                raw: true,
                ..shell::ReadParams::default()
            };
            let read = self.tools.call::<shell::Read>(&params, Listener::default()).await;
            let base64 = read.map_err(ActionError::of_shell)?.base64.unwrap_or_default();
            match BASE64_STANDARD.decode(base64) {
                Ok(bytes) if !bytes.is_empty() => self.take(&bytes).await,
                _ => break,
            }
        }
        self.next = Some(offset);
        Ok(())
    }

    /// Processes the bytes at `next`.
    async fn take(&mut self, bytes: &[u8]) {
        self.next = self.next.map(|next| next + bytes.len() as u64);
        self.held.extend_from_slice(bytes);
        let rest = self.held.split_off(whole_length(&self.held));
        let whole = std::mem::replace(&mut self.held, rest);
        self.send(whole).await;
    }

    /// Sends the bytes that end where the held ones begin.
    async fn send(&mut self, whole: Vec<u8>) {
        if whole.is_empty() {
            return;
        }
        let end = self.next.unwrap_or_default().saturating_sub(self.held.len() as u64);
        let place = Some(end.saturating_sub(whole.len() as u64)..end);
        // The text may be empty. It is sent nevertheless, so that its range does not look like a
        // gap.
        let text = self.filter.pass(&String::from_utf8_lossy(&whole));
        // A receiver that is gone does not matter: the observation contains everything.
        let _ = self.sink.send(OutputPiece { text, place }).await;
    }
}
