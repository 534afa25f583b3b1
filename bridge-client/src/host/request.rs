//! A request as its handler sees it.

use bridge_protocol::{CallId, ErrorKind, DapEvent, WireError, message};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::{RawValue, to_raw_value};
use tokio::sync::{mpsc, watch};

/// Something that a client asks of this host.
#[derive(Debug)]
pub struct Request {
    /// Canonical name of the method; `dapEvent` for an event, whose answer goes nowhere.
    pub method: String,
    /// As sent.
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
    /// The connection is gone, so no answer can reach anybody.
    Disconnected,
}

/// Where progress and the answer go.
#[derive(Clone, Debug)]
pub(super) struct WayBack {
    /// An event has none.
    id: Option<CallId<'static>>,
    replies: mpsc::Sender<Reply>,
}

/// Progress and answer take the same way, so the answer cannot overtake.
#[derive(Debug)]
pub(super) enum Reply {
    Progress(CallId<'static>, Box<RawValue>),
    Answer(CallId<'static>, Result<Box<RawValue>, WireError>),
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

    /// The parameters as a type. The error is what the caller should be told.
    pub fn params_as<T: DeserializeOwned>(&self) -> Result<T, WireError> {
        let text = self.params.as_deref().map_or("{}", RawValue::get);
        serde_json::from_str(text).map_err(|error| {
            let reason = format!("the parameters of {} are wrong: {error}", self.method);
            ErrorKind::InvalidParams.error(reason)
        })
    }

    /// Sends a piece of the answer. Waits while the connection is busy. Returns quietly when there
    /// is none any more: then the request has been [cancelled](Self::cancelled).
    pub async fn progress(&self, value: &impl Serialize) -> Result<(), WireError> {
        let Some(id) = self.way_back.id.clone() else { return Ok(()) };
        let value = to_raw_value(value).map_err(|error| {
            ErrorKind::InternalError.error(format!("progress cannot be printed: {error}"))
        })?;
        let _ = self.way_back.replies.send(Reply::Progress(id, value)).await;
        Ok(())
    }

    /// Whether the answer is no longer wanted: the caller cancelled or left, the deadline passed,
    /// or the connection broke.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.borrow().is_some() || self.cancelled.has_changed().is_err()
    }

    /// Waits until that is so. The handler should then end soon; what it answers hardly matters,
    /// -32800 by custom. Never comes for an event.
    pub async fn cancelled(&self) -> Cancel {
        if self.way_back.id.is_none() {
            return std::future::pending().await;
        }
        let mut cancelled = self.cancelled.clone();
        let why = cancelled.wait_for(Option::is_some).await.ok().and_then(|why| *why);
        why.unwrap_or(Cancel::Disconnected)
    }

    /// Waits until no answer can reach anybody, because the connection is gone.
    pub async fn disconnected(&self) {
        self.way_back.replies.closed().await;
    }

    pub(super) fn way_back(&self) -> WayBack {
        self.way_back.clone()
    }
}

impl WayBack {
    pub async fn answer(self, result: Result<Box<RawValue>, WireError>) {
        if let Some(id) = self.id {
            // Without a connection the caller has been told long ago.
            let _ = self.replies.send(Reply::Answer(id, result)).await;
        }
    }
}
