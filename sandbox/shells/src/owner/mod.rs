//! The owner of a shell, as a value: [`Owner::handle`] takes an event and returns the effects to carry out.
//!
//! Every decision about a shell is made here: when a command is handed over, whether it has begun, whether it may be
//! sent again, when the shell is asked for a missing report, when a command is given up, and what follows the death
//! of a shell, a recorder, an owner or tmux. Nothing here waits, reads a file or reads a clock; the
//! [driver](crate::driver) does that.
//!
//! The states of a command:
//!
//! ```text
//! Idle                ──a caller runs a command──► HandingOver
//! HandingOver         ──nonces are in the pipe───► Sent
//! Sent                ──start marker─────────────► Begun
//! Sent                ──nonces read back─────────► Sent, a few times; then GivenUp
//! Sent                ──pipe is empty────────────► NoncesTaken
//! NoncesTaken         ──start marker─────────────► Begun
//! Begun, NoncesTaken  ──end marker───────────────► Idle
//! Begun, NoncesTaken  ──no report on request─────► GivenUp ──ledger written──► Idle
//! ```
//!
//! When a shell ends, whatever its state: `AwaitingExitCode`, `Launching`, `Booting`, and `Idle` at the first prompt.
//!
//! At most once: the nonces of a command enter the pipe before any file mentions the command, and the shell begins
//! nothing without them. The owner resends only after it has read them back. An empty pipe means that the shell has
//! begun.
//!
//! Exactly one result: [`Owner::report`] is the only way by which a command leaves [`State`].

mod adoption;
mod closing;
mod command;
mod effect;
mod event;
mod limits;
mod recording;
mod requests;
mod shell;
mod state;
#[cfg(test)]
mod tests;

use std::{
    mem,
    path::PathBuf,
    time::{Duration, Instant},
};

use tracing::{debug, warn};

use crate::{
    Error,
    ledger::Entry,
    marker::Seq,
    state::{Ended, Phase, Status},
};
use process_identity::ProcessId;

pub(crate) use adoption::Inherited;
pub(crate) use effect::{Effect, Inspection, OwnKeys, Reply};
pub(crate) use event::{
    AfterLedger, CallId, Event, Finding, Moment, PaneStatus, PipeContent, ReadMode, Request,
    TakeBackReason, Text, TextState,
};
use limits::RECORDER_LIMIT;
use state::{
    AwaitingExitCode, Booting, Cleanup, Closing, LastActivity, LastReport, Recorder, RecorderStart,
    Start, State,
};

/// Everything that is known about one shell, and the rules for managing it.
#[derive(Debug)]
pub(crate) struct Owner {
    entry: Entry,
    start_limit: Duration,
    /// The number of the next command or start-up.
    next_seq: Seq,
    /// The latest command, running or ended.
    latest: Option<Seq>,
    /// The shell's directory at its latest prompt.
    cwd: PathBuf,
    shell: ProcessId,
    restarts: u32,
    last_report: LastReport,
    recorder: Recorder,
    state: State,
    effects: Vec<Effect>,
    /// The rule that a test has disabled to show that it matters.
    #[cfg(test)]
    broken: Option<tests::Rule>,
}

impl Owner {
    /// Creates the owner of a new shell that tmux has just started together with its recorder.
    pub(crate) fn new(entry: Entry, cwd: PathBuf, start_limit: Duration, at: Moment) -> Self {
        const FIRST: Seq = 0;
        let start = Start { seq: FIRST, ..Start::default() };
        Self {
            shell: entry.leader,
            entry,
            start_limit,
            next_seq: FIRST + 1,
            latest: None,
            cwd,
            restarts: 0,
            last_report: LastReport::default(),
            recorder: Recorder::Starting {
                why: RecorderStart::WithShell,
                attempts: 1,
                recheck_at: at.now + RECORDER_LIMIT,
            },
            state: State::Booting(Booting { start, deadline: at.now + start_limit, recheck: None }),
            effects: Vec::new(),
            #[cfg(test)]
            broken: None,
        }
    }

