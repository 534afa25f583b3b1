//! One WebSocket to a daemon, which sends and receives texts.
//!
//! [`Connection`] is owned by one task, which calls [`next`](Connection::next) whenever it has nothing else to do. That
//! one future both sends queued texts and receives, so neither direction waits for the other: a daemon that does not read
//! while it has answers to send cannot cause a deadlock. Pings are answered, too.

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

/// When more bytes than this are queued, [`Connection::has_room`] returns false.
pub const QUEUE_BYTES: usize = 1024 * 1024;

/// Size of the read buffer: large enough for most messages, small enough for a short-lived program.
const READ_BUFFER_BYTES: usize = 16 * 1024;

/// How long [`Connection::close`] tries to send the queued texts and the close frame.
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

/// Makes a connection, also again after a loss. A parameter, so that tests need no sockets.
pub(crate) type Dial = Arc<dyn Fn() -> BoxFuture<'static, Result<Connection, Error>> + Send + Sync>;

/// The byte stream of a connection.
pub(crate) trait Transport: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Transport for T {}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Sending {
    /// Everything that was written to the socket has been flushed.
    Done,
    /// Something was written to the socket and has not been flushed.
    Unflushed,
    /// Writing failed. Messages that the daemon sent before may still be read.
    Broken,
}

impl Connection {
    /// Connects and completes the handshake within `limit`.
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

    /// A connection over a stream from a daemon that has decided the role beforehand, and expects neither a handshake nor
    /// a token.
    pub async fn over_stream(stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static) -> Self {
        Self::upgraded(Box::new(stream), Vec::new()).await
    }

    /// Wraps a stream whose handshake is complete. `rest` has the bytes that were read after it.
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

    /// Queues a text. It is sent while [`next`](Self::next) is awaited.
    pub fn send(&mut self, text: String) {
        self.outgoing_bytes += text.len();
        self.outgoing.push_back(text);
    }

    /// Whether a sender that can wait should send more. If it sends anyway, the queue grows.
    pub fn has_room(&self) -> bool {
        self.outgoing_bytes < QUEUE_BYTES
    }

    /// Sends queued texts and waits for the next text. Nothing is lost when the future is dropped. The error is always
    /// [`Error::Lost`], after which the connection cannot be used.
    pub async fn next(&mut self) -> Result<Text, Error> {
        poll_fn(|cx| {
            self.poll_send(cx);
            self.poll_receive(cx)
        })
        .await
    }

    /// Like [`next`](Self::next), but also returns, with `None`, when there is room again, for a sender that has stopped
    /// because there was none.
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

    /// Sends queued texts and then a close frame, for a limited time. Never fails: a daemon that no longer reads still
    /// sees the end of the connection.
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
            // An error means that the connection has ended already.
            let _ = self.socket.close(None).await;
        };
        // After this time the connection is cut without a goodbye.
        let _ = tokio::time::timeout(GOODBYE, goodbye).await;
    }

    fn poll_send(&mut self, cx: &mut Context<'_>) {
        if self.sending != Sending::Broken && self.try_send(cx).is_err() {
            // The reason, perhaps a close frame, has not been read yet.
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
                    // One more poll sends our close frame. Its outcome does not matter.
                    let _ = Pin::new(&mut self.socket).poll_next(cx);
                    return Poll::Ready(Err(closed(frame)));
                }
                // tungstenite has answered pings, and a daemon sends no binary messages.
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

/// Connects to this endpoint each time.
pub(crate) fn dialler(endpoint: Endpoint, limit: Duration) -> Dial {
    let endpoint = Arc::new(endpoint);
    Arc::new(move || {
        let endpoint = Arc::clone(&endpoint);
        Box::pin(async move { Connection::open(&endpoint, limit).await })
    })
}

/// Always fails: a connection over an inherited stream cannot be made again.
pub(crate) fn no_dialler() -> Dial {
    let gone = || Error::Lost {
        code: None,
        reason: "the daemon that started this program has ended".to_owned(),
    };
    Arc::new(move || Box::pin(async move { Err(gone()) }))
}

/// The stream with this descriptor, which was inherited from the daemon that started this program. Programs that this one
/// starts do not inherit it: they could hold it open after its end.
pub fn inherited_stream(descriptor: RawFd) -> io::Result<UnixStream> {
    let stream = std::os::unix::net::UnixStream::from(take(descriptor)?);
    stream.set_nonblocking(true)?;
    // Fails at once if the descriptor is not a connected socket.
    stream.peer_addr()?;
    UnixStream::from_std(stream)
}

/// Replaces a descriptor by a copy that is closed on exec.
#[allow(unsafe_code)]
fn take(descriptor: RawFd) -> io::Result<OwnedFd> {
    // 0 to 2 are the standard streams.
    if descriptor <= 2 {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "a descriptor above 2 is needed"));
    }
    // SAFETY: the borrowed descriptor is used for this one call, which fails if it is not open.
    let copy = unsafe { BorrowedFd::borrow_raw(descriptor) }.try_clone_to_owned()?;
    // SAFETY: the descriptor is open, and nothing else in this program uses it: the process that started this one opened
    // it for this purpose and passed its number.
    drop(unsafe { OwnedFd::from_raw_fd(descriptor) });
    Ok(copy)
}

/// Connects to the address, never through a proxy, because the daemon is on this machine.
async fn reach(address: &Address) -> io::Result<Box<dyn Transport>> {
    Ok(match address {
        Address::Unix(path) => Box::new(UnixStream::connect(path).await?),
        Address::Tcp { host, port } => {
            let host = host.trim_start_matches('[').trim_end_matches(']');
            let stream = TcpStream::connect((host, *port)).await?;
            // Messages are small, and a caller waits for each.
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
        1008 => "too many invalid messages were sent",
        1009 => "a message was too big",
        1013 => "this program read too slowly",
        4408 => "this program did not answer pings",
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
