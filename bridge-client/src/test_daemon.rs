//! A scripted daemon for tests of client and host without sockets.
//!
//! [`TestDaemon`] accepts each connection, in memory. So tests can pause the clock: it then jumps forward whenever all
//! tasks wait. A wait of an hour takes no time, and a test that waits in vain fails at once, with a message that says for
//! what.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use serde_json::Value;
use tokio::io::DuplexStream;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role};

use crate::connection::{Connection, Dial};
use crate::endpoint::Address;
use crate::error::Error;

/// Size of the pipe. Small, so that it soon fills up if one end does not read.
const PIPE_BYTES: usize = 4 * 1024;

/// Timeout of every wait. With a paused clock it is reached only when nothing else can happen, and it is longer than any
/// timeout of the code under test.
const LIMIT: Duration = Duration::from_secs(3600);

pub struct TestDaemon {
    accepted: mpsc::UnboundedReceiver<DuplexStream>,
    plan: Arc<Mutex<Plan>>,
}

#[derive(Default)]
struct Plan {
    refusals: VecDeque<Error>,
    dials: usize,
}

/// The daemon's end of one connection.
pub struct Side(WebSocketStream<DuplexStream>);

impl TestDaemon {
    /// Creates a daemon, and the function that connects to it.
    pub fn new() -> (Dial, Self) {
        let (connected, accepted) = mpsc::unbounded_channel();
        let plan = Arc::new(Mutex::new(Plan::default()));
        let daemon = Self { accepted, plan: Arc::clone(&plan) };
        let dial: Dial = Arc::new(move || {
            let mut plan = plan.lock().unwrap();
            plan.dials += 1;
            let (refusal, connected) = (plan.refusals.pop_front(), connected.clone());
            Box::pin(async move {
                if let Some(error) = refusal {
                    return Err(error);
                }
                let (ours, theirs) = tokio::io::duplex(PIPE_BYTES);
                connected.send(theirs).map_err(|_| unreachable())?;
                Ok(Connection::upgraded(Box::new(ours), Vec::new()).await)
            })
        });
        (dial, daemon)
    }

    /// Lets the next attempts to connect fail with these errors.
    pub fn refuse(&self, errors: impl IntoIterator<Item = Error>) {
        self.plan.lock().unwrap().refusals.extend(errors);
    }

    /// The number of attempts to connect.
    pub fn dials(&self) -> usize {
        self.plan.lock().unwrap().dials
    }

    pub async fn accept(&mut self) -> Side {
        let stream = within("a connection", self.accepted.recv()).await.expect("nobody can dial");
        Side::over(stream).await
    }
}

impl Side {
    /// The daemon's end of a stream.
    pub async fn over(stream: DuplexStream) -> Self {
        Self(WebSocketStream::from_raw_socket(stream, Role::Server, None).await)
    }

    /// The next message, as JSON.
    pub async fn receive(&mut self) -> Value {
        serde_json::from_str(&self.receive_text().await).unwrap()
    }

    pub async fn receive_text(&mut self) -> String {
        match within("a text", self.0.next()).await {
            Some(Ok(Message::Text(text))) => text.as_str().to_owned(),
            other => panic!("awaited a text, got {other:?}"),
        }
    }

    /// Awaits a request and returns its id and params.
    pub async fn request(&mut self, method: &str) -> (u64, Value) {
        let mut message = self.receive().await;
        assert_eq!(message["method"], method, "{message}");
        (message["id"].as_u64().expect("a request has an id"), message["params"].take())
    }

    /// Awaits a cancel of this request.
    pub async fn cancel(&mut self, id: u64) {
        let message = self.receive().await;
        assert_eq!(message["method"], "$/cancelRequest", "{message}");
        assert_eq!(message["params"]["id"], id, "{message}");
    }

    pub async fn send(&mut self, message: Value) {
        self.send_text(message.to_string()).await;
    }

    pub async fn send_text(&mut self, text: String) {
        within("room to send", self.0.send(Message::text(text))).await.unwrap();
    }

    pub async fn answer(&mut self, id: u64, result: Value) {
        self.send(serde_json::json!({"jsonrpc": "2.0", "id": id, "result": result})).await;
    }

    pub async fn progress(&mut self, id: u64, value: Value) {
        let params = serde_json::json!({"id": id, "value": value});
        self.send(serde_json::json!({"jsonrpc": "2.0", "method": "$/progress", "params": params}))
            .await;
    }

    /// Pings and awaits the pong.
    pub async fn ping(&mut self) {
        within("room to send", self.0.send(Message::Ping("".into()))).await.unwrap();
        match within("a pong", self.0.next()).await {
            Some(Ok(Message::Pong(_))) => {}
            other => panic!("awaited a pong, got {other:?}"),
        }
    }

    /// Sends a close frame.
    pub async fn close(mut self, code: u16) {
        let frame = CloseFrame { code: code.into(), reason: "".into() };
        within("room to send", self.0.send(Message::Close(Some(frame)))).await.unwrap();
    }

    /// Waits for the close frame of the other end.
    pub async fn closed(&mut self) {
        match within("a close frame", self.0.next()).await {
            Some(Ok(Message::Close(_))) => {}
            other => panic!("awaited a close frame, got {other:?}"),
        }
    }
}

pub fn unreachable() -> Error {
    let cause = Arc::new(std::io::ErrorKind::ConnectionRefused.into());
    Error::Unreachable { address: address(), cause }
}

pub fn address() -> Address {
    "ws://127.0.0.1:4711/".parse().unwrap()
}

/// Awaits a future. At the timeout, panics with a message that says what was awaited.
pub async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    timeout(LIMIT, future).await.unwrap_or_else(|_| panic!("waited in vain for {what}"))
}
