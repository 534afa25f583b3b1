//! A new owner for a shell that an earlier one has left: what the ledger, the digests and the index tell.

use std::{collections::VecDeque, time::Duration};

use super::{
    Effect, Moment, Owner, TakeBack,
    command::at_prompt,
    keeps,
    limits::{RECHECK, RECORDER_LIMIT},
    state::{
        Booting, Circumstances, Command, Idle, Order, Place, Recheck, Recorder, Running, Stage,
        Start, State, Unreported,
    },
};
use crate::{
    ledger::{Entry, Fate, Latest},
    marker::{EndReport, Expected, Kind, Marker, Seq},
    output::index::{Line, What},
    state::{CommandResult, Ended, JobStatus, Started, path},
};
use process_identity::ProcessId;

/// What an earlier owner has left.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) entry: Entry,
    pub(crate) expected: Expected,
    /// The whole index so far.
    pub(crate) lines: Vec<Line>,
    /// The shell, or its leader if it is not to be found.
    pub(crate) shell: ProcessId,
    /// The latest recorder, if it lives and tmux feeds it.
    pub(crate) recorder: Option<ProcessId>,
    pub(crate) start_limit: Duration,
}

/// What the index tells about one command.
#[derive(Default)]
struct History {
    started: Option<Started>,
    lost: u64,
    end: Option<(EndReport, Place)>,
}

impl History {
    fn of(seq: Seq, lines: &[Line]) -> Self {
        let mut history = Self::default();
        for line in lines {
            let place = Place { offset: line.offset, at: line.at };
            match &line.what {
                What::Marker(Marker::Start { seq: heard }) if *heard == seq => {
                    history.started = Some(Started { offset: place.offset, at: place.at });
                    history.lost = 0;
                }
                What::Marker(Marker::End { seq: heard, report }) if *heard == seq => {
                    history.end = Some((report.clone(), place));
                    return history;
                }
                // Losses of the commands before it.
                What::Marker(_) => history.lost = 0,
                What::Lost { bytes } => history.lost += bytes,
                What::Opened { .. } | What::Closed => {}
            }
        }
        history
    }

    fn command(&self, seq: Seq) -> Command {
        Command { seq, started: self.started, lost: self.lost, is_inherited: true }
    }
}

impl Owner {
    /// Takes a shell over, and says what is to be done at once.
    pub(crate) fn adopt(found: Found, at: Moment) -> (Self, Vec<Effect>) {
        let mut owner = Self::found(found, at);
        let effects = std::mem::take(&mut owner.effects);
        (owner, effects)
    }

    fn found(found: Found, at: Moment) -> Self {
        let Found { entry, expected, lines, shell, recorder, start_limit } = found;
        let last_end = lines.iter().rev().find_map(|line| match &line.what {
            What::Marker(Marker::End { report, .. }) => Some(report.clone()),
            _ => None,
        });
        let last_end = last_end.unwrap_or_default();
        let cwd = if last_end.cwd.is_empty() { "/".into() } else { path(last_end.cwd) };
        let idle = Idle { since: at.now, claims: VecDeque::new(), recheck_at: None };
        let mut owner = Self {
            shell,
            entry,
            start_limit,
            next_seq: expected.seq + 1,
            latest: None,
            cwd,
            restarts: 0,
            circumstances: Circumstances {
                python: last_end.python.map(path),
                user: last_end.user,
                host: last_end.host,
            },
            recorder: recorder.map_or(Recorder::Missing, Recorder::Recording),
            state: State::Idle(idle),
            effects: Vec::new(),
            #[cfg(test)]
            broken: None,
        };
        match expected.kind {
            Kind::Command => owner.take_up_command(expected.seq, &lines, at),
            Kind::StartUp => owner.take_up_start(expected.seq, &lines, at),
        }
        owner.trace_stage("left behind", "adopted");
        if owner.recorder == Recorder::Missing {
            let recheck_at = at.now + RECORDER_LIMIT;
            owner.recorder = Recorder::Ordered { why: Order::AfterGap, attempts: 1, recheck_at };
            owner.effects.push(Effect::OrderRecorder);
        }
        owner
    }

