//! The life of the shell itself: its start, its death, and its replacement in the same directory.

use std::{collections::VecDeque, mem, time::Instant};

use super::{
    AfterLedger, Effect, Moment, Owner, PaneStatus, in_force,
    limits::{BEGIN_LIMIT, DEATH_LIMIT, DEATH_PAUSE, FAILED_STARTS, RECORDER_LIMIT},
    state::{
        Attempt, AwaitingExitCode, Booting, Claim, Command, Idle, LastActivity, Launching,
        LogPosition, PaneQuery, Prompt, Purpose, Recheck, Recorder, RecorderStart, Running, Start,
        State, Unreported,
    },
};
use crate::{
    Error, Result,
    ledger::{Latest, Outcome},
    marker::Seq,
    owner::Inspection,
    state::Ended,
    state::path,
};
use process_identity::ProcessId;

impl Booting {
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        Some(self.recheck.map_or(self.deadline, |recheck| recheck.at.min(self.deadline)))
    }
}

impl AwaitingExitCode {
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        match self.query {
            PaneQuery::Sent => None,
            PaneQuery::DueAt(time) => Some(time),
        }
    }
}

impl Owner {
    /// Checks the deadlines of a shell that has not reached its first prompt.
    pub(super) fn check_start(&mut self, at: Moment) {
        let State::Booting(booting) = &mut self.state else { return };
        if booting.deadline <= at.now {
            booting.deadline = at.now + DEATH_LIMIT;
            booting.recheck = None;
            self.warn("killing the shell: it did not reach its first prompt in time", None);
            // The owner handles its death like any other.
            if in_force!(self, SlowStartsAreKilled) {
                self.effects.push(Effect::KillLeader);
            }
            return;
        }
        if let Some(recheck) = booting.recheck.filter(|recheck| recheck.at <= at.now) {
            booting.recheck = Some(Recheck { at: at.now + recheck.pause, pause: recheck.pause });
            self.inspect(Inspection::Starting);
        }
    }

    /// Handles a shell whose first prompt may have gone unreported: its nonces may have been lost with their owner,
    /// or its markers with a recorder. If it is at its prompt, the owner runs an empty command, and the shell reports
    /// the prompt with new nonces.
    pub(super) fn start_inspected(&mut self, is_at_prompt: bool, at: Moment) {
        let State::Booting(Booting { start, recheck: Some(recheck), .. }) = &mut self.state else {
            return;
        };
        if is_at_prompt {
            let seq = start.seq;
            // The new report may take a while.
            recheck.pause = (recheck.pause * 2).max(BEGIN_LIMIT);
            recheck.at = at.now + recheck.pause;
            self.warn("the first prompt was not reported; running an empty command", None);
            self.effects.push(Effect::ProbeStartingShell { seq });
        }
    }

    /// Handles the end of the start-up: the shell is at its first prompt.
    pub(super) fn prompt_reached(&mut self, mut start: Start, prompt: Prompt, at: Moment) {
        let Prompt { report, position } = prompt;
        if let Some(Unreported { command, exit_code }) = start.predecessor.take()
            && in_force!(self, ReportThePredecessor)
        {
            let ended = Ended::ShellExited;
            self.report_without_shell(command, exit_code, ended, position.offset, position.at);
        }
        self.effects.push(Effect::FindShell);
        self.set_cwd(path(report.cwd));
        let claims: VecDeque<_> = start
            .waiting
            .into_iter()
            .map(|(call, text)| Claim { call, purpose: Purpose::Run(text) })
            .collect();
        let number = claims.len();
        self.transition(
            State::Idle(Idle { since: at.now, claims, recheck_at: None }),
            "the shell reached its first prompt",
        );
        self.publish();
        self.serve_first_claim(number);
    }

    pub(super) fn shell_found(&mut self, shell: ProcessId) {
        self.shell = shell;
        self.publish();
    }

