//! The requests of callers, and which of them gets the prompt.

use std::{collections::VecDeque, mem};

use super::{
    AfterLedger, CallId, Effect, Inspection, Moment, Owner, Reply, Request, TakeBackReason, Text,
    in_force,
    limits::{PROMPT_LIMIT, PROMPT_PAUSE},
    state::{
        AwaitingExitCode, Booting, Claim, Cleanup, Closing, HandingOver, Idle, Launching, Purpose,
        Recheck, Running, Stage, State,
    },
};
use crate::{
    Error, Result,
    input::{Key, Signal},
    ledger::Size,
    marker::Seq,
    state::Ended,
};

impl Owner {
    pub(super) fn requested(&mut self, call: CallId, request: Request, at: Moment) {
        if let State::Closing(_) | State::Closed(_) = &self.state {
            return self.requested_after_close(call, &request);
        }
        match request {
            Request::Run(text) => self.run_requested(call, text, at),
            Request::Export => self.export_requested(call),
            Request::Type(bytes) => {
                if bytes.0.contains(&0x03) {
                    self.interrupted(at);
                }
                self.effects.push(Effect::Type { call, bytes });
            }
            Request::Press(keys) => {
                if keys.iter().any(Key::is_interrupt) {
                    self.interrupted(at);
                }
                self.effects.push(Effect::PressFor { call, keys });
            }
            Request::Signal(signal) => {
                if signal == Signal::Interrupt {
                    self.interrupted(at);
                }
                self.effects.push(Effect::Signal { call, signal });
            }
            Request::Resize(size) => match size.check() {
                Ok(()) => self.effects.push(Effect::Resize { call, size }),
                Err(error) => self.answer(call, Err(error)),
            },
            Request::Close => {
                self.close(Ended::ShellClosed, Some(call), "a caller closed the shell");
            }
        }
    }

    fn requested_after_close(&mut self, call: CallId, request: &Request) {
        match (&mut self.state, request) {
            (
                State::Closing(Closing { progress: Cleanup::Awaited, callers, .. }),
                Request::Close,
            ) => callers.push(call),
            (_, Request::Close) => self.answer(call, Ok(Reply::Done)),
            _ => {
                let error = self.closed_error();
                self.answer(call, Err(error));
            }
        }
    }

    fn run_requested(&mut self, call: CallId, text: Text, at: Moment) {
        match &mut self.state {
            State::Launching(Launching { start, .. }) | State::Booting(Booting { start, .. }) => {
                start.waiting.push((call, text));
            }
            State::AwaitingExitCode(AwaitingExitCode { waiting, .. }) => waiting.push((call, text)),
            State::Idle(idle) => {
                idle.claims.push_back(Claim { call, purpose: Purpose::Run(text) });
                self.serve_first_claim(1);
            }
            State::HandingOver(HandingOver { claims, .. }) => {
                claims.push_back(Claim { call, purpose: Purpose::Run(text) });
            }
            State::Running(running) => {
                let seq = running.command.seq;
                if in_force!(self, OneCommandAtATime) {
                    self.answer_busy(call, seq);
                } else {
                    self.hand_over(call, text, at.now, VecDeque::new());
                }
            }
            State::Closing(_) | State::Closed(_) => {
                unreachable!("`requested` answers the callers of a closed shell")
            }
        }
    }

    fn export_requested(&mut self, call: CallId) {
        if let State::Idle(idle) = &mut self.state {
            idle.claims.push_back(Claim { call, purpose: Purpose::Export });
            self.serve_first_claim(1);
        } else {
            let seq = self.state.seq().unwrap_or(self.next_seq);
            self.answer_busy(call, seq);
        }
    }

    pub(super) fn answer_busy(&mut self, call: CallId, seq: Seq) {
        let shell = self.entry.id.clone();
        self.answer(call, Err(Error::Busy { shell, seq }));
    }

    /// Inspects the foreground if exactly `number` callers wait for the prompt. With more, an inspection is already
    /// on its way.
    pub(super) fn serve_first_claim(&mut self, number: usize) {
        if let State::Idle(Idle { claims, .. }) = &self.state
            && claims.len() == number
            && number > 0
        {
            self.inspect(Inspection::Foreground);
        }
    }

