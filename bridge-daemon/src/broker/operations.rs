//! Operations that a run starts and somebody finishes later: `dapEvent` messages and
//! `POST /submit`.
//!
//! Ids and resume tokens are made from clocks and collide between processes, so an operation
//! belongs to a connection, and a submit goes to that connection only. The original client
//! announces each operation twice; the second time changes nothing, even after the end.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use bridge_protocol::{Dialect, Event as DapEvent, print};
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

use super::Broker;
use super::limits::Limits;
use super::peers::{PeerId, Urgency};

const STARTED: &str = "asyncOperationStarted";
const SUBMIT: &str = "asyncOperationSubmit";
const UPDATED: &str = "asyncOperationUpdated";

/// Why `POST /submit` finished nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubmitError {
    /// No operation has this token.
    Unknown,
    /// It has been finished, or has expired.
    Finished,
    /// Operations of several connections have this token.
    Ambiguous,
}

type Key = (PeerId, String);

#[derive(Debug)]
struct Operation {
    resume_token: Option<String>,
    dialect: Dialect,
    /// What was announced, for hosts that come later; empty once finished.
    body: Option<Box<RawValue>>,
    expires: Option<Instant>,
    /// Order of announcement.
    sequence: u64,
}

impl Operation {
    fn is_pending(&self) -> bool {
        self.body.is_some()
    }
}

/// All operations of the connections that are there.
#[derive(Debug)]
pub(super) struct Operations {
    limits: Limits,
    operations: HashMap<Key, Operation>,
    sequence: u64,
}

/// The members of a body that mean something here.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Body {
    #[serde(default)]
    operation_id: Option<OperationId>,
    #[serde(default)]
    resume_token: Option<String>,
    #[serde(default)]
    timeout_ms: Option<f64>,
    #[serde(default)]
    status: Option<String>,
}

/// A number from the client, a string from the host: compared as text.
#[derive(Deserialize)]
#[serde(untagged)]
enum OperationId {
    Number(u64),
    Text(String),
}

impl OperationId {
    fn into_text(self) -> String {
        match self {
            Self::Number(number) => number.to_string(),
            Self::Text(text) => text,
        }
    }
}

impl Operations {
    pub fn new(limits: Limits) -> Self {
        Self { limits, operations: HashMap::new(), sequence: 0 }
    }

    pub fn pending(&self) -> usize {
        self.operations.values().filter(|operation| operation.is_pending()).count()
    }

    pub fn next_deadline(&self) -> Option<Instant> {
        let pending = self.operations.values().filter(|operation| operation.is_pending());
        pending.filter_map(|operation| operation.expires).min()
    }

    fn has_room(&self, peer: PeerId, bytes: usize) -> bool {
        let mine = || self.operations.iter().filter(|((owner, _), _)| *owner == peer);
        let kept: usize = mine()
            .filter_map(|(_, operation)| operation.body.as_ref())
            .map(|body| body.get().len())
            .sum();
        mine().count() < self.limits.operations && kept + bytes <= self.limits.operation_bytes
    }

    /// The pending operations with this token, or the error that tells why there is not one.
    fn by_token(&self, token: &str) -> Result<Key, SubmitError> {
        let known = || {
            self.operations
                .iter()
                .filter(|(_, operation)| operation.resume_token.as_deref() == Some(token))
        };
        let mut pending = known().filter(|(_, operation)| operation.is_pending());
        match (pending.next(), pending.next()) {
            (Some((key, _)), None) => Ok(key.clone()),
            (Some(_), Some(_)) => Err(SubmitError::Ambiguous),
            (None, _) if known().next().is_some() => Err(SubmitError::Finished),
            (None, _) => Err(SubmitError::Unknown),
        }
    }

    /// Marks an operation as finished. Returns the dialect of its owner if it was pending.
    fn finish(&mut self, key: &Key) -> Option<Dialect> {
        let operation = self.operations.get_mut(key)?;
        operation.body.take().map(|_| operation.dialect)
    }
}

impl Broker {
    pub(super) fn on_client_event(&mut self, peer: PeerId, event: &DapEvent<'_>, now: Instant) {
        let body: Option<Body> = event.body.and_then(|body| serde_json::from_str(body.get()).ok());
        let is_news = match (&*event.name, body) {
            (STARTED, Some(body)) => self.remember(peer, body, event.body, now),
            (UPDATED, Some(body)) => {
                self.note_update(peer, body);
                true
            }
            _ => true,
        };
        if is_news {
            self.event_to_host(peer, &event.name, event.body);
        }
    }

    fn note_update(&mut self, peer: PeerId, body: Body) {
        if let (Some(id), Some(status)) = (body.operation_id, body.status)
            && status != "pending"
        {
            self.operations.finish(&(peer, id.into_text()));
        }
    }

