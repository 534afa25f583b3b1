//! The broker: every decision about who gets what, and when, as a plain value.
//!
//! [`Broker::handle`] takes what happened and the time, and returns what is to be done. There is
//! no socket, task or clock in here, so each unhappy end (host gone, caller gone, cancel, deadline,
//! overload, late answer) is tested by calling a function.
//!
//! What it guarantees:
//! - every request that it accepts is answered exactly once, unless its caller is gone;
//! - an answer goes to the connection that asked, and is believed only from the host that was asked;
//! - nobody does more than its [`Grant`] allows, and nothing that writes or runs goes to a runtime by a guess;
//! - a host learns when nobody waits for its answer any more (cancel, deadline, caller gone);
//! - nothing grows without bound: requests, queues, events and operations are counted, see [`Limits`];
//! - when everybody has gone, all of its accounts are back at zero.
//!
//! It does not know what a chat is: methods of hosts are names, params and results are raw text.

mod calls;
mod choice;
mod counters;
mod errors;
mod grant;
mod hosts;
mod limits;
mod operations;
mod peers;
mod pending;
mod runtimes;

use std::time::{Duration, Instant};

use bridge_protocol::methods::{CreateTokenParams, RequestRecord};
use bridge_protocol::{
    CallId, Dialect, ErrorKind, Message, Rejection, SessionId, WireError, print,
};
use serde_json::value::RawValue;

pub use counters::Counters;
pub use grant::{Grant, HostGrant};
pub use limits::Limits;
pub use operations::SubmitError;
pub use peers::{PeerId, Role};

use operations::Operations;
use peers::{Defaults, Peers, Urgency};
use pending::PendingRequests;
use runtimes::Runtimes;

/// How long a request waits for a host when none is attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostWait {
    /// Until its own deadline: the run expects a window.
    UntilDeadline,
    /// At most this long.
    UpTo(Duration),
}

/// What happened.
#[derive(Debug)]
pub enum Event<'a> {
    /// A connection passed the gate.
    Connected {
        /// Its number, never used before.
        peer: PeerId,
        /// What it may do, by the token that it showed.
        grant: Grant,
        /// The dialect to use when a message does not tell.
        dialect: Dialect,
    },
    /// It sent a text message.
    Message {
        /// Who.
        peer: PeerId,
        /// What.
        text: &'a str,
    },
    /// The daemon's own method, asked for by [`Effect::Call`], has an answer.
    Called {
        /// The call, as it was handed out.
        call: Call,
        /// Its outcome.
        outcome: Result<Box<RawValue>, WireError>,
    },
    /// Queued messages were handed to the system.
    Sent {
        /// Who they were for.
        peer: PeerId,
        /// How many.
        messages: usize,
        /// Their size.
        bytes: usize,
    },
    /// A connection has ended.
    Closed {
        /// Which.
        peer: PeerId,
    },
    /// Time has passed; see [`Broker::next_deadline`].
    Tick,
    /// The daemon is ending: fail what is in flight, then close every connection.
    Drain,
}

/// What is to be done.
#[derive(Debug)]
pub enum Effect {
    /// Queue this text. [`Event::Sent`] tells when it has gone out.
    Send {
        /// To whom.
        peer: PeerId,
        /// What.
        text: String,
    },
    /// End the connection: after what is queued, or at once.
    Close {
        /// Which.
        peer: PeerId,
        /// Why.
        reason: CloseReason,
    },
    /// Stop or go on reading from a connection.
    Read {
        /// Which.
        peer: PeerId,
        /// Whether to read.
        enabled: bool,
    },
    /// Run one of the daemon's own methods, then report [`Event::Called`].
    Call {
        /// Who called, and how to answer.
        call: Call,
        /// The caller's role.
        role: Role,
        /// Name of the method.
        method: String,
        /// Its parameters.
        params: Option<Box<RawValue>>,
    },
    /// A request has ended: for logs, metrics and `bridge/tail`.
    Finished(RequestRecord),
}

/// Why a connection is ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseReason {
    /// It left its messages unread until its queue was full.
    SlowConsumer,
    /// It sent too many messages in a row that were none.
    Violations,
    /// The same runtime registered anew on another connection.
    Replaced,
    /// The daemon is ending.
    Ending,
}

/// A call of one of the daemon's own methods.
#[derive(Debug)]
pub struct Call {
    /// Who called.
    pub peer: PeerId,
    /// How to answer; a notification wants no answer.
    reply: Option<(Dialect, CallId<'static>)>,
}

/// See the [module](self).
#[derive(Debug)]
pub struct Broker {
    session: SessionId,
    limits: Limits,
    host_wait: HostWait,
    draining: bool,
    peers: Peers,
    runtimes: Runtimes,
    pending: PendingRequests,
    operations: Operations,
    counters: Counters,
    effects: Vec<Effect>,
}

impl Broker {
    /// A broker that nobody is connected to.
    pub fn new(session: SessionId, limits: Limits, host_wait: HostWait) -> Self {
        Self {
            session,
            limits,
            host_wait,
            draining: false,
            peers: Peers::new(limits),
            runtimes: Runtimes::default(),
            pending: PendingRequests::default(),
            operations: Operations::new(limits),
            counters: Counters::default(),
            effects: Vec::new(),
        }
    }

