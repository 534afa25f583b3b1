//! What callers ask of a shell, and who gets its prompt.

use std::{collections::VecDeque, mem, time::Instant};

use super::{
    AfterLedger, CallId, Effect, Look, Moment, Owner, Reply, Request, TakeBack, Text, keeps,
    limits::{PROMPT_LIMIT, PROMPT_PAUSE},
    state::{
        Booting, Burying, Claim, Closing, HandingOver, Idle, Launching, Recheck, Running, Stage,
        State, Tidying, Wish,
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
    pub(super) fn asked(&mut self, call: CallId, request: Request, at: Moment) {
        if let State::Closing(_) | State::Over(_) = &self.state {
            return self.asked_too_late(call, &request);
        }
        match request {
            Request::Run(text) => self.asked_to_run(call, text),
            Request::Export => self.asked_to_export(call),
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
            Request::Close => self.close(Ended::ShellClosed, Some(call), "a caller closes it"),
        }
    }

    fn asked_too_late(&mut self, call: CallId, request: &Request) {
        match (&mut self.state, request) {
            (
                State::Closing(Closing { progress: Tidying::Awaited, callers, .. }),
                Request::Close,
            ) => callers.push(call),
            (_, Request::Close) => self.answer(call, Ok(Reply::Done)),
            _ => {
                let error = self.closed_error();
                self.answer(call, Err(error));
            }
        }
    }

    fn asked_to_run(&mut self, call: CallId, text: Text) {
        match &mut self.state {
            State::Launching(Launching { start, .. }) | State::Booting(Booting { start, .. }) => {
                start.waiting.push((call, text));
            }
            State::Burying(Burying { waiting, .. }) => waiting.push((call, text)),
            State::Idle(idle) => {
                idle.claims.push_back(Claim { call, wish: Wish::Run(text) });
                self.serve_first_claim(1);
            }
            State::HandingOver(HandingOver { claims, .. }) => {
                claims.push_back(Claim { call, wish: Wish::Run(text) });
            }
            State::Running(running) => {
                let seq = running.command.seq;
                if keeps!(self, OneCommandAtATime) {
                    self.answer_busy(call, seq);
                } else {
                    self.hand_over(call, text, Instant::now(), VecDeque::new());
                }
            }
            State::Closing(_) | State::Over(_) => {
                let error = self.closed_error();
                self.answer(call, Err(error));
            }
        }
    }

    fn asked_to_export(&mut self, call: CallId) {
        if let State::Idle(idle) = &mut self.state {
            idle.claims.push_back(Claim { call, wish: Wish::Export });
            self.serve_first_claim(1);
        } else {
            let seq = self.state.seq().unwrap_or(self.next_seq);
            self.answer_busy(call, seq);
        }
    }

    fn answer_busy(&mut self, call: CallId, seq: Seq) {
        let shell = self.entry.id.clone();
        self.answer(call, Err(Error::Busy { shell, seq }));
    }

    /// Looks whether the terminal is free, if so many callers want it: with more, somebody has looked already.
    pub(super) fn serve_first_claim(&mut self, number: usize) {
        if let State::Idle(Idle { claims, .. }) = &self.state
            && claims.len() == number
            && number > 0
        {
            self.look(Look::Foreground);
        }
    }

    /// Gives the prompt to the first caller that wants it, unless somebody has started a program by hand. A program
    /// that a prompt starts comes right after a command, and is over soon.
    pub(super) fn foreground_seen(&mut self, is_taken: bool, at: Moment) {
        let State::Idle(idle) = &mut self.state else { return };
        let is_patient = at.now <= idle.since + PROMPT_LIMIT;
        if is_taken && is_patient && keeps!(self, PromptProgramsMayEnd) {
            idle.recheck_at = Some(at.now + PROMPT_PAUSE);
            return;
        }
        let Some(Claim { call, wish }) = idle.claims.pop_front() else { return };
        let (since, left) = (idle.since, idle.claims.len());
        match wish {
            _ if is_taken => {
                let id = self.entry.id.clone();
                self.answer(call, Err(Error::OccupiedByHand(id)));
                self.serve_first_claim(left);
            }
            Wish::Export => {
                self.effects.push(Effect::Export { call });
                self.serve_first_claim(left);
            }
            Wish::Run(text) => {
                let claims = mem::take(&mut idle.claims);
                self.hand_over(call, text, since, claims);
            }
        }
    }

    /// Answers the callers that did not get the prompt.
    pub(super) fn turn_away(&mut self, claims: VecDeque<Claim>, seq: Seq) {
        for claim in claims {
            self.answer_busy(claim.call, seq);
        }
    }

    /// A caller interrupts what runs. A command that has not begun is kept from it; the report of one that has may be
    /// lost, since the kernel throws away what the terminal has not delivered.
    fn interrupted(&mut self, at: Moment) {
        let from = self.state.name();
        let soon = Recheck::soon(at.now);
        match &mut self.state {
            State::Running(Running { command, stage }) => match stage {
                Stage::Called { .. } => {
                    let seq = command.seq;
                    if keeps!(self, CancelTakesNoncesBack) {
                        let why = TakeBack::Cancel;
                        self.effects.push(Effect::TakeNoncesBack { seq, why });
                    } else {
                        self.give_up("interrupted before it began");
                    }
                }
                Stage::Taken { .. } => {
                    *stage = Stage::Begun { asks: 0, recheck: Some(soon) };
                    self.trace_stage(from, "interrupted after it began");
                }
                Stage::Begun { recheck, .. } => {
                    if keeps!(self, RecheckAfterInterrupt) {
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
            | State::Over(Ended::ServerGone) => Error::ServerGone,
            _ => Error::ShellClosed(self.entry.id.clone()),
        }
    }

    /// Everybody who waits for a prompt that will not come.
    pub(super) fn callers_without_prompt(state: &mut State) -> Vec<CallId> {
        let waiting = |waiting: &mut Vec<(CallId, Text)>| {
            mem::take(waiting).into_iter().map(|(call, _)| call).collect()
        };
        match state {
            State::Launching(Launching { start, .. }) | State::Booting(Booting { start, .. }) => {
                waiting(&mut start.waiting)
            }
            State::Burying(burying) => waiting(&mut burying.waiting),
            State::Idle(idle) => idle.claims.drain(..).map(|claim| claim.call).collect(),
            State::HandingOver(HandingOver { call, claims, .. }) => {
                std::iter::once(*call).chain(claims.drain(..).map(|claim| claim.call)).collect()
            }
            State::Running(_) | State::Closing(_) | State::Over(_) => Vec::new(),
        }
    }
}
