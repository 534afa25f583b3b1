//! One end of a connection: the calls that wait for an answer, and the requests that are being served.
//!
//! [`Peer`] is a plain value that parses and prints messages. It has no socket, clock or task, so the client and the host
//! share it, and every rule is tested with plain strings. It guarantees:
//!
//! - ids are never reused, not even after a reconnection, so a late or repeated answer matches no call;
//! - a message that the daemon's parser would reject is never sent: the rejection would come without an id, and the caller
//!   would wait until its timeout;
//! - a request is answered at most once, and its progress ends with the answer.
//!
//! `C` is what the caller of this type keeps for each of its calls, `S` what it keeps for each request that it serves.

use std::collections::HashMap;

use bridge_protocol::methods::{CancelParams, ProgressParams};
use bridge_protocol::{
    CallId, DapEvent, Dialect, ErrorKind, Message, Notification, Outcome, Request, RequestId,
    WireError, print,
};
use serde_json::value::RawValue;

/// The calls and requests of a connection, and of those that replace it after a loss.
#[derive(Debug)]
pub struct Peer<C, S> {
    last: u64,
    calls: HashMap<RequestId, C>,
    /// Requests by [`CallId::key`], so that two spellings of one id are the same.
    serving: HashMap<String, S>,
}

/// A parsed message from the other end.
#[derive(Debug)]
pub enum Incoming<'t, C> {
    /// The answer to one of our calls, which has ended with it.
    Answer {
        /// The id of the call.
        call: RequestId,
        /// The value that was kept for the call.
        waiting: C,
        /// Its result or error.
        outcome: Outcome<'t>,
    },
    /// A piece of the answer to one of our calls; see [`Peer::waiting`].
    Progress {
        /// The id of the call.
        call: RequestId,
        /// The piece.
        value: &'t RawValue,
    },
    /// A request, which needs exactly one answer: [`Peer::serve`] it, or refuse it with [`Peer::refuse`].
    Request(Request<'t>),
    /// The cancel of a request that is being served; see [`Peer::served`]. The request must still be answered.
    Cancel {
        /// The id of the request.
        request: CallId<'t>,
        /// Whether its caller has cancelled it. Otherwise the caller has left, or the deadline has passed.
        by_caller: bool,
    },
    /// A notification, which gets no answer.
    Notification(Notification<'t>),
    /// A `dapEvent`.
    DapEvent(DapEvent<'t>),
    /// A message that is ignored.
    Ignored(Ignored),
}

/// Why a message is ignored. The connection goes on.
#[derive(Debug)]
pub enum Ignored {
    /// An answer or progress for a call that has ended, was given up, or was never made.
    UnknownCall,
    /// A cancel for a request that has been answered, or was never received.
    UnknownRequest,
    /// The text is not a message.
    Unreadable(WireError),
}

impl<C, S> Default for Peer<C, S> {
    fn default() -> Self {
        Self { last: 0, calls: HashMap::new(), serving: HashMap::new() }
    }
}

impl<C, S> Peer<C, S> {
    /// Assigns an id and prints the call. The error is the one that the daemon would answer with.
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

    /// Prints a cancel, if the call still waits. The call still gets its answer.
    pub fn cancel(&self, call: RequestId) -> Option<String> {
        self.calls.contains_key(&call).then(|| print::cancel(call))
    }

    /// Gives up a call: its answer will be ignored.
    pub fn forget(&mut self, call: RequestId) -> Option<C> {
        self.calls.remove(&call)
    }

    /// The value that was kept for a waiting call.
    pub fn waiting(&mut self, call: RequestId) -> Option<&mut C> {
        self.calls.get_mut(&call)
    }

    /// The first call for which `fits` holds.
    pub fn find(&self, fits: impl Fn(&C) -> bool) -> Option<RequestId> {
        self.calls.iter().find(|(_, waiting)| fits(waiting)).map(|(id, _)| *id)
    }

    /// Parses a text from the other end.
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

    /// Records that a request is being served. Returns `false` if another request with this id is being served: then
    /// nothing changes, and the new one must be refused without its id.
    pub fn serve(&mut self, id: &CallId<'_>, serving: S) -> bool {
        match self.serving.entry(id.key().into_owned()) {
            std::collections::hash_map::Entry::Occupied(_) => false,
            std::collections::hash_map::Entry::Vacant(free) => {
                free.insert(serving);
                true
            }
        }
    }

    /// The value that was kept for a request that is being served.
    pub fn served(&mut self, id: &CallId<'_>) -> Option<&mut S> {
        self.serving.get_mut(&*id.key())
    }

    /// Prints a piece of an answer, unless the request has been answered.
    pub fn progress(&self, id: &CallId<'_>, value: &RawValue) -> Option<String> {
        self.serving.contains_key(&*id.key()).then(|| print::progress(id, value))
    }

    /// Prints the answer to a request that is being served, and forgets the request. An answer that cannot be sent, because
    /// it is nested too deeply, becomes an error.
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

    /// Prints the error for a request that is not served. It has no id if another request with the same id is being served,
    /// because it would be taken for the answer to that one.
    pub fn refuse(&self, id: &CallId<'_>, error: &WireError) -> String {
        let known = self.serving.contains_key(&*id.key());
        print::failure(Dialect::JsonRpc, (!known).then_some(id), error)
    }

    /// Handles the loss of the connection. Returns all calls, which will get no answer, and all requests, which can no
    /// longer be answered. Later calls continue with new ids.
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
                    // A daemon always sends a reason. Without one, the caller itself has cancelled.
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