    /// Takes an event and says what is to be done about it, in this order.
    pub fn handle(&mut self, event: Event<'_>, now: Instant) -> Vec<Effect> {
        match event {
            Event::Connected { peer, grant, dialect } => self.peers.connect(peer, grant, dialect),
            Event::Message { peer, text } => self.on_message(peer, text, now),
            Event::Called { call, outcome } => self.on_called(call, outcome),
            Event::Sent { peer, messages, bytes } => {
                self.peers.sent(peer, messages, bytes);
                self.adjust_reading(peer);
            }
            Event::Closed { peer } => self.on_closed(peer, now),
            Event::Tick => self.on_tick(now),
            Event::Drain => self.on_drain(now),
        }
        self.take_effects()
    }

    /// When the next [`Event::Tick`] is due, if anything waits for time to pass.
    pub fn next_deadline(&self) -> Option<Instant> {
        [self.pending.next_deadline(), self.operations.next_deadline()].into_iter().flatten().min()
    }

    /// What [`register`](Self::register) and its sisters have set in motion. Their effects wait for
    /// the next event (for a method of the daemon, its own [`Event::Called`]) or for this call.
    pub fn take_effects(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.effects)
    }

    /// Takes back a list of effects that were carried out: the next ones need no new memory.
    pub fn reuse(&mut self, carried_out: Vec<Effect>) {
        debug_assert!(carried_out.is_empty());
        if self.effects.capacity() == 0 {
            self.effects = carried_out;
        }
    }

    /// The session that is served.
    pub fn session(&self) -> &SessionId {
        &self.session
    }

    /// What has happened so far.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Connections in the role of clients.
    pub fn clients(&self) -> usize {
        self.peers.clients()
    }

    /// Requests that have not been answered.
    pub fn in_flight(&self) -> usize {
        self.pending.len()
    }

    /// Bytes that wait to be sent, or to be forwarded to a host that is not there yet.
    pub fn queued_bytes(&self) -> usize {
        self.peers.total_bytes()
    }

    /// Operations that wait for their submit.
    pub fn operations(&self) -> usize {
        self.operations.pending()
    }

    /// Remembers a caller's name for itself.
    pub fn set_name(&mut self, peer: PeerId, name: &str) {
        self.peers.set_name(peer, name);
    }

    /// Remembers which runtime requests of this connection are for if they name none.
    pub fn set_defaults(&mut self, peer: PeerId, runtime_id: Option<String>, path: Option<String>) {
        self.peers.set_defaults(peer, Defaults { runtime_id, path });
    }

    /// What a connection may do. `None` once it has gone.
    pub fn grant(&self, peer: PeerId) -> Option<&Grant> {
        self.peers.grant(peer)
    }

    /// The part of a connection's own grant that it asks for by `bridge/createToken`.
    pub fn narrowed(&self, peer: PeerId, wanted: CreateTokenParams) -> Result<Grant, WireError> {
        match self.peers.grant(peer) {
            Some(grant) => grant.narrowed(wanted),
            None => Err(ErrorKind::InternalError.error("the connection has ended")),
        }
    }

    /// Sends this connection a record of each request that ends.
    pub fn tail(&mut self, peer: PeerId) {
        self.peers.set_tail(peer);
    }

    fn on_message(&mut self, peer: PeerId, text: &str, now: Instant) {
        // A connection that is being closed is not listened to any more.
        let Some(role) = self.peers.role_of_open(peer) else { return };
        let message = match Message::parse(text) {
            Ok(message) => message,
            Err(rejection) => return self.reject(peer, role, rejection, now),
        };
        self.peers.forgive(peer);
        if self.draining {
            if let Message::Request(request) = message {
                let error = ErrorKind::ShuttingDown.error("the bridge is ending");
                self.answer(peer, print::failure(request.dialect, Some(&request.id), &error));
            }
            return;
        }
        match (message, role) {
            (Message::Request(request), _) if bridge_protocol::method::is_own(&request.method) => {
                self.own_method(
                    peer,
                    Some((request.dialect, request.id.into_owned())),
                    role,
                    &request.method,
                    request.params,
                );
            }
            (Message::Notification(note), _) if bridge_protocol::method::is_own(&note.method) => {
                self.own_method(peer, None, role, &note.method, note.params);
            }
            (Message::Request(request), Role::Client) => {
                self.on_request(peer, request, text.len(), now);
            }
            (Message::Request(request), Role::Host) => {
                let error = ErrorKind::WrongRole
                    .error("a host answers requests; connect with the client token to send them");
                self.answer(peer, print::failure(request.dialect, Some(&request.id), &error));
            }
            (Message::Notification(note), Role::Client) if note.method == "$/cancelRequest" => {
                self.on_cancel(peer, note.params, now);
            }
            (Message::Notification(note), Role::Host) if note.method == "$/progress" => {
                self.on_progress(peer, note.params, now);
            }
            (Message::Response(response), Role::Host) => self.on_response(peer, response, now),
            // An event has no answer that could say why it goes nowhere.
            (Message::DapEvent(_), _) if !self.peers.grant(peer).is_some_and(Grant::may_talk) => {
                self.counters.forbidden += 1;
            }
            (Message::DapEvent(event), Role::Client) => self.on_client_event(peer, &event, now),
            (Message::DapEvent(event), Role::Host) => self.on_host_event(&event),
            // A client that answers, or a notification that nobody knows: nothing can be said back.
            (Message::Response(_), Role::Client) => self.counters.forged_answers += 1,
            (Message::Notification(_), _) => self.counters.ignored_notifications += 1,
        }
    }

