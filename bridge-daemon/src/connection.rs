//! One WebSocket: reads messages into the hub, writes what the hub queues, keeps the heartbeat.
//!
//! The three run side by side. If reading waited for writing, two ends with full buffers would wait for each other
//! forever. If the heartbeat waited for writing, a peer that has stopped reading would never be detected.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use bridge_protocol::limits::MESSAGE_BYTES;
use bridge_protocol::{Dialect, Message as Parsed};
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::error::{CapacityError, ProtocolError};
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role as Side, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Bytes, Error, Message};
use tracing::debug;

use crate::broker::{CloseReason, Event, Grant, PeerId};
use crate::heartbeat::{Beat, Heartbeat};
use crate::hub::Hub;
use crate::outbox::{Next, Outbox};

/// How many messages are written with one flush. Batches give pipelined requests their throughput.
const BATCH: usize = 128;
/// How long the other end may take to answer our close frame.
const GOODBYE: Duration = Duration::from_millis(500);
/// Size of the read buffer. The default of 128 KiB would take 144 MiB for a thousand idle clients.
const READ_BUFFER: usize = 8 * 1024;
/// Limit of the write buffer: the largest message and what was written before it. Only pongs that the other end
/// does not read can exceed it; then the connection is cut.
const WRITE_BUFFER_MAX: usize = MESSAGE_BYTES + (1 << 20);
/// How long an ending daemon still answers messages that are on their way.
const LAST_WORDS: Duration = Duration::from_millis(50);
/// Interval of pings while requests are held back. Pongs behind them are not read, but writing the pings shows
/// whether the other end is still there.
const HELD_BACK_PING: Duration = Duration::from_secs(1);

/// The byte stream of a connection: TCP, a Unix socket, or a socket pair. As a trait object instead of a type
/// parameter, so that the code of a connection is compiled once.
pub trait Socket: AsyncRead + AsyncWrite + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin> Socket for S {}

type Stream = WebSocketStream<Box<dyn Socket>>;

/// Why a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// The other end has gone without a close frame.
    Gone,
    /// The other end has sent a close frame, and gets one back.
    Left,
    /// The daemon ends.
    Ending,
    /// The daemon ends the connection with this code and reason.
    Close(u16, &'static str),
}

/// Serves a connection that has passed the gate until it ends. When this future is dropped, the broker also learns
/// that the connection has ended.
pub async fn serve(
    hub: Arc<Hub>,
    socket: Box<dyn Socket>,
    already_read: Vec<u8>,
    grant: Grant,
    dialect: Dialect,
    ping_interval: Duration,
) {
    let config = WebSocketConfig::default()
        .read_buffer_size(READ_BUFFER)
        .max_write_buffer_size(WRITE_BUFFER_MAX)
        .max_message_size(Some(MESSAGE_BYTES))
        .max_frame_size(Some(MESSAGE_BYTES));
    let socket =
        WebSocketStream::from_partially_read(socket, already_read, Side::Server, Some(config))
            .await;
    let role = grant.role().name();
    let (peer, outbox) = hub.connect(grant, dialect);
    debug!(%peer, role, "connected");
    let presence = Presence { hub: Arc::clone(&hub), peer };
    let heartbeat = Mutex::new(Heartbeat::new(ping_interval, Instant::now()));
    let link = Link { hub, peer, outbox, heartbeat };
    let (mut sink, mut stream) = socket.split();
    let end = tokio::select! {
        end = link.read(&mut stream) => end,
        end = link.write(&mut sink) => end,
        // The original client does not answer pings.
        end = link.keep_alive(ping_interval), if dialect == Dialect::JsonRpc => end,
        reason = link.outbox.overdue() => end_for(reason),
    };
    if end == End::Ending {
        link.outbox.keep_writing();
        let last_words = async {
            tokio::select! {
                end = link.read(&mut stream) => end,
                end = link.write(&mut sink) => end,
            }
        };
        // Answers that are not written within this time are lost with the connection.
        let _ = tokio::time::timeout(LAST_WORDS, last_words).await;
    }
    drop(presence);
    debug!(%peer, ?end, "disconnected");
    if let Ok(mut socket) = sink.reunite(stream) {
        // A peer that does not take the goodbye within this time is cut off without it.
        let _ = tokio::time::timeout(GOODBYE, say_goodbye(&mut socket, end, dialect)).await;
    }
}

/// Removes the connection from the broker when dropped.
struct Presence {
    hub: Arc<Hub>,
    peer: PeerId,
}

impl Drop for Presence {
    fn drop(&mut self) {
        self.hub.disconnect(self.peer);
    }
}

/// What reader, writer and heartbeat of one connection share.
struct Link {
    hub: Arc<Hub>,
    peer: PeerId,
    outbox: Arc<Outbox>,
    heartbeat: Mutex<Heartbeat>,
}

