//! The relay between memory pipes and a daemon on a loopback socket.

use bridge_client::Endpoint;
use bridge_protocol::Secret;
use futures_util::{SinkExt, StreamExt};
use tokio::io::{AsyncBufReadExt, DuplexStream, duplex};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{WebSocketStream, accept_async};

use super::*;

const LIMIT: Duration = Duration::from_secs(10);

/// A relay, the program at its stdin and stdout, and the daemon at its other end.
struct Relay {
    stdin: DuplexStream,
    stdout: tokio::io::Lines<BufReader<DuplexStream>>,
    daemon: WebSocketStream<TcpStream>,
    ended: JoinHandle<Result<(), Failure>>,
}

impl Relay {
    async fn start(limit: Option<Duration>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("ws://{}/", listener.local_addr().unwrap());
        let endpoint = Endpoint {
            address: address.parse().unwrap(),
            token: Secret::new("t"),
            session: "s".parse().unwrap(),
        };
        let opening = tokio::spawn(async move { Connection::open(&endpoint, LIMIT).await });
        let daemon = accept_async(listener.accept().await.unwrap().0).await.unwrap();
        let connection = opening.await.unwrap().unwrap();
        let (stdin, input) = duplex(1024);
        let (output, stdout) = duplex(1024);
        let ended = tokio::spawn(relay(BufReader::new(input), output, connection, limit));
        Self { stdin, stdout: BufReader::new(stdout).lines(), daemon, ended }
    }

    async fn write(&mut self, text: &str) {
        within("room in stdin", self.stdin.write_all(text.as_bytes())).await.unwrap();
    }

    /// The next text that reaches the daemon.
    async fn arrived(&mut self) -> String {
        match within("a message", self.daemon.next()).await {
            Some(Ok(Message::Text(text))) => text.as_str().to_owned(),
            other => panic!("awaited a message, got {other:?}"),
        }
    }

    async fn answer(&mut self, text: &str) {
        self.daemon.send(Message::text(text)).await.unwrap();
    }

    async fn line(&mut self) -> Option<String> {
        within("a line on stdout", self.stdout.next_line()).await.unwrap()
    }
}

async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    let limited = tokio::time::timeout(LIMIT, future).await;
    limited.unwrap_or_else(|_| panic!("waited in vain for {what}"))
}

const REQUEST: &str = r#"{ "jsonrpc":"2.0", "id":"\u0031", "method":"m", "params":[1e400] }"#;
const ANSWER: &str = r#"{"jsonrpc":"2.0","id":"1","result":{ "n": 1.0 }}"#;

#[tokio::test]
async fn messages_pass_unchanged_both_ways() {
    let mut relay = Relay::start(None).await;
    relay.write(&format!("{REQUEST}\n")).await;
    assert_eq!(relay.arrived().await, REQUEST);
    relay.answer(ANSWER).await;
    assert_eq!(relay.line().await.as_deref(), Some(ANSWER));
    relay.answer("{\n\"jsonrpc\":\"2.0\",\r\n\"method\":\"n\"}").await;
    assert_eq!(relay.line().await.as_deref(), Some("{ \"jsonrpc\":\"2.0\",  \"method\":\"n\"}"));
}

#[tokio::test]
async fn at_the_end_of_stdin_outstanding_answers_are_awaited() {
    let mut relay = Relay::start(None).await;
    // The last line has no end, as `printf` leaves it.
    relay.write(&format!("{REQUEST}\n{REQUEST}")).await;
    drop(std::mem::replace(&mut relay.stdin, duplex(1).0));
    assert_eq!(relay.arrived().await, REQUEST);
    assert_eq!(relay.arrived().await, REQUEST);
    relay.answer(ANSWER).await;
    assert_eq!(relay.line().await.as_deref(), Some(ANSWER));
    relay.answer(ANSWER).await;
    assert_eq!(relay.line().await.as_deref(), Some(ANSWER));
    assert_eq!(relay.line().await, None);
    within("the end", relay.ended).await.unwrap().unwrap();
}

#[tokio::test]
async fn the_wait_for_answers_is_bounded() {
    let mut relay = Relay::start(Some(Duration::from_millis(50))).await;
    relay.write(REQUEST).await;
    drop(std::mem::replace(&mut relay.stdin, duplex(1).0));
    let ended = within("the end", relay.ended).await.unwrap();
    assert!(matches!(ended, Err(Failure::Unanswered(1))), "{ended:?}");
}

#[tokio::test]
async fn the_end_of_the_daemon_ends_the_relay() {
    let mut relay = Relay::start(None).await;
    let goodbye = tokio_tungstenite::tungstenite::protocol::CloseFrame {
        code: 1001.into(),
        reason: "".into(),
    };
    relay.daemon.send(Message::Close(Some(goodbye))).await.unwrap();
    within("the end", relay.ended).await.unwrap().unwrap();

    let mut relay = Relay::start(None).await;
    relay.write(&format!("{REQUEST}\n")).await;
    relay.arrived().await;
    drop(relay.daemon);
    let ended = within("the end", relay.ended).await.unwrap();
    assert!(matches!(ended, Err(Failure::Bridge(bridge_client::Error::Lost { .. }))), "{ended:?}");
}

#[tokio::test]
async fn what_cannot_be_sent_is_answered_here() {
    let mut relay = Relay::start(None).await;
    within("room in stdin", relay.stdin.write_all(b"\xff\n")).await.unwrap();
    let line = relay.line().await.unwrap();
    assert!(line.contains("\"id\":null") && line.contains("-32700"), "{line}");
    relay.write(&format!("{REQUEST}\n")).await;
    assert_eq!(relay.arrived().await, REQUEST);
}

#[tokio::test]
async fn when_nobody_reads_stdout_the_relay_ends() {
    let mut relay = Relay::start(None).await;
    drop(relay.stdout);
    relay.daemon.send(Message::text(ANSWER)).await.unwrap();
    let ended = within("the end", relay.ended).await.unwrap();
    let quiet = matches!(&ended, Err(Failure::Output(error)) if error.kind() == std::io::ErrorKind::BrokenPipe);
    assert!(quiet, "{ended:?}");
}