    fn reject(&mut self, peer: PeerId, role: Role, rejection: Rejection<'_>, now: Instant) {
        self.counters.rejected_messages += 1;
        if role == Role::Host {
            self.fail_misanswered(peer, rejection.id.as_ref(), now);
        }
        let dialect = rejection.dialect.or(self.peers.dialect(peer)).unwrap_or(Dialect::JsonRpc);
        let unreadable = rejection.dialect.is_none();
        let error = match dialect {
            // The words that the original's users know.
            Dialect::Bridge if unreadable => {
                WireError::owned(rejection.error.code(), "Invalid JSON", rejection.error.data())
            }
            _ => rejection.error,
        };
        self.answer(peer, print::failure(dialect, rejection.id.as_ref(), &error));
        if self.peers.offend(peer) > self.limits.violations {
            self.close(peer, CloseReason::Violations, now);
        }
    }

    fn own_method(
        &mut self,
        peer: PeerId,
        reply: Option<(Dialect, CallId<'static>)>,
        role: Role,
        method: &str,
        params: Option<&RawValue>,
    ) {
        self.effects.push(Effect::Call {
            call: Call { peer, reply },
            role,
            method: method.to_owned(),
            params: params.map(ToOwned::to_owned),
        });
    }

    fn on_called(&mut self, call: Call, outcome: Result<Box<RawValue>, WireError>) {
        let Some((dialect, id)) = call.reply else { return };
        // The answer goes out before what the method has set in motion: a host that registers
        // hears that it is registered, and then gets its first request.
        let consequences = std::mem::take(&mut self.effects);
        let text = match outcome {
            Ok(result) => print::success(dialect, &id, &result),
            Err(error) => print::failure(dialect, Some(&id), &error),
        };
        self.answer(call.peer, text);
        self.effects.extend(consequences);
    }

    fn on_closed(&mut self, peer: PeerId, now: Instant) {
        let Some(role) = self.peers.role(peer) else { return };
        match role {
            Role::Client => {
                self.abandon_calls_of(peer, now);
                self.end_operations_of(peer);
            }
            Role::Host => self.detach(peer, now),
        }
        self.peers.remove(peer);
    }

    fn on_tick(&mut self, now: Instant) {
        self.expire_requests(now);
        self.expire_operations(now);
    }

    fn on_drain(&mut self, now: Instant) {
        self.draining = true;
        self.fail_all(now);
        // Not yet deaf: what is still on its way here is answered with -32056.
        for peer in self.peers.all() {
            self.effects.push(Effect::Close { peer, reason: CloseReason::Ending });
        }
    }

    /// Queues an answer. A connection that leaves so much unread that there is no room is closed: an
    /// answer is never dropped silently.
    fn answer(&mut self, peer: PeerId, text: String) {
        if self.peers.admits(peer, text.len(), Urgency::Answer) {
            self.send(peer, text);
        } else if self.peers.begin_closing(peer) {
            self.counters.slow_consumers += 1;
            self.effects.push(Effect::Close { peer, reason: CloseReason::SlowConsumer });
        }
    }

    fn send(&mut self, peer: PeerId, text: String) {
        if self.peers.queued(peer, text.len()) {
            self.effects.push(Effect::Send { peer, text });
            self.adjust_reading(peer);
        }
    }

    /// Asks for the end of a connection. A host gets no more requests from here on, and what it was
    /// working on fails; what a client had asked ends with [`Event::Closed`].
    fn close(&mut self, peer: PeerId, reason: CloseReason, now: Instant) {
        if self.peers.begin_closing(peer) {
            self.effects.push(Effect::Close { peer, reason });
            self.detach(peer, now);
        }
    }

    /// Reads from a client only while it is within its limits: beyond them TCP pushes back, and
    /// its requests wait on its own side.
    fn adjust_reading(&mut self, peer: PeerId) {
        if let Some(enabled) = self.peers.change_of_reading(peer) {
            self.effects.push(Effect::Read { peer, enabled });
        }
    }
}

#[cfg(test)]
mod model_tests;
#[cfg(test)]
mod tests;
