//! One WebSocket to a daemon: texts in, texts out.
//!
//! [`Connection`] is owned by one task, which calls [`next`](Connection::next) whenever it has
//! nothing else to do. That one future both sends what is queued and receives, so neither direction
//! waits for the other: a daemon that reads nothing while it has answers for us cannot lock us up.
//! Pings are answered on the way.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::ops::Deref;
use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bridge_protocol::limits::MESSAGE_BYTES;
use futures_util::future::BoxFuture;
use futures_util::{Sink, Stream};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{self, Message, Utf8Bytes};

use crate::endpoint::{Address, Endpoint};
use crate::error::Error;
use crate::handshake;

/// Bytes queued for sending beyond which [`Connection::has_room`] says no.
pub const QUEUE_BYTES: usize = 1024 * 1024;

/// Large enough for most messages in one read, small enough to cost a short-lived program nothing.
const READ_BUFFER_BYTES: usize = 16 * 1024;

/// How long [`Connection::close`] tries to get its last words out.
const GOODBYE: Duration = Duration::from_millis(500);

/// A connection that has passed the handshake.
pub struct Connection {
    socket: WebSocketStream<Box<dyn Transport>>,
    outgoing: VecDeque<String>,
    outgoing_bytes: usize,
    sending: Sending,
}

/// A text as it arrived. Dereferences to `str`.
#[derive(Clone, Debug)]
pub struct Text(Utf8Bytes);

/// How a connection is made, and made again after a loss. A parameter, so that tests can do
/// without sockets.
pub(crate) type Dial = Arc<dyn Fn() -> BoxFuture<'static, Result<Connection, Error>> + Send + Sync>;

/// What carries the bytes.
pub(crate) trait Transport: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Transport for T {}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Sending {
    /// All that was handed to the socket has left.
    Done,
    /// Some of it has not.
    Unflushed,
    /// Writing failed. What the daemon had to say before may still be read.
    Broken,
}

impl Connection {
    /// Connects and shakes hands, within `limit`.
    pub async fn open(endpoint: &Endpoint, limit: Duration) -> Result<Self, Error> {
        let attempt = async {
            let stream = reach(&endpoint.address).await.map_err(|cause| Error::Unreachable {
                address: endpoint.address.clone(),
                cause: Arc::new(cause),
            })?;
            Self::over(stream, endpoint).await
        };
        tokio::time::timeout(limit, attempt).await.unwrap_or_else(|_| {
            let cause = Arc::new(io::ErrorKind::TimedOut.into());
            Err(Error::Unreachable { address: endpoint.address.clone(), cause })
        })
    }

    async fn over(mut stream: Box<dyn Transport>, endpoint: &Endpoint) -> Result<Self, Error> {
        let rest = handshake::upgrade(&mut stream, endpoint).await?;
        Ok(Self::upgraded(stream, rest).await)
    }

    /// A connection by a stream whose other end is a daemon that knows beforehand who we are, and expects
    /// neither a handshake nor a token.
    pub async fn over_stream(stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static) -> Self {
        Self::upgraded(Box::new(stream), Vec::new()).await
    }

    /// Wraps a stream whose handshake is done; `rest` is what was read beyond it.
    pub(crate) async fn upgraded(stream: Box<dyn Transport>, rest: Vec<u8>) -> Self {
        let config = WebSocketConfig::default()
            .read_buffer_size(READ_BUFFER_BYTES)
            .max_message_size(Some(MESSAGE_BYTES))
            .max_frame_size(Some(MESSAGE_BYTES));
        let socket =
            WebSocketStream::from_partially_read(stream, rest, Role::Client, Some(config)).await;
        let (outgoing, sending) = (VecDeque::new(), Sending::Done);
        Self { socket, outgoing, outgoing_bytes: 0, sending }
    }

    /// Queues a text. It leaves while [`next`](Self::next) is awaited.
    pub fn send(&mut self, text: String) {
        self.outgoing_bytes += text.len();
        self.outgoing.push_back(text);
    }

    /// Whether a sender that can wait should go on. Nothing is refused beyond; the queue grows.
    pub fn has_room(&self) -> bool {
        self.outgoing_bytes < QUEUE_BYTES
    }

    /// Sends what is queued and waits for the next text. Nothing is lost when the future is
    /// dropped. The error is always [`Error::Lost`], after which the connection is of no use.
    pub async fn next(&mut self) -> Result<Text, Error> {
        poll_fn(|cx| {
            self.poll_send(cx);
            self.poll_receive(cx)
        })
        .await
    }

    /// As [`next`](Self::next), but also returns, with `None`, when there is room again: for those who
    /// stopped sending because there was none, and would otherwise not learn of it.
    pub async fn next_or_room(&mut self) -> Result<Option<Text>, Error> {
        let was_full = !self.has_room();
        poll_fn(|cx| {
            self.poll_send(cx);
            match was_full && self.has_room() {
                true => Poll::Ready(Ok(None)),
                false => self.poll_receive(cx).map(|received| received.map(Some)),
            }
        })
        .await
    }

    /// Sends what is queued, then says goodbye. Bounded, and never fails: a daemon that does not
    /// listen any more sees the end of the connection all the same.
    pub async fn close(mut self) {
        let goodbye = async {
            poll_fn(|cx| {
                self.poll_send(cx);
                match self.outgoing.is_empty() && self.sending != Sending::Unflushed {
                    true => Poll::Ready(()),
                    false => Poll::Pending,
                }
            })
            .await;
            let _ = self.socket.close(None).await;
        };
        let _ = tokio::time::timeout(GOODBYE, goodbye).await;
    }

