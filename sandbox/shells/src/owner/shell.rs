//! The life of the shell itself: its start, its death, and the next one in the same directory.

use std::{collections::VecDeque, mem, time::Instant};

use super::{
    AfterLedger, Effect, Moment, Owner, PaneSight, keeps,
    limits::{CALL_LIMIT, DEATH_LIMIT, DEATH_PAUSE, FAILED_STARTS, RECORDER_LIMIT},
    state::{
        Asking, Attempt, Booting, Burying, Claim, Command, Corpse, Idle, Launching, Order, Place,
        Prompt, Recheck, Recorder, Running, Start, State, Unreported, Wish,
    },
};
use crate::{
    Error, Result,
    ledger::{Fate, Latest},
    marker::Seq,
    owner::Look,
    state::Ended,
    state::path,
};
use process_identity::ProcessId;

impl Booting {
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        Some(self.recheck.map_or(self.deadline, |recheck| recheck.at.min(self.deadline)))
    }
}

impl Burying {
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        match self.asking {
            Asking::Asked => None,
            Asking::At(time) => Some(time),
        }
    }
}

impl Owner {
    /// Looks after a shell that is on its way to its first prompt.
    pub(super) fn check_start(&mut self, at: Moment) {
        let State::Booting(booting) = &mut self.state else { return };
        if booting.deadline <= at.now {
            booting.deadline = at.now + DEATH_LIMIT;
            booting.recheck = None;
            self.warn("the shell does not reach its first prompt, and is killed", None);
            // Its death is handled like any other.
            if keeps!(self, SlowStartsAreKilled) {
                self.effects.push(Effect::KillLeader);
            }
            return;
        }
        if let Some(recheck) = booting.recheck.filter(|recheck| recheck.at <= at.now) {
            booting.recheck = Some(Recheck { at: at.now + recheck.pause, pause: recheck.pause });
            self.look(Look::Starting);
        }
    }

    /// For a shell of whose start something may be lost: the nonces that it was given, with their owner, or its
    /// markers, with a recorder. If it is at its prompt, it is called with nothing to run, and reports that with new
    /// nonces.
    pub(super) fn start_seen(&mut self, is_at_prompt: bool, at: Moment) {
        let State::Booting(Booting { start, recheck: Some(recheck), .. }) = &mut self.state else {
            return;
        };
        if is_at_prompt {
            let seq = start.seq;
            // What it reports then may take a while.
            recheck.pause = (recheck.pause * 2).max(CALL_LIMIT);
            recheck.at = at.now + recheck.pause;
            self.warn("the first prompt was not reported; the shell is called", None);
            self.effects.push(Effect::CallWithNothing { seq });
        }
    }

    /// The start-up has ended: the shell is at its first prompt.
    pub(super) fn prompt_reached(&mut self, mut start: Start, prompt: Prompt, at: Moment) {
        let Prompt { report, place } = prompt;
        if let Some(Unreported { command, exit_code }) = start.predecessor.take()
            && keeps!(self, ReportThePredecessor)
        {
            let ended = Ended::ShellExited;
            self.report_without_shell(command, exit_code, ended, place.offset, place.at);
        }
        self.effects.push(Effect::FindShell);
        self.set_cwd(path(report.cwd));
        let claims: VecDeque<_> = start
            .waiting
            .into_iter()
            .map(|(call, text)| Claim { call, wish: Wish::Run(text) })
            .collect();
        let number = claims.len();
        self.go(
            State::Idle(Idle { since: at.now, claims, recheck_at: None }),
            "the shell is at its first prompt",
        );
        self.publish();
        self.serve_first_claim(number);
    }

    pub(super) fn shell_found(&mut self, shell: ProcessId) {
        self.shell = shell;
        self.publish();
    }

    /// The shell has ended: finds out how.
    pub(super) fn leader_ended(&mut self, leader: ProcessId, at: Moment) {
        if leader != self.entry.leader || !self.state.has_shell() {
            return;
        }
        let burying = |corpse, waiting| {
            State::Burying(Burying {
                corpse,
                waiting,
                deadline: at.now + DEATH_LIMIT,
                asking: Asking::Asked,
                pause: DEATH_PAUSE,
            })
        };
        let from = self.state.name();
        let placeholder = burying(Corpse::Idle, Vec::new());
        self.state = match mem::replace(&mut self.state, placeholder) {
            State::Booting(Booting { start, .. }) => {
                let Start { failed, predecessor, waiting, .. } = start;
                burying(Corpse::Starting { failed: failed + 1, predecessor }, waiting)
            }
            State::Idle(idle) => {
                let waiting = self.wait_for_next_shell(idle.claims);
                burying(Corpse::Idle, waiting)
            }
            // The key was not pressed, so that it has not begun.
            State::HandingOver(handing) => {
                let command = Command::new(handing.seq);
                self.latest = Some(handing.seq);
                let (seq, status) = (handing.seq, command.status());
                self.effects.push(Effect::PublishJob { seq, status });
                self.answer(handing.call, Ok(super::Reply::Command(seq)));
                let waiting = self.wait_for_next_shell(handing.claims);
                burying(Corpse::Running(command), waiting)
            }
            State::Running(Running { command, .. }) => {
                burying(Corpse::Running(command), Vec::new())
            }
            other => other,
        };
        self.trace_stage(from, "the shell has ended");
        self.effects.push(Effect::AskPane);
    }

    /// Commands may wait for the next shell. The environment was asked of this one.
    fn wait_for_next_shell(
        &mut self,
        claims: VecDeque<Claim>,
    ) -> Vec<(super::CallId, super::Text)> {
        let mut waiting = Vec::new();
        for Claim { call, wish } in claims {
            match wish {
                Wish::Run(text) => waiting.push((call, text)),
                Wish::Export => self.refuse_export(call),
            }
        }
        waiting
    }

