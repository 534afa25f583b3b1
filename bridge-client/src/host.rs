//! A host: registers with a daemon and serves requests.
//!
//! [`Host::attach`] connects with the host token and registers. [`Host::serve`] then runs a handler for each request, many
//! at a time, until the daemon closes the connection. When the connection breaks, the host connects again with growing
//! pauses and registers the same runtime id, so that the daemon takes it for the same host. The daemon has failed the
//! requests that were being served; their handlers see a cancel, and their results are dropped.
//!
//! A handler that panics fails its own request and nothing else.

mod request;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use bridge_protocol::answer::print_value;
use bridge_protocol::limits::MESSAGE_BYTES;
use bridge_protocol::methods::{
    MethodType, Register, RegisterParams, RegisterResult, Update, UpdateParams,
};
use bridge_protocol::{ErrorKind, WireError};
use futures_util::FutureExt;
use serde::Serialize;
use serde_json::value::to_raw_value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use crate::backoff::Backoff;
use crate::call::{self, answer_of};
use crate::client::Options;
use crate::connection::{Connection, Dial, dialler, no_dialler};
use crate::endpoint::Endpoint;
use crate::error::Error;
use crate::peer::{Incoming, Peer};

use request::Reply;
pub use request::{Cancel, Request};

/// Close code of a connection that another registration of the same runtime id has replaced.
const REPLACED: u16 = 4409;

/// How many replies of handlers wait for the connection. When it is reached, handlers wait, too.
const REPLIES_WAITING: usize = 64;

/// A host that has registered, but does not serve yet.
pub struct Host {
    dial: Dial,
    options: Options,
    registration: RegisterParams,
    runtime_id: String,
    connection: Connection,
    peer: HostPeer,
    controls: (mpsc::UnboundedSender<Control>, mpsc::UnboundedReceiver<Control>),
}

/// Sends updates and notifications to the daemon while the host serves. Clone it freely.
#[derive(Clone, Debug)]
pub struct HostHandle(mpsc::UnboundedSender<Control>);

#[derive(Debug)]
enum Control {
    Update(UpdateParams),
    Notify(String),
}

/// A host keeps nothing for its own calls, and for each request a channel to cancel it.
type HostPeer = Peer<(), watch::Sender<Option<Cancel>>>;

impl Host {
    /// Connects and registers. The endpoint must hold the host token; see
    /// [`Endpoint::find_for_host`].
    pub async fn attach(
        endpoint: Endpoint,
        registration: RegisterParams,
        options: Options,
    ) -> Result<Self, Error> {
        let dial = dialler(endpoint, options.connect_timeout);
        Self::dial(dial, registration, options).await
    }

    /// Registers over a stream that was inherited from the daemon; see
    /// [`inherited_stream`](crate::connection::inherited_stream). When it ends without a close frame,
    /// [`serve`](Self::serve) returns an error: the daemon is gone.
    pub async fn over(
        stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
        registration: RegisterParams,
        options: Options,
    ) -> Result<Self, Error> {
        let connection = Connection::over_stream(stream).await;
        let options = Options { reconnect_for: Duration::ZERO, ..options };
        Self::registered(connection, no_dialler(), registration, options).await
    }

    pub(crate) async fn dial(
        dial: Dial,
        registration: RegisterParams,
        options: Options,
    ) -> Result<Self, Error> {
        let connection = dial().await?;
        Self::registered(connection, dial, registration, options).await
    }

    async fn registered(
        mut connection: Connection,
        dial: Dial,
        mut registration: RegisterParams,
        options: Options,
    ) -> Result<Self, Error> {
        let mut peer = HostPeer::default();
        let runtime_id = register(&mut connection, &mut peer, &registration, &options).await?;
        // After a reconnection, the same id is registered again.
        registration.runtime_id = Some(runtime_id.clone());
        let controls = mpsc::unbounded_channel();
        Ok(Self { dial, options, registration, runtime_id, connection, peer, controls })
    }

    /// The runtime id of this host.
    pub fn runtime_id(&self) -> &str {
        &self.runtime_id
    }

