//! The broker: a plain value that decides which message goes to whom, and when.
//!
//! [`Broker::handle`] takes an event and the time, and returns effects. It has no socket, task or clock, so each
//! unhappy end of a request (host gone, caller gone, cancel, deadline, overload, late answer) is tested by calling
//! a function.
//!
//! What it guarantees:
//! - every request that it accepts is answered exactly once, unless its caller is gone;
//! - an answer goes to the connection that sent the request, and is accepted only from the host that got it;
//! - no connection does more than its [`Grant`] allows, and a request that writes or runs never goes to a guessed
//!   runtime;
//! - a host learns when nobody waits for its answer any more (cancel, deadline, caller gone);
//! - nothing grows without bound: requests, queues, events and operations are counted, see [`Limits`];
//! - when all connections have ended, all of these counts are zero again.
//!
//! It does not know what a chat is: tools are names, and their params and results are raw text.

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
    /// Until its own deadline, because the run expects a window.
    UntilDeadline,
    /// At most this long.
    UpTo(Duration),
}

/// Input of the broker: what happened.
#[derive(Debug)]
pub enum Event<'a> {
    /// A connection passed the gate.
    Connected {
        /// Its number, never used before.
        peer: PeerId,
        /// What its token allows.
        grant: Grant,
        /// The dialect where no request shows one: for events, and for answers to unreadable text.
        dialect: Dialect,
    },
    /// A connection sent a text message.
    Message {
        /// The connection.
        peer: PeerId,
        /// The message.
        text: &'a str,
    },
    /// A method of the daemon that [`Effect::Call`] asked for has returned.
    Called {
        /// The call from the effect.
        call: Call,
        /// Its result or error.
        outcome: Result<Box<RawValue>, WireError>,
    },
    /// Queued messages were handed to the operating system.
    Sent {
        /// The connection that they were sent to.
        peer: PeerId,
        /// The number of messages.
        messages: usize,
        /// Their size together.
        bytes: usize,
    },
    /// A connection has ended.
    Closed {
        /// The connection.
        peer: PeerId,
    },
    /// Time has passed; see [`Broker::next_deadline`].
    Tick,
    /// The daemon is ending: fail what is in flight, then close every connection.
    Drain,
}

/// Output of the broker: what to do.
#[derive(Debug)]
pub enum Effect {
    /// Queue this message. [`Event::Sent`] reports that it has gone out.
    Send {
        /// The connection to send it to.
        peer: PeerId,
        /// The message.
        text: String,
    },
    /// End a connection, at once or after its queue has been sent.
    Close {
        /// The connection.
        peer: PeerId,
        /// Why it is ended.
        reason: CloseReason,
    },
    /// Stop or resume reading from a connection.
    Read {
        /// The connection.
        peer: PeerId,
        /// Whether to read from it.
        enabled: bool,
    },
    /// Run one of the daemon's own methods, then report [`Event::Called`].
    Call {
        /// The caller, and how to answer it.
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
    /// The other end left its messages unread until the queue was full.
    SlowConsumer,
    /// The other end sent too many invalid messages in a row.
    Violations,
    /// The same runtime registered again on another connection.
    Replaced,
    /// The daemon is ending.
    Ending,
}

/// A call of one of the daemon's own methods.
#[derive(Debug)]
pub struct Call {
    /// The connection that called.
    pub peer: PeerId,
    /// The dialect and id of the answer. A notification gets none.
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
    /// Creates a broker without connections.
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

    /// Takes an event and returns what to do about it, in this order.
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

    /// When the next [`Event::Tick`] is due, if there is any deadline.
    pub fn next_deadline(&self) -> Option<Instant> {
        [self.pending.next_deadline(), self.operations.next_deadline()].into_iter().flatten().min()
    }

    /// Returns the effects of [`register`](Self::register) and the other methods that return none themselves.
    /// Otherwise their effects come with the next event (for a method of the daemon, its own [`Event::Called`]).
    pub fn take_effects(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.effects)
    }

    /// Takes back the emptied list of effects, to reuse its memory for the next ones.
    pub fn reuse(&mut self, carried_out: Vec<Effect>) {
        debug_assert!(carried_out.is_empty());
        if self.effects.capacity() == 0 {
            self.effects = carried_out;
        }
    }

    /// The session of this broker.
    pub fn session(&self) -> &SessionId {
        &self.session
    }

    /// The counters of what has happened so far.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The number of connected clients.
    pub fn clients(&self) -> usize {
        self.peers.clients()
    }

    /// The number of requests that have not been answered.
    pub fn in_flight(&self) -> usize {
        self.pending.len()
    }

    /// The number of bytes that wait to be sent, or to be forwarded to a host that has not registered yet.
    pub fn queued_bytes(&self) -> usize {
        self.peers.total_bytes()
    }

    /// The number of operations that wait for their submit.
    pub fn operations(&self) -> usize {
        self.operations.pending()
    }

    /// Remembers the name that a client has given itself.
    pub fn set_name(&mut self, peer: PeerId, name: &str) {
        self.peers.set_name(peer, name);
    }

    /// Sets the runtime and path for requests of this connection that name none.
    pub fn set_defaults(&mut self, peer: PeerId, runtime_id: Option<String>, path: Option<String>) {
        self.peers.set_defaults(peer, Defaults { runtime_id, path });
    }

    /// What a connection may do. `None` if it has ended.
    pub fn grant(&self, peer: PeerId) -> Option<&Grant> {
        self.peers.grant(peer)
    }

    /// The grant of the token that a connection asks for with `bridge/createToken`.
    pub fn narrowed(&self, peer: PeerId, wanted: CreateTokenParams) -> Result<Grant, WireError> {
        match self.peers.grant(peer) {
            Some(grant) => grant.narrowed(wanted),
            None => Err(ErrorKind::InternalError.error("the connection has ended")),
        }
    }

    /// Sends this connection a record of each request that ends from now on.
    pub fn tail(&mut self, peer: PeerId) {
        self.peers.set_tail(peer);
    }

    fn on_message(&mut self, peer: PeerId, text: &str, now: Instant) {
        // Messages of a connection that is being closed are ignored.
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
            // An event has no answer that could carry an error, so it is only counted.
            (Message::DapEvent(_), _) if !self.peers.grant(peer).is_some_and(Grant::may_talk) => {
                self.counters.forbidden += 1;
            }
            (Message::DapEvent(event), Role::Client) => self.on_client_event(peer, &event, now),
            (Message::DapEvent(event), Role::Host) => self.on_host_event(&event),
            // An answer from a client, or an unknown notification: neither can be answered.
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
            // The message of the original project.
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
        // The answer goes out before the method's other effects: a host that registers gets the answer to its
        // registration, and then its first request.
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
        // The connections are still read: requests that are on their way are answered with -32056.
        for peer in self.peers.all() {
            self.effects.push(Effect::Close { peer, reason: CloseReason::Ending });
        }
    }

    /// Queues an answer. If the connection has left so much unread that there is no room, it is closed: an answer is
    /// never dropped silently.
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

    /// Begins to close a connection. If it is a host, it gets no more requests, and those that it was working on fail.
    /// If it is a client, its requests end later, with [`Event::Closed`].
    fn close(&mut self, peer: PeerId, reason: CloseReason, now: Instant) {
        if self.peers.begin_closing(peer) {
            self.effects.push(Effect::Close { peer, reason });
            self.detach(peer, now);
        }
    }

    /// Reads from a client only while it is within its limits. Beyond them, TCP pushes back and its requests wait on
    /// its own side.
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