    /// Gives the prompt to the first caller, unless a person has started a program by hand. A program started by
    /// PROMPT_COMMAND appears right after a command and ends soon, so the owner waits for that first.
    pub(super) fn foreground_inspected(&mut self, is_taken: bool, at: Moment) {
        let State::Idle(idle) = &mut self.state else { return };
        let is_patient = at.now <= idle.since + PROMPT_LIMIT;
        if is_taken && is_patient && in_force!(self, PromptProgramsMayEnd) {
            idle.recheck_at = Some(at.now + PROMPT_PAUSE);
            return;
        }
        let Some(Claim { call, purpose }) = idle.claims.pop_front() else { return };
        let (since, left) = (idle.since, idle.claims.len());
        match purpose {
            _ if is_taken => {
                let id = self.entry.id.clone();
                self.answer(call, Err(Error::OccupiedByHand(id)));
                self.serve_first_claim(left);
            }
            Purpose::Export => {
                self.effects.push(Effect::Export { call });
                self.serve_first_claim(left);
            }
            Purpose::Run(text) => {
                let claims = mem::take(&mut idle.claims);
                self.hand_over(call, text, since, claims);
            }
        }
    }

    /// Answers callers that did not get the prompt with [`Error::Busy`].
    pub(super) fn turn_away(&mut self, claims: VecDeque<Claim>, seq: Seq) {
        for claim in claims {
            self.answer_busy(claim.call, seq);
        }
    }

    /// Handles an interrupt by a caller. A command that has not begun is prevented from beginning. The report of one
    /// that has begun may be lost, since Linux discards output that the terminal has not delivered.
    fn interrupted(&mut self, at: Moment) {
        let from = self.state.name();
        let soon = Recheck::soon(at.now);
        match &mut self.state {
            State::Running(Running { command, stage }) => match stage {
                Stage::Sent { .. } => {
                    let seq = command.seq;
                    if in_force!(self, CancelTakesNoncesBack) {
                        let why = TakeBackReason::Cancel;
                        self.effects.push(Effect::TakeNoncesBack { seq, why });
                    } else {
                        self.give_up("interrupted before it began");
                    }
                }
                Stage::NoncesTaken { .. } => {
                    *stage = Stage::Begun { report_requests: 0, recheck: Some(soon) };
                    self.trace_transition(from, "interrupted after it began");
                }
                Stage::Begun { recheck, .. } => {
                    if in_force!(self, RecheckAfterInterrupt) {
                        *recheck = Some(soon);
                    }
                }
                Stage::GivenUp { .. } => {}
            },
            State::Booting(booting) => booting.recheck = Some(soon),
            _ => {}
        }
    }

    pub(super) fn resized(&mut self, call: CallId, size: Size, result: Result<()>) {
        match result {
            Ok(()) => {
                self.entry.size = size;
                self.publish();
                self.write_ledger(AfterLedger::Answer(call));
            }
            Err(error) => self.answer(call, Err(error)),
        }
    }

    pub(super) fn closed_error(&self) -> Error {
        match &self.state {
            State::Closing(Closing { ended: Ended::ServerGone, .. })
            | State::Closed(Ended::ServerGone) => Error::ServerGone,
            _ => Error::ShellClosed(self.entry.id.clone()),
        }
    }

    /// Removes and returns all callers that wait for a prompt.
    pub(super) fn callers_without_prompt(state: &mut State) -> Vec<CallId> {
        let waiting = |waiting: &mut Vec<(CallId, Text)>| {
            mem::take(waiting).into_iter().map(|(call, _)| call).collect()
        };
        match state {
            State::Launching(Launching { start, .. }) | State::Booting(Booting { start, .. }) => {
                waiting(&mut start.waiting)
            }
            State::AwaitingExitCode(awaiting) => waiting(&mut awaiting.waiting),
            State::Idle(idle) => idle.claims.drain(..).map(|claim| claim.call).collect(),
            State::HandingOver(HandingOver { call, claims, .. }) => {
                std::iter::once(*call).chain(claims.drain(..).map(|claim| claim.call)).collect()
            }
            State::Running(_) | State::Closing(_) | State::Closed(_) => Vec::new(),
        }
    }
}
