//! Adoption: reconstructs the owner of a shell that an earlier owner has left, from the ledger, the digests and the
//! index.

use std::{collections::VecDeque, time::Duration};

use super::{
    Effect, Moment, Owner, TakeBackReason,
    command::at_prompt,
    in_force,
    limits::{RECHECK, RECORDER_LIMIT},
    state::{
        Booting, Command, Idle, LastReport, LogPosition, Recheck, Recorder, RecorderStart, Running,
        Stage, Start, State, Unreported,
    },
};
use crate::{
    ledger::{Entry, Latest, Outcome},
    marker::{EndReport, Expected, Kind, Marker, Seq},
    output::index::{IndexEvent, IndexLine},
    state::{Ended, Started, path},
};
use process_identity::ProcessId;

/// What an earlier owner has left on disk and in tmux.
#[derive(Debug)]
pub(crate) struct Inherited {
    pub(crate) entry: Entry,
    pub(crate) expected: Expected,
    /// The whole index so far.
    pub(crate) lines: Vec<IndexLine>,
    /// The shell, or its leader if the shell cannot be found.
    pub(crate) shell: ProcessId,
    /// The latest recorder, if it is alive and tmux still writes to it.
    pub(crate) recorder: Option<ProcessId>,
    pub(crate) start_limit: Duration,
}

/// What the index says about one command.
#[derive(Default)]
struct History {
    started: Option<Started>,
    lost: u64,
    end: Option<(EndReport, LogPosition)>,
}

impl History {
    fn of(seq: Seq, lines: &[IndexLine]) -> Self {
        let mut history = Self::default();
        for line in lines {
            let position = LogPosition { offset: line.offset, at: line.at };
            match &line.event {
                IndexEvent::Marker(Marker::Start { seq: heard }) if *heard == seq => {
                    history.started = Some(Started { offset: position.offset, at: position.at });
                    history.lost = 0;
                }
                IndexEvent::Marker(Marker::End { seq: heard, report }) if *heard == seq => {
                    history.end = Some((report.clone(), position));
                    return history;
                }
                // Losses up to here belong to earlier commands.
                IndexEvent::Marker(_) => history.lost = 0,
                IndexEvent::Lost { bytes } => history.lost += bytes,
                IndexEvent::Opened { .. } | IndexEvent::Closed => {}
            }
        }
        history
    }

    fn command(&self, seq: Seq) -> Command {
        Command { seq, started: self.started, lost: self.lost, is_inherited: true }
    }
}

impl Owner {
    /// Adopts a shell, and returns the owner with the effects to carry out at once.
    pub(crate) fn adopt(inherited: Inherited, at: Moment) -> (Self, Vec<Effect>) {
        let mut owner = Self::from_inherited(inherited, at);
        let effects = std::mem::take(&mut owner.effects);
        (owner, effects)
    }

