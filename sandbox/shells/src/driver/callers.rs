//! The callers that wait for an answer, by the number under which the owner knows them.

use std::collections::HashMap;

use tracing::trace;

use crate::{
    Result,
    job::JobWatch,
    messages::{Answer, Control},
    owner::{CallId, Request, Text},
};

/// All callers that wait for an answer.
#[derive(Default)]
pub(super) struct Callers {
    next: u64,
    waiting: HashMap<CallId, Waiting>,
}

/// The channel for the answer, by the kind of answer.
enum Waiting {
    Done(Answer),
    Command(Answer<JobWatch>),
}

impl Callers {
    /// Registers a caller, and returns its number and its request.
    pub(super) fn register(&mut self, control: Control) -> (CallId, Request) {
        let (waiting, request) = match control {
            Control::Run { text, answer } => (Waiting::Command(answer), Request::Run(Text(text))),
            Control::Type { bytes, answer } => (Waiting::Done(answer), Request::Type(Text(bytes))),
            Control::Press { keys, answer } => (Waiting::Done(answer), Request::Press(keys)),
            Control::Signal { signal, answer } => (Waiting::Done(answer), Request::Signal(signal)),
            Control::Resize { size, answer } => (Waiting::Done(answer), Request::Resize(size)),
            Control::Exports { answer } => (Waiting::Done(answer), Request::Export),
            Control::Close { answer } => (Waiting::Done(answer), Request::Close),
            Control::CatchUp { .. } | Control::LooksIdle => {
                unreachable!("the driver handles these itself")
            }
        };
        let call = CallId(self.next);
        self.next += 1;
        self.waiting.insert(call, waiting);
        (call, request)
    }

    /// Whether a caller still waits. If it has gone away, its command must not run.
    pub(super) fn is_waiting(&self, call: CallId) -> bool {
        self.waiting.get(&call).is_some_and(|waiting| match waiting {
            Waiting::Done(answer) => !answer.is_closed(),
            Waiting::Command(answer) => !answer.is_closed(),
        })
    }

    /// Answers a caller; for a run request with the handle of the command.
    pub(super) fn answer(&mut self, call: CallId, reply: Result<Option<JobWatch>>) {
        match (self.waiting.remove(&call), reply) {
            (Some(Waiting::Done(answer)), reply) => send_answer(answer, reply.map(drop)),
            (Some(Waiting::Command(answer)), Ok(Some(job))) => send_answer(answer, Ok(job)),
            (Some(Waiting::Command(answer)), Err(error)) => send_answer(answer, Err(error)),
            (Some(Waiting::Command(_)), Ok(None)) => {
                unreachable!("a run request is answered with its command")
            }
            (None, _) => trace!(?call, "nobody waits for this answer"),
        }
    }

    /// Forgets a caller that has gone away.
    pub(super) fn forget(&mut self, call: CallId) {
        self.waiting.remove(&call);
    }
}

/// Sends an answer. It is not an error if the caller no longer waits.
pub(super) fn send_answer<T>(answer: Answer<T>, reply: Result<T>) {
    if answer.send(reply).is_err() {
        trace!("a caller went away before it was answered");
    }
}
