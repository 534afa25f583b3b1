//! The callers that wait for an answer, by the number under which the owner knows them.

use std::collections::HashMap;

use tracing::trace;

use crate::{
    Result,
    job::JobWatch,
    messages::{Answer, Control},
    owner::{CallId, Request, Text},
};

/// Everybody who waits.
#[derive(Default)]
pub(super) struct Callers {
    next: u64,
    waiting: HashMap<CallId, Waiting>,
}

/// Where the answer goes.
enum Waiting {
    Done(Answer),
    Command(Answer<JobWatch>),
}

impl Callers {
    /// Notes who asks, and says what for.
    pub(super) fn take_in(&mut self, control: Control) -> (CallId, Request) {
        let (waiting, request) = match control {
            Control::Run { text, answer } => (Waiting::Command(answer), Request::Run(Text(text))),
            Control::Type { bytes, answer } => (Waiting::Done(answer), Request::Type(Text(bytes))),
            Control::Press { keys, answer } => (Waiting::Done(answer), Request::Press(keys)),
            Control::Signal { signal, answer } => (Waiting::Done(answer), Request::Signal(signal)),
            Control::Resize { size, answer } => (Waiting::Done(answer), Request::Resize(size)),
            Control::Exports { answer } => (Waiting::Done(answer), Request::Export),
            Control::Close { answer } => (Waiting::Done(answer), Request::Close),
            Control::CatchUp { .. } | Control::LooksIdle => {
                unreachable!("these are no questions to the owner")
            }
        };
        let call = CallId(self.next);
        self.next += 1;
        self.waiting.insert(call, waiting);
        (call, request)
    }

    /// Whether a caller still waits. One that has gone away does not want its command to be run.
    pub(super) fn is_waiting(&self, call: CallId) -> bool {
        self.waiting.get(&call).is_some_and(|waiting| match waiting {
            Waiting::Done(answer) => !answer.is_closed(),
            Waiting::Command(answer) => !answer.is_closed(),
        })
    }

    /// Answers a caller, if need be with the command that it has started.
    pub(super) fn answer(&mut self, call: CallId, reply: Result<Option<JobWatch>>) {
        match (self.waiting.remove(&call), reply) {
            (Some(Waiting::Done(answer)), reply) => tell(answer, reply.map(drop)),
            (Some(Waiting::Command(answer)), Ok(Some(job))) => tell(answer, Ok(job)),
            (Some(Waiting::Command(answer)), Err(error)) => tell(answer, Err(error)),
            (Some(Waiting::Command(_)), Ok(None)) => {
                unreachable!("whoever runs a command is answered with it")
            }
            (None, _) => trace!(?call, "nobody waits for this answer"),
        }
    }

    /// Forgets a caller that has gone away.
    pub(super) fn forget(&mut self, call: CallId) {
        self.waiting.remove(&call);
    }
}

/// Sends an answer. A caller that does not wait any more needs none.
pub(super) fn tell<T>(answer: Answer<T>, reply: Result<T>) {
    if answer.send(reply).is_err() {
        trace!("a caller has gone away before its answer");
    }
}
