//! What an earlier owner has left in the files of a session.

use std::{fs, path::PathBuf, time::Duration};

use tokio::{sync::watch, time::Instant};

use super::{
    index::{IndexReader, What},
    job::JobWatch,
    launch::Launcher,
    marker::{Expected, Kind, Marker, Seq},
    process::ProcessId,
    state::JobStatus,
    task::{Current, Running, path},
};
use crate::{Error, Result};

/// How long a command that an earlier owner has sent may take to begin, before we doubt that it was
/// sent at all.
const RETYPE_AFTER: Duration = Duration::from_millis(500);

/// What the files tell about a session's past. The task reads the index again from its beginning,
/// so that only what is unfinished needs to be known here.
pub(super) struct History {
    pub(super) cwd: PathBuf,
    pub(super) next_seq: Seq,
    pub(super) current: Current,
    pub(super) job: Option<JobWatch>,
    /// A start-up of which nothing has been heard yet.
    pub(super) unheard: Option<Seq>,
    /// Whether the recorder was killed when there was nobody to replace it.
    pub(super) recorder_died: bool,
}

impl History {
    pub(super) fn read(launcher: &Launcher, start_limit: Duration) -> Result<Self> {
        let mut index = IndexReader::open(&launcher.dir.index())
            .map_err(Error::io("opening the event index"))?;
        let events = index.read_new().map_err(Error::io("reading the event index"))?;
        let expected = fs::read_to_string(launcher.dir.expected())
            .map_err(Error::io("reading the digests"))?;
        let expected = Expected::parse(&expected)
            .ok_or_else(|| Error::Invalid("the digests are not readable".into()))?;
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
        let recorder_died = recorder.flatten().is_some_and(|recorder| {
            !ProcessId::of(recorder).is_some_and(|recorder| recorder.is_alive())
        });
        let seq = expected.seq;
        let is_heard = events.iter().any(|event| {
            matches!(event.what, What::Marker(Marker::Start { seq: heard }) if heard == seq)
        });
        let unheard = (expected.kind == Kind::StartUp && !is_heard).then_some(seq);
        let look_at = Some(Instant::now() + RETYPE_AFTER);
        let (current, job) = match expected.kind {
            // Running until the task finds the end in the index, which it does at once.
            Kind::Command => {
                let (status, receiver) = watch::channel(JobStatus::default());
                let running =
                    Running { seq, status, lost: 0, interrupted: recorder_died, asked: 0, look_at };
                (Current::Running(running), Some(JobWatch { seq, status: receiver }))
            }
            Kind::StartUp => {
                let deadline = Instant::now() + start_limit;
                (Current::Starting { seq, deadline, look_at, before: None }, None)
            }
        };
        Ok(Self { cwd, next_seq: seq + 1, current, job, unheard, recorder_died })
    }
}
