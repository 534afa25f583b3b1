//! The owner of a shell, as a value: [`Owner::handle`] takes what has happened and says what is to be done.
//!
//! Every decision about a shell is made here: when a command may be handed over, whether it has begun, whether it may
//! be sent again, when the shell is asked for a report that is missing, when a command is given up, what follows the
//! death of a shell, a recorder, an owner or tmux. Nothing here waits, reads a file or looks at a clock; the
//! [driver](crate::driver) does that.
//!
//! What a command goes through:
//!
//! ```text
//! Idle ──run──► HandingOver ──nonces in the pipe──► Called ──start marker──► Begun ──end marker──► Idle
//!                                                     │ ▲                     ▲ │
//!                       at its prompt, nonces read back │ └─resent            │ └─asked for its report, given up
//!                                                     └──pipe is empty──► Taken
//! Booting ──end marker──► Idle     any ──shell ended──► Burying ──code known──► Launching ──► Booting
//! ```
//!
//! At most once: the nonces of a command enter the pipe before any file mentions it, and the shell begins nothing
//! without them. The owner resends only after it has read them back. An empty pipe means that the shell has begun.
//!
//! Exactly one result: a command leaves [`State`] only by [`Owner::report`].

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

pub(crate) use adoption::Found;
pub(crate) use effect::{Effect, Look, OwnKeys, Reply};
pub(crate) use event::{
    AfterLedger, CallId, Event, Held, Moment, PaneSight, Reads, Request, Sight, TakeBack, Text,
    TextState,
};
use limits::RECORDER_LIMIT;
use state::{
    Booting, Burying, Circumstances, Closing, Corpse, Order, Recorder, Start, State, Tidying,
};

/// Everything that is known about one shell, and the rules by which it is looked after.
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
    circumstances: Circumstances,
    recorder: Recorder,
    state: State,
    effects: Vec<Effect>,
    /// The rule that a test breaks, to show that it matters.
    #[cfg(test)]
    broken: Option<tests::Rule>,
}

