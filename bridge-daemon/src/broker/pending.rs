//! Requests that have not been answered: their callers, their hosts and their deadlines.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use bridge_protocol::timeout::Allowance;
use bridge_protocol::{CallId, Dialect, RequestId};
use rustc_hash::FxHashMap;
use serde_json::value::RawValue;

use super::choice::Target;
use super::peers::PeerId;

/// One request in flight.
#[derive(Debug)]
pub(super) struct Pending {
    pub caller: PeerId,
    pub dialect: Dialect,
    pub call_id: CallId<'static>,
    pub method: Cow<'static, str>,
    pub target: Target,
    pub allowance: Allowance,
    pub bytes: usize,
    pub started: Instant,
    pub stage: Stage,
}

/// How far a request has come.
#[derive(Debug)]
pub(super) enum Stage {
    /// No host was attached. The params are kept for the one that registers.
    Waiting { params: Option<Box<RawValue>> },
    /// A host is working on it.
    Sent { host: PeerId, at: Instant },
}

impl Pending {
    /// The key by which the caller's id is compared. JSON-RPC only.
    pub fn key(&self) -> Option<Cow<'_, str>> {
        (self.dialect == Dialect::JsonRpc).then(|| self.call_id.key())
    }

    /// The host that works on the request.
    pub fn host(&self) -> Option<PeerId> {
        match self.stage {
            Stage::Waiting { .. } => None,
            Stage::Sent { host, .. } => Some(host),
        }
    }

    /// The number of bytes that are kept until a host registers.
    pub fn parked_bytes(&self) -> usize {
        match &self.stage {
            Stage::Waiting { params } => params.as_ref().map_or(0, |params| params.get().len()),
            Stage::Sent { .. } => 0,
        }
    }

    /// How long the request waited for a host, and how long the host has worked on it.
    pub fn times(&self, now: Instant) -> (Duration, Duration) {
        match self.stage {
            Stage::Waiting { .. } => (now - self.started, Duration::ZERO),
            Stage::Sent { at, .. } => (at - self.started, now - at),
        }
    }
}

/// All requests in flight.
#[derive(Debug, Default)]
pub(super) struct PendingRequests {
    last: u64,
    requests: FxHashMap<RequestId, (Pending, Instant)>,
    deadlines: BTreeSet<(Instant, RequestId)>,
}

impl PendingRequests {
    pub fn len(&self) -> usize {
        self.requests.len()
    }

    /// Draws the id of the next request.
    pub fn next_id(&mut self) -> RequestId {
        self.last += 1;
        RequestId(self.last)
    }

    pub fn insert(&mut self, id: RequestId, pending: Pending, deadline: Instant) {
        self.requests.insert(id, (pending, deadline));
        self.deadlines.insert((deadline, id));
    }

    pub fn get_mut(&mut self, id: RequestId) -> Option<&mut Pending> {
        self.requests.get_mut(&id).map(|(pending, _)| pending)
    }

    /// Removes a request. The first to take it decides how it ends.
    pub fn take(&mut self, id: RequestId) -> Option<Pending> {
        let (pending, deadline) = self.requests.remove(&id)?;
        self.deadlines.remove(&(deadline, id));
        Some(pending)
    }

    pub fn set_deadline(&mut self, id: RequestId, deadline: Instant) {
        if let Some((_, current)) = self.requests.get_mut(&id) {
            self.deadlines.remove(&(*current, id));
            self.deadlines.insert((deadline, id));
            *current = deadline;
        }
    }

    pub fn next_deadline(&self) -> Option<Instant> {
        self.deadlines.first().map(|(deadline, _)| *deadline)
    }

    /// A request whose deadline has passed.
    pub fn due(&self, now: Instant) -> Option<RequestId> {
        self.deadlines.first().filter(|(deadline, _)| *deadline <= now).map(|(_, id)| *id)
    }

    /// The requests for which `fits` holds, oldest first.
    pub fn select(&self, fits: impl Fn(&Pending) -> bool) -> Vec<RequestId> {
        let mut ids: Vec<_> = self
            .requests
            .iter()
            .filter(|(_, (pending, _))| fits(pending))
            .map(|(id, _)| *id)
            .collect();
        ids.sort_unstable();
        ids
    }

    pub fn count(&self, fits: impl Fn(&Pending) -> bool) -> usize {
        self.requests.values().filter(|(pending, _)| fits(pending)).count()
    }
}