    fn poll_send(&mut self, cx: &mut Context<'_>) {
        if self.sending != Sending::Broken && self.try_send(cx).is_err() {
            // The reason, a close frame perhaps, is still to be read.
            self.sending = Sending::Broken;
            self.outgoing.clear();
            self.outgoing_bytes = 0;
        }
    }

    fn try_send(&mut self, cx: &mut Context<'_>) -> Result<(), tungstenite::Error> {
        let mut socket = Pin::new(&mut self.socket);
        while !self.outgoing.is_empty() {
            match socket.as_mut().poll_ready(cx) {
                Poll::Ready(ready) => ready?,
                Poll::Pending => return Ok(()),
            }
            let Some(text) = self.outgoing.pop_front() else { break };
            self.outgoing_bytes -= text.len();
            self.sending = Sending::Unflushed;
            socket.as_mut().start_send(Message::text(text))?;
        }
        if self.sending == Sending::Unflushed && socket.poll_flush(cx)?.is_ready() {
            self.sending = Sending::Done;
        }
        Ok(())
    }

    fn poll_receive(&mut self, cx: &mut Context<'_>) -> Poll<Result<Text, Error>> {
        loop {
            let message = match ready!(Pin::new(&mut self.socket).poll_next(cx)) {
                Some(Ok(message)) => message,
                Some(Err(error)) => return Poll::Ready(Err(lost(None, &cause_of(&error)))),
                None => return Poll::Ready(Err(lost(None, "closed"))),
            };
            match message {
                Message::Text(text) => return Poll::Ready(Ok(Text(text))),
                Message::Close(frame) => {
                    // One more poll sends our half of the goodbye; its outcome changes nothing.
                    let _ = Pin::new(&mut self.socket).poll_next(cx);
                    return Poll::Ready(Err(closed(frame)));
                }
                // Pings have been answered by tungstenite; a daemon sends no binary messages.
                _ => {}
            }
        }
    }
}

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        self.0.as_str()
    }
}

/// Dials this endpoint whenever asked.
pub(crate) fn dialler(endpoint: Endpoint, limit: Duration) -> Dial {
    let endpoint = Arc::new(endpoint);
    Arc::new(move || {
        let endpoint = Arc::clone(&endpoint);
        Box::pin(async move { Connection::open(&endpoint, limit).await })
    })
}

/// Dials nothing: a connection by a stream cannot be made again.
pub(crate) fn no_dialler() -> Dial {
    let gone =
        || Error::Lost { code: None, reason: "the daemon that started us is gone".to_owned() };
    Arc::new(move || Box::pin(async move { Err(gone()) }))
}

/// The stream that a daemon has left open for the program that it started, by the number that it told us. It
/// is not passed on to programs that we start, which could hold it open after our end.
pub fn inherited_stream(descriptor: RawFd) -> io::Result<UnixStream> {
    let stream = std::os::unix::net::UnixStream::from(take(descriptor)?);
    stream.set_nonblocking(true)?;
    // Of no use otherwise, and the error says so at once.
    stream.peer_addr()?;
    UnixStream::from_std(stream)
}

/// A copy of a descriptor, which is closed when another program is executed, in place of the original.
#[allow(unsafe_code)]
fn take(descriptor: RawFd) -> io::Result<OwnedFd> {
    // Standard streams belong to others.
    if descriptor <= 2 {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "a descriptor above 2 is needed"));
    }
    // SAFETY: it is used for this one call, which fails if it is not open.
    let copy = unsafe { BorrowedFd::borrow_raw(descriptor) }.try_clone_to_owned()?;
    // SAFETY: it is open, and nothing else in this program knows of it: whoever started us opened it for
    // this purpose and told us its number.
    drop(unsafe { OwnedFd::from_raw_fd(descriptor) });
    Ok(copy)
}

/// Never through a proxy, whatever the environment says: the daemon is on this machine.
async fn reach(address: &Address) -> io::Result<Box<dyn Transport>> {
    Ok(match address {
        Address::Unix(path) => Box::new(UnixStream::connect(path).await?),
        Address::Tcp { host, port } => {
            let host = host.trim_start_matches('[').trim_end_matches(']');
            let stream = TcpStream::connect((host, *port)).await?;
            // Messages are small and somebody waits for each.
            stream.set_nodelay(true)?;
            Box::new(stream)
        }
    })
}

fn closed(frame: Option<CloseFrame>) -> Error {
    let Some(frame) = frame else { return lost(None, "closed by the daemon") };
    let code = u16::from(frame.code);
    let meaning = match code {
        1000 | 1001 => "the daemon ended",
        1008 => "too much of what we sent was no message",
        1009 => "a message was too big",
        1013 => "we read too slowly",
        4408 => "we did not answer pings",
        4409 => "replaced by a newer connection",
        _ => "closed by the daemon",
    };
    match frame.reason.as_str() {
        "" => lost(Some(code), meaning),
        said => lost(Some(code), &format!("{meaning}: {said}")),
    }
}

fn cause_of(error: &tungstenite::Error) -> String {
    match error {
        tungstenite::Error::Protocol(
            tungstenite::error::ProtocolError::ResetWithoutClosingHandshake,
        ) => "cut off".to_owned(),
        tungstenite::Error::Io(error) => error.to_string(),
        other => other.to_string(),
    }
}

fn lost(code: Option<u16>, reason: &str) -> Error {
    Error::Lost { code, reason: reason.to_owned() }
}

#[cfg(test)]
mod tests;