impl Link {
    async fn read(&self, stream: &mut SplitStream<Stream>) -> End {
        loop {
            let message = match stream.next().await {
                Some(Ok(message)) => message,
                Some(Err(error)) => return end_of(&error),
                None => return End::Gone,
            };
            self.heartbeat().alive();
            match message {
                Message::Text(text) => {
                    self.admit(&text).await;
                    self.hub.deliver(Event::Message { peer: self.peer, text: &text });
                }
                Message::Binary(_) => return End::Close(1003, "text messages only"),
                Message::Close(_) => return End::Left,
                Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => {}
            }
        }
    }

    /// Waits with a request while its client is at its limit. Nothing behind the request is read, so TCP pushes back;
    /// cancels before it have been read.
    async fn admit(&self, text: &str) {
        let held = || !matches!(Parsed::parse(text), Ok(Parsed::Notification(_)));
        if !self.outbox.is_reading() && held() {
            self.outbox.may_read().await;
        }
    }

    async fn write(&self, sink: &mut SplitSink<Stream, Message>) -> End {
        loop {
            let written = match self.outbox.next(BATCH).await {
                Next::Texts(texts) => self.write_texts(sink, texts).await,
                Next::Ping => sink.send(Message::Ping(Bytes::new())).await,
                Next::Close(reason) => return end_for(reason),
            };
            if written.is_err() {
                return End::Gone;
            }
        }
    }

    /// Writes each message as one frame, and reports them as sent once the operating system has taken them.
    async fn write_texts(
        &self,
        sink: &mut SplitSink<Stream, Message>,
        texts: Vec<String>,
    ) -> Result<(), Error> {
        let messages = texts.len();
        let bytes = texts.iter().map(String::len).sum();
        for text in texts {
            sink.feed(Message::Text(text.into())).await?;
        }
        sink.flush().await?;
        self.outbox.written();
        // A peer that reads what it is sent is alive, even if its pongs are not read.
        self.heartbeat().alive();
        self.hub.deliver(Event::Sent { peer: self.peer, messages, bytes });
        Ok(())
    }

    async fn keep_alive(&self, interval: Duration) -> End {
        loop {
            let is_reading = self.outbox.is_reading();
            tokio::time::sleep(if is_reading { interval } else { interval.min(HELD_BACK_PING) })
                .await;
            // Pongs behind a request that is held back are not read. That is no fault of the peer, unless the
            // request is held back because the peer does not read what it is sent.
            if !self.outbox.is_reading() && self.outbox.is_empty() {
                self.heartbeat().alive();
            }
            let beat = self.heartbeat().tick(Instant::now());
            match beat {
                Beat::Ping => self.outbox.ping(),
                Beat::Dead => return End::Close(4408, "no answer to two pings"),
            }
        }
    }

    fn heartbeat(&self) -> MutexGuard<'_, Heartbeat> {
        self.heartbeat.lock().expect("no holder of this lock panics")
    }
}

/// Sends the close frame and keeps reading until the other end answers it. If the connection were closed with unread
/// bytes in the buffer, the operating system would reset it and the frame would be lost.
async fn say_goodbye(socket: &mut Stream, end: End, dialect: Dialect) {
    let (code, reason) = match end {
        End::Gone => return,
        // The answer to the peer's close frame is already queued.
        End::Left => return drop(socket.flush().await),
        End::Ending => (1001, "the daemon is ending"),
        End::Close(code, reason) => (code, reason),
    };
    // The original client cannot read a close frame with a code and a reason.
    let frame = (dialect == Dialect::JsonRpc)
        .then(|| CloseFrame { code: CloseCode::from(code), reason: reason.into() });
    // An error of these two means that the peer has left: then the reading below ends at once.
    let _ = socket.close(frame).await;
    let raw = socket.get_mut();
    let _ = raw.shutdown().await;
    let mut discarded = vec![0; READ_BUFFER];
    while let Ok(1..) = raw.read(&mut discarded).await {}
}

fn end_of(error: &Error) -> End {
    match error {
        Error::Capacity(CapacityError::MessageTooLong { .. }) => {
            End::Close(1009, "a message may have at most 16 MiB")
        }
        Error::Utf8(_) => End::Close(1007, "text must be UTF-8"),
        Error::Protocol(ProtocolError::ResetWithoutClosingHandshake) => End::Gone,
        Error::Protocol(_) | Error::Capacity(_) => End::Close(1002, "broken WebSocket framing"),
        _ => End::Gone,
    }
}

fn end_for(reason: CloseReason) -> End {
    match reason {
        CloseReason::SlowConsumer => End::Close(1013, "too many messages were left unread"),
        CloseReason::Violations => End::Close(1008, "too many invalid messages"),
        CloseReason::Ending => End::Ending,
        CloseReason::Replaced => End::Close(4409, "this runtime registered again elsewhere"),
    }
}