    /// Notes an operation that was started. False if it is known already.
    fn remember(&mut self, peer: PeerId, body: Body, raw: Option<&RawValue>, now: Instant) -> bool {
        let (Some(id), Some(raw)) = (body.operation_id.map(OperationId::into_text), raw) else {
            return true;
        };
        let key = (peer, id);
        if self.operations.operations.contains_key(&key) {
            return false;
        }
        if self.operations.has_room(peer, raw.get().len()) {
            let lifetime = body.timeout_ms.filter(|ms| *ms > 0.0 && *ms < 1e12);
            self.operations.sequence += 1;
            let operation = Operation {
                resume_token: body.resume_token,
                dialect: self.peers.dialect(peer).unwrap_or(Dialect::JsonRpc),
                body: Some(raw.to_owned()),
                expires: lifetime.map(|ms| now + Duration::from_secs_f64(ms / 1000.0)),
                sequence: self.operations.sequence,
            };
            self.operations.operations.insert(key, operation);
        }
        true
    }

    pub(super) fn on_host_event(&mut self, host: PeerId, event: &DapEvent<'_>) {
        let body: Option<Body> = event.body.and_then(|body| serde_json::from_str(body.get()).ok());
        let client = event.client.map(PeerId);
        let owner = match (&*event.name, body) {
            (SUBMIT, Some(body)) => self.find_submitted(client, body),
            _ => client.and_then(|client| Some((client, self.peers.dialect(client)?))),
        };
        match owner {
            Some((client, dialect)) if client != host => {
                self.event_to_client(client, dialect, &event.name, event.body);
            }
            _ => self.counters.dropped_events += 1,
        }
    }

    fn find_submitted(&mut self, client: Option<PeerId>, body: Body) -> Option<(PeerId, Dialect)> {
        let id = body.operation_id.map(OperationId::into_text);
        let key = match (client, id) {
            (Some(client), Some(id)) => (client, id),
            _ => self.operations.by_token(&body.resume_token?).ok()?,
        };
        let dialect = self.operations.finish(&key)?;
        Some((key.0, dialect))
    }

    /// `POST /submit`: finishes an operation from outside. Returns its id.
    pub fn submit(&mut self, resume_token: &str, result: &RawValue) -> Result<String, SubmitError> {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Submit<'a> {
            operation_id: &'a str,
            resume_token: &'a str,
            result: &'a RawValue,
            error: Option<&'a str>,
        }
        let key = self.operations.by_token(resume_token)?;
        let dialect = self.operations.finish(&key).ok_or(SubmitError::Finished)?;
        let (client, operation_id) = (key.0, &key.1);
        let submit = Submit { operation_id, resume_token, result, error: None };
        let body = to_raw_value(&submit).expect("a submit always prints");
        self.event_to_client(client, dialect, SUBMIT, Some(&body));
        self.tell_host_of_end(client, operation_id, "completed");
        Ok(key.1)
    }

    /// Tells a host that has just registered of what is still pending.
    pub(super) fn announce_operations(&mut self, host: PeerId) {
        if self.runtimes.for_events() != Some(host) {
            return;
        }
        let operations = self.operations.operations.iter();
        let mut pending: Vec<_> = operations
            .filter_map(|((client, _), operation)| {
                Some((operation.sequence, *client, operation.body.clone()?))
            })
            .collect();
        pending.sort_unstable_by_key(|(sequence, ..)| *sequence);
        for (_, client, body) in pending {
            self.event_to_host(client, STARTED, Some(&body));
        }
    }

    pub(super) fn expire_operations(&mut self, now: Instant) {
        let operations = self.operations.operations.iter();
        let due: Vec<Key> = operations
            .filter(|(_, operation)| operation.is_pending())
            .filter(|(_, operation)| operation.expires.is_some_and(|expires| expires <= now))
            .map(|(key, _)| key.clone())
            .collect();
        for key in due {
            self.operations.finish(&key);
            self.tell_host_of_end(key.0, &key.1, "cancelled");
        }
    }

    pub(super) fn end_operations_of(&mut self, client: PeerId) {
        let ended: Vec<_> =
            self.operations.operations.extract_if(|(owner, _), _| *owner == client).collect();
        for ((_, id), operation) in ended {
            if operation.is_pending() {
                self.tell_host_of_end(client, &id, "cancelled");
            }
        }
    }

    fn tell_host_of_end(&mut self, client: PeerId, operation_id: &str, status: &str) {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Updated<'a> {
            operation_id: &'a str,
            status: &'a str,
        }
        let body = to_raw_value(&Updated { operation_id, status }).expect("always prints");
        self.event_to_host(client, UPDATED, Some(&body));
    }

    fn event_to_host(&mut self, client: PeerId, name: &str, body: Option<&RawValue>) {
        let event = DapEvent { name: name.into(), body, client: Some(client.0) };
        let text = print::event(Dialect::JsonRpc, &event);
        match self.runtimes.for_events() {
            Some(host) if self.peers.admits(host, text.len(), Urgency::Request) => {
                self.counters.events += 1;
                self.send(host, text);
            }
            _ => self.counters.dropped_events += 1,
        }
    }

    fn event_to_client(
        &mut self,
        client: PeerId,
        dialect: Dialect,
        name: &str,
        body: Option<&RawValue>,
    ) {
        let event = DapEvent { name: name.into(), body, client: None };
        let text = print::event(dialect, &event);
        let room = self.peers.held_events(client) < self.limits.queue_messages
            && self.peers.admits_parking(text.len());
        if !room {
            self.counters.dropped_events += 1;
            return;
        }
        self.counters.events += 1;
        if let Some(text) = self.peers.hold_event(client, text) {
            self.answer(client, text);
        }
    }
}
