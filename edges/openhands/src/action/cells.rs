//! Runs cells with the `cell/*` tools of a runtime.

use std::time::Duration;

use bridge_protocol::methods::{cell, shell};
use bridge_protocol::{ErrorKind as WireKind, WireError};
use serde_json::value::RawValue;
use tokio::sync::mpsc;

use super::{
    ActionError, Cell, CellObservation, CellOutcome, OutputPiece, OutputSink, Picture, Renewal,
    Watch, error::reason, parsed_run::milliseconds, terminal_filter::TerminalFilter,
};
use crate::tools::{Listener, Tools};

/// The default time limit of a cell.
const DEFAULT_LIMIT: Duration = Duration::from_secs(120);
/// Capacity of the queue of output pieces.
const PIECES: usize = 16;

/// Runs a cell in the kernel of a shell. If the future is dropped, a running cell goes on.
pub(super) async fn run<T: Tools>(
    tools: &T,
    shell: shell::ShellName,
    cell: Cell,
    timeout: Option<Duration>,
    watch: Watch<'_>,
) -> Result<CellObservation, ActionError> {
    let limit = timeout.unwrap_or(DEFAULT_LIMIT);
    let params = cell::RunParams {
        shell,
        code: cell.code,
        restart: cell.restart,
        limit_ms: Some(milliseconds(limit)),
        stream: watch.output.is_some(),
    };
    let (progress, pieces) = mpsc::channel(PIECES);
    let progress = watch.output.is_some().then_some(progress);
    let call = {
        let (tools, cancellation) = (tools.clone(), watch.cancellation.clone());
        // In a task of its own: at a broker, dropping the call would cancel the cell.
        tokio::spawn(async move {
            let listener = Listener { progress, cancellation: Some(&cancellation) };
            tools.call::<cell::Run>(&params, listener).await
        })
    };
    let (answer, ()) = tokio::join!(call, pass_on(pieces, watch.output));
    let lost = |error| ActionError::Internal(format!("the task of the cell failed: {error}"));
    let result = answer.map_err(lost)?.map_err(|error| failure(error, limit))?;
    Ok(observation(result, limit))
}

fn observation(result: cell::RunResult, limit: Duration) -> CellObservation {
    let picture = |cell::Picture { media_type, base64 }| Picture { media_type, base64 };
    CellObservation {
        text: result.text,
        omitted_bytes: result.omitted_bytes,
        pictures: result.pictures.into_iter().map(picture).collect(),
        outcome: match result.ended {
            cell::CellEnding::Finished => CellOutcome::Finished,
            cell::CellEnding::Raised => CellOutcome::Raised,
            cell::CellEnding::TimedOut => CellOutcome::TimedOut(limit),
            cell::CellEnding::KernelDied => CellOutcome::KernelDied,
        },
        renewal: result.new_kernel.map(|why| match why {
            cell::NewKernel::Restarted => Renewal::Requested,
            cell::NewKernel::WasStuck => Renewal::WasStuck,
        }),
        cwd: result.cwd.into(),
        python: result.python.into(),
    }
}

fn failure(error: WireError, limit: Duration) -> ActionError {
    let text = error.message().to_owned();
    match reason(&error).as_deref() {
        Some("unavailable") => ActionError::Unavailable(text),
        Some("busy") => ActionError::Refused(format!(
            "{text}: restart it with `run_ipython` and `restart` = `true`"
        )),
        Some("directory" | "invalid") => ActionError::Invalid(text),
        Some("kernelEnded" | "restarted") => ActionError::Gone(text),
        Some("system") => ActionError::Internal(text),
        _ => match WireKind::from_code(error.code()) {
            Some(WireKind::RequestCancelled) => ActionError::Cancelled,
            Some(WireKind::Timeout) => ActionError::TimedOut(limit),
            _ => ActionError::Call(error),
        },
    }
}

/// Relays the output of a cell, without escape sequences that query a terminal.
async fn pass_on(mut pieces: mpsc::Receiver<Box<RawValue>>, sink: Option<&OutputSink>) {
    let mut filter = TerminalFilter::default();
    while let (Some(piece), Some(sink)) = (pieces.recv().await, sink) {
        match serde_json::from_str::<cell::CellProgress>(piece.get()) {
            Ok(cell::CellProgress { text }) => {
                let text = filter.pass(&text);
                // A receiver that is gone does not matter: the observation contains everything.
                let _ = sink.send(OutputPiece { text, place: None }).await;
            }
            Err(error) => tracing::warn!(%error, "cannot parse a piece of a cell's output"),
        }
    }
}