    /// Handles the end of the shell: asks tmux for its exit code.
    pub(super) fn leader_ended(&mut self, leader: ProcessId, at: Moment) {
        if leader != self.entry.leader || !self.state.has_shell() {
            return;
        }
        let awaiting = |activity, waiting| {
            State::AwaitingExitCode(AwaitingExitCode {
                activity,
                waiting,
                deadline: at.now + DEATH_LIMIT,
                query: PaneQuery::Sent,
                pause: DEATH_PAUSE,
            })
        };
        let from = self.state.name();
        let placeholder = awaiting(LastActivity::Idle, Vec::new());
        self.state = match mem::replace(&mut self.state, placeholder) {
            State::Booting(Booting { start, .. }) => {
                let Start { failed, predecessor, waiting, .. } = start;
                awaiting(LastActivity::Starting { failed: failed + 1, predecessor }, waiting)
            }
            State::Idle(idle) => {
                let waiting = self.commands_for_next_shell(idle.claims);
                awaiting(LastActivity::Idle, waiting)
            }
            // The run key was not pressed, so the command has not begun.
            State::HandingOver(handing) => {
                let command = Command::new(handing.seq);
                self.latest = Some(handing.seq);
                let (seq, status) = (handing.seq, command.status());
                self.effects.push(Effect::PublishJob { seq, status });
                self.answer(handing.call, Ok(super::Reply::Command(seq)));
                let waiting = self.commands_for_next_shell(handing.claims);
                awaiting(LastActivity::Running(command), waiting)
            }
            State::Running(Running { command, .. }) => {
                awaiting(LastActivity::Running(command), Vec::new())
            }
            other => other,
        };
        self.trace_transition(from, "the shell has ended");
        self.effects.push(Effect::QueryPane);
    }

    /// Keeps waiting commands for the next shell. Requests for exports are refused, because they asked for the
    /// environment of this shell.
    fn commands_for_next_shell(
        &mut self,
        claims: VecDeque<Claim>,
    ) -> Vec<(super::CallId, super::Text)> {
        let mut waiting = Vec::new();
        for Claim { call, purpose } in claims {
            match purpose {
                Purpose::Run(text) => waiting.push((call, text)),
                Purpose::Export => self.answer_busy(call, self.next_seq),
            }
        }
        waiting
    }

    /// Handles tmux's answer about the pane of a dead shell. tmux sends no notification about a death outside the
    /// client's own tmux session, so the owner asks, soon and then less and less often. tmux marks a pane as dead
    /// only after it has passed on everything that was printed there; the exit status may follow a little later.
    pub(super) fn pane_queried(&mut self, result: Result<PaneStatus>, at: Moment) {
        let State::AwaitingExitCode(awaiting) = &mut self.state else { return };
        let is_over = at.now > awaiting.deadline;
        awaiting.query = PaneQuery::DueAt(at.now + awaiting.pause);
        awaiting.pause *= 2;
        match result {
            Err(Error::ServerGone) => {
                self.close(Ended::ServerGone, None, "the tmux server has ended");
            }
            Ok(PaneStatus::Dead(code)) => self.replace_shell(code, at),
            _ if is_over => self.replace_shell(-1, at),
            Ok(PaneStatus::Dying) => {
                // tmux 3.3 sometimes misses SIGCHLD, and the shell stays a zombie. Another SIGCHLD is harmless and
                // makes tmux check again.
                self.effects.push(Effect::SendServerSigchld);
            }
            Ok(PaneStatus::Alive) => {}
            // The cause may be temporary; the next query is already scheduled.
            Err(error) => self.warn("tmux did not report how the shell ended", Some(&error)),
        }
    }

    pub(super) fn check_pane(&mut self, at: Moment) {
        let State::AwaitingExitCode(awaiting) = &mut self.state else { return };
        if let PaneQuery::DueAt(time) = awaiting.query
            && time <= at.now
        {
            awaiting.query = PaneQuery::Sent;
            self.effects.push(Effect::QueryPane);
        }
    }

    /// Starts another shell in the same directory, and keeps the command of the old one for the report that follows.
    fn replace_shell(&mut self, exit_code: i32, at: Moment) {
        let seq = self.next_seq;
        self.next_seq += 1;
        let launching =
            |start| State::Launching(Launching { start, attempt: Attempt::First, prompt: None });
        let from = self.state.name();
        let placeholder = launching(Start::default());
        let State::AwaitingExitCode(awaiting) = mem::replace(&mut self.state, placeholder) else {
            return;
        };
        let AwaitingExitCode { activity, waiting, .. } = awaiting;
        let mut start = Start { seq, failed: 0, predecessor: None, waiting };
        match activity {
            LastActivity::Starting { failed, predecessor } => {
                start.failed = failed;
                start.predecessor = predecessor;
            }
            LastActivity::Idle => {
                let known = self.entry.latest.map(|latest| latest.seq);
                if let Some(seq) = self.latest.filter(|seq| Some(*seq) != known) {
                    self.entry.latest = Some(Latest { seq, outcome: Outcome::AtPrompt });
                }
            }
            LastActivity::Running(command) => {
                let latest = Latest { seq: command.seq, outcome: Outcome::ShellDied(exit_code) };
                self.entry.latest = Some(latest);
                start.predecessor = Some(Unreported { command, exit_code });
            }
        }
        let is_hopeless = start.failed >= FAILED_STARTS && in_force!(self, FailedStartsAreBounded);
        self.state = launching(start);
        self.trace_transition(from, "the exit code is known");
        if is_hopeless {
            return self.close(
                Ended::ShellExited,
                None,
                "several shells died before their first prompt",
            );
        }
        self.publish();
        if in_force!(self, LedgerBeforeLaunch) {
            // The ledger must be written before anything mentions the new shell, so that the next owner knows how the
            // old one ended.
            self.write_ledger(AfterLedger::Launch(seq));
        } else {
            self.launch(seq, Ok(()), at);
        }
    }