    /// A handle for sending updates, such as the focus, and events.
    pub fn handle(&self) -> HostHandle {
        HostHandle(self.controls.0.clone())
    }

    /// Serves until the daemon closes the connection, which is `Ok`, or does not come back, which is an error. The
    /// handler's result may be anything that serialises to JSON; a `Box<RawValue>` is sent unchanged. Dropping the future
    /// ends the connection and all handlers.
    pub async fn serve<F, Fut, R>(mut self, handler: F) -> Result<(), Error>
    where
        F: Fn(Request) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, WireError>> + Send + 'static,
        R: Serialize + Send + 'static,
    {
        let handler = Arc::new(handler);
        let mut handlers = JoinSet::new();
        loop {
            let lost = self.serve_connection(&handler, &mut handlers).await;
            match lost {
                goodbye if goodbye.is_goodbye() => return Ok(()),
                Error::Lost { code: Some(REPLACED), .. } => {
                    return Err(Error::Replaced(self.runtime_id));
                }
                lost => self.reattach(lost).await?,
            }
        }
    }

    /// Serves one connection, until it ends.
    async fn serve_connection<F, Fut, R>(
        &mut self,
        handler: &Arc<F>,
        handlers: &mut JoinSet<()>,
    ) -> Error
    where
        F: Fn(Request) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, WireError>> + Send + 'static,
        R: Serialize + Send + 'static,
    {
        // Each connection has its own channel: replies for an earlier connection must not reach this one, where the same
        // ids may belong to other requests.
        let (replies_in, mut replies) = mpsc::channel(REPLIES_WAITING);
        loop {
            let has_room = self.connection.has_room();
            tokio::select! {
                received = self.connection.next_or_room() => match received {
                    Ok(None) => {}
                    Ok(Some(text)) => {
                        if let Some(request) = self.received(&text, &replies_in) {
                            handlers.spawn(run(Arc::clone(handler), request));
                        }
                    }
                    Err(lost) => {
                        // Dropping the channels of the requests cancels them.
                        self.peer.disconnect();
                        return lost;
                    }
                },
                Some(reply) = replies.recv(), if has_room => self.reply(reply),
                Some(control) = self.controls.1.recv(), if has_room => match control {
                    Control::Update(update) => self.update(update),
                    Control::Notify(text) => self.connection.send(text),
                },
                Some(_) = handlers.join_next() => {}
            }
        }
    }

    fn received(&mut self, text: &str, replies: &mpsc::Sender<Reply>) -> Option<Request> {
        match self.peer.receive(text) {
            Incoming::Request(request) => {
                let (cancel, cancelled) = watch::channel(None);
                if !self.peer.serve(&request.id, cancel) {
                    let error = ErrorKind::InvalidRequest.error("this id is already in flight");
                    self.connection.send(self.peer.refuse(&request.id, &error));
                    return None;
                }
                return Some(Request::new(request, replies.clone(), cancelled));
            }
            Incoming::DapEvent(event) => {
                return Some(Request::from_event(&event, replies.clone()));
            }
            Incoming::Cancel { request, by_caller } => {
                if let Some(cancel) = self.peer.served(&request) {
                    let why = if by_caller { Cancel::Requested } else { Cancel::Abandoned };
                    cancel.send_replace(Some(why));
                }
            }
            Incoming::Answer { .. }
            | Incoming::Progress { .. }
            | Incoming::Notification(_)
            | Incoming::Ignored(_) => {}
        }
        None
    }

    /// Sends a reply of a handler, or an error if it is too big: the daemon would close the connection, and every other
    /// request would fail, too.
    fn reply(&mut self, reply: Reply) {
        let fits = |text: &String| text.len() <= MESSAGE_BYTES;
        let text = match reply {
            Reply::Progress(id, value) => self.peer.progress(&id, &value).filter(fits),
            Reply::Answer(id, result) => self.peer.answer(&id, result.as_deref()).map(|text| {
                let too_big = || ErrorKind::OversizedResponse.error("the answer is too big");
                if fits(&text) { text } else { self.peer.refuse(&id, &too_big()) }
            }),
        };
        if let Some(text) = text {
            self.connection.send(text);
        }
    }

