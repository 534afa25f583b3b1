//! Ends everything that belongs to a shell, with tmux or without it.

use std::time::Duration;

use rustix::process::Signal;
use tokio::{sync::mpsc, time};
use tracing::warn;

use super::Later;
use crate::{launch::Launcher, ledger::Entry, owner::Event};
use process_identity::ProcessId;
use sandbox_members::Members;

/// How long tmux may take to end a pane before the callers of `close` do not wait for it any more. It needs a
/// millisecond or two as a rule.
const PANE_LIMIT: Duration = Duration::from_millis(200);
/// How long the recorder may take to write its last line.
const RECORDER_LIMIT: Duration = Duration::from_secs(10);

/// Ends the pane, the processes and the recorder, and removes the files.
pub(super) async fn tidy(
    launcher: Launcher,
    entry: Entry,
    recorder: Option<ProcessId>,
    later: mpsc::UnboundedSender<Later>,
) {
    // The receiver is gone if the owner is; then nobody needs to be told.
    let tell = |event| drop(later.send(Later::Event(event)));
    let members = Members::of(entry.leader, &entry.mark);
    let question = format!("kill-session -t {}", launcher.target());
    let tmux = launcher.tmux.clone();
    // Goes on if we do not wait for it: a tmux that was stopped ends the pane when it is continued.
    let mut asking = tokio::spawn(async move { tmux.ask(&question).await });
    let answered = time::timeout(PANE_LIMIT, &mut asking).await;
    let is_silent = answered.is_err();
    tell(if is_silent { Event::TmuxSilent } else { Event::PaneKilled });
    if let Ok(Ok(Err(error))) = answered {
        warn!(shell = %entry.id, %error, "tmux did not end the pane; its processes are ended");
    }
    if is_silent {
        // tmux would have closed the terminal, which is this signal to its programs.
        members.signal(Signal::HUP);
    }
    members.end(launcher.config.grace).await;
    end_recorder(&entry, recorder, is_silent).await;
    let dir = launcher.dir.clone();
    let removed = tokio::task::spawn_blocking(move || dir.remove()).await;
    match removed {
        Ok(Ok(())) => {}
        Ok(Err(error)) => warn!(shell = %entry.id, %error, "its files could not be removed"),
        Err(error) => warn!(shell = %entry.id, %error, "its files could not be removed"),
    }
    tell(Event::Tidied);
}

/// The recorder ends with its input. A tmux that does not answer does not close that.
async fn end_recorder(entry: &Entry, recorder: Option<ProcessId>, is_silent: bool) {
    let Some(recorder) = recorder else { return };
    let patience = if is_silent { PANE_LIMIT } else { RECORDER_LIMIT };
    match time::timeout(patience, recorder.ended()).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => warn!(shell = %entry.id, %error, "the recorder's end cannot be awaited"),
        Err(_) => {
            warn!(shell = %entry.id, "the recorder does not end, and is killed");
            recorder.send(Signal::KILL);
        }
    }
}
