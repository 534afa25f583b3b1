//! Operations that a program starts and a person or another program finishes later: `dapEvent` messages and
//! `POST /submit`.
//!
//! Ids and resume tokens are made from clocks and collide between processes, so an operation belongs to a connection,
//! and a submit goes to that connection only. The original client announces each operation twice; the second
//! announcement changes nothing, even after the end. Each operation is assigned to one window at a time, which is
//! notified of its end. When that window leaves, the operation is announced to another.

use std::collections::{BTreeSet, HashMap};
use std::time::{Duration, Instant};

use bridge_protocol::{DapEvent, Dialect, print};
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
    /// The program that waits for the operation leaves too much unread.
    Overloaded,
}

/// Longest operation id and resume token that are remembered.
const NAME_BYTES: usize = 256;

type Key = (PeerId, String);

#[derive(Debug)]
struct Operation {
    resume_token: Option<String>,
    dialect: Dialect,
    /// The body of the announcement, for windows that attach later. `None` once the operation has ended.
    body: Option<Box<RawValue>>,
    expires: Option<Instant>,
    /// The window that the operation is assigned to.
    host: Option<PeerId>,
    /// Position in the order of announcements.
    sequence: u64,
}

impl Operation {
    fn is_pending(&self) -> bool {
        self.body.is_some()
    }
}

/// All operations of the present connections.
#[derive(Debug)]
pub(super) struct Operations {
    limits: Limits,
    operations: HashMap<Key, Operation>,
    deadlines: BTreeSet<(Instant, Key)>,
    sequence: u64,
}

/// The members of a body that the broker reads.
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

