//! The hub connects the broker to the rest of the daemon: it feeds it events, carries out its effects, and keeps its
//! clock.
//!
//! Connections call [`Hub::deliver`] directly from their own tasks; there is no queue in front of the broker. A message
//! to send goes into the [`Outbox`] of its connection, which the connection's writer empties. The broker limits what
//! is queued, so the outbox has no limit of its own.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;

use bridge_protocol::methods::StatusResult;
use bridge_protocol::{Dialect, ErrorKind, Secret, SessionId, WireError};
use rustc_hash::FxHashMap;
use tokio::sync::{Notify, watch};

use crate::broker::{Broker, CloseReason, Effect, Event, Grant, HostWait, Limits, PeerId};
use crate::gate::Tokens;
use crate::metrics::Metrics;
use crate::outbox::Outbox;
use crate::own_methods;
use crate::secrets::random_secret;

/// Shared by everything that runs in the daemon.
pub struct Hub {
    state: Mutex<State>,
    tokens: Arc<Tokens>,
    metrics: Metrics,
    started: Instant,
    next_peer: AtomicU64,
    /// Changes whenever a host has registered.
    registrations: watch::Sender<()>,
    /// Notified when the broker's next deadline has become earlier.
    earlier: Notify,
    /// Becomes true when the daemon is asked to end.
    ending: watch::Sender<bool>,
    /// Becomes true when no more connections are accepted.
    draining: watch::Sender<bool>,
    /// The number of connections, for tasks that wait for the last one to end.
    population: watch::Sender<usize>,
}

struct State {
    broker: Broker,
    outboxes: FxHashMap<PeerId, Arc<Outbox>>,
    /// When the timer will fire next.
    armed: Option<Instant>,
}

