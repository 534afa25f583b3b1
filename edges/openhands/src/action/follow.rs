//! The output of a command, for those who want it as it comes.

use super::{ActionError, OutputPiece, OutputSink, harmless::Harmless};
use sandbox_shells::{Job, Progress, Wait, boundary::whole_length};

/// Waits and passes the output on as it comes. A receiver that has gone does not matter.
pub(super) async fn follow(
    job: &Job,
    from: Option<u64>,
    wait: Wait,
    sink: &OutputSink,
) -> Result<Progress, ActionError> {
    let waiting = job.wait(wait);
    tokio::pin!(waiting);
    tokio::select! {
        biased;
        started = job.started() => started?,
        // One that is not heard of has limits, too.
        progress = &mut waiting => return Ok(progress?),
    }
    let offset = match from {
        Some(offset) => offset,
        None => job.output()?.start,
    };
    let mut output = job.follow_from(offset)?;
    let mut buffer = vec![0; 16 << 10];
    let mut pieces = Pieces { sink, offset, held: Vec::new(), harmless: Harmless::default() };
    let progress = loop {
        tokio::select! {
            biased;
            read = output.next(&mut buffer) => match read? {
                0 => break waiting.await?,
                read => pieces.pass_on(&buffer[..read]).await,
            },
            progress = &mut waiting => break progress?,
        }
    };
    if let Progress::Finished(_) = &progress {
        loop {
            match output.next(&mut buffer).await? {
                0 => break,
                read => pieces.pass_on(&buffer[..read]).await,
            }
        }
        pieces.finish().await;
    }
    Ok(progress)
}

/// Output on its way to somebody, in whole characters.
struct Pieces<'a> {
    sink: &'a OutputSink,
    /// Where in the log the bytes begin that are held.
    offset: u64,
    /// The beginning of a character or of an escape sequence.
    held: Vec<u8>,
    harmless: Harmless,
}

impl Pieces<'_> {
    async fn pass_on(&mut self, bytes: &[u8]) {
        self.held.extend_from_slice(bytes);
        let rest = self.held.split_off(whole_length(&self.held));
        let whole = std::mem::replace(&mut self.held, rest);
        self.send(whole).await;
    }

    /// Nothing more will come: what looked unfinished is all there is.
    async fn finish(&mut self) {
        let rest = std::mem::take(&mut self.held);
        self.send(rest).await;
    }

    async fn send(&mut self, whole: Vec<u8>) {
        if !whole.is_empty() {
            let start = self.offset;
            self.offset += whole.len() as u64;
            // It may be empty; its place is told even so, lest somebody looks for it.
            let text = self.harmless.pass(&String::from_utf8_lossy(&whole));
            let place = Some(start..self.offset);
            let _ = self.sink.send(OutputPiece { text, place }).await;
        }
    }
}