    /// Decides what to do about an event.
    pub(crate) fn handle(&mut self, event: Event, at: Moment) -> Vec<Effect> {
        match event {
            Event::Requested { call, request } => self.requested(call, request, at),
            Event::LooksIdle => self.looks_idle(at),
            Event::Recorded(line) => self.recorded(line, at),
            Event::Inspected { seq, finding } => self.inspected(seq, finding, at),
            Event::ShellFound(shell) => self.shell_found(shell),
            Event::TextWritten { seq, result } => self.text_written(seq, result),
            Event::NoncesWritten { seq, result } => self.nonces_written(seq, result, at),
            Event::NoncesTakenBack { seq, found, why } => {
                self.nonces_taken_back(seq, found, why, at);
            }
            Event::LedgerWritten { after, result } => self.ledger_written(after, result, at),
            Event::Launched { seq, result } => self.launched(seq, result, at),
            Event::PaneQueried(result) => self.pane_queried(result, at),
            Event::RecorderStarted(result) => self.recorder_started(result),
            Event::Resized { call, size, result } => self.resized(call, size, result),
            Event::LeaderEnded(leader) => self.leader_ended(leader, at),
            Event::RecorderEnded(recorder) => self.recorder_ended(recorder, at),
            Event::ServerGone => self.close(Ended::ServerGone, None, "the tmux server has ended"),
            Event::TmuxSilent => self.close_in_background(at),
            Event::CleanedUp => self.cleaned_up(at),
            Event::TimePassed => self.time_passed(at),
        }
        mem::take(&mut self.effects)
    }

