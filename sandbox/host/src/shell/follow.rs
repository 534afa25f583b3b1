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
    let mut waiting = pin!(job.wait(wait));
    let mut ended = None;
    // A command may never begin; the limits of the wait apply then, too.
    tokio::select! {
        progress = &mut waiting => match progress.map_err(error::shell)? {
            running @ Progress::Running(_) => return Ok(running),
            finished @ Progress::Finished(_) => ended = Some(finished),
        },
        started = job.started() => started.map_err(error::shell)?,
    }
    let first = job.output().map_err(error::shell)?.start;
    let mut offset = from.map_or(first, |from| from.max(first));
    let mut output = job.follow_from(offset).map_err(error::shell)?;
    let mut buffer = vec![0; PIECE];
    loop {
        let read = tokio::select! {
            read = output.next(&mut buffer) => read.map_err(error::shell)?,
            progress = &mut waiting, if ended.is_none() => {
                match progress.map_err(error::shell)? {
                    running @ Progress::Running(_) => return Ok(running),
                    finished @ Progress::Finished(_) => ended = Some(finished),
                }
                continue;
            }
        };
        if read == 0 {
            break;
        }
        let piece = OutputProgress { offset, base64: BASE64_STANDARD.encode(&buffer[..read]) };
        offset += read as u64;
        // A caller that reads slowly must not prolong the wait.
        let mut sending = pin!(caller.progress(&piece));
        loop {
            tokio::select! {
                sent = &mut sending => {
                    sent?;
                    break;
                }
                progress = &mut waiting, if ended.is_none() => {
                    match progress.map_err(error::shell)? {
                        running @ Progress::Running(_) => return Ok(running),
                        finished @ Progress::Finished(_) => ended = Some(finished),
                    }
                }
            }
        }
    }
    match ended {
        Some(ended) => Ok(ended),
        None => waiting.await.map_err(error::shell),
    }
}
