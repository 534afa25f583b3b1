//! Removes everything that belongs to a shell, with tmux or without it.

use std::time::Duration;

use rustix::process::Signal;
use tokio::{sync::mpsc, time};
use tracing::warn;

use super::BackgroundResult;
use crate::{launch::PaneSetup, ledger::Entry, owner::Event};
use process_identity::ProcessId;
use sandbox_members::Members;

/// How long tmux may take to kill a pane before the callers of `close` are answered without it. It usually needs a
/// millisecond or two.
const PANE_LIMIT: Duration = Duration::from_millis(200);
/// How long the recorder may take to write its last line and end.
const RECORDER_LIMIT: Duration = Duration::from_secs(10);

/// Ends the pane, the processes and the recorder, and removes the files.
pub(super) async fn clean_up(
    setup: PaneSetup,
    entry: Entry,
    recorder: Option<ProcessId>,
    background: mpsc::UnboundedSender<BackgroundResult>,
) {
    // The receiver is gone if the driver is; then nobody needs the event.
    let send = |event| drop(background.send(BackgroundResult::Event(event)));
    let members = Members::of(entry.leader, &entry.mark);
    let command = format!("kill-session -t {}", setup.target());
    let tmux = setup.tmux.clone();
    // A task of its own, which continues after the timeout: a stopped tmux kills the pane when it is continued.
    let mut kill_pane = tokio::spawn(async move { tmux.ask(&command).await });
    let answered = time::timeout(PANE_LIMIT, &mut kill_pane).await;
    let is_tmux_silent = answered.is_err();
    if is_tmux_silent {
        send(Event::TmuxSilent);
        // Without tmux the terminal is not closed, so send the signal that closing it would cause.
        members.signal(Signal::HUP);
    }
    if let Ok(Ok(Err(error))) = answered {
        warn!(shell = %entry.id, %error, "tmux did not kill the pane; ending its processes directly");
    }
    members.end(setup.config.grace).await;
    end_recorder(&entry, recorder, is_tmux_silent).await;
    let dir = setup.dir.clone();
    let removed = tokio::task::spawn_blocking(move || dir.remove()).await;
    match removed {
        Ok(Ok(())) => {}
        Ok(Err(error)) => {
            warn!(shell = %entry.id, %error, "the files of the shell could not be removed");
        }
        Err(error) => {
            warn!(shell = %entry.id, %error, "the task that removes the files of the shell failed");
        }
    }
    send(Event::CleanedUp);
}

/// Waits for the recorder, which ends when tmux closes its input; kills it after a limit. A tmux that does not answer
/// does not close the input, so the limit is short then.
async fn end_recorder(entry: &Entry, recorder: Option<ProcessId>, is_tmux_silent: bool) {
    let Some(recorder) = recorder else { return };
    let limit = if is_tmux_silent { PANE_LIMIT } else { RECORDER_LIMIT };
    match time::timeout(limit, recorder.ended()).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => {
            warn!(shell = %entry.id, %error, "cannot wait for the end of the recorder");
        }
        Err(_) => {
            warn!(shell = %entry.id, "killing the recorder: it did not end in time");
            recorder.send(Signal::KILL);
        }
    }
}
