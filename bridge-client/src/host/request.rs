//! A request as its handler sees it.

use bridge_protocol::answer::{Answer, print_value, read_params_as};
use bridge_protocol::{CallId, DapEvent, WireError, message};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::{RawValue, to_raw_value};
use tokio::sync::{mpsc, watch};

/// A request of a client to this host, or an event.
#[derive(Debug)]
pub struct Request {
    /// Canonical name of the method; `dapEvent` for an event, whose answer goes nowhere.
    pub method: String,
    /// The parameters as raw text.
    pub params: Option<Box<RawValue>>,
    way_back: WayBack,
    cancelled: watch::Receiver<Option<Cancel>>,
}

/// Why the answer is no longer wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cancel {
    /// The caller has cancelled it.
    Requested,
    /// The caller has left, or the deadline has passed.
    Abandoned,
    /// The connection has ended, so no answer can be sent.
    Disconnected,
}

/// The channel for progress and the answer of a request.
#[derive(Clone, Debug)]
pub(super) struct WayBack {
    /// The id of the request. `None` for an event.
    id: Option<CallId<'static>>,
    replies: mpsc::Sender<Reply>,
}

/// A message of a handler. Progress and answer use the same channel, so the answer cannot overtake progress.
#[derive(Debug)]
pub(super) enum Reply {
    Progress(CallId<'static>, Box<RawValue>),
    Answer(CallId<'static>, Answer),
}

impl Request {
    pub(super) fn new(
        request: message::Request<'_>,
        replies: mpsc::Sender<Reply>,
        cancelled: watch::Receiver<Option<Cancel>>,
    ) -> Self {
        Self {
            method: request.method.into_owned(),
            params: request.params.map(ToOwned::to_owned),
            way_back: WayBack { id: Some(request.id.into_owned()), replies },
            cancelled,
        }
    }

    pub(super) fn from_event(event: &DapEvent<'_>, replies: mpsc::Sender<Reply>) -> Self {
        #[derive(Serialize)]
        struct Params<'a> {
            event: &'a str,
            #[serde(skip_serializing_if = "Option::is_none")]
            body: Option<&'a RawValue>,
            #[serde(skip_serializing_if = "Option::is_none")]
            client: Option<u64>,
        }
        let params = Params { event: &event.name, body: event.body, client: event.client };
        let (way_back, (_, cancelled)) = (WayBack { id: None, replies }, watch::channel(None));
        Self {
            method: DapEvent::NAME.to_owned(),
            params: to_raw_value(&params).ok(),
            way_back,
            cancelled,
        }
    }

    /// The daemon's id of the request, as JSON text. An event has none.
    pub fn id(&self) -> Option<&str> {
        self.way_back.id.as_ref().map(CallId::raw)
    }

    /// Parses the parameters. The error is meant for the caller.
    pub fn params_as<T: DeserializeOwned>(&self) -> Result<T, WireError> {
        read_params_as(&self.method, self.params.as_deref())
    }

    /// Sends a piece of the answer. Waits while the connection is busy. Returns `Ok` if the connection has ended: then the
    /// request has been [cancelled](Self::cancelled).
    pub async fn progress(&self, value: &impl Serialize) -> Result<(), WireError> {
        let Some(id) = self.way_back.id.clone() else { return Ok(()) };
        let value = print_value(value)?;
        // An error means that the connection has ended.
        let _ = self.way_back.replies.send(Reply::Progress(id, value)).await;
        Ok(())
    }

    /// Whether the answer is no longer wanted: the caller cancelled or left, the deadline passed,
    /// or the connection broke.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.borrow().is_some() || self.cancelled.has_changed().is_err()
    }

    /// Waits until the answer is no longer wanted. The handler should then end soon, usually with -32800. Never returns for
    /// an event.
    pub async fn cancelled(&self) -> Cancel {
        if self.way_back.id.is_none() {
            return std::future::pending().await;
        }
        let mut cancelled = self.cancelled.clone();
        let why = cancelled.wait_for(Option::is_some).await.ok().and_then(|why| *why);
        why.unwrap_or(Cancel::Disconnected)
    }

    /// Waits until the connection has ended, so that no answer can be sent.
    pub async fn disconnected(&self) {
        self.way_back.replies.closed().await;
    }

    pub(super) fn way_back(&self) -> WayBack {
        self.way_back.clone()
    }
}

impl WayBack {
    pub async fn answer(self, result: Answer) {
        if let Some(id) = self.id {
            // An error means that the connection has ended, and the daemon has failed the request.
            let _ = self.replies.send(Reply::Answer(id, result)).await;
        }
    }
}
