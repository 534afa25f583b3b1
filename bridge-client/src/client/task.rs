//! The task that owns a client's connection.

use std::convert::Infallible;
use std::ops::ControlFlow;
use std::time::Duration;

use bridge_protocol::limits::MESSAGE_BYTES;
use bridge_protocol::methods::{Hello, HelloParams, MethodType};
use bridge_protocol::{ErrorKind, Outcome, PROTOCOL_VERSION};
use futures_util::future::BoxFuture;
use serde_json::value::{RawValue, to_raw_value};
use tokio::sync::{broadcast, mpsc, oneshot};
use tokio::time::{Instant, sleep, sleep_until};

use super::{Control, Notice, Options};
use crate::backoff::{Backoff, FOREVER};
use crate::call::{CallKey, Waiter, answer_of};
use crate::connection::{Connection, Dial, Text};
use crate::error::Error;
use crate::peer::{Incoming, Peer};

/// How many controls are taken at a time, so that a burst of calls is sent in few writes.
const BATCH: usize = 64;

pub(super) struct Task {
    dial: Dial,
    options: Options,
    controls: mpsc::UnboundedReceiver<Control>,
    notices: broadcast::Sender<Notice>,
    peer: Peer<Pending, Infallible>,
    /// Calls that have not been sent, because there is no connection.
    unsent: Vec<Unsent>,
    link: Link,
}

struct Unsent {
    params: Option<Box<RawValue>>,
    waiter: Waiter,
}

/// A request that waits for its answer.
enum Pending {
    /// `bridge/hello`. Only its refusal matters.
    Hello,
    Call(Waiter),
}

enum Link {
    Up(Box<Connection>),
    /// There is no connection; the next call dials.
    Down {
        goodbye: bool,
    },
    Dialling {
        backoff: Backoff,
        last: Option<Error>,
        attempt: BoxFuture<'static, Dialled>,
    },
}

type Dialled = Result<Box<Connection>, Error>;

enum Event {
    Controls(usize),
    Received(Result<Text, Error>),
    Dialled(Dialled),
    DeadlinePassed,
}

impl Task {
    pub fn new(
        dial: Dial,
        options: Options,
        controls: mpsc::UnboundedReceiver<Control>,
        notices: broadcast::Sender<Notice>,
        connection: Connection,
    ) -> Self {
        let (peer, link) = (Peer::default(), Link::Down { goodbye: false });
        let unsent = Vec::new();
        let mut task = Self { dial, options, controls, notices, peer, unsent, link };
        task.connected(Box::new(connection));
        task
    }

    pub async fn run(mut self) {
        let mut batch = Vec::with_capacity(BATCH);
        loop {
            match self.event(&mut batch).await {
                Event::Controls(0) => return self.end().await,
                Event::Controls(_) => {
                    for control in batch.drain(..) {
                        if let ControlFlow::Break(closed) = self.control(control) {
                            self.end().await;
                            // The caller of `close` may have stopped waiting.
                            let _ = closed.send(());
                            return;
                        }
                    }
                }
                Event::Received(Ok(text)) => self.received(&text),
                Event::Received(Err(error)) => self.disconnected(&error),
                Event::Dialled(Ok(connection)) => self.connected(connection),
                Event::Dialled(Err(error)) => self.dial_failed(error),
                Event::DeadlinePassed => self.fail_overdue(),
            }
        }
    }

    async fn event(&mut self, batch: &mut Vec<Control>) -> Event {
        let first_deadline = self.unsent.iter().map(|unsent| unsent.waiter.deadline).min();
        let controls = &mut self.controls;
        match &mut self.link {
            // Controls are taken even if much waits to be sent: a cancel or a close must not wait for a daemon that
            // does not read. The number of calls is limited elsewhere.
            Link::Up(connection) => tokio::select! {
                received = connection.next() => Event::Received(received),
                count = controls.recv_many(batch, BATCH) => Event::Controls(count),
            },
            Link::Down { .. } => Event::Controls(controls.recv_many(batch, BATCH).await),
            Link::Dialling { attempt, .. } => {
                let deadline = first_deadline.unwrap_or_else(|| Instant::now() + FOREVER);
                tokio::select! {
                    dialled = attempt => Event::Dialled(dialled),
                    count = controls.recv_many(batch, BATCH) => Event::Controls(count),
                    () = sleep_until(deadline) => Event::DeadlinePassed,
                }
            }
        }
    }

    fn control(&mut self, control: Control) -> ControlFlow<oneshot::Sender<()>> {
        match control {
            Control::Call { params, waiter } => match self.link {
                Link::Up(_) => self.send_call(Unsent { params, waiter }),
                Link::Dialling { .. } => self.unsent.push(Unsent { params, waiter }),
                Link::Down { goodbye } => {
                    self.unsent.push(Unsent { params, waiter });
                    // After a close frame of the daemon, one attempt is enough: it may have been restarted.
                    let window = if goodbye { Duration::ZERO } else { self.options.reconnect_for };
                    self.dial_again(Backoff::new(Instant::now(), window), None);
                }
            },
            Control::Notify(text) => self.send(text),
            Control::Cancel(key) => self.cancel(key, Wanted::Answer),
            Control::Abandon(key) => self.cancel(key, Wanted::Nothing),
            Control::Close(closed) => return ControlFlow::Break(closed),
        }
        ControlFlow::Continue(())
    }

    fn send_call(&mut self, Unsent { params, waiter }: Unsent) {
        let method = waiter.method.clone();
        match self.peer.call(&method, params.as_deref(), Pending::Call(waiter)) {
            Ok((call, text)) if text.len() > MESSAGE_BYTES => {
                let bytes = text.len();
                finish(self.peer.forget(call), &Error::TooBig { bytes });
            }
            Ok((_, text)) => self.send(text),
            Err((pending, error)) => finish(Some(pending), &Error::Rejected(error)),
        }
    }

