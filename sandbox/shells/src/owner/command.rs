//! The life of a command: handed over, sent, begun, report requested, given up, reported.

use std::{
    collections::VecDeque,
    sync::Arc,
    time::{Instant, SystemTime},
};

use super::{
    AfterLedger, CallId, Effect, Inspection, Moment, OwnKeys, Owner, PipeContent, ReadMode, Reply,
    TakeBackReason, Text, TextState, in_force,
    limits::{
        BEGIN_LIMIT, LEDGER_PAUSE, PATIENT_REPORT_REQUESTS, REPORT_LIMIT, REPORT_REQUESTS, RESENDS,
    },
    state::{Claim, Command, HandingOver, Idle, LogPosition, Recheck, Running, Stage, State},
};
use crate::{
    Result,
    ledger::{Latest, Outcome},
    marker::{EndReport, Kind, Seq},
    state::{CommandResult, Ended, JobStatus, path},
};

impl Stage {
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        match self {
            Self::Sent { recheck_at, .. } => Some(*recheck_at),
            Self::NoncesTaken { recheck, .. } => Some(recheck.at),
            Self::Begun { recheck, .. } | Self::GivenUp { recheck } => {
                recheck.map(|recheck| recheck.at)
            }
        }
    }
}

impl Owner {
    /// Starts to hand a command over: first the text, then the nonces.
    pub(super) fn hand_over(
        &mut self,
        call: CallId,
        text: Text,
        idle_since: Instant,
        claims: VecDeque<Claim>,
    ) {
        let seq = self.next_seq;
        self.next_seq += 1;
        let next = State::HandingOver(HandingOver { seq, call, idle_since, claims });
        self.transition(next, "a caller runs a command");
        self.effects.push(Effect::WriteText { seq, call, text });
    }

    pub(super) fn text_written(&mut self, seq: Seq, result: Result<TextState>) {
        let State::HandingOver(handing) = &self.state else { return };
        if handing.seq != seq {
            return;
        }
        let call = handing.call;
        match result {
            Ok(TextState::Wanted) => {
                self.effects.push(Effect::WriteNonces { seq, kind: Kind::Command });
            }
            Ok(TextState::Abandoned) => self.back_to_prompt("the caller went away"),
            Err(error) => {
                self.answer(call, Err(error));
                self.back_to_prompt("the text could not be written");
            }
        }
    }

    /// Returns to the prompt without running the command, and serves the next caller.
    fn back_to_prompt(&mut self, reason: &str) {
        let State::HandingOver(handing) = &mut self.state else { return };
        let (since, claims) = (handing.idle_since, std::mem::take(&mut handing.claims));
        let number = claims.len();
        self.transition(State::Idle(Idle { since, claims, recheck_at: None }), reason);
        self.serve_first_claim(number);
    }

    pub(super) fn nonces_written(&mut self, seq: Seq, result: Result<()>, at: Moment) {
        match &self.state {
            State::HandingOver(handing) if handing.seq == seq => {
                let call = handing.call;
                match result {
                    Ok(()) => self.press_run_key(seq, call, at),
                    Err(error) => {
                        let why = TakeBackReason::Discard;
                        self.effects.push(Effect::TakeNoncesBack { seq, why });
                        self.answer(call, Err(error));
                        self.back_to_prompt("the nonces could not be written");
                    }
                }
            }
            State::Running(Running { command, stage: Stage::Sent { resends, .. } })
                if command.seq == seq =>
            {
                match result {
                    Ok(()) if *resends == 1 => self.effects.push(Effect::Press(OwnKeys::Run)),
                    Ok(()) => {
                        // The earlier key may have become part of an unfinished input line; the interrupt clears it.
                        self.effects.push(Effect::InterruptShell);
                        self.effects.push(Effect::Press(OwnKeys::TypeRun));
                    }
                    Err(error) => self.warn("the command could not be sent again", Some(&error)),
                }
            }
            _ => {
                if let Err(error) = result {
                    self.warn("nonces could not be written", Some(&error));
                }
            }
        }
    }

