//! The connections: what waits to be sent to each, and how much each has in flight.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use bridge_protocol::{Dialect, RequestId, Rights};
use rustc_hash::FxHashMap;

use super::grant::{Grant, HostGrant};
use super::limits::Limits;

/// Longest name of a caller that is kept, in characters.
const NAME_CHARS: usize = 64;

/// The number of a connection, never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PeerId(pub u64);

impl fmt::Display for PeerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The role of a connection, fixed by the token that it showed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Calls methods: scripts, agents, the command line.
    Client,
    /// Serves methods: VS Code windows, sandboxes, the terminal host.
    Host,
}

impl Role {
    /// Its name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Host => "host",
        }
    }
}

/// How important a message is when its queue fills up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Urgency {
    /// Must arrive, or the connection ends.
    Answer,
    /// May be refused: its sender can retry later.
    Request,
    /// May be dropped.
    Progress,
}

/// The runtime and path for requests of a connection that name none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Defaults {
    pub runtime_id: Option<String>,
    pub path: Option<String>,
}

#[derive(Debug)]
struct Peer {
    grant: Grant,
    dialect: Dialect,
    name: String,
    defaults: Defaults,
    closing: bool,
    violations: usize,
    queue: Load,
    in_flight: Load,
    /// The number of requests of the bridge dialect that wait for an answer. Until then their sender would discard
    /// events, so events are held back. They count as queued all the same, so that they fit behind the answer.
    outstanding_bridge: usize,
    held_events: VecDeque<String>,
    reading: bool,
    /// JSON-RPC requests in flight by the key of the caller's id. A caller can choose ids whose hashes collide, but
    /// has at most [`Limits::client_requests`] of them.
    ids: FxHashMap<String, RequestId>,
}

/// A number of messages and their size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Load {
    messages: usize,
    bytes: usize,
}

impl Load {
    fn add(&mut self, bytes: usize) {
        self.messages += 1;
        self.bytes += bytes;
    }

    fn remove(&mut self, messages: usize, bytes: usize) {
        self.messages -= messages;
        self.bytes -= bytes;
    }
}

/// All connections.
#[derive(Debug)]
pub(super) struct Peers {
    limits: Limits,
    peers: FxHashMap<PeerId, Peer>,
    /// The connections that get a record of each request that ends (`bridge/tail`).
    tails: Vec<PeerId>,
    /// Bytes queued for all connections, and of parked requests, which wait for a host.
    total_bytes: usize,
}

impl Peers {
    pub fn new(limits: Limits) -> Self {
        Self { limits, peers: FxHashMap::default(), tails: Vec::new(), total_bytes: 0 }
    }

    pub fn connect(&mut self, peer: PeerId, grant: Grant, dialect: Dialect) {
        let state = Peer {
            grant,
            dialect,
            name: String::new(),
            defaults: Defaults::default(),
            closing: false,
            violations: 0,
            queue: Load::default(),
            in_flight: Load::default(),
            outstanding_bridge: 0,
            held_events: VecDeque::new(),
            reading: true,
            ids: FxHashMap::default(),
        };
        self.peers.insert(peer, state);
    }

    pub fn remove(&mut self, peer: PeerId) {
        self.tails.retain(|tail| *tail != peer);
        if let Some(state) = self.peers.remove(&peer) {
            self.total_bytes -= state.queue.bytes;
        }
    }

    pub fn role(&self, peer: PeerId) -> Option<Role> {
        self.peers.get(&peer).map(|state| state.grant.role())
    }

    /// What the connection may do.
    pub fn grant(&self, peer: PeerId) -> Option<&Grant> {
        self.peers.get(&peer).map(|state| &state.grant)
    }

    /// The rights of a client. Other connections have none.
    pub fn rights(&self, peer: PeerId) -> Rights {
        self.grant(peer).and_then(Grant::rights).unwrap_or(Rights::NONE)
    }