impl Owner {
    /// The owner of a shell that tmux has just started, with its recorder, for the first time.
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
            circumstances: Circumstances::default(),
            recorder: Recorder::Ordered {
                why: Order::WithShell,
                attempts: 1,
                recheck_at: at.now + RECORDER_LIMIT,
            },
            state: State::Booting(Booting { start, deadline: at.now + start_limit, recheck: None }),
            effects: Vec::new(),
            #[cfg(test)]
            broken: None,
        }
    }

    /// Decides what is to be done about something that has happened.
    pub(crate) fn handle(&mut self, event: Event, at: Moment) -> Vec<Effect> {
        match event {
            Event::Asked { call, request } => self.asked(call, request, at),
            Event::LooksIdle => self.looks_idle(at),
            Event::Recorded(line) => self.recorded(line, at),
            Event::Seen { seq, sight } => self.seen(seq, sight, at),
            Event::ShellFound(shell) => self.shell_found(shell),
            Event::TextWritten { seq, result } => self.text_written(seq, result),
            Event::NoncesWritten { seq, result } => self.nonces_written(seq, result, at),
            Event::NoncesTakenBack { seq, held, why } => self.nonces_taken_back(seq, held, why, at),
            Event::LedgerWritten { after, result } => self.ledger_written(after, result, at),
            Event::Launched { seq, result } => self.launched(seq, result, at),
            Event::PaneSeen(result) => self.pane_seen(result, at),
            Event::RecorderOrdered(result) => self.recorder_ordered(result),
            Event::Resized { call, size, result } => self.resized(call, size, result),
            Event::LeaderEnded(leader) => self.leader_ended(leader, at),
            Event::RecorderEnded(recorder) => self.recorder_ended(recorder, at),
            Event::ServerGone => self.close(Ended::ServerGone, None, "the tmux server has ended"),
            Event::PaneKilled => {}
            Event::TmuxSilent => self.close_in_background(at),
            Event::Tidied => self.tidied(at),
            Event::TimePassed => self.time_passed(at),
        }
        mem::take(&mut self.effects)
    }

    /// When [`Event::TimePassed`] is due, if nothing happens before.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        let recorder = match self.recorder {
            Recorder::Ordered { recheck_at, .. } if self.state.has_shell() => Some(recheck_at),
            _ => None,
        };
        let state = match &self.state {
            State::Booting(booting) => booting.next_deadline(),
            State::Idle(idle) => idle.recheck_at,
            State::Running(running) => running.stage.next_deadline(),
            State::Burying(burying) => burying.next_deadline(),
            State::Launching(_) | State::HandingOver(_) | State::Closing(_) | State::Over(_) => {
                None
            }
        };
        [recorder, state].into_iter().flatten().min()
    }

    /// The process whose end is to be told by [`Event::LeaderEnded`].
    pub(crate) fn watched_leader(&self) -> Option<ProcessId> {
        self.state.has_shell().then_some(self.entry.leader)
    }

    /// The process whose end is to be told by [`Event::RecorderEnded`].
    pub(crate) fn watched_recorder(&self) -> Option<ProcessId> {
        match (&self.state, self.recorder) {
            (State::Closing(_) | State::Over(_), _) => None,
            (_, Recorder::Recording(recorder)) => Some(recorder),
            _ => None,
        }
    }

    /// Whether the end of the tmux server matters.
    pub(crate) fn needs_server(&self) -> bool {
        !matches!(self.state, State::Closing(_) | State::Over(_))
    }

    /// The ledger's entry.
    pub(crate) fn entry(&self) -> &Entry {
        &self.entry
    }

    /// The shell at a glance.
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
            State::Burying(Burying { corpse, .. }) => match corpse {
                Corpse::Starting { .. } => Phase::Starting,
                Corpse::Idle => Phase::Idle,
                Corpse::Running(command) => Phase::Running(command.seq),
            },
            State::Closing(Closing { progress: Tidying::Awaited, phase, .. }) => phase.clone(),
            State::Closing(closing) => over(&closing.ended),
            State::Over(ended) => over(ended),
        }
    }

    fn time_passed(&mut self, at: Moment) {
        self.check_recorder(at);
        match &mut self.state {
            State::Booting(_) => self.check_start(at),
            State::Idle(idle) if idle.recheck_at.is_some_and(|time| time <= at.now) => {
                idle.recheck_at = None;
                self.look(Look::Foreground);
            }
            State::Running(_) => self.check_command(at),
            State::Burying(_) => self.check_pane(at),
            _ => {}
        }
    }

    fn seen(&mut self, seq: Seq, sight: Sight, at: Moment) {
        if seq != self.sight_seq() {
            return;
        }
        match sight {
            Sight::Foreground { is_taken } => self.foreground_seen(is_taken, at),
            Sight::Shell { reads } => self.shell_seen(reads, at),
            Sight::Starting { is_at_prompt } => self.start_seen(is_at_prompt, at),
        }
    }

    fn look(&mut self, look: Look) {
        let seq = self.sight_seq();
        self.effects.push(Effect::Look { seq, look });
    }

    /// By which a sight is recognised as an answer to a question of the present command.
    fn sight_seq(&self) -> Seq {
        self.state.seq().unwrap_or(self.next_seq)
    }

    /// Changes the state. Every transition is traced here.
    fn go(&mut self, next: State, reason: &str) -> State {
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

    /// Traces a change of the stage of a command, which stays in the same state.
    fn trace_stage(&self, from: &'static str, reason: &str) {
        let (command, to) = (self.state.seq(), self.state.name());
        debug!(shell = %self.entry.id, command, from, to, reason, "transition");
    }

    /// Traces something that was lost or could not be done.
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
                    // The next owner finds out by tmux and the pipe what the entry does not say.
                    self.warn("the ledger could not be written", Some(&error));
                }
            }
        }
    }
}

/// Whether a rule is in force: always, except in tests, which break one at a time to show that it matters.
macro_rules! keeps {
    ($owner:expr, $rule:ident) => {{
        #[cfg(test)]
        let keeps = $owner.broken != Some(crate::owner::tests::Rule::$rule);
        #[cfg(not(test))]
        let keeps = true;
        keeps
    }};
}
use keeps;