    /// Presses the key that runs the command. If the pane accepts no keys, its shell has died, which is reported
    /// separately.
    fn press_run_key(&mut self, seq: Seq, call: CallId, at: Moment) {
        self.effects.push(Effect::Press(OwnKeys::Run));
        let stage = Stage::Sent { resends: 0, recheck_at: at.now + BEGIN_LIMIT };
        let command = Command::new(seq);
        let status = command.status();
        let before = self.transition(State::Running(Running { command, stage }), "handed over");
        if let State::HandingOver(handing) = before {
            self.turn_away(handing.claims, seq);
        }
        self.latest = Some(seq);
        self.effects.push(Effect::PublishJob { seq, status });
        self.publish();
        self.answer(call, Ok(Reply::Command(seq)));
    }

    /// Checks a command whose marker or report is overdue.
    pub(super) fn check_command(&mut self, at: Moment) {
        let State::Running(Running { stage, command }) = &mut self.state else { return };
        let seq = command.seq;
        if stage.next_deadline().is_none_or(|time| time > at.now) {
            return;
        }
        match stage {
            Stage::Sent { recheck_at, .. } => *recheck_at = at.now + BEGIN_LIMIT,
            Stage::NoncesTaken { recheck, .. } => recheck.at = at.now + recheck.pause,
            Stage::Begun { recheck, .. } => *recheck = recheck.map(|it| it.after(at.now)),
            Stage::GivenUp { recheck } => {
                *recheck = None;
                return self.write_ledger(AfterLedger::Report(seq));
            }
        }
        self.inspect(Inspection::Shell);
    }

    /// Handles a waiting caller's hint that the shell is at a prompt. Does nothing while a requested report may still
    /// arrive.
    pub(super) fn looks_idle(&mut self, at: Moment) {
        let State::Running(Running { stage: Stage::Begun { report_requests, recheck }, .. }) =
            &self.state
        else {
            return;
        };
        if *report_requests == 0 || recheck.is_none_or(|recheck| recheck.at <= at.now) {
            self.inspect(Inspection::Shell);
        }
    }

    /// Handles a command that should have a result but has none. Presses no key while another program has the
    /// terminal or the text itself reads from it, because the key would become input.
    pub(super) fn shell_inspected(&mut self, mode: ReadMode, at: Moment) {
        let State::Running(Running { command, stage }) = &mut self.state else { return };
        match (mode, stage) {
            (ReadMode::Nothing, _) | (_, Stage::GivenUp { .. }) => {}
            // The text has called something that turned line editing off. Then bash reads the rest of the text from
            // the terminal; an interrupt brings it back to its prompt.
            (ReadMode::PlainLines, _) => self.effects.push(Effect::InterruptShell),
            (ReadMode::AtPrompt, Stage::Sent { .. }) => {
                let (seq, why) = (command.seq, TakeBackReason::Resend);
                self.effects.push(Effect::TakeNoncesBack { seq, why });
            }
            (ReadMode::AtPrompt, Stage::NoncesTaken { .. }) => self.request_report_patiently(at),
            (ReadMode::AtPrompt, Stage::Begun { .. }) => self.request_report(at),
        }
    }

