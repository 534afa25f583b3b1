//! One end of a conversation: which calls wait for an answer, and which requests are being served.
//!
//! [`Peer`] is a value. Text goes in and comes out; there is no socket, clock or task inside, so
//! the client and the host share it and every rule is tested with plain strings. It guarantees:
//!
//! - ids are never used twice, not even over a reconnection, so an answer that comes late or twice
//!   finds nothing;
//! - nothing is sent that the daemon's parser would refuse: such an answer would come without an
//!   id, and the caller would wait in vain;
//! - a request is answered at most once, and progress for it ends with its answer.
//!
//! `C` is what the owner keeps for a call that it made, `S` what it keeps for a request it serves.

use std::collections::HashMap;

use bridge_protocol::methods::{CancelParams, ProgressParams};
use bridge_protocol::{
    CallId, Dialect, ErrorKind, DapEvent, Message, Notification, Outcome, Request, RequestId,
    WireError, print,
};
use serde_json::value::RawValue;

/// The bookkeeping of one connection after another.
#[derive(Debug)]
pub struct Peer<C, S> {
    last: u64,
    calls: HashMap<RequestId, C>,
    /// By [`CallId::key`], so that two spellings of one id are one.
    serving: HashMap<String, S>,
}

/// What a text from the other end means.
#[derive(Debug)]
pub enum Incoming<'t, C> {
    /// The answer to a call of ours, which is over now.
    Answer {
        /// Which call.
        call: RequestId,
        /// What the owner kept for it.
        waiting: C,
        /// How it ended.
        outcome: Outcome<'t>,
    },
    /// A piece of the answer to a call of ours; see [`Peer::waiting`].
    Progress {
        /// Which call.
        call: RequestId,
        /// The piece.
        value: &'t RawValue,
    },
    /// Wants exactly one answer: [`Peer::serve`] it, or refuse it with [`Peer::refuse`].
    Request(Request<'t>),
    /// The other end no longer wants the answer to a request that we serve; see [`Peer::served`].
    /// It still gets one.
    Cancel {
        /// Which request.
        request: CallId<'t>,
        /// Whether its caller has cancelled it. Otherwise the caller has left, or its time is over.
        by_caller: bool,
    },
    /// Wants no answer.
    Notification(Notification<'t>),
    /// A `dapEvent`.
    DapEvent(DapEvent<'t>),
    /// Nothing to be done.
    Ignored(Ignored),
}

/// Why a text changes nothing. None of these ends a connection.
#[derive(Debug)]
pub enum Ignored {
    /// Answer or progress for a call that is over, was given up, or was never made.
    UnknownCall,
    /// A cancel for a request that is answered already, or was never sent.
    UnknownRequest,
    /// No message at all.
    Unreadable(WireError),
}

impl<C, S> Default for Peer<C, S> {
    fn default() -> Self {
        Self { last: 0, calls: HashMap::new(), serving: HashMap::new() }
    }
}

impl<C, S> Peer<C, S> {
    /// Draws an id and prints the call. The error is what the daemon would answer, had we sent it.
    pub fn call(
        &mut self,
        method: &str,
        params: Option<&RawValue>,
        waiting: C,
    ) -> Result<(RequestId, String), (C, WireError)> {
        let id = RequestId(self.last + 1);
        let text = print::request(id, method, params);
        if let Err(rejection) = Message::parse(&text) {
            return Err((waiting, rejection.error));
        }
        self.last = id.0;
        self.calls.insert(id, waiting);
        Ok((id, text))
    }

    /// Prints a cancel, if the call still waits. Its answer is still to come.
    pub fn cancel(&self, call: RequestId) -> Option<String> {
        self.calls.contains_key(&call).then(|| print::cancel(call))
    }

    /// Gives a call up: its answer will be ignored.
    pub fn forget(&mut self, call: RequestId) -> Option<C> {
        self.calls.remove(&call)
    }

    /// What was kept for a call that waits.
    pub fn waiting(&mut self, call: RequestId) -> Option<&mut C> {
        self.calls.get_mut(&call)
    }

    /// The first call that fits.
    pub fn find(&self, fits: impl Fn(&C) -> bool) -> Option<RequestId> {
        self.calls.iter().find(|(_, waiting)| fits(waiting)).map(|(id, _)| *id)
    }

    /// Reads a text from the other end.
    pub fn receive<'t>(&mut self, text: &'t str) -> Incoming<'t, C> {
        match Message::parse(text) {
            Ok(Message::Response(response)) => {
                let found = response.id.and_then(|id| Some((id, self.calls.remove(&id)?)));
                match found {
                    Some((call, waiting)) => {
                        Incoming::Answer { call, waiting, outcome: response.outcome }
                    }
                    None => Incoming::Ignored(Ignored::UnknownCall),
                }
            }
            Ok(Message::Notification(notification)) => self.notified(notification),
            Ok(Message::Request(request)) => Incoming::Request(request),
            Ok(Message::DapEvent(event)) => Incoming::DapEvent(event),
            Err(rejection) => Incoming::Ignored(Ignored::Unreadable(rejection.error)),
        }
    }

    /// Notes that a request is being worked on. `false` if one with this id is already: then
    /// nothing changes, and the newcomer must be refused without naming the id.
    pub fn serve(&mut self, id: &CallId<'_>, serving: S) -> bool {
        match self.serving.entry(id.key().into_owned()) {
            std::collections::hash_map::Entry::Occupied(_) => false,
            std::collections::hash_map::Entry::Vacant(free) => {
                free.insert(serving);
                true
            }
        }
    }

    /// What was kept for a request that is being served.
    pub fn served(&mut self, id: &CallId<'_>) -> Option<&mut S> {
        self.serving.get_mut(&*id.key())
    }

    /// Prints a piece of an answer, unless the request has been answered.
    pub fn progress(&self, id: &CallId<'_>, value: &RawValue) -> Option<String> {
        self.serving.contains_key(&*id.key()).then(|| print::progress(id, value))
    }

    /// Prints the answer to a request that is being served, which ends with that. An answer that
    /// cannot be sent (it is nested too deep) becomes the error that says so.
    pub fn answer(
        &mut self,
        id: &CallId<'_>,
        result: Result<&RawValue, &WireError>,
    ) -> Option<String> {
        self.serving.remove(&*id.key())?;
        let text = match result {
            Ok(result) => print::success(Dialect::JsonRpc, id, result),
            Err(error) => print::failure(Dialect::JsonRpc, Some(id), error),
        };
        Some(match Message::parse(&text) {
            Ok(_) => text,
            Err(rejection) => print::failure(Dialect::JsonRpc, Some(id), &rejection.error),
        })
    }

    /// Prints the answer to a request that is not going to be served. Without an id when the same
    /// id is being served, since the answer would be taken for that request's.
    pub fn refuse(&self, id: &CallId<'_>, error: &WireError) -> String {
        let known = self.serving.contains_key(&*id.key());
        print::failure(Dialect::JsonRpc, (!known).then_some(id), error)
    }

    /// The connection is gone: nothing that waited will be answered, nothing that is being served
    /// can be. The ids go on.
    pub fn disconnect(&mut self) -> (Vec<C>, Vec<S>) {
        let calls = self.calls.drain().map(|(_, waiting)| waiting).collect();
        let serving = self.serving.drain().map(|(_, serving)| serving).collect();
        (calls, serving)
    }

    fn notified<'t>(&mut self, notification: Notification<'t>) -> Incoming<'t, C> {
        match (&*notification.method, notification.params) {
            ("$/progress", Some(params)) => {
                let Ok(ProgressParams { id, value }) = serde_json::from_str(params.get()) else {
                    return unreadable("$/progress needs an id and a value");
                };
                match RequestId::from_raw(id.get()).filter(|id| self.calls.contains_key(id)) {
                    Some(call) => Incoming::Progress { call, value },
                    None => Incoming::Ignored(Ignored::UnknownCall),
                }
            }
            ("$/cancelRequest", Some(params)) => {
                let params: Result<CancelParams<'t>, _> = serde_json::from_str(params.get());
                let read = params.ok().and_then(|params| {
                    let reason = params.reason.as_deref();
                    // A daemon always says why; others that cancel mean that they do not want the answer.
                    let by_caller =
                        reason.is_none_or(|reason| reason == ErrorKind::RequestCancelled.name());
                    Some((CallId::from_raw(params.id.get())?, by_caller))
                });
                let Some((request, by_caller)) = read else {
                    return unreadable("$/cancelRequest needs an id");
                };
                match self.serving.contains_key(&*request.key()) {
                    true => Incoming::Cancel { request, by_caller },
                    false => Incoming::Ignored(Ignored::UnknownRequest),
                }
            }
            _ => Incoming::Notification(notification),
        }
    }
}

fn unreadable<C>(reason: &str) -> Incoming<'static, C> {
    Incoming::Ignored(Ignored::Unreadable(ErrorKind::InvalidParams.error(reason)))
}

#[cfg(test)]
mod tests;
