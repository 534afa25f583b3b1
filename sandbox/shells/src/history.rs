//! What an earlier owner has left in the files of a session.

use std::{fs, io, path::PathBuf, sync::Arc, time::Duration};

use tokio::{sync::watch, time::Instant};

use super::{
    ending::LOOK_AGAIN,
    index::{Event, IndexReader, What},
    job::JobWatch,
    launch::Launcher,
    ledger::{Entry, Latest},
    marker::{Expected, Kind, Marker, Seq},
    state::{JobStatus, Started},
    task::{Current, Running, Unreported, at_prompt, path},
};

/// What the files tell about a session's past. The task reads the index again from its beginning,
/// so that only what is unfinished needs to be known here.
pub(super) struct History {
    pub(super) cwd: PathBuf,
    pub(super) next_seq: Seq,
    pub(super) current: Current,
    /// The latest command.
    pub(super) latest: Option<JobWatch>,
    /// A start-up of which nothing has been heard yet.
    pub(super) unheard: Option<Seq>,
    /// Whether the recorder was killed when there was nobody to replace it.
    pub(super) recorder_died: bool,
    /// Whether the running command was given up.
    pub(super) is_given_up: bool,
}

impl History {
    pub(super) fn read(
        launcher: &Launcher,
        entry: &Entry,
        start_limit: Duration,
    ) -> io::Result<Self> {
        let events = IndexReader::open(&launcher.dir.index())?.read_new()?;
        let expected = fs::read_to_string(launcher.dir.expected())?;
        let expected = Expected::parse(&expected).ok_or(io::ErrorKind::InvalidData)?;
        let last_end = events.iter().rev().find_map(|event| match &event.what {
            What::Marker(Marker::End { report, .. }) => Some(report.cwd.clone()),
            _ => None,
        });
        let cwd = last_end.map(path).unwrap_or_else(|| "/".into());
        let recorder = events.iter().rev().find_map(|event| match event.what {
            What::Opened { recorder } => Some(Some(recorder)),
            What::Closed => Some(None),
            What::Marker(_) | What::Lost { .. } => None,
        });
        let recorder_died = recorder.flatten().is_some_and(|recorder| !recorder.is_alive());
        // Since the latest word of the shell there was another recorder, or none.
        let since = events.iter().rev().take_while(|event| !matches!(event.what, What::Marker(_)));
        let has_gap = recorder_died
            || since.into_iter().any(|event| matches!(event.what, What::Opened { .. }));
        let seq = expected.seq;
        let is_heard = events.iter().any(|event| {
            matches!(event.what, What::Marker(Marker::Start { seq: heard }) if heard == seq)
        });
        let unheard = (expected.kind == Kind::StartUp && !is_heard).then_some(seq);
        // A command that an earlier owner has sent may not have got through, nor what the shell has said.
        let look_at = Some(Instant::now() + LOOK_AGAIN);
        let running = |seq| {
            let (status, receiver) = watch::channel(JobStatus::default());
            let running =
                Running { seq, status, lost: 0, interrupted: false, asked: 0, called: 0, look_at };
            // What may have run is not run again.
            if has_gap && !is_heard {
                running.assume_begun(&launcher.dir.log());
            }
            (running, Some(JobWatch { seq, status: receiver }))
        };
        let (current, latest) = match expected.kind {
            // Running until the task finds the end in the index, which it does at once.
            Kind::Command => {
                let (running, latest) = running(seq);
                (Current::Running(running), latest)
            }
            Kind::StartUp => {
                let deadline = Instant::now() + start_limit;
                let (before, latest) = match entry.latest {
                    // The task reports it when it finds the word of the next shell.
                    Some(Latest { seq, exit_code: Some(exit_code) }) => {
                        let (running, latest) = running(seq);
                        (Some(Unreported { running, exit_code }), latest)
                    }
                    Some(Latest { seq, exit_code: None }) => (None, finished(seq, events)),
                    None => (None, None),
                };
                (Current::Starting { seq, deadline, look_at, before }, latest)
            }
        };
        let is_given_up =
            expected.kind == Kind::Command && entry.latest == Some(Latest { seq, exit_code: None });
        let next_seq = seq + 1;
        Ok(Self { cwd, next_seq, current, latest, unheard, recorder_died, is_given_up })
    }
}

/// A command that has ended at the prompt of a shell that is no more.
fn finished(seq: Seq, events: Vec<Event>) -> Option<JobWatch> {
    let (mut started, mut lost) = (None, 0);
    for event in events {
        match event.what {
            What::Marker(Marker::Start { seq: heard }) if heard == seq => {
                (started, lost) = (Some(Started { offset: event.offset, at: event.at }), 0);
            }
            What::Marker(Marker::End { seq: heard, report }) if heard == seq => {
                let result = at_prompt(seq, report, started, (event.offset, event.at), lost);
                let status = JobStatus { started, lost, result: Some(Arc::new(result)) };
                return Some(JobWatch { seq, status: watch::channel(status).1 });
            }
            What::Lost { bytes } => lost += bytes,
            _ => {}
        }
    }
    None
}