    /// What a host may register.
    pub fn host_grant(&self, peer: PeerId) -> Option<&Arc<HostGrant>> {
        match self.grant(peer)? {
            Grant::Host(grant) => Some(grant),
            Grant::Client(_) => None,
        }
    }

    /// The role, unless the connection is being closed.
    pub fn role_of_open(&self, peer: PeerId) -> Option<Role> {
        self.peers.get(&peer).filter(|state| !state.closing).map(|state| state.grant.role())
    }

    /// Every connection, oldest first.
    pub fn all(&self) -> Vec<PeerId> {
        let mut all: Vec<_> = self.peers.keys().copied().collect();
        all.sort_unstable();
        all
    }

    /// The dialect of a client. `None` for a host: hosts get no events of other hosts.
    pub fn client_dialect(&self, peer: PeerId) -> Option<Dialect> {
        let client = self.peers.get(&peer).filter(|state| state.grant.role() == Role::Client);
        client.map(|state| state.dialect)
    }

    pub fn dialect(&self, peer: PeerId) -> Option<Dialect> {
        self.peers.get(&peer).map(|state| state.dialect)
    }

    #[cfg(test)]
    pub fn is_empty(&self) -> bool {
        self.peers.is_empty()
    }

    pub fn clients(&self) -> usize {
        self.peers.values().filter(|state| state.grant.role() == Role::Client).count()
    }

    pub fn total_bytes(&self) -> usize {
        self.total_bytes
    }

    pub fn name(&self, peer: PeerId) -> &str {
        self.peers.get(&peer).map_or("", |state| &state.name)
    }

    pub fn set_name(&mut self, peer: PeerId, name: &str) {
        if let Some(state) = self.peers.get_mut(&peer) {
            state.name = name.chars().filter(|char| !char.is_control()).take(NAME_CHARS).collect();
        }
    }

    pub fn defaults(&self, peer: PeerId) -> Option<&Defaults> {
        self.peers.get(&peer).map(|state| &state.defaults)
    }

    pub fn set_defaults(&mut self, peer: PeerId, defaults: Defaults) {
        if let Some(state) = self.peers.get_mut(&peer) {
            state.defaults = defaults;
        }
    }

    pub fn set_tail(&mut self, peer: PeerId) {
        if self.peers.contains_key(&peer) && !self.tails.contains(&peer) {
            self.tails.push(peer);
        }
    }

    pub fn tails(&self) -> Vec<PeerId> {
        self.tails.clone()
    }

    /// Counts an invalid message. Returns the number of invalid messages in a row.
    pub fn offend(&mut self, peer: PeerId) -> usize {
        self.peers.get_mut(&peer).map_or(0, |state| {
            state.violations += 1;
            state.violations
        })
    }

    pub fn forgive(&mut self, peer: PeerId) {
        if let Some(state) = self.peers.get_mut(&peer) {
            state.violations = 0;
        }
    }

    /// Marks a connection as closing. Returns false if it already was.
    pub fn begin_closing(&mut self, peer: PeerId) -> bool {
        self.peers.get_mut(&peer).is_some_and(|state| !std::mem::replace(&mut state.closing, true))
    }

    /// Whether a message of this size may be queued. Less urgent messages leave room for answers.
    pub fn admits(&self, peer: PeerId, bytes: usize, urgency: Urgency) -> bool {
        let Some(state) = self.peers.get(&peer).filter(|state| !state.closing) else {
            return false;
        };
        let share = if urgency == Urgency::Progress { 2 } else { 1 };
        // A prompt reader does not pay for slow ones: the total is checked only if messages are unread.
        let unread = state.queue.messages - state.held_events.len();
        let prompt = urgency != Urgency::Progress && unread == 0;
        state.queue.messages < self.limits.queue_messages / share
            && state.queue.bytes + bytes <= self.limits.queue_bytes / share
            && (prompt || self.total_bytes + bytes <= self.limits.total_bytes)
    }

    /// Counts a queued message. Returns false if the connection does not exist.
    pub fn queued(&mut self, peer: PeerId, bytes: usize) -> bool {
        let Some(state) = self.peers.get_mut(&peer).filter(|state| !state.closing) else {
            return false;
        };
        state.queue.add(bytes);
        self.total_bytes += bytes;
        true
    }

