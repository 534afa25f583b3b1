//! Waits for a command and streams its output meanwhile. This is the only loop that does so.

use std::pin::pin;

use base64::prelude::{BASE64_STANDARD, Engine};
use bridge_protocol::WireError;
use bridge_protocol::methods::shell::OutputProgress;
use sandbox_shells::{Job, Progress, Wait};

use crate::Caller;
use crate::error;

/// Bytes of output in one piece of progress.
const PIECE: usize = 64 << 10;

/// Waits for a command and sends its output as it comes, from an offset or from the beginning. If
/// the command ends, all of its output is sent before this returns; if it goes on, the output that
/// was read so far.
pub(super) async fn follow(
    job: &Job,
    wait: Wait,
    from: Option<u64>,
    caller: &Caller,
) -> Result<Progress, WireError> {
    // Side by side: a command may never begin, and a caller that reads slowly must not prolong the
    // wait.
    let mut waiting = pin!(job.wait(wait));
    let mut sending = pin!(send_output(job, from, caller));
    tokio::select! {
        progress = &mut waiting => {
            let progress = progress.map_err(error::shell)?;
            if let Progress::Finished(_) = progress {
                sending.await?;
            }
            Ok(progress)
        }
        sent = &mut sending => {
            sent?;
            waiting.await.map_err(error::shell)
        }
    }
}

/// Sends the output of a command as it comes, until the command has ended and all of it is sent.
async fn send_output(job: &Job, from: Option<u64>, caller: &Caller) -> Result<(), WireError> {
    job.started().await.map_err(error::shell)?;
    let first = job.output().map_err(error::shell)?.start;
    let mut offset = from.map_or(first, |from| from.max(first));
    let mut output = job.follow_from(offset).map_err(error::shell)?;
    let mut buffer = vec![0; PIECE];
    loop {
        let read = output.next(&mut buffer).await.map_err(error::shell)?;
        if read == 0 {
            return Ok(());
        }
        let piece = OutputProgress { offset, base64: BASE64_STANDARD.encode(&buffer[..read]) };
        offset += read as u64;
        caller.progress(&piece).await?;
    }
}