impl Hub {
    /// Creates a hub without connections.
    pub fn new(session: SessionId, limits: Limits, host_wait: HostWait) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::new(State {
                broker: Broker::new(session, limits, host_wait),
                outboxes: FxHashMap::default(),
                armed: None,
            }),
            tokens: Arc::default(),
            metrics: Metrics::default(),
            started: Instant::now(),
            next_peer: AtomicU64::new(1),
            registrations: watch::Sender::new(()),
            earlier: Notify::new(),
            ending: watch::Sender::new(false),
            draining: watch::Sender::new(false),
            population: watch::Sender::new(0),
        })
    }

    /// Adds a connection that has passed the gate.
    pub fn connect(&self, grant: Grant, dialect: Dialect) -> (PeerId, Arc<Outbox>) {
        let peer = PeerId(self.next_peer.fetch_add(1, Ordering::Relaxed));
        let outbox = Arc::new(Outbox::default());
        let mut state = self.lock();
        state.outboxes.insert(peer, Arc::clone(&outbox));
        state.broker.handle(Event::Connected { peer, grant, dialect }, Instant::now());
        (peer, outbox)
    }

    /// Removes a connection that has ended.
    pub fn disconnect(self: &Arc<Self>, peer: PeerId) {
        self.lock().outboxes.remove(&peer);
        self.deliver(Event::Closed { peer });
    }

    /// Passes an event to the broker and carries out its effects.
    pub fn deliver(self: &Arc<Self>, event: Event<'_>) {
        let mut state = self.lock();
        let effects = state.broker.handle(event, Instant::now());
        self.carry_out(state, effects);
    }

    /// Lets a method of the daemon read or change the broker. The effects are carried out when the method has been
    /// answered.
    pub fn with_broker<T>(&self, act: impl FnOnce(&mut Broker, Instant) -> T) -> T {
        act(&mut self.lock().broker, Instant::now())
    }

    /// Carries out the effects of [`with_broker`](Self::with_broker) when it was not called for a method.
    pub fn settle(self: &Arc<Self>) {
        let mut state = self.lock();
        let effects = state.broker.take_effects();
        self.carry_out(state, effects);
    }

    fn carry_out(self: &Arc<Self>, mut state: MutexGuard<'_, State>, mut effects: Vec<Effect>) {
        let mut calls = Vec::new();
        for effect in effects.drain(..) {
            match effect {
                Effect::Send { peer, text } => state.with_outbox(peer, |outbox| outbox.push(text)),
                Effect::Close { peer, reason } => state.with_outbox(peer, |outbox| match reason {
                    CloseReason::SlowConsumer => outbox.close_now(reason),
                    CloseReason::Violations | CloseReason::Replaced | CloseReason::Ending => {
                        outbox.close(reason);
                    }
                }),
                Effect::Read { peer, enabled } => {
                    state.with_outbox(peer, |outbox| outbox.set_reading(enabled));
                }
                Effect::Call { call, role, method, params } => {
                    calls.push((call, role, method, params));
                }
                Effect::Finished(record) => {
                    self.metrics.count(&record);
                    own_methods::log(&record);
                }
            }
        }
        state.broker.reuse(effects);
        let next = state.broker.next_deadline();
        if next.is_some_and(|next| state.armed.is_none_or(|armed| next < armed)) {
            self.earlier.notify_one();
        }
        drop(state);
        for (call, role, method, params) in calls {
            let outcome = own_methods::call(self, call.peer, role, &method, params.as_deref());
            self.deliver(Event::Called { call, outcome });
        }
    }

    /// The tokens that the gate accepts.
    pub fn tokens(&self) -> Arc<Tokens> {
        Arc::clone(&self.tokens)
    }

    /// Makes a random token with this grant. It is valid for the rest of the session.
    pub fn create_token(&self, grant: Grant) -> Result<Secret, WireError> {
        let secret = random_secret().map_err(|error| {
            ErrorKind::InternalError.error(format!("cannot make a token: {error:#}"))
        })?;
        self.tokens.add(secret.clone(), grant)?;
        Ok(secret)
    }

    /// Wakes the tasks that wait for a host to register.
    pub fn has_registered(&self) {
        self.registrations.send_replace(());
    }

    /// Returns when a runtime with this id has registered.
    pub async fn registered(&self, runtime_id: &str) {
        let mut registrations = self.registrations.subscribe();
        while self.with_broker(|broker, _| broker.runtime(runtime_id).is_err()) {
            // The sender lives as long as `self`, so this returns only on a change.
            let _ = registrations.changed().await;
        }
    }

    /// Wakes the broker when a deadline passes. Never returns.
    pub async fn keep_time(self: Arc<Self>) {
        loop {
            let next = {
                let mut state = self.lock();
                state.armed = state.broker.next_deadline();
                state.armed
            };
            match next {
                Some(next) => tokio::select! {
                    () = tokio::time::sleep_until(next.into()) => self.deliver(Event::Tick),
                    () = self.earlier.notified() => {}
                },
                None => self.earlier.notified().await,
            }
        }
    }

    /// Stops accepting connections, fails the requests in flight, and closes every connection once its queue is empty.
    pub fn drain(self: &Arc<Self>) {
        self.draining.send_replace(true);
        self.deliver(Event::Drain);
    }

    /// Whether the daemon is ending.
    pub fn is_draining(&self) -> bool {
        *self.draining.borrow()
    }

    /// Returns when no more connections are accepted.
    pub async fn drained(&self) {
        // The sender lives as long as `self`, so this returns only on the change.
        let _ = self.draining.subscribe().wait_for(|draining| *draining).await;
    }

    /// Asks the daemon to end.
    pub fn end(&self) {
        self.ending.send_replace(true);
    }

    /// Returns when the daemon was asked to end.
    pub async fn ended(&self) {
        let mut ending = self.ending.subscribe();
        // The sender lives as long as `self`, so this returns only on the change.
        let _ = ending.wait_for(|ending| *ending).await;
    }

    /// Counts a connection, WebSocket or plain HTTP, until the guard is dropped, which is after the close frames.
    pub fn attend(self: &Arc<Self>) -> impl Drop + use<> {
        struct Attendance(Arc<Hub>);
        impl Drop for Attendance {
            fn drop(&mut self) {
                self.0.population.send_modify(|count| *count -= 1);
            }
        }
        self.population.send_modify(|count| *count += 1);
        Attendance(Arc::clone(self))
    }

    /// Watches the number of connections.
    pub fn population(&self) -> watch::Receiver<usize> {
        self.population.subscribe()
    }

    /// The metrics of the daemon.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// The result of `bridge/status`.
    pub fn status(&self) -> StatusResult {
        let state = self.lock();
        let broker = &state.broker;
        let mut counters: std::collections::BTreeMap<_, _> =
            broker.counters().named().into_iter().map(|(name, n)| (name.to_owned(), n)).collect();
        counters.insert("refusedConnections".to_owned(), self.metrics.refused_connections());
        StatusResult {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            session: broker.session().clone(),
            pid: std::process::id(),
            uptime: self.started.elapsed().as_secs_f64(),
            clients: broker.clients(),
            runtimes: broker.runtimes(),
            in_flight: broker.in_flight(),
            queued_bytes: broker.queued_bytes(),
            operations: broker.operations(),
            counters,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no holder of this lock panics")
    }
}

impl State {
    fn with_outbox(&self, peer: PeerId, act: impl FnOnce(&Outbox)) {
        if let Some(outbox) = self.outboxes.get(&peer) {
            act(outbox);
        }
    }
}