    fn refuse_export(&mut self, call: super::CallId) {
        let (shell, seq) = (self.entry.id.clone(), self.next_seq);
        self.answer(call, Err(Error::Busy { shell, seq }));
    }

    /// tmux has no word for a death outside the client's own session, so it is asked, soon and then less and less
    /// often. A pane counts as dead only when tmux has passed on everything that was printed in it; its status may come
    /// a little later.
    pub(super) fn pane_seen(&mut self, result: Result<PaneSight>, at: Moment) {
        let State::Burying(burying) = &mut self.state else { return };
        let is_over = at.now > burying.deadline;
        burying.asking = Asking::At(at.now + burying.pause);
        burying.pause *= 2;
        match result {
            Err(Error::ServerGone) => {
                self.close(Ended::ServerGone, None, "the tmux server has ended");
            }
            Ok(PaneSight::Dead(code)) => self.replace_shell(code, at),
            _ if is_over => self.replace_shell(-1, at),
            Ok(PaneSight::Dying) => {
                // tmux 3.3 sometimes misses the signal that a child has ended, and the shell stays a zombie; the
                // signal is harmless and makes it look again.
                self.effects.push(Effect::NudgeServer);
            }
            Ok(PaneSight::Alive) => {}
            // The reason may pass.
            Err(error) => self.warn("tmux does not say how a shell has ended", Some(&error)),
        }
    }

    pub(super) fn check_pane(&mut self, at: Moment) {
        let State::Burying(burying) = &mut self.state else { return };
        if let Asking::At(time) = burying.asking
            && time <= at.now
        {
            burying.asking = Asking::Asked;
            self.effects.push(Effect::AskPane);
        }
    }

    /// Starts another shell in the same directory, and keeps what the old one was doing for the report that follows.
    fn replace_shell(&mut self, exit_code: i32, at: Moment) {
        let seq = self.next_seq;
        self.next_seq += 1;
        let launching =
            |start| State::Launching(Launching { start, attempt: Attempt::First, prompt: None });
        let from = self.state.name();
        let placeholder = launching(Start::default());
        let State::Burying(burying) = mem::replace(&mut self.state, placeholder) else {
            return;
        };
        let Burying { corpse, waiting, .. } = burying;
        let mut start = Start { seq, failed: 0, predecessor: None, waiting };
        match corpse {
            Corpse::Starting { failed, predecessor } => {
                start.failed = failed;
                start.predecessor = predecessor;
            }
            Corpse::Idle => {
                let known = self.entry.latest.map(|latest| latest.seq);
                if let Some(seq) = self.latest.filter(|seq| Some(*seq) != known) {
                    self.entry.latest = Some(Latest { seq, fate: Fate::AtPrompt });
                }
            }
            Corpse::Running(command) => {
                let latest = Latest { seq: command.seq, fate: Fate::ShellDied(exit_code) };
                self.entry.latest = Some(latest);
                start.predecessor = Some(Unreported { command, exit_code });
            }
        }
        let is_hopeless = start.failed >= FAILED_STARTS && keeps!(self, FailedStartsAreBounded);
        self.state = launching(start);
        self.trace_stage(from, "its exit code is known");
        if is_hopeless {
            return self.close(Ended::ShellExited, None, "shells die before their first prompt");
        }
        self.publish();
        if keeps!(self, LedgerBeforeLaunch) {
            // Before anything tells of the new shell, so that the next owner knows what became of the old one.
            self.write_ledger(AfterLedger::Launch(seq));
        } else {
            self.launch(seq, Ok(()), at);
        }
    }

    /// The ledger knows what became of the old shell: now there may be a new one.
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
            let (why, recheck_at) = (Order::WithShell, at.now + RECORDER_LIMIT);
            self.recorder = Recorder::Ordered { why, attempts: 1, recheck_at };
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
                self.warn("tmux did not start a shell; it is asked once more", Some(&error));
                self.launch(seq, Ok(()), at);
            }
            Err(error) => {
                self.warn("there is no other shell", Some(&error));
                self.close(Ended::ShellExited, None, "another shell could not be started");
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
        self.trace_stage(from, "another shell was started");
        self.write_ledger(AfterLedger::Nothing);
        match self.recorder {
            Recorder::Recording(_) => {}
            Recorder::Ordered { .. } => {
                let recheck_at = at.now + RECORDER_LIMIT;
                let why = Order::WithShell;
                self.recorder = Recorder::Ordered { why, attempts: 1, recheck_at };
            }
            // It was killed while tmux started the shell, whose first words may be lost.
            Recorder::Missing => {
                self.order_recorder(at);
                self.note_gap(at);
            }
        }
        self.publish();
        if let (Some(prompt), State::Booting(booting)) = (prompt, &mut self.state) {
            let start = mem::take(&mut booting.start);
            self.prompt_reached(start, prompt, at);
        }
    }

    /// Reports the command that the predecessor died with, when the next shell says its first word.
    pub(super) fn report_predecessor(&mut self, seq: Seq, place: Place) {
        let (State::Launching(Launching { start, .. }) | State::Booting(Booting { start, .. })) =
            &mut self.state
        else {
            return;
        };
        // The first shell after it, which may have died since.
        let before = start.predecessor.take_if(|before| before.command.seq < seq);
        if let Some(Unreported { command, exit_code }) = before {
            let ended = Ended::ShellExited;
            self.report_without_shell(command, exit_code, ended, place.offset, place.at);
        }
    }
}