    fn from_inherited(inherited: Inherited, at: Moment) -> Self {
        let Inherited { entry, expected, lines, shell, recorder, start_limit } = inherited;
        let last_end = lines.iter().rev().find_map(|line| match &line.event {
            IndexEvent::Marker(Marker::End { report, .. }) => Some(report.clone()),
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
            last_report: LastReport {
                python: last_end.python.map(path),
                user: last_end.user,
                machine: last_end.machine,
            },
            recorder: recorder.map_or(Recorder::Missing, Recorder::Recording),
            state: State::Idle(idle),
            effects: Vec::new(),
            #[cfg(test)]
            broken: None,
        };
        match expected.kind {
            Kind::Command => owner.adopt_command(expected.seq, &lines, at),
            Kind::StartUp => owner.adopt_start(expected.seq, &lines, at),
        }
        owner.trace_transition("left behind", "adopted");
        if owner.recorder == Recorder::Missing {
            let recheck_at = at.now + RECORDER_LIMIT;
            owner.recorder =
                Recorder::Starting { why: RecorderStart::AfterGap, attempts: 1, recheck_at };
            owner.effects.push(Effect::StartRecorder);
        }
        owner
    }

    /// Adopts a command that the earlier owner handed over. It may have ended, be running, or not have reached the
    /// shell.
    fn adopt_command(&mut self, seq: Seq, lines: &[IndexLine], at: Moment) {
        let history = History::of(seq, lines);
        let mut command = history.command(seq);
        self.latest = Some(seq);
        if self.entry.latest == Some(Latest { seq, outcome: Outcome::GivenUp }) {
            return self.report_without_shell(command, -1, Ended::AtPrompt, at.log_end, at.wall);
        }
        if let Some((report, position)) = history.end {
            let result = at_prompt(&command, report, position);
            return self.report(command, result);
        }
        if command.started.is_none() && self.has_gap(lines) {
            command.started = Some(Started { offset: at.log_end, at: at.wall });
        }
        let recheck_at = at.now + RECHECK;
        let stage = if history.started.is_some() {
            Stage::Begun { report_requests: 0, recheck: Some(Recheck::soon(at.now)) }
        } else {
            Stage::Sent { resends: 0, recheck_at }
        };
        let status = command.status();
        self.effects.push(Effect::PublishJob { seq, status });
        self.state = State::Running(Running { command, stage });
    }

    /// Adopts a shell that the earlier owner started. The shell's nonces may have been lost with that owner.
    fn adopt_start(&mut self, seq: Seq, lines: &[IndexLine], at: Moment) {
        let own = History::of(seq, lines);
        let mut predecessor = self.adopt_predecessor(lines, at);
        if let Some((_, position)) = own.end {
            if let Some(Unreported { command, exit_code }) = predecessor.take() {
                let ended = Ended::ShellExited;
                self.report_without_shell(command, exit_code, ended, position.offset, position.at);
            }
            return;
        }
        if let Some(Unreported { command, .. }) = &predecessor {
            let (seq, status) = (command.seq, command.status());
            self.effects.push(Effect::PublishJob { seq, status });
        }
        if own.started.is_none() {
            self.effects.push(Effect::TakeNoncesBack { seq, why: TakeBackReason::Discard });
            self.effects.push(Effect::WriteNonces { seq, kind: Kind::StartUp });
        }
        let start = Start { seq, failed: 0, predecessor, waiting: Vec::new() };
        let recheck = Some(Recheck::soon(at.now));
        let deadline = at.now + self.start_limit;
        self.state = State::Booting(Booting { start, deadline, recheck });
    }

    /// Adopts the command of the previous shell, as the ledger names it.
    fn adopt_predecessor(&mut self, lines: &[IndexLine], at: Moment) -> Option<Unreported> {
        let Latest { seq, outcome } = self.entry.latest?;
        let history = History::of(seq, lines);
        let mut command = history.command(seq);
        self.latest = Some(seq);
        let exit_code = match (outcome, history.end) {
            (Outcome::ShellDied(exit_code), None) => exit_code,
            (Outcome::GivenUp, _) | (Outcome::AtPrompt, None) => {
                self.report_without_shell(command, -1, Ended::AtPrompt, at.log_end, at.wall);
                return None;
            }
            (Outcome::AtPrompt | Outcome::ShellDied(_), Some((report, position))) => {
                let result = at_prompt(&command, report, position);
                self.report(command, result);
                return None;
            }
        };
        if command.started.is_none() && self.has_gap(lines) {
            command.started = Some(Started { offset: at.log_end, at: at.wall });
        }
        let next = lines.iter().find(
            |line| matches!(line.event, IndexEvent::Marker(Marker::Start { seq: heard }) if heard > seq),
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

    /// Whether the recorder was replaced or missing at some time since the latest marker.
    fn has_gap(&self, lines: &[IndexLine]) -> bool {
        let since =
            lines.iter().rev().take_while(|line| !matches!(line.event, IndexEvent::Marker(_)));
        let mut since = since;
        in_force!(self, RecheckAfterGap)
            && (self.recorder == Recorder::Missing
                || since.any(|line| matches!(line.event, IndexEvent::Opened { .. })))
    }
}