    pub fn sent(&mut self, peer: PeerId, messages: usize, bytes: usize) {
        if let Some(state) = self.peers.get_mut(&peer) {
            state.queue.remove(messages, bytes);
            self.total_bytes -= bytes;
        }
    }

    /// Whether a request of this size may be kept until a host comes.
    pub fn admits_parking(&self, bytes: usize) -> bool {
        self.total_bytes + bytes <= self.limits.total_bytes
    }

    pub fn park(&mut self, bytes: usize) {
        self.total_bytes += bytes;
    }

    pub fn unpark(&mut self, bytes: usize) {
        self.total_bytes -= bytes;
    }

    /// The request in flight that has this id, by its key.
    pub fn request_with_id(&self, peer: PeerId, key: &str) -> Option<RequestId> {
        self.peers.get(&peer)?.ids.get(key).copied()
    }

    /// Counts an accepted request. JSON-RPC requests have unique ids while they are in flight and can be cancelled;
    /// those of the bridge dialect have neither property.
    pub fn begin_request(
        &mut self,
        peer: PeerId,
        key: Option<&str>,
        request: RequestId,
        bytes: usize,
    ) {
        let Some(state) = self.peers.get_mut(&peer) else { return };
        state.in_flight.add(bytes);
        match key {
            Some(key) => _ = state.ids.insert(key.to_owned(), request),
            None => state.outstanding_bridge += 1,
        }
    }

    /// Reverses [`begin_request`](Self::begin_request). Returns the events that need no longer be held back.
    pub fn end_request(
        &mut self,
        peer: PeerId,
        key: Option<&str>,
        bytes: usize,
    ) -> VecDeque<String> {
        let Some(state) = self.peers.get_mut(&peer) else { return VecDeque::new() };
        state.in_flight.remove(1, bytes);
        match key {
            Some(key) => _ = state.ids.remove(key),
            None => state.outstanding_bridge -= 1,
        }
        match state.outstanding_bridge {
            0 if !state.closing => std::mem::take(&mut state.held_events),
            _ => VecDeque::new(),
        }
    }

    /// Holds an event back if its receiver would discard it now. Returns the event if it can be sent.
    pub fn hold_event(&mut self, peer: PeerId, text: String) -> Option<String> {
        match self.peers.get_mut(&peer) {
            Some(state) if state.outstanding_bridge > 0 => {
                self.total_bytes += text.len();
                state.queue.add(text.len());
                state.held_events.push_back(text);
                None
            }
            _ => Some(text),
        }
    }

    /// Whether an event of this size can be sent, or held back, without being lost.
    pub fn admits_event(&self, peer: PeerId, bytes: usize) -> bool {
        let Some(state) = self.peers.get(&peer) else { return false };
        let urgency = match state.outstanding_bridge {
            0 => Urgency::Answer,
            // The event is held back behind answers that are still to come, and must leave room for them.
            _ => Urgency::Progress,
        };
        self.admits(peer, bytes, urgency)
    }

    /// Returns whether to read from this connection, if that has changed. Hosts are always read: their answers make
    /// room.
    pub fn change_of_reading(&mut self, peer: PeerId) -> Option<bool> {
        let limits = self.limits;
        let client = |state: &&mut Peer| state.grant.role() == Role::Client;
        let state = self.peers.get_mut(&peer).filter(client)?;
        let within = state.in_flight.messages < limits.client_requests
            && state.in_flight.bytes < limits.client_bytes
            && state.queue.messages < limits.queue_messages / 2
            && state.queue.bytes < limits.queue_bytes / 2;
        (std::mem::replace(&mut state.reading, within) != within).then_some(within)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_shown_by_number_and_role() {
        assert_eq!(PeerId(7).to_string(), "7");
        assert_eq!((Role::Client.name(), Role::Host.name()), ("client", "host"));
    }
}
