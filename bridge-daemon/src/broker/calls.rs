//! The life of a request: it is accepted, forwarded to a host or parked until one registers, and ended.
//!
//! Every request ends in [`Broker::finish`]: the one place that removes it from the list of requests in flight,
//! answers its caller, and cancels it at the host if the host may still work on it.

use std::borrow::Cow;
use std::time::{Duration, Instant};

use bridge_protocol::method::{longest_timeout, needed_rights};
use bridge_protocol::methods::{CancelParams, ProgressParams, RequestRecord};
use bridge_protocol::timeout::{Allowance, RoutingParams};
use bridge_protocol::{
    CallId, Dialect, ErrorKind, Method, Outcome, Request, RequestId, Response, Rights, WireError,
    print,
};
use serde_json::value::RawValue;
use serde_json::{Map, json};

use super::choice::{Choice, Target};
use super::errors::{overloaded, shutting_down, timed_out};
use super::grant::forbidden_rights;
use super::peers::{PeerId, Urgency};
use super::pending::{Pending, Stage};
use super::{Broker, Effect, HostWait};

/// The outcome of a request whose caller left.
const CALLER_GONE: &str = "CallerGone";

/// How a request ends.
enum Ending<'a> {
    /// The host answered.
    Result(&'a RawValue),
    /// The host answered with its own error object.
    HostError(&'a RawValue),
    /// The host is gone, or its answer was unusable: there is nothing to cancel.
    Failed(WireError),
    /// The broker gave up (deadline, cancel, shutdown) while the host may still work on it.
    Abandoned(WireError),
    /// Nobody waits for the answer any more.
    CallerGone,
}

impl Broker {
    pub(super) fn on_request(
        &mut self,
        peer: PeerId,
        request: Request<'_>,
        bytes: usize,
        now: Instant,
    ) {
        let key = (request.dialect == Dialect::JsonRpc).then(|| request.id.key());
        if key.as_deref().is_some_and(|key| self.peers.request_with_id(peer, key).is_some()) {
            // Without an id: with it, the caller would take this for the answer to the first request.
            let reason = format!("id {} is already in flight on this connection", request.id.raw());
            let error = ErrorKind::InvalidRequest.error(reason);
            return self.answer(peer, print::failure(request.dialect, None, &error));
        }
        match self.accept(peer, &request, key.as_deref(), bytes, now) {
            Ok(()) => self.adjust_reading(peer),
            Err(error) => {
                self.counters.overloaded += u64::from(error.code() == ErrorKind::Overloaded.code());
                self.answer(peer, print::failure(request.dialect, Some(&request.id), &error));
            }
        }
    }

    fn accept(
        &mut self,
        peer: PeerId,
        request: &Request<'_>,
        key: Option<&str>,
        bytes: usize,
        now: Instant,
    ) -> Result<(), WireError> {
        if self.pending.len() >= self.limits.total_requests {
            return Err(overloaded("the bridge has too many requests in flight"));
        }
        let mut routing = RoutingParams::read(request.params)
            .map_err(|reason| ErrorKind::InvalidParams.error(reason))?;
        let known = Method::from_name(&request.method);
        let method = match known {
            Some(method) => Cow::Borrowed(method.name()),
            None => Cow::Owned(request.method.clone().into_owned()),
        };
        self.check_rights(peer, &method)?;
        let target = match self.peers.defaults(peer) {
            Some(defaults) => Target::new(&mut routing, defaults),
            None => Target::default(),
        };
        let choice = self.runtimes.choose(&method, &target);
        match &choice {
            Choice::Host(_) => {}
            Choice::Wait if self.peers.admits_parking(bytes) => {}
            Choice::Wait => return Err(overloaded("too many bytes wait for a host")),
            nowhere => return Err(self.not_routed(&request.method, nowhere)),
        }
        let allowance = Allowance::new(routing.timeout, &method);
        let whole = allowance.answer_after(request.dialect);
        let mut deadline = now + whole;
        let id = self.pending.next_id();
        let stage = match choice {
            Choice::Host(host) => {
                self.forward(id, host, &method, request.params)?;
                Stage::Sent { host, at: now }
            }
            _ => {
                let params = request.params.map(ToOwned::to_owned);
                self.peers.park(params.as_ref().map_or(0, |params| params.get().len()));
                if let HostWait::UpTo(limit) = self.host_wait {
                    deadline = now + whole.min(limit);
                }
                Stage::Waiting { params }
            }
        };
        self.counters.requests += 1;
        self.peers.begin_request(peer, key, id, bytes);
        let pending = Pending {
            caller: peer,
            dialect: request.dialect,
            call_id: request.id.clone().into_owned(),
            method,
            target,
            allowance,
            bytes,
            started: now,
            stage,
        };
        self.pending.insert(id, pending, deadline);
        Ok(())
    }

    fn check_rights(&mut self, peer: PeerId, method: &str) -> Result<(), WireError> {
        let rights = self.peers.rights(peer);
        // The usual case. All rights allow every method, so the catalogue need not be searched.
        if rights == Rights::ALL {
            return Ok(());
        }
        match rights.missing(needed_rights(method)) {
            Rights::NONE => Ok(()),
            missing => {
                self.counters.forbidden += 1;
                Err(forbidden_rights(&format!("{method} is not allowed"), missing))
            }
        }
    }

    /// Queues a request for a host, if there is room.
    fn forward(
        &mut self,
        id: RequestId,
        host: PeerId,
        method: &str,
        params: Option<&RawValue>,
    ) -> Result<(), WireError> {
        let text = print::request(id, method, params);
        let limit = self.limits.message_bytes;
        if text.len() > limit {
            let reason = format!("a request may have at most {limit} bytes");
            return Err(ErrorKind::OversizedRequest.error(reason));
        }
        if !self.peers.admits(host, text.len(), Urgency::Request) {
            return Err(overloaded("the host does not keep up"));
        }
        self.send(host, text);
        Ok(())
    }

    /// Sends the parked requests for which there is a host now.
    pub(super) fn forward_parked(&mut self, now: Instant) {
        for id in self.pending.select(|pending| pending.host().is_none()) {
            let Some(pending) = self.pending.get_mut(id) else { continue };
            let choice = self.runtimes.choose(&pending.method, &pending.target);
            let Choice::Host(host) = choice else { continue };
            let deadline = pending.started + pending.allowance.answer_after(pending.dialect);
            let method = pending.method.clone();
            let stage = std::mem::replace(&mut pending.stage, Stage::Sent { host, at: now });
            let Stage::Waiting { params } = stage else { continue };
            self.peers.unpark(params.as_ref().map_or(0, |params| params.get().len()));
            self.pending.set_deadline(id, deadline);
            if let Err(error) = self.forward(id, host, &method, params.as_deref()) {
                self.finish(id, Ending::Failed(error), now);
            }
        }
    }

    fn finish(&mut self, id: RequestId, ending: Ending<'_>, now: Instant) {
        let Some(pending) = self.pending.take(id) else { return };
        self.peers.unpark(pending.parked_bytes());
        let abandoned = match &ending {
            Ending::Abandoned(error) => Some(outcome_name(error.code())),
            Ending::CallerGone => Some(CALLER_GONE.into()),
            Ending::Result(_) | Ending::HostError(_) | Ending::Failed(_) => None,
        };
        if let (Some(host), Some(reason)) = (pending.host(), abandoned) {
            self.send(host, print::cancel_because(id, &reason));
        }
        let (dialect, call_id) = (pending.dialect, &pending.call_id);
        let (text, outcome) = match ending {
            Ending::Result(result) => (print::success(dialect, call_id, result), "ok".into()),
            Ending::HostError(error) => {
                let code = serde_json::from_str::<print::ErrorParts<'_>>(error.get())
                    .map_or(0, |parts| parts.code);
                (print::failure_raw(dialect, Some(call_id), error), outcome_name(code))
            }
            Ending::Failed(error) | Ending::Abandoned(error) => failure(dialect, call_id, &error),
            Ending::CallerGone => (String::new(), CALLER_GONE.into()),
        };
        let limit = self.limits.message_bytes;
        let (text, outcome) = match text.len() > limit {
            true => {
                let reason = format!("an answer may have at most {limit} bytes");
                failure(dialect, call_id, &ErrorKind::OversizedResponse.error(reason))
            }
            false => (text, outcome),
        };
        self.counters.failed_requests += u64::from(outcome != "ok");
        let response_bytes = text.len();
        if !text.is_empty() {
            self.answer(pending.caller, text);
        }
        // Events that were held back must follow the answer.
        let released =
            self.peers.end_request(pending.caller, pending.key().as_deref(), pending.bytes);
        let peer = pending.caller;
        self.effects.extend(released.into_iter().map(|text| Effect::Send { peer, text }));
        self.adjust_reading(pending.caller);
        self.report(id, &pending, outcome, response_bytes, now);
    }

    fn report(
        &mut self,
        id: RequestId,
        pending: &Pending,
        outcome: Cow<'static, str>,
        response_bytes: usize,
        now: Instant,
    ) {
        let (wait, host) = pending.times(now);
        let milliseconds = |time: Duration| time.as_micros() as u64 as f64 / 1000.0;
        let runtime = pending.host().and_then(|host| self.runtimes.get(host));
        let record = RequestRecord {
            request: id.0,
            client: pending.caller.0,
            client_name: self.peers.name(pending.caller).to_owned(),
            method: pending.method.clone(),
            runtime_id: runtime.map(|runtime| runtime.offer.id.clone()),
            outcome,
            wait_ms: milliseconds(wait),
            host_ms: milliseconds(host),
            request_bytes: pending.bytes,
            response_bytes,
        };
        let tails = self.peers.tails();
        if !tails.is_empty() {
            let params = serde_json::value::to_raw_value(&record).expect("a record always prints");
            for tail in tails {
                let text = print::notification("bridge/request", Some(&params));
                if self.peers.admits(tail, text.len(), Urgency::Progress) {
                    self.send(tail, text);
                }
            }
        }
        self.effects.push(Effect::Finished(record));
    }

    pub(super) fn on_response(&mut self, host: PeerId, response: Response<'_>, now: Instant) {
        let asked = response.id.filter(|id| {
            self.pending.get_mut(*id).is_some_and(|pending| pending.host() == Some(host))
        });
        let Some(id) = asked else {
            self.counters.late_answers += 1;
            return;
        };
        let ending = match response.outcome {
            Outcome::Success(result) => Ending::Result(result),
            Outcome::Failure(error) => Ending::HostError(error),
            Outcome::Malformed => {
                let reason = "the host's answer holds neither a result nor a proper error";
                Ending::Failed(ErrorKind::BadHostResponse.error(reason))
            }
        };
        self.finish(id, ending, now);
    }

    /// Fails the request that an unreadable answer of a host names.
    pub(super) fn fail_misanswered(&mut self, host: PeerId, id: Option<&CallId<'_>>, now: Instant) {
        let id = id.and_then(|id| RequestId::from_raw(id.raw()));
        self.on_response(host, Response { id, outcome: Outcome::Malformed }, now);
    }

    pub(super) fn on_progress(&mut self, host: PeerId, params: Option<&RawValue>, now: Instant) {
        let Some(progress) = read::<ProgressParams<'_>>(params) else {
            self.counters.ignored_notifications += 1;
            return;
        };
        let asked = RequestId::from_raw(progress.id.get()).and_then(|id| {
            let pending = self.pending.get_mut(id)?;
            (pending.host() == Some(host)).then_some((id, pending))
        });
        let Some((id, pending)) = asked else {
            self.counters.late_answers += 1;
            return;
        };
        if pending.dialect == Dialect::Bridge {
            return; // The bridge dialect has no progress, and its callers do not extend their own timeout.
        }
        let caller = pending.caller;
        let text = print::progress(&pending.call_id, progress.value);
        if let Allowance::Default(patience) = pending.allowance {
            let longest = longest_timeout(&pending.method);
            let deadline = (now + patience).min(pending.started + longest);
            self.pending.set_deadline(id, deadline);
        }
        let fits = text.len() <= self.limits.message_bytes;
        if fits && self.peers.admits(caller, text.len(), Urgency::Progress) {
            self.counters.progress += 1;
            self.send(caller, text);
        } else {
            self.counters.dropped_progress += 1;
        }
    }

    pub(super) fn on_cancel(&mut self, peer: PeerId, params: Option<&RawValue>, now: Instant) {
        let params = read::<CancelParams<'_>>(params);
        let id = params.and_then(|params| CallId::from_raw(params.id.get()));
        // If there is no such request, it was answered before the cancel arrived.
        if let Some(id) = id.and_then(|id| self.peers.request_with_id(peer, &id.key())) {
            let error = ErrorKind::RequestCancelled.error("the request was cancelled");
            self.finish(id, Ending::Abandoned(error), now);
        }
    }

    pub(super) fn abandon_calls_of(&mut self, caller: PeerId, now: Instant) {
        for id in self.pending.select(|pending| pending.caller == caller) {
            self.finish(id, Ending::CallerGone, now);
        }
    }

    pub(super) fn expire_requests(&mut self, now: Instant) {
        while let Some(id) = self.pending.due(now) {
            let Some(pending) = self.pending.get_mut(id) else { return };
            let error = match pending.stage {
                Stage::Waiting { .. } => {
                    let (method, waited) = (pending.method.clone(), now - pending.started);
                    self.nobody_came(&method, waited)
                }
                Stage::Sent { .. } => timed_out(pending, now),
            };
            self.finish(id, Ending::Abandoned(error), now);
        }
    }

    pub(super) fn fail_all(&mut self, now: Instant) {
        for id in self.pending.select(|_| true) {
            self.finish(id, Ending::Abandoned(shutting_down()), now);
        }
    }

    /// Fails everything that a host was working on. The requests may have been carried out.
    pub(super) fn fail_requests_at(&mut self, host: PeerId, now: Instant) {
        for id in self.pending.select(|pending| pending.host() == Some(host)) {
            let reason = "the host went away while it worked on this: check whether it was done \
                          before you try again";
            let facts = Map::from_iter([("mayHaveExecuted".to_owned(), json!(true))]);
            self.finish(id, Ending::Failed(ErrorKind::HostGone.error_with(reason, facts)), now);
        }
    }
}

fn read<'a, T: serde::Deserialize<'a>>(params: Option<&'a RawValue>) -> Option<T> {
    serde_json::from_str(params?.get()).ok()
}

fn failure(dialect: Dialect, id: &CallId<'_>, error: &WireError) -> (String, Cow<'static, str>) {
    (print::failure(dialect, Some(id), error), outcome_name(error.code()))
}

fn outcome_name(code: i32) -> Cow<'static, str> {
    ErrorKind::from_code(code)
        .map_or_else(|| format!("error {code}").into(), |kind| kind.name().into())
}
