//! Calls from a program to the daemon.
//!
//! A [`Client`] is a cheap handle; one task owns the connection. Many calls share it, and answers come in any order. When
//! the connection breaks:
//!
//! - calls in flight fail at once with [`Error::Lost`]. They may have been carried out, so they are never sent again
//!   automatically;
//! - the next call connects again, with growing pauses between attempts, for as long as [`Options::reconnect_for`] and its
//!   own deadline allow. A daemon lives as long as its run, so one that stays away has ended.
//!
//! The connection is closed when the last handle and the last call have been dropped.

mod task;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bridge_protocol::limits::MESSAGE_BYTES;
use bridge_protocol::methods::MethodType;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::{RawValue, to_raw_value};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Semaphore, broadcast, mpsc, oneshot};

use crate::call::{self, Call, CallKey, Waiter};
use crate::connection::{Connection, Dial, dialler, no_dialler};
use crate::endpoint::Endpoint;
use crate::error::Error;
use task::Task;

/// Maximum number of calls in flight of one client. Further calls fail with [`Error::TooManyCalls`].
pub const CALLS_IN_FLIGHT: usize = 4096;

/// How many notices wait for a receiver that does not read them. Beyond that the oldest are dropped, and the receiver
/// learns how many.
const NOTICES_WAITING: usize = 1024;

/// Options of a connection.
#[derive(Clone, Debug)]
pub struct Options {
    /// Name of the program, shown by `bridge-client tail`. If it is empty, no name is sent.
    pub name: String,
    /// The runtime for requests that name none; see `bridge/hello`.
    pub runtime_id: Option<String>,
    /// An absolute path: requests that name no runtime go to the one that has it in its folders.
    pub path: Option<String>,
    /// Timeout of one attempt to connect.
    pub connect_timeout: Duration,
    /// How long to try to connect again after a connection was lost.
    pub reconnect_for: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            name: String::new(),
            runtime_id: None,
            path: None,
            connect_timeout: Duration::from_secs(5),
            reconnect_for: Duration::from_secs(5),
        }
    }
}

/// A handle to a connection. Clone it freely.
#[derive(Clone, Debug)]
pub struct Client {
    control: mpsc::UnboundedSender<Control>,
    keys: Arc<AtomicU64>,
    room: Arc<Semaphore>,
    notices: broadcast::Sender<Notice>,
}

/// A message from the daemon that is not an answer, or the end of the connection.
#[derive(Clone, Debug)]
pub enum Notice {
    /// A notification, for instance `bridge/request` after `bridge/tail`.
    Notification {
        /// Its method.
        method: String,
        /// Its params as raw text.
        params: Option<Box<RawValue>>,
    },
    /// A `dapEvent`.
    DapEvent {
        /// Its name, for instance `asyncOperationSubmit`.
        name: String,
        /// Its body as raw text.
        body: Option<Box<RawValue>>,
    },
    /// The connection has ended, and its subscriptions with it. A later call makes a new connection.
    Disconnected(Error),
}

/// Messages from handles and calls to the task.
#[derive(Debug)]
pub(crate) enum Control {
    Call {
        params: Option<Box<RawValue>>,
        waiter: Waiter,
    },
    Notify(String),
    /// Cancel the call; its caller still waits for the answer.
    Cancel(CallKey),
    /// Cancel the call; nobody waits for the answer.
    Abandon(CallKey),
    Close(oneshot::Sender<()>),
}

impl Client {
    /// Connects. Fails at once if nobody answers or the token is refused. Must be called within a tokio runtime of either
    /// flavour.
    pub async fn connect(endpoint: Endpoint, options: Options) -> Result<Self, Error> {
        let dial = dialler(endpoint, options.connect_timeout);
        Self::dial(dial, options).await
    }