    /// The earlier owner has handed a command over. It may have ended, run, or not have got through.
    fn take_up_command(&mut self, seq: Seq, lines: &[Line], at: Moment) {
        let history = History::of(seq, lines);
        let mut command = history.command(seq);
        self.latest = Some(seq);
        if self.entry.latest == Some(Latest { seq, fate: Fate::GivenUp }) {
            return self.report_without_shell(command, -1, Ended::AtPrompt, at.log_end, at.wall);
        }
        if let Some((report, place)) = history.end {
            return self.publish_result(&command, at_prompt(&command, report, place));
        }
        if command.started.is_none() && self.has_gap(lines) {
            command.started = Some(Started { offset: at.log_end, at: at.wall });
        }
        let recheck_at = at.now + RECHECK;
        let stage = if history.started.is_some() {
            Stage::Begun { asks: 0, recheck: Some(Recheck::soon(at.now)) }
        } else {
            Stage::Called { resends: 0, recheck_at }
        };
        let status = command.status();
        self.effects.push(Effect::PublishJob { seq, status });
        self.state = State::Running(Running { command, stage });
    }

    /// The earlier owner has started a shell. The nonces that it was given may have gone with that owner.
    fn take_up_start(&mut self, seq: Seq, lines: &[Line], at: Moment) {
        let own = History::of(seq, lines);
        let mut predecessor = self.take_up_predecessor(lines, at);
        if let Some((_, place)) = own.end {
            if let Some(Unreported { command, exit_code }) = predecessor.take() {
                let ended = Ended::ShellExited;
                self.report_without_shell(command, exit_code, ended, place.offset, place.at);
            }
            return;
        }
        if let Some(Unreported { command, .. }) = &predecessor {
            let (seq, status) = (command.seq, command.status());
            self.effects.push(Effect::PublishJob { seq, status });
        }
        if own.started.is_none() {
            self.effects.push(Effect::TakeNoncesBack { seq, why: TakeBack::Discard });
            self.effects.push(Effect::WriteNonces { seq, kind: Kind::StartUp });
        }
        let start = Start { seq, failed: 0, predecessor, waiting: Vec::new() };
        let recheck = Some(Recheck::soon(at.now));
        let deadline = at.now + self.start_limit;
        self.state = State::Booting(Booting { start, deadline, recheck });
    }

    /// The command of the shell before, as the ledger names it.
    fn take_up_predecessor(&mut self, lines: &[Line], at: Moment) -> Option<Unreported> {
        let Latest { seq, fate } = self.entry.latest?;
        let history = History::of(seq, lines);
        let mut command = history.command(seq);
        self.latest = Some(seq);
        let exit_code = match (fate, history.end) {
            (Fate::ShellDied(exit_code), None) => exit_code,
            (Fate::GivenUp, _) | (Fate::AtPrompt, None) => {
                self.report_without_shell(command, -1, Ended::AtPrompt, at.log_end, at.wall);
                return None;
            }
            (Fate::AtPrompt | Fate::ShellDied(_), Some((report, place))) => {
                self.publish_result(&command, at_prompt(&command, report, place));
                return None;
            }
        };
        if command.started.is_none() && self.has_gap(lines) {
            command.started = Some(Started { offset: at.log_end, at: at.wall });
        }
        let next = lines.iter().find(
            |line| matches!(line.what, What::Marker(Marker::Start { seq: heard }) if heard > seq),
        );
        match next {
            Some(next) => {
                let ended = Ended::ShellExited;
                self.report_without_shell(command, exit_code, ended, next.offset, next.at);
                None
            }
            None => Some(Unreported { command, exit_code }),
        }
    }

    /// Whether there was another recorder since the latest marker, or none.
    fn has_gap(&self, lines: &[Line]) -> bool {
        let since = lines.iter().rev().take_while(|line| !matches!(line.what, What::Marker(_)));
        let mut since = since;
        keeps!(self, RecheckAfterGap)
            && (self.recorder == Recorder::Missing
                || since.any(|line| matches!(line.what, What::Opened { .. })))
    }

    fn publish_result(&mut self, command: &Command, result: CommandResult) {
        let status = JobStatus {
            started: command.started,
            lost: command.lost,
            result: Some(std::sync::Arc::new(result)),
        };
        self.effects.push(Effect::PublishJob { seq: command.seq, status });
    }
}