    pub(super) fn nonces_taken_back(
        &mut self,
        seq: Seq,
        found: PipeContent,
        why: TakeBackReason,
        at: Moment,
    ) {
        let from = self.state.name();
        let State::Running(Running { command, stage }) = &mut self.state else { return };
        let Stage::Sent { resends, .. } = stage else { return };
        if command.seq != seq {
            return;
        }
        let may_have_begun = command.started.is_some();
        match (why, found) {
            (TakeBackReason::Discard, _) => {}
            (TakeBackReason::Cancel, PipeContent::Nonces) => {
                self.give_up("interrupted before it began");
            }
            (TakeBackReason::Resend, PipeContent::Nonces) if *resends == RESENDS => {
                self.give_up("the shell did not begin it after several attempts");
            }
            (TakeBackReason::Resend, PipeContent::Nonces) => self.resend(seq),
            (TakeBackReason::Resend, PipeContent::Nothing)
                if !in_force!(self, ResendOnlyWhatWasReadBack) =>
            {
                self.resend(seq);
            }
            (TakeBackReason::Cancel, PipeContent::Nothing) => {
                *stage = Stage::Begun { report_requests: 0, recheck: Some(Recheck::soon(at.now)) };
                self.trace_transition(from, "interrupted after it began");
            }
            (TakeBackReason::Resend, PipeContent::Nothing) if may_have_begun => {
                *stage = Stage::Begun { report_requests: 0, recheck: None };
                self.trace_transition(from, "the nonce pipe is empty, and a recorder was lost");
                self.request_report(at);
            }
            (TakeBackReason::Resend, PipeContent::Nothing) => {
                let recheck = Recheck { at: at.now + BEGIN_LIMIT, pause: BEGIN_LIMIT };
                *stage = Stage::NoncesTaken { report_requests: 0, recheck };
                self.trace_transition(from, "the nonce pipe is empty");
            }
        }
    }

    fn resend(&mut self, seq: Seq) {
        let State::Running(Running { stage: Stage::Sent { resends, .. }, .. }) = &mut self.state
        else {
            return;
        };
        *resends += 1;
        self.warn("the shell has not begun the command; sending it again", None);
        self.effects.push(Effect::WriteNonces { seq, kind: Kind::Command });
    }

    /// Requests the report of a command whose start marker never arrived. Its recorder may only be slow, or a
    /// person's Ctrl-C may have discarded its markers.
    fn request_report_patiently(&mut self, at: Moment) {
        let State::Running(Running {
            stage: Stage::NoncesTaken { report_requests, recheck }, ..
        }) = &mut self.state
        else {
            return;
        };
        *report_requests += 1;
        recheck.pause *= 2;
        recheck.at = at.now + recheck.pause;
        let report_requests = *report_requests;
        if report_requests > PATIENT_REPORT_REQUESTS && in_force!(self, GiveUpInTheEnd) {
            return self.give_up("no marker arrived");
        }
        self.press_recover_key(report_requests);
    }

    /// Requests the report of a command whose shell is at its prompt and has reported nothing. Possible causes: the
    /// command removed our entry from PROMPT_COMMAND; a Ctrl-C discarded the report in the terminal; the recorder
    /// that had it was killed; or an owner was killed between changing the end nonce on disk and giving it to the
    /// shell. If no request succeeds, the command ends with an unknown code.
    fn request_report(&mut self, at: Moment) {
        let State::Running(Running { stage: Stage::Begun { report_requests, recheck }, .. }) =
            &mut self.state
        else {
            return;
        };
        *report_requests += 1;
        *recheck = Some(Recheck { at: at.now + REPORT_LIMIT, pause: REPORT_LIMIT });
        let report_requests = *report_requests;
        if report_requests > REPORT_REQUESTS && in_force!(self, GiveUpInTheEnd) {
            return self.give_up("the shell did not report its end");
        }
        self.press_recover_key(report_requests);
    }

    /// Presses the key that requests the report; from the second time on with a new end nonce.
    fn press_recover_key(&mut self, report_requests: u32) {
        self.warn("a report is missing; requesting it from the shell", None);
        if report_requests > 1 && in_force!(self, RenewTheEndNonce) {
            self.effects.push(Effect::RenewEndNonce);
        }
        self.effects.push(Effect::Press(OwnKeys::Recover));
    }

    /// Gives up a command whose end will never be reported. The ledger says so before any caller hears it.
    pub(super) fn give_up(&mut self, reason: &str) {
        let from = self.state.name();
        let State::Running(Running { command, stage }) = &mut self.state else { return };
        *stage = Stage::GivenUp { recheck: None };
        let seq = command.seq;
        self.entry.latest = Some(Latest { seq, outcome: Outcome::GivenUp });
        self.warn("giving up the command", None);
        self.trace_transition(from, reason);
        self.write_ledger(AfterLedger::Report(seq));
    }

