//! One WebSocket: reads messages into the hub, writes what the hub queues, keeps the heartbeat.
//!
//! Reading and writing go on side by side. If one waited for the other, two ends with full buffers
//! would wait for each other for ever.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bridge_protocol::Dialect;
use bridge_protocol::limits::MESSAGE_BYTES;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::error::{CapacityError, ProtocolError};
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role as Side, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Bytes, Error, Message};
use tracing::debug;

use crate::broker::{CloseReason, Event, PeerId, Role};
use crate::heartbeat::{Beat, Heartbeat};
use crate::hub::Hub;
use crate::outbox::{Next, Outbox};

/// Messages written with one flush: this is where pipelined throughput comes from.
const BATCH: usize = 128;
/// How long the other end may take to accept our goodbye.
const GOODBYE: Duration = Duration::from_millis(500);
/// 128 KiB, the default, would cost 144 MiB with a thousand idle clients.
const READ_BUFFER: usize = 8 * 1024;

/// Why a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// The other end left, politely or not.
    Gone,
    /// We end it, with this code and reason.
    Close(u16, &'static str),
}

/// Serves a connection that has passed the gate until it ends.
pub async fn serve<S>(
    hub: Arc<Hub>,
    socket: S,
    already_read: Vec<u8>,
    role: Role,
    dialect: Dialect,
    ping_interval: Duration,
) where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let config = WebSocketConfig::default()
        .read_buffer_size(READ_BUFFER)
        .max_message_size(Some(MESSAGE_BYTES))
        .max_frame_size(Some(MESSAGE_BYTES));
    let socket =
        WebSocketStream::from_partially_read(socket, already_read, Side::Server, Some(config))
            .await;
    let _attendance = hub.attend();
    let (peer, outbox) = hub.connect(role, dialect);
    debug!(%peer, role = role.name(), "connected");
    // The original client answers no pings, and chokes on a close frame that says why.
    let heartbeat = (dialect == Dialect::JsonRpc)
        .then(|| Mutex::new(Heartbeat::new(ping_interval, Instant::now())));
    let (mut sink, mut stream) = socket.split();
    let end = tokio::select! {
        end = read(&hub, peer, &outbox, heartbeat.as_ref(), &mut stream) => end,
        end = write(&hub, peer, &outbox, heartbeat.as_ref(), &mut sink) => end,
        () = outbox.cut() => close_of(CloseReason::SlowConsumer),
    };
    hub.disconnect(peer);
    debug!(%peer, ?end, "disconnected");
    if let (End::Close(code, reason), Ok(mut socket)) = (end, sink.reunite(stream)) {
        let frame = (dialect == Dialect::JsonRpc)
            .then(|| CloseFrame { code: CloseCode::from(code), reason: reason.into() });
        let _ = tokio::time::timeout(GOODBYE, say_goodbye(&mut socket, frame)).await;
    }
}

async fn read<S>(
    hub: &Arc<Hub>,
    peer: PeerId,
    outbox: &Outbox,
    heartbeat: Option<&Mutex<Heartbeat>>,
    stream: &mut SplitStream<WebSocketStream<S>>,
) -> End
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    loop {
        outbox.may_read().await;
        let message = match stream.next().await {
            Some(Ok(message)) => message,
            Some(Err(error)) => return end_of(&error),
            None => return End::Gone,
        };
        if let Some(heartbeat) = heartbeat {
            lock(heartbeat).alive();
        }
        match message {
            Message::Text(text) => hub.deliver(Event::Message { peer, text: &text }),
            Message::Binary(_) => return End::Close(1003, "text messages only"),
            Message::Close(_) => return End::Gone,
            Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => {}
        }
    }
}

async fn write<S>(
    hub: &Arc<Hub>,
    peer: PeerId,
    outbox: &Outbox,
    heartbeat: Option<&Mutex<Heartbeat>>,
    sink: &mut SplitSink<WebSocketStream<S>, Message>,
) -> End
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut ticks = heartbeat.map(|heartbeat| {
        let interval = lock(heartbeat).interval();
        let mut ticks = tokio::time::interval_at(tokio::time::Instant::now() + interval, interval);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        ticks
    });
    loop {
        let tick = async {
            match &mut ticks {
                Some(ticks) => ticks.tick().await,
                None => std::future::pending().await,
            }
        };
        let written = tokio::select! {
            next = outbox.next(BATCH) => match next {
                Next::Texts(texts) => write_texts(hub, peer, sink, texts).await,
                Next::Close(reason) => return close_of(reason),
            },
            now = tick => match heartbeat.map(|heartbeat| lock(heartbeat).tick(now.into())) {
                Some(Beat::Dead) => return End::Close(4408, "no answer to two pings"),
                _ => sink.send(Message::Ping(Bytes::new())).await,
            },
        };
        if written.is_err() {
            return End::Gone;
        }
    }
}

/// Each message is one frame. They are reported as sent once the system has taken them.
async fn write_texts<S>(
    hub: &Arc<Hub>,
    peer: PeerId,
    sink: &mut SplitSink<WebSocketStream<S>, Message>,
    texts: Vec<String>,
) -> Result<(), Error>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let messages = texts.len();
    let bytes = texts.iter().map(String::len).sum();
    for text in texts {
        sink.feed(Message::Text(text.into())).await?;
    }
    sink.flush().await?;
    hub.deliver(Event::Sent { peer, messages, bytes });
    Ok(())
}

/// Sends the close frame and reads on until the other end has seen it: if we closed with unread
/// bytes in the buffer, the system would reset the connection and the frame would be lost.
async fn say_goodbye<S>(socket: &mut WebSocketStream<S>, frame: Option<CloseFrame>)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
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

fn close_of(reason: CloseReason) -> End {
    match reason {
        CloseReason::SlowConsumer => End::Close(1013, "messages were left unread"),
        CloseReason::Violations => End::Close(1008, "too many messages that were none"),
        CloseReason::Ending => End::Close(1001, "the daemon is ending"),
        CloseReason::Replaced => End::Close(4409, "this runtime registered again elsewhere"),
    }
}

fn lock(heartbeat: &Mutex<Heartbeat>) -> std::sync::MutexGuard<'_, Heartbeat> {
    heartbeat.lock().expect("no holder of this lock panics")
}