    /// Creates a client over a stream that was inherited from the daemon; see
    /// [`inherited_stream`](crate::connection::inherited_stream). When the stream ends, all further calls fail.
    pub async fn over(
        stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
        options: Options,
    ) -> Self {
        let connection = Connection::over_stream(stream).await;
        let options = Options { reconnect_for: Duration::ZERO, ..options };
        Self::with_connection(connection, no_dialler(), options)
    }

    pub(crate) async fn dial(dial: Dial, options: Options) -> Result<Self, Error> {
        let connection = dial().await?;
        Ok(Self::with_connection(connection, dial, options))
    }

    fn with_connection(connection: Connection, dial: Dial, options: Options) -> Self {
        let (control, controls) = mpsc::unbounded_channel();
        let (notices, _) = broadcast::channel(NOTICES_WAITING);
        let task = Task::new(dial, options, controls, notices.clone(), connection);
        tokio::spawn(task.run());
        let room = Arc::new(Semaphore::new(CALLS_IN_FLIGHT));
        Self { control, keys: Arc::default(), room, notices }
    }

    /// Starts a call. It is sent at once; await the returned value for the answer. `timeout` is a hard limit and is sent in
    /// the parameters. Without it, the method's default applies, which progress restarts.
    pub fn call<M: MethodType>(
        &self,
        params: &M::Params,
        timeout: Option<Duration>,
    ) -> Call<M::Result> {
        match to_raw_value(params) {
            Ok(params) => self.start(M::NAME, Some(params), timeout),
            Err(error) => {
                let (method, reason) = (M::NAME.to_owned(), error.to_string());
                self.failed(M::NAME, Error::BadParams { method, reason })
            }
        }
    }

    /// Starts a call of any method, with parameters and result as raw text.
    pub fn call_raw(
        &self,
        method: &str,
        params: Option<Box<RawValue>>,
        timeout: Option<Duration>,
    ) -> Call<Box<RawValue>> {
        self.start(method, params, timeout)
    }

    /// Sends a notification, for instance a `dapEvent`. It is dropped when there is no connection.
    pub fn notify(&self, method: &str, params: &impl Serialize) -> Result<(), Error> {
        let text = call::notification(method, params)?;
        self.control.send(Control::Notify(text)).map_err(|_| Error::Closed)
    }

    /// Subscribes to the notices that come from now on.
    pub fn notices(&self) -> broadcast::Receiver<Notice> {
        self.notices.subscribe()
    }

    /// Closes the connection. Calls that still wait fail with [`Error::Closed`].
    pub async fn close(self) {
        let (done, closed) = oneshot::channel();
        if self.control.send(Control::Close(done)).is_ok() {
            // An error means that the task has ended, and the connection with it.
            let _ = closed.await;
        }
    }

    fn start<R: DeserializeOwned>(
        &self,
        method: &str,
        params: Option<Box<RawValue>>,
        timeout: Option<Duration>,
    ) -> Call<R> {
        let params = call::with_timeout(method, params, timeout);
        let bytes = params.as_deref().map_or(0, |params| params.get().len());
        if bytes > MESSAGE_BYTES {
            return self.failed(method, Error::TooBig { bytes });
        }
        let Ok(permit) = Arc::clone(&self.room).try_acquire_owned() else {
            return self.failed(method, Error::TooManyCalls);
        };
        let (call, waiter) = call::pair(
            self.next_key(),
            method,
            params.as_deref(),
            timeout,
            self.control.clone(),
            Some(permit),
        );
        if let Err(mpsc::error::SendError(Control::Call { waiter, .. })) =
            self.control.send(Control::Call { params, waiter })
        {
            waiter.finish(Err(Error::Closed));
        }
        call
    }

    /// A call that has failed before it was sent.
    fn failed<R: DeserializeOwned>(&self, method: &str, error: Error) -> Call<R> {
        let key = self.next_key();
        let (call, waiter) = call::pair(key, method, None, None, self.control.clone(), None);
        waiter.finish(Err(error));
        call
    }

    fn next_key(&self) -> CallKey {
        CallKey(self.keys.fetch_add(1, Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests;