    /// Sends an update to the daemon, and remembers it for the next registration.
    fn update(&mut self, update: UpdateParams) {
        let params = to_raw_value(&update).expect("strings and flags always print");
        if let Ok((_, text)) = self.peer.call(Update::NAME, Some(&params), ()) {
            self.connection.send(text);
        }
        let known = &mut self.registration;
        let UpdateParams { title, workspace_folders, methods, focused } = update;
        known.title = title.unwrap_or_else(|| std::mem::take(&mut known.title));
        known.workspace_folders =
            workspace_folders.unwrap_or_else(|| std::mem::take(&mut known.workspace_folders));
        known.methods = methods.unwrap_or_else(|| std::mem::take(&mut known.methods));
        known.focused = focused.unwrap_or(known.focused);
    }

    async fn reattach(&mut self, mut last: Error) -> Result<(), Error> {
        let mut backoff = Backoff::new(Instant::now(), self.options.reconnect_for);
        while last.may_pass() && !backoff.is_over(Instant::now()) {
            sleep(backoff.pause()).await;
            let attempt = async {
                let mut connection = (self.dial)().await?;
                register(&mut connection, &mut self.peer, &self.registration, &self.options)
                    .await?;
                Ok(connection)
            };
            match attempt.await {
                Ok(connection) => {
                    self.connection = connection;
                    return Ok(());
                }
                Err(error) => last = error,
            }
            self.peer.disconnect();
        }
        Err(last)
    }
}

impl HostHandle {
    /// Sends `runtime/update` to the daemon. The change is also remembered for the next registration. Does nothing if the
    /// host no longer serves.
    pub fn update(&self, update: UpdateParams) {
        // An error means that the host no longer serves.
        let _ = self.0.send(Control::Update(update));
    }

    /// Sends a notification, for instance a `dapEvent` with the number of the client it is for.
    pub fn notify(&self, method: &str, params: &impl Serialize) -> Result<(), Error> {
        let text = call::notification(method, params)?;
        self.0.send(Control::Notify(text)).map_err(|_| Error::Closed)
    }
}

/// Registers, and returns the runtime id from the daemon's answer.
async fn register(
    connection: &mut Connection,
    peer: &mut HostPeer,
    registration: &RegisterParams,
    options: &Options,
) -> Result<String, Error> {
    let params = to_raw_value(registration).expect("strings and flags always print");
    let (_, text) = peer
        .call(Register::NAME, Some(&params), ())
        .map_err(|((), error)| Error::Rejected(error))?;
    connection.send(text);
    let answer = async {
        loop {
            let text = connection.next().await?;
            // The daemon sends no request before this answer.
            if let Incoming::Answer { outcome, .. } = peer.receive(&text) {
                return answer_of(Register::NAME, outcome);
            }
        }
    };
    let timed_out =
        || Error::TimedOut { method: Register::NAME.to_owned(), after: options.connect_timeout };
    let answer = timeout(options.connect_timeout, answer).await.map_err(|_| timed_out())??;
    let result: RegisterResult = serde_json::from_str(answer.get()).map_err(|error| {
        Error::BadAnswer { method: Register::NAME.to_owned(), reason: error.to_string() }
    })?;
    Ok(result.runtime_id)
}

/// Runs the handler of one request and queues its answer.
async fn run<F, Fut, R>(handler: Arc<F>, request: Request)
where
    F: Fn(Request) -> Fut,
    Fut: Future<Output = Result<R, WireError>>,
    R: Serialize,
{
    let way_back = request.way_back();
    let work = async { handler(request).await.and_then(|result| print_value(&result)) };
    let result = AssertUnwindSafe(work).catch_unwind().await.unwrap_or_else(|_| {
        Err(ErrorKind::InternalError.error("the host's handler panicked: see its log"))
    });
    way_back.answer(result).await;
}

#[cfg(test)]
mod tests;