    /// Launches the next shell, now that the ledger says how the old one ended.
    pub(super) fn launch(&mut self, seq: Seq, ledger: Result<()>, at: Moment) {
        let State::Launching(Launching { start, .. }) = &self.state else { return };
        if start.seq != seq {
            return;
        }
        if let Err(error) = ledger {
            self.warn("the ledger could not be written", Some(&error));
            return self.close(Ended::ShellExited, None, "the ledger could not be written");
        }
        let is_recorded = matches!(self.recorder, Recorder::Recording(_));
        if !is_recorded {
            let (why, recheck_at) = (RecorderStart::WithShell, at.now + RECORDER_LIMIT);
            self.recorder = Recorder::Starting { why, attempts: 1, recheck_at };
        }
        let cwd = self.cwd.clone();
        self.effects.push(Effect::LaunchShell { seq, cwd, is_recorded });
    }

    pub(super) fn launched(&mut self, seq: Seq, result: Result<ProcessId>, at: Moment) {
        let State::Launching(launching) = &mut self.state else { return };
        if launching.start.seq != seq {
            return;
        }
        match result {
            Ok(leader) => self.boot(leader, at),
            Err(Error::ServerGone) => {
                self.close(Ended::ServerGone, None, "the tmux server has ended");
            }
            Err(error @ Error::TmuxSilent { .. }) if launching.attempt == Attempt::First => {
                launching.attempt = Attempt::Second;
                self.warn("tmux did not start a shell; retrying once", Some(&error));
                self.launch(seq, Ok(()), at);
            }
            Err(error) => {
                self.warn("a replacement shell could not be started", Some(&error));
                self.close(Ended::ShellExited, None, "a replacement shell could not be started");
            }
        }
    }

    fn boot(&mut self, leader: ProcessId, at: Moment) {
        let deadline = at.now + self.start_limit;
        let from = self.state.name();
        let booting = |start| State::Booting(Booting { start, deadline, recheck: None });
        let State::Launching(Launching { start, prompt, .. }) =
            mem::replace(&mut self.state, booting(Start::default()))
        else {
            return;
        };
        (self.entry.leader, self.shell) = (leader, leader);
        self.restarts += 1;
        self.state = booting(start);
        self.trace_transition(from, "a replacement shell was started");
        self.write_ledger(AfterLedger::Nothing);
        match self.recorder {
            Recorder::Recording(_) => {}
            Recorder::Starting { .. } => {
                let recheck_at = at.now + RECORDER_LIMIT;
                let why = RecorderStart::WithShell;
                self.recorder = Recorder::Starting { why, attempts: 1, recheck_at };
            }
            // The recorder was killed while tmux started the shell, whose first output may be lost.
            Recorder::Missing => {
                self.start_recorder(at);
                self.note_gap(at);
            }
        }
        self.publish();
        if let (Some(prompt), State::Booting(booting)) = (prompt, &mut self.state) {
            let start = mem::take(&mut booting.start);
            self.prompt_reached(start, prompt, at);
        }
    }

    /// Reports the command that the previous shell died with, when the next shell prints its first marker.
    pub(super) fn report_predecessor(&mut self, seq: Seq, position: LogPosition) {
        let (State::Launching(Launching { start, .. }) | State::Booting(Booting { start, .. })) =
            &mut self.state
        else {
            return;
        };
        // The marker may come from an even later shell, since the first replacement may have died as well.
        let before = start.predecessor.take_if(|before| before.command.seq < seq);
        if let Some(Unreported { command, exit_code }) = before {
            let ended = Ended::ShellExited;
            self.report_without_shell(command, exit_code, ended, position.offset, position.at);
        }
    }
}