    /// When [`Event::TimePassed`] is due, unless another event comes first.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        let recorder = match self.recorder {
            Recorder::Starting { recheck_at, .. } if self.state.has_shell() => Some(recheck_at),
            _ => None,
        };
        let state = match &self.state {
            State::Booting(booting) => booting.next_deadline(),
            State::Idle(idle) => idle.recheck_at,
            State::Running(running) => running.stage.next_deadline(),
            State::AwaitingExitCode(awaiting) => awaiting.next_deadline(),
            State::Launching(_) | State::HandingOver(_) | State::Closing(_) | State::Closed(_) => {
                None
            }
        };
        [recorder, state].into_iter().flatten().min()
    }

    /// The process whose end the driver must report by [`Event::LeaderEnded`].
    pub(crate) fn watched_leader(&self) -> Option<ProcessId> {
        self.state.has_shell().then_some(self.entry.leader)
    }

    /// The process whose end the driver must report by [`Event::RecorderEnded`].
    pub(crate) fn watched_recorder(&self) -> Option<ProcessId> {
        match (&self.state, self.recorder) {
            (State::Closing(_) | State::Closed(_), _) => None,
            (_, Recorder::Recording(recorder)) => Some(recorder),
            _ => None,
        }
    }

    /// Whether the driver must report the end of the tmux server.
    pub(crate) fn needs_server(&self) -> bool {
        !matches!(self.state, State::Closing(_) | State::Closed(_))
    }

    /// The shell's entry in the ledger.
    pub(crate) fn entry(&self) -> &Entry {
        &self.entry
    }

    /// The shell's present status, as callers see it.
    pub(crate) fn status(&self) -> Status {
        Status {
            phase: self.phase(),
            cwd: self.cwd.clone(),
            shell: self.shell,
            size: self.entry.size,
            restarts: self.restarts,
        }
    }

    fn phase(&self) -> Phase {
        let over = |ended: &Ended| match ended {
            Ended::ServerGone => Phase::Lost,
            _ => Phase::Closed,
        };
        match &self.state {
            State::Launching(_) | State::Booting(_) => Phase::Starting,
            State::Idle(_) | State::HandingOver(_) => Phase::Idle,
            State::Running(running) => Phase::Running(running.command.seq),
            State::AwaitingExitCode(AwaitingExitCode { activity, .. }) => match activity {
                LastActivity::Starting { .. } => Phase::Starting,
                LastActivity::Idle => Phase::Idle,
                LastActivity::Running(command) => Phase::Running(command.seq),
            },
            State::Closing(Closing { progress: Cleanup::Awaited, phase, .. }) => phase.clone(),
            State::Closing(closing) => over(&closing.ended),
            State::Closed(ended) => over(ended),
        }
    }

    fn time_passed(&mut self, at: Moment) {
        self.check_recorder(at);
        match &mut self.state {
            State::Booting(_) => self.check_start(at),
            State::Idle(idle) if idle.recheck_at.is_some_and(|time| time <= at.now) => {
                idle.recheck_at = None;
                self.inspect(Inspection::Foreground);
            }
            State::Running(_) => self.check_command(at),
            State::AwaitingExitCode(_) => self.check_pane(at),
            _ => {}
        }
    }

    fn inspected(&mut self, seq: Seq, finding: Finding, at: Moment) {
        if seq != self.inspected_seq() {
            return;
        }
        match finding {
            Finding::Foreground { is_taken } => self.foreground_inspected(is_taken, at),
            Finding::Shell { mode } => self.shell_inspected(mode, at),
            Finding::Starting { is_at_prompt } => self.start_inspected(is_at_prompt, at),
        }
    }

    fn inspect(&mut self, inspection: Inspection) {
        let seq = self.inspected_seq();
        self.effects.push(Effect::Inspect { seq, inspection });
    }

    /// Identifies a finding as the answer to an inspection for the present command; older findings are ignored.
    fn inspected_seq(&self) -> Seq {
        self.state.seq().unwrap_or(self.next_seq)
    }

    /// Changes the state and traces the transition. A change that keeps parts of the old state, such as a new stage of
    /// the same command, is made in place and traced by [`Owner::trace_transition`].
    fn transition(&mut self, next: State, reason: &str) -> State {
        let before = mem::replace(&mut self.state, next);
        let command = self.state.seq().or(before.seq());
        debug!(
            shell = %self.entry.id,
            command,
            from = before.name(),
            to = self.state.name(),
            reason,
            "transition"
        );
        before
    }

    /// Traces a transition that was made in place. Every change of [`State::name`] is traced, here or by
    /// [`Owner::transition`].
    fn trace_transition(&self, from: &'static str, reason: &str) {
        let (command, to) = (self.state.seq(), self.state.name());
        debug!(shell = %self.entry.id, command, from, to, reason, "transition");
    }

    /// Traces a loss or a failed action.
    fn warn(&self, problem: &str, error: Option<&Error>) {
        let (shell, command, state) = (&self.entry.id, self.state.seq(), self.state.name());
        match error {
            Some(error) => warn!(%shell, command, state, %error, "{problem}"),
            None => warn!(%shell, command, state, "{problem}"),
        }
    }

    fn answer(&mut self, call: CallId, reply: Result<Reply, Error>) {
        self.effects.push(Effect::Answer { call, reply });
    }

    fn publish(&mut self) {
        self.effects.push(Effect::Publish);
    }

    fn write_ledger(&mut self, after: AfterLedger) {
        let entry = Box::new(self.entry.clone());
        self.effects.push(Effect::WriteLedger { entry, after });
    }

    fn ledger_written(&mut self, after: AfterLedger, result: Result<(), Error>, at: Moment) {
        match after {
            AfterLedger::Launch(seq) => self.launch(seq, result, at),
            AfterLedger::Answer(call) => self.answer(call, result.map(|()| Reply::Done)),
            AfterLedger::Report(seq) => self.report_given_up(seq, result, at),
            AfterLedger::Nothing => {
                if let Err(error) = result {
                    // The next owner learns from tmux and the pipe what the entry does not say.
                    self.warn("the ledger could not be written", Some(&error));
                }
            }
        }
    }
}

/// Whether a rule is in force: always, except in tests, which disable one rule at a time to show that it matters.
macro_rules! in_force {
    ($owner:expr, $rule:ident) => {{
        #[cfg(test)]
        let in_force = $owner.broken != Some(crate::owner::tests::Rule::$rule);
        #[cfg(not(test))]
        let in_force = true;
        in_force
    }};
}
use in_force;