/// The id of an operation: a number from the client, a string from the host. Ids are compared as text.
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
        Self { limits, operations: HashMap::new(), deadlines: BTreeSet::new(), sequence: 0 }
    }

    pub fn pending(&self) -> usize {
        self.operations.values().filter(|operation| operation.is_pending()).count()
    }

    pub fn next_deadline(&self) -> Option<Instant> {
        self.deadlines.first().map(|(deadline, _)| *deadline)
    }

    /// Remembers an operation if there is room.
    fn insert(&mut self, key: Key, operation: Operation) {
        let bytes =
            |operation: &Operation| operation.body.as_ref().map_or(0, |body| body.get().len());
        let mine = || self.operations.iter().filter(|((owner, _), _)| *owner == key.0);
        let pending = mine().filter(|(_, operation)| operation.is_pending()).count();
        let kept: usize = mine().map(|(_, operation)| bytes(operation)).sum();
        if pending >= self.limits.operations
            || kept + bytes(&operation) > self.limits.operation_bytes
        {
            return;
        }
        if let Some(expires) = operation.expires {
            self.deadlines.insert((expires, key.clone()));
        }
        self.operations.insert(key, operation);
    }

    /// The pending operation with this resume token, or why there is not exactly one.
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

    /// The dialect of the connection that a pending operation belongs to.
    fn dialect_of_pending(&self, key: &Key) -> Option<Dialect> {
        let operation = self.operations.get(key)?;
        operation.is_pending().then_some(operation.dialect)
    }

    /// Marks an operation as ended. The newest ended operations, as many as may be pending, are still remembered, so
    /// that a repeated announcement is recognised.
    fn finish(&mut self, key: &Key) {
        let Some(operation) = self.operations.get_mut(key) else { return };
        operation.body = None;
        if let Some(expires) = operation.expires.take() {
            self.deadlines.remove(&(expires, key.clone()));
        }
        let ended = || {
            let mine = self.operations.iter().filter(|((owner, _), _)| *owner == key.0);
            mine.filter(|(_, operation)| !operation.is_pending())
        };
        if ended().count() > self.limits.operations {
            let oldest = ended().min_by_key(|(_, operation)| operation.sequence);
            if let Some(oldest) = oldest.map(|(key, _)| key.clone()) {
                self.operations.remove(&oldest);
            }
        }
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
            let host = self.runtimes.for_events();
            self.event_to_host(host, peer, &event.name, event.body);
        }
    }

    fn note_update(&mut self, peer: PeerId, body: Body) {
        if let (Some(id), Some(status)) = (body.operation_id, body.status)
            && status != "pending"
        {
            self.operations.finish(&(peer, id.into_text()));
        }
    }

    /// Remembers an operation that was started. Returns false if it is known already.
    fn remember(&mut self, peer: PeerId, body: Body, raw: Option<&RawValue>, now: Instant) -> bool {
        let (Some(id), Some(raw)) = (body.operation_id.map(OperationId::into_text), raw) else {
            return true;
        };
        let token_bytes = body.resume_token.as_ref().map_or(0, String::len);
        if id.len() > NAME_BYTES || token_bytes > NAME_BYTES {
            return true;
        }
        let key = (peer, id);
        if self.operations.operations.contains_key(&key) {
            return false;
        }
        let lifetime = body.timeout_ms.filter(|ms| *ms > 0.0 && *ms < 1e12);
        self.operations.sequence += 1;
        let operation = Operation {
            resume_token: body.resume_token,
            dialect: self.peers.dialect(peer).unwrap_or(Dialect::JsonRpc),
            body: Some(raw.to_owned()),
            expires: lifetime.map(|ms| now + Duration::from_secs_f64(ms / 1000.0)),
            host: self.runtimes.for_events(),
            sequence: self.operations.sequence,
        };
        self.operations.insert(key, operation);
        true
    }

    pub(super) fn on_host_event(&mut self, event: &DapEvent<'_>) {
        let body: Option<Body> = event.body.and_then(|body| serde_json::from_str(body.get()).ok());
        let client = event.client.map(PeerId);
        let delivered = match (&*event.name, body) {
            (SUBMIT, Some(body)) => self.submitted(client, body, event.body).is_some(),
            _ => client.is_some_and(|client| match self.peers.client_dialect(client) {
                Some(dialect) => self.event_to_client(client, dialect, &event.name, event.body),
                None => false,
            }),
        };
        self.counters.dropped_events += u64::from(!delivered);
    }

    /// Finishes an operation for a host. Returns `None` if there is no such operation, or if its connection has no
    /// room for the event; then the operation stays pending.
    fn submitted(
        &mut self,
        client: Option<PeerId>,
        body: Body,
        raw: Option<&RawValue>,
    ) -> Option<()> {
        let id = body.operation_id.map(OperationId::into_text);
        let key = match (client, id) {
            (Some(client), Some(id)) => (client, id),
            _ => self.operations.by_token(&body.resume_token?).ok()?,
        };
        let dialect = self.operations.dialect_of_pending(&key)?;
        self.event_to_client(key.0, dialect, SUBMIT, raw).then(|| self.operations.finish(&key))
    }

    /// Finishes an operation for `POST /submit`. Returns the id of the operation.
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
        let dialect = self.operations.dialect_of_pending(&key).ok_or(SubmitError::Finished)?;
        let submit = Submit { operation_id: &key.1, resume_token, result, error: None };
        let body = to_raw_value(&submit).expect("a submit always prints");
        if !self.event_to_client(key.0, dialect, SUBMIT, Some(&body)) {
            return Err(SubmitError::Overloaded);
        }
        self.end_operation(&key, "completed");
        Ok(key.1)
    }

    /// Assigns the pending operations that no window has to the window that gets events, and announces them to it.
    pub(super) fn announce_operations(&mut self) {
        let Some(host) = self.runtimes.for_events() else { return };
        let mut orphans: Vec<_> = self
            .operations
            .operations
            .iter_mut()
            .filter(|(_, operation)| {
                operation.host.is_none_or(|host| self.runtimes.get(host).is_none())
            })
            .filter_map(|((client, _), operation)| {
                let body = operation.body.clone()?;
                operation.host = Some(host);
                Some((operation.sequence, *client, body))
            })
            .collect();
        orphans.sort_unstable_by_key(|(sequence, ..)| *sequence);
        for (_, client, body) in orphans {
            self.event_to_host(Some(host), client, STARTED, Some(&body));
        }
    }

    pub(super) fn expire_operations(&mut self, now: Instant) {
        while let Some((deadline, key)) = self.operations.deadlines.first().cloned()
            && deadline <= now
        {
            self.end_operation(&key, "cancelled");
        }
    }

    pub(super) fn end_operations_of(&mut self, client: PeerId) {
        let keys = self.operations.operations.keys().filter(|(owner, _)| *owner == client);
        for key in keys.cloned().collect::<Vec<_>>() {
            if self.operations.dialect_of_pending(&key).is_some() {
                self.end_operation(&key, "cancelled");
            }
            self.operations.operations.remove(&key);
        }
    }

    /// Ends an operation that its host did not finish, and notifies the host.
    fn end_operation(&mut self, key: &Key, status: &str) {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Updated<'a> {
            operation_id: &'a str,
            status: &'a str,
        }
        let host = self.operations.operations.get(key).and_then(|operation| operation.host);
        self.operations.finish(key);
        let updated = Updated { operation_id: &key.1, status };
        let body = to_raw_value(&updated).expect("an update always prints");
        self.event_to_host(host, key.0, UPDATED, Some(&body));
    }

    fn event_to_host(
        &mut self,
        host: Option<PeerId>,
        client: PeerId,
        name: &str,
        body: Option<&RawValue>,
    ) {
        let event = DapEvent { name: name.into(), body, client: Some(client.0) };
        let text = print::event(Dialect::JsonRpc, &event);
        match host {
            Some(host)
                if text.len() <= self.limits.message_bytes
                    && self.peers.admits(host, text.len(), Urgency::Request) =>
            {
                self.counters.events += 1;
                self.send(host, text);
            }
            _ => self.counters.dropped_events += 1,
        }
    }

    /// Sends an event to a client, or holds it back until the answer that the client waits for has gone out. Returns
    /// false if there is no room for the event.
    fn event_to_client(
        &mut self,
        client: PeerId,
        dialect: Dialect,
        name: &str,
        body: Option<&RawValue>,
    ) -> bool {
        let text = print::event(dialect, &DapEvent { name: name.into(), body, client: None });
        if text.len() > self.limits.message_bytes || !self.peers.admits_event(client, text.len()) {
            return false;
        }
        self.counters.events += 1;
        if let Some(text) = self.peers.hold_event(client, text) {
            self.send(client, text);
        }
        true
    }
}