    /// Sends a text. Without a connection it is dropped.
    fn send(&mut self, text: String) {
        if let Link::Up(connection) = &mut self.link {
            connection.send(text);
        }
    }

    /// Cancels a call. Searches all calls for the key, which is cheap enough: cancels are rare and calls are few.
    fn cancel(&mut self, key: CallKey, wanted: Wanted) {
        if let Some(at) = self.unsent.iter().position(|unsent| unsent.waiter.key == key) {
            let error = ErrorKind::RequestCancelled.error("cancelled before it was sent");
            return self.unsent.swap_remove(at).waiter.finish(Err(Error::Rejected(error)));
        }
        let fits = |pending: &Pending| matches!(pending, Pending::Call(call) if call.key == key);
        let Some(call) = self.peer.find(fits) else { return };
        if let Some(text) = self.peer.cancel(call) {
            self.send(text);
        }
        if wanted == Wanted::Nothing {
            self.peer.forget(call);
        }
    }

    fn received(&mut self, text: &str) {
        match self.peer.receive(text) {
            Incoming::Answer { waiting: Pending::Call(waiter), outcome, .. } => {
                waiter.finish_with(outcome);
            }
            Incoming::Answer { waiting: Pending::Hello, outcome, .. } => self.greeted(outcome),
            Incoming::Progress { call, value } => {
                if let Some(Pending::Call(waiter)) = self.peer.waiting(call) {
                    waiter.progress(value);
                }
            }
            Incoming::Request(request) => {
                let error = ErrorKind::MethodNotFound.error("this program is no host");
                let answer = self.peer.refuse(&request.id, &error);
                self.send(answer);
            }
            Incoming::Notification(notification) => self.notice(Notice::Notification {
                method: notification.method.into_owned(),
                params: notification.params.map(ToOwned::to_owned),
            }),
            Incoming::DapEvent(event) => self.notice(Notice::DapEvent {
                name: event.name.into_owned(),
                body: event.body.map(ToOwned::to_owned),
            }),
            Incoming::Cancel { .. } | Incoming::Ignored(_) => {}
        }
    }

    /// Handles the answer to `bridge/hello`. Without a common version, all calls fail. A daemon that does not know the
    /// method is an older one, which uses version 1.
    fn greeted(&mut self, outcome: Outcome<'_>) {
        if let Err(error) = answer_of(Hello::NAME, outcome)
            && error.is(ErrorKind::VersionMismatch)
        {
            self.disconnected(&error);
        }
    }

    fn connected(&mut self, connection: Box<Connection>) {
        self.link = Link::Up(connection);
        let Options { name, runtime_id, path, .. } = &self.options;
        if !name.is_empty() || runtime_id.is_some() || path.is_some() {
            let params = HelloParams {
                protocol: PROTOCOL_VERSION,
                name: name.clone(),
                runtime_id: runtime_id.clone(),
                path: path.clone(),
            };
            let params = to_raw_value(&params).expect("a number and a string always print");
            if let Ok((_, text)) = self.peer.call(Hello::NAME, Some(&params), Pending::Hello) {
                self.send(text);
            }
        }
        for unsent in std::mem::take(&mut self.unsent) {
            self.send_call(unsent);
        }
    }

    fn disconnected(&mut self, error: &Error) {
        self.link = Link::Down { goodbye: error.is_goodbye() };
        let (waiting, _) = self.peer.disconnect();
        for pending in waiting {
            finish(Some(pending), error);
        }
        self.notice(Notice::Disconnected(error.clone()));
    }

    fn dial_again(&mut self, mut backoff: Backoff, last: Option<Error>) {
        let (dial, pause) = (self.dial.clone(), backoff.pause());
        let attempt = Box::pin(async move {
            sleep(pause).await;
            dial().await.map(Box::new)
        });
        self.link = Link::Dialling { backoff, last, attempt };
    }

    fn dial_failed(&mut self, error: Error) {
        let Link::Dialling { backoff, .. } =
            std::mem::replace(&mut self.link, Link::Down { goodbye: false })
        else {
            return;
        };
        if self.unsent.is_empty() || backoff.is_over(Instant::now()) || !error.may_pass() {
            for unsent in self.unsent.drain(..) {
                unsent.waiter.finish(Err(error.clone()));
            }
        } else {
            self.dial_again(backoff, Some(error));
        }
    }

    fn fail_overdue(&mut self) {
        let Link::Dialling { last, .. } = &self.link else { return };
        let now = Instant::now();
        for unsent in self.unsent.extract_if(.., |unsent| unsent.waiter.deadline <= now) {
            let Waiter { started, method, .. } = &unsent.waiter;
            let timed_out = || Error::TimedOut { method: method.clone(), after: now - *started };
            let error = last.clone().unwrap_or_else(timed_out);
            unsent.waiter.finish(Err(error));
        }
    }

    async fn end(&mut self) {
        for unsent in self.unsent.drain(..) {
            unsent.waiter.finish(Err(Error::Closed));
        }
        for pending in self.peer.disconnect().0 {
            finish(Some(pending), &Error::Closed);
        }
        let link = std::mem::replace(&mut self.link, Link::Down { goodbye: false });
        if let Link::Up(connection) = link {
            connection.close().await;
        }
    }

    fn notice(&self, notice: Notice) {
        // An error means that there is no receiver.
        let _ = self.notices.send(notice);
    }
}

/// Whether the caller of a cancelled call still waits for its answer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    Answer,
    Nothing,
}

fn finish(pending: Option<Pending>, error: &Error) {
    if let Some(Pending::Call(waiter)) = pending {
        waiter.finish(Err(error.clone()));
    }
}
