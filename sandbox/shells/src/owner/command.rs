//! The way of a command: handed over, called, begun, asked about, given up, reported.

use std::{
    collections::VecDeque,
    sync::Arc,
    time::{Instant, SystemTime},
};

use super::{
    AfterLedger, CallId, Effect, Held, Look, Moment, OwnKeys, Owner, Reads, Reply, TakeBack, Text,
    TextState, keeps,
    limits::{ASKS, CALL_LIMIT, LEDGER_PAUSE, PATIENT_ASKS, REPORT_LIMIT, RESENDS},
    state::{Claim, Command, HandingOver, Idle, Place, Recheck, Running, Stage, State},
};
use crate::{
    Result,
    ledger::{Fate, Latest},
    marker::{EndReport, Kind, Seq},
    state::{CommandResult, Ended, JobStatus, path},
};

impl Stage {
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        match self {
            Self::Called { recheck_at, .. } => Some(*recheck_at),
            Self::Taken { recheck, .. } => Some(recheck.at),
            Self::Begun { recheck, .. } | Self::GivenUp { recheck } => {
                recheck.map(|recheck| recheck.at)
            }
        }
    }
}

impl Owner {
    /// Begins to hand a command over: its text first, then its nonces.
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
        self.go(next, "a command");
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
            Ok(TextState::Abandoned) => self.back_to_prompt("its caller has gone away"),
            Err(error) => {
                self.answer(call, Err(error));
                self.back_to_prompt("its text could not be written");
            }
        }
    }

    /// The command does not take the prompt: the next caller gets it.
    fn back_to_prompt(&mut self, reason: &str) {
        let State::HandingOver(handing) = &mut self.state else { return };
        let (since, claims) = (handing.idle_since, std::mem::take(&mut handing.claims));
        let number = claims.len();
        self.go(State::Idle(Idle { since, claims, recheck_at: None }), reason);
        self.serve_first_claim(number);
    }

    pub(super) fn nonces_written(&mut self, seq: Seq, result: Result<()>, at: Moment) {
        match &self.state {
            State::HandingOver(handing) if handing.seq == seq => {
                let call = handing.call;
                match result {
                    Ok(()) => self.call_shell(seq, call, at),
                    Err(error) => {
                        let why = TakeBack::Discard;
                        self.effects.push(Effect::TakeNoncesBack { seq, why });
                        self.answer(call, Err(error));
                        self.back_to_prompt("its nonces could not be written");
                    }
                }
            }
            State::Running(Running { command, stage: Stage::Called { resends, .. } })
                if command.seq == seq =>
            {
                match result {
                    Ok(()) if *resends == 1 => self.effects.push(Effect::Press(OwnKeys::Run)),
                    Ok(()) => {
                        // The key may have become part of something unfinished.
                        self.effects.push(Effect::InterruptShell);
                        self.effects.push(Effect::Press(OwnKeys::Call));
                    }
                    Err(error) => self.warn("a command could not be sent again", Some(&error)),
                }
            }
            _ => {
                if let Err(error) = result {
                    self.warn("nonces could not be written", Some(&error));
                }
            }
        }
    }

    /// Presses the key that runs the command. A pane that cannot be typed into has lost its shell, and that is told.
    fn call_shell(&mut self, seq: Seq, call: CallId, at: Moment) {
        self.effects.push(Effect::Press(OwnKeys::Run));
        let stage = Stage::Called { resends: 0, recheck_at: at.now + CALL_LIMIT };
        let command = Command::new(seq);
        let status = command.status();
        let before = self.go(State::Running(Running { command, stage }), "handed over");
        if let State::HandingOver(handing) = before {
            self.turn_away(handing.claims, seq);
        }
        self.latest = Some(seq);
        self.effects.push(Effect::PublishJob { seq, status });
        self.publish();
        self.answer(call, Ok(Reply::Command(seq)));
    }

    /// Looks after a command of which something should have been heard by now.
    pub(super) fn check_command(&mut self, at: Moment) {
        let State::Running(Running { stage, command }) = &mut self.state else { return };
        let seq = command.seq;
        if stage.next_deadline().is_none_or(|time| time > at.now) {
            return;
        }
        match stage {
            Stage::Called { recheck_at, .. } => *recheck_at = at.now + CALL_LIMIT,
            Stage::Taken { recheck, .. } => recheck.at = at.now + recheck.pause,
            Stage::Begun { recheck, .. } => *recheck = recheck.map(|it| it.after(at.now)),
            Stage::GivenUp { recheck } => {
                *recheck = None;
                return self.write_ledger(AfterLedger::Report(seq));
            }
        }
        self.look(Look::Shell);
    }

    /// A waiting caller found the shell at a prompt. While an answer to a question may come, nothing is asked.
    pub(super) fn looks_idle(&mut self, at: Moment) {
        let State::Running(Running { stage: Stage::Begun { asks, recheck }, .. }) = &self.state
        else {
            return;
        };
        if *asks == 0 || recheck.is_none_or(|recheck| recheck.at <= at.now) {
            self.look(Look::Shell);
        }
    }

    /// For a command that has no result although it should. While anything else has the terminal, or the text itself
    /// reads from it, no key is pressed, since it would be taken for an answer.
    pub(super) fn shell_seen(&mut self, reads: Reads, at: Moment) {
        let State::Running(Running { command, stage }) = &mut self.state else { return };
        match (reads, stage) {
            (Reads::Nothing, _) | (_, Stage::GivenUp { .. }) => {}
            // The text has called something that turned line editing off. Then bash takes the terminal for the rest
            // of the text; an interrupt brings it back.
            (Reads::PlainLines, _) => self.effects.push(Effect::InterruptShell),
            (Reads::AtPrompt, Stage::Called { .. }) => {
                let (seq, why) = (command.seq, TakeBack::Resend);
                self.effects.push(Effect::TakeNoncesBack { seq, why });
            }
            (Reads::AtPrompt, Stage::Taken { .. }) => self.ask_patiently(at),
            (Reads::AtPrompt, Stage::Begun { .. }) => self.ask_for_report(at),
        }
    }

    pub(super) fn nonces_taken_back(&mut self, seq: Seq, held: Held, why: TakeBack, at: Moment) {
        let from = self.state.name();
        let State::Running(Running { command, stage }) = &mut self.state else { return };
        let Stage::Called { resends, .. } = stage else { return };
        if command.seq != seq {
            return;
        }
        let may_have_begun = command.started.is_some();
        match (why, held) {
            (TakeBack::Discard, _) => {}
            (TakeBack::Cancel, Held::Nonces) => self.give_up("interrupted before it began"),
            (TakeBack::Resend, Held::Nonces) if *resends == RESENDS => {
                self.give_up("the shell did not begin it");
            }
            (TakeBack::Resend, Held::Nonces) => self.resend(seq),
            (TakeBack::Resend, Held::Nothing) if !keeps!(self, ResendOnlyWhatWasReadBack) => {
                self.resend(seq);
            }
            (TakeBack::Cancel, Held::Nothing) => {
                *stage = Stage::Begun { asks: 0, recheck: Some(Recheck::soon(at.now)) };
                self.trace_stage(from, "interrupted after it began");
            }
            (TakeBack::Resend, Held::Nothing) if may_have_begun => {
                *stage = Stage::Begun { asks: 0, recheck: None };
                self.trace_stage(from, "the pipe is empty, and a recorder was lost");
                self.ask_for_report(at);
            }
            (TakeBack::Resend, Held::Nothing) => {
                let recheck = Recheck { at: at.now + CALL_LIMIT, pause: CALL_LIMIT };
                *stage = Stage::Taken { asks: 0, recheck };
                self.trace_stage(from, "the pipe is empty");
            }
        }
    }

    fn resend(&mut self, seq: Seq) {
        let State::Running(Running { stage: Stage::Called { resends, .. }, .. }) = &mut self.state
        else {
            return;
        };
        *resends += 1;
        self.warn("the shell has not begun a command, which is sent again", None);
        self.effects.push(Effect::WriteNonces { seq, kind: Kind::Command });
    }

    /// For a command that has begun unheard. Its recorder may only be slow; or a Ctrl-C by hand has taken its markers
    /// with it.
    fn ask_patiently(&mut self, at: Moment) {
        let State::Running(Running { stage: Stage::Taken { asks, recheck }, .. }) = &mut self.state
        else {
            return;
        };
        *asks += 1;
        recheck.pause *= 2;
        recheck.at = at.now + recheck.pause;
        let asks = *asks;
        if asks > PATIENT_ASKS && keeps!(self, GiveUpInTheEnd) {
            return self.give_up("nothing was heard of it");
        }
        self.ask(asks);
    }

    /// For a command whose shell is at its prompt and has reported nothing. It may have removed our entry from
    /// PROMPT_COMMAND; or a Ctrl-C has taken the report with it, on its way through the terminal; or a recorder was
    /// killed that had it; or the shell and we do not mean the same nonce, since an owner was killed. If no question
    /// helps, the command is over with an unknown code.
    fn ask_for_report(&mut self, at: Moment) {
        let State::Running(Running { stage: Stage::Begun { asks, recheck }, .. }) = &mut self.state
        else {
            return;
        };
        *asks += 1;
        *recheck = Some(Recheck { at: at.now + REPORT_LIMIT, pause: REPORT_LIMIT });
        let asks = *asks;
        if asks > ASKS && keeps!(self, GiveUpInTheEnd) {
            return self.give_up("the shell does not report it");
        }
        self.ask(asks);
    }

    /// Asks the shell for its report by a key; from the second time on with a new nonce.
    fn ask(&mut self, asks: u32) {
        self.warn("a report is missing; the shell is asked for it", None);
        if asks > 1 && keeps!(self, RenewTheEndNonce) {
            self.effects.push(Effect::RenewEndNonce);
        }
        self.effects.push(Effect::Press(OwnKeys::Recover));
    }

    /// Nothing will be heard of the end of a command. The ledger says so before anybody is told.
    pub(super) fn give_up(&mut self, reason: &str) {
        let from = self.state.name();
        let State::Running(Running { command, stage }) = &mut self.state else { return };
        *stage = Stage::GivenUp { recheck: None };
        let seq = command.seq;
        self.entry.latest = Some(Latest { seq, fate: Fate::GivenUp });
        self.warn("a command is given up", None);
        self.trace_stage(from, reason);
        self.write_ledger(AfterLedger::Report(seq));
    }

    /// Until the ledger can be written (a full disk) the next owner could tell something else, so nothing is told.
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
            && keeps!(self, GivenUpByTheLedgerFirst)
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

    /// The shell is at its prompt, and nobody has claimed it yet.
    pub(super) fn go_idle(&mut self, at: Moment, reason: &str) -> State {
        let idle = Idle { since: at.now, claims: VecDeque::new(), recheck_at: None };
        self.go(State::Idle(idle), reason)
    }

    /// The result of a command whose shell is at its prompt again, by the shell's report.
    pub(super) fn report_at_prompt(&mut self, command: Command, report: EndReport, place: Place) {
        let result = at_prompt(&command, report, place);
        self.set_cwd(result.cwd.clone());
        self.report(command, result);
    }

    /// Reports a command with what is known without the shell's word.
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
            // The code is the shell's; a command that was not begun has none.
            exit_code: if started.is_some() { exit_code } else { -1 },
            ended,
            cwd: self.cwd.clone(),
            duration: started
                .and_then(|started| wall.duration_since(started.at).ok())
                .unwrap_or_default(),
            background_pid: None,
            python: self.circumstances.python.clone(),
            user: self.circumstances.user.clone(),
            host: self.circumstances.host.clone(),
            output: started.map_or(end, |started| started.offset).min(end)..end,
            lost: command.lost,
        };
        self.report(command, result);
    }

    /// The only way out for a command that was handed over. It takes the command, so that there is one result.
    fn report(&mut self, command: Command, result: CommandResult) {
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

pub(super) fn at_prompt(command: &Command, report: EndReport, place: Place) -> CommandResult {
    let started = command.started;
    CommandResult {
        seq: command.seq,
        exit_code: report.exit_code,
        ended: Ended::AtPrompt,
        cwd: path(report.cwd),
        duration: started
            .and_then(|started| place.at.duration_since(started.at).ok())
            .unwrap_or_default(),
        background_pid: report.background_pid,
        python: report.python.map(path),
        user: report.user,
        host: report.host,
        output: started.map_or(place.offset, |started| started.offset).min(place.offset)
            ..place.offset,
        lost: command.lost,
    }
}
