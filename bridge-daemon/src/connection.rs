//! One WebSocket: reads messages into the hub, writes what the hub queues, keeps the heartbeat.
//!
//! The three go on side by side. If reading waited for writing, two ends with full buffers would wait
//! for each other for ever; if the heartbeat did, a peer that stopped reading would never be missed.

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

/// Messages written with one flush: this is where pipelined throughput comes from.
const BATCH: usize = 128;
/// How long the other end may take to accept our goodbye.
const GOODBYE: Duration = Duration::from_millis(500);
/// 128 KiB, the default, would cost 144 MiB with a thousand idle clients.
const READ_BUFFER: usize = 8 * 1024;
/// Room for the largest message and what was written before it. Beyond it, by pongs that nobody reads,
/// the connection is cut.
const WRITE_BUFFER_MAX: usize = MESSAGE_BYTES + (1 << 20);
/// What is still on its way here when the daemon ends is answered, if it comes within this time.
const LAST_WORDS: Duration = Duration::from_millis(50);
/// While requests are held back, pongs behind them cannot be heard; pings go out this often, to find
/// out whether the other end is still there.
const HELD_BACK_PING: Duration = Duration::from_secs(1);

/// What carries the bytes of a connection: TCP, a Unix socket, or a socket pair. Without a type parameter for
/// it, the code of a connection exists once in the program.
pub trait Socket: AsyncRead + AsyncWrite + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin> Socket for S {}

type Stream = WebSocketStream<Box<dyn Socket>>;

/// Why a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// The other end is gone.
    Gone,
    /// The other end said goodbye, and gets its goodbye back.
    Left,
    /// The daemon ends.
    Ending,
    /// We end it, with this code and reason.
    Close(u16, &'static str),
}

/// Serves a connection that has passed the gate until it ends. To the broker it has ended, too, when this
/// future is dropped.
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
        // The original client answers no pings, so it gets none.
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
        let _ = tokio::time::timeout(LAST_WORDS, last_words).await;
    }
    drop(presence);
    debug!(%peer, ?end, "disconnected");
    if let Ok(mut socket) = sink.reunite(stream) {
        let _ = tokio::time::timeout(GOODBYE, say_goodbye(&mut socket, end, dialect)).await;
    }
}

/// A connection that the broker knows. It is taken off its list when this is dropped.
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

    /// Holds a request of a client that is at its limit: nothing behind it is read, and TCP pushes back.
    /// Cancels before it come through.
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

    /// Each message is one frame. They are reported as sent once the system has taken them.
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
        // Whoever takes what it is sent is alive, even if its pongs are held back.
        self.heartbeat().alive();
        self.hub.deliver(Event::Sent { peer: self.peer, messages, bytes });
        Ok(())
    }

    async fn keep_alive(&self, interval: Duration) -> End {
        loop {
            let is_reading = self.outbox.is_reading();
            tokio::time::sleep(if is_reading { interval } else { interval.min(HELD_BACK_PING) })
                .await;
            // Pongs behind a request that is held back cannot be heard. That is our doing, unless it is
            // held back because the other end does not take what it is sent.
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

/// Sends the close frame and reads on until the other end has seen it: if we closed with unread
/// bytes in the buffer, the system would reset the connection and the frame would be lost.
async fn say_goodbye(socket: &mut Stream, end: End, dialect: Dialect) {
    let (code, reason) = match end {
        End::Gone => return,
        // The answer to their close frame is queued already.
        End::Left => return drop(socket.flush().await),
        End::Ending => (1001, "the daemon is ending"),
        End::Close(code, reason) => (code, reason),
    };
    // The original client chokes on a close frame that says why.
    let frame = (dialect == Dialect::JsonRpc)
        .then(|| CloseFrame { code: CloseCode::from(code), reason: reason.into() });
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
        CloseReason::SlowConsumer => End::Close(1013, "messages were left unread"),
        CloseReason::Violations => End::Close(1008, "too many messages that were none"),
        CloseReason::Ending => End::Ending,
        CloseReason::Replaced => End::Close(4409, "this runtime registered again elsewhere"),
    }
}