    /// Reports a command that was given up, once the ledger says so. While the ledger cannot be written (a full
    /// disk), the owner reports nothing, because the next owner could report something else.
    pub(super) fn report_given_up(&mut self, seq: Seq, ledger: Result<()>, at: Moment) {
        let State::Running(Running { command, stage: Stage::GivenUp { recheck } }) =
            &mut self.state
        else {
            return;
        };
        if command.seq != seq {
            return;
        }
        if let Err(error) = ledger
            && in_force!(self, GivenUpByTheLedgerFirst)
        {
            let pause = LEDGER_PAUSE;
            *recheck = Some(Recheck { at: at.now + pause, pause });
            return self.warn("the ledger could not be written", Some(&error));
        }
        if let State::Running(Running { command, .. }) = self.go_idle(at, "given up") {
            self.report_without_shell(command, -1, Ended::AtPrompt, at.log_end, at.wall);
        }
        self.publish();
    }

    /// Enters the idle state with no callers waiting, and returns the state before.
    pub(super) fn go_idle(&mut self, at: Moment, reason: &str) -> State {
        let idle = Idle { since: at.now, claims: VecDeque::new(), recheck_at: None };
        self.transition(State::Idle(idle), reason)
    }

    /// Reports the result of a command from the shell's own report at its prompt.
    pub(super) fn report_at_prompt(
        &mut self,
        command: Command,
        report: EndReport,
        position: LogPosition,
    ) {
        let result = at_prompt(&command, report, position);
        self.set_cwd(result.cwd.clone());
        self.report(command, result);
    }

    /// Reports a command from what the owner knows, because there is no report of the shell.
    pub(super) fn report_without_shell(
        &mut self,
        command: Command,
        exit_code: i32,
        ended: Ended,
        end: u64,
        wall: SystemTime,
    ) {
        let started = command.started;
        let result = CommandResult {
            seq: command.seq,
            // The exit code is the shell's; a command that has not begun has none.
            exit_code: if started.is_some() { exit_code } else { -1 },
            ended,
            cwd: self.cwd.clone(),
            duration: started
                .and_then(|started| wall.duration_since(started.at).ok())
                .unwrap_or_default(),
            background_pid: None,
            python: self.last_report.python.clone(),
            user: self.last_report.user.clone(),
            machine: self.last_report.machine.clone(),
            output: started.map_or(end, |started| started.offset).min(end)..end,
            lost: command.lost,
        };
        self.report(command, result);
    }

    /// Publishes the result of a command. The only way by which a command that was handed over ends; it consumes the
    /// command, so that there is exactly one result.
    pub(super) fn report(&mut self, command: Command, result: CommandResult) {
        let Command { seq, started, lost, .. } = command;
        let status = JobStatus { started, lost, result: Some(Arc::new(result)) };
        self.effects.push(Effect::PublishJob { seq, status });
    }

    /// Ignores an empty directory: the shell could not report it.
    pub(super) fn set_cwd(&mut self, cwd: std::path::PathBuf) {
        if !cwd.as_os_str().is_empty() {
            self.cwd = cwd;
        }
    }
}

pub(super) fn at_prompt(
    command: &Command,
    report: EndReport,
    position: LogPosition,
) -> CommandResult {
    let started = command.started;
    CommandResult {
        seq: command.seq,
        exit_code: report.exit_code,
        ended: Ended::AtPrompt,
        cwd: path(report.cwd),
        duration: started
            .and_then(|started| position.at.duration_since(started.at).ok())
            .unwrap_or_default(),
        background_pid: report.background_pid,
        python: report.python.map(path),
        user: report.user,
        machine: report.machine,
        output: started.map_or(position.offset, |started| started.offset).min(position.offset)
            ..position.offset,
        lost: command.lost,
    }
}
