//! The handshake over real sockets. What a connection does afterwards is tested with the client.

use std::collections::HashMap;

use bridge_protocol::Secret;
use futures_util::{SinkExt, StreamExt};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, UnixListener};
use tokio_tungstenite::accept_hdr_async;
use tokio_tungstenite::tungstenite::handshake::server;
use tokio_tungstenite::tungstenite::http::HeaderValue;

use super::*;

const LIMIT: Duration = Duration::from_secs(10);

fn endpoint(address: Address) -> Endpoint {
    Endpoint { address, token: Secret::new("a".repeat(64)), session: "s1".parse().unwrap() }
}

async fn loopback() -> (TcpListener, Endpoint) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("ws://{}/", listener.local_addr().unwrap()).parse().unwrap();
    (listener, endpoint(address))
}

/// Accepts one connection, echoes one text, and returns the headers that were shown.
async fn echo(stream: impl Transport) -> HashMap<String, String> {
    let mut shown = HashMap::new();
    #[allow(clippy::result_large_err, reason = "the shape is tungstenite's")]
    let note = |request: &server::Request, mut response: server::Response| {
        for (name, value) in request.headers() {
            shown.insert(name.to_string(), value.to_str().unwrap().to_owned());
        }
        let subprotocol = HeaderValue::from_static("run-bridge.v1");
        response.headers_mut().insert("Sec-WebSocket-Protocol", subprotocol);
        Ok(response)
    };
    let mut socket = accept_hdr_async(stream, note).await.unwrap();
    let text = socket.next().await.unwrap().unwrap();
    socket.send(text).await.unwrap();
    shown
}

/// Reads a request head and answers with this.
async fn answer_http(listener: TcpListener, answer: &'static str) {
    let (mut stream, _) = listener.accept().await.unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_buf(&mut head).await.unwrap();
    }
    stream.write_all(answer.as_bytes()).await.unwrap();
}

#[tokio::test]
async fn token_session_and_subprotocol_are_shown_over_tcp() {
    let (listener, endpoint) = loopback().await;
    let server = tokio::spawn(async move { echo(listener.accept().await.unwrap().0).await });
    let mut connection = Connection::open(&endpoint, LIMIT).await.unwrap();
    connection.send("[1]".into());
    assert_eq!(&*connection.next().await.unwrap(), "[1]");
    let shown = server.await.unwrap();
    assert_eq!(shown["authorization"], format!("Bearer {}", "a".repeat(64)));
    assert_eq!(shown["x-run-bridge-session"], "s1");
    assert_eq!(shown["sec-websocket-protocol"], "run-bridge.v1");
    assert!(!shown.contains_key("origin"));
    // The server has gone after its echo.
    assert!(matches!(connection.next().await, Err(Error::Lost { .. })));
}

#[tokio::test]
async fn a_unix_socket_works_alike() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("bridge.sock");
    let listener = UnixListener::bind(&path).unwrap();
    let server = tokio::spawn(async move { echo(listener.accept().await.unwrap().0).await });
    let endpoint = endpoint(Address::Unix(path));
    let mut connection = Connection::open(&endpoint, LIMIT).await.unwrap();
    connection.send("[1]".into());
    assert_eq!(&*connection.next().await.unwrap(), "[1]");
    assert_eq!(server.await.unwrap()["host"], "localhost");
    let gone = Endpoint { address: Address::Unix(directory.path().join("gone")), ..endpoint };
    let error = Connection::open(&gone, LIMIT).await.err().unwrap();
    assert!(matches!(error, Error::Unreachable { .. }), "{error}");
}

#[tokio::test]
async fn refusals_are_told_apart() {
    let open = |endpoint: Endpoint| async move { Connection::open(&endpoint, LIMIT).await.err() };
    let (listener, endpoint) = loopback().await;
    let server = tokio::spawn(answer_http(listener, "HTTP/1.1 401 Unauthorized\r\n\r\n"));
    let error = open(endpoint).await.unwrap();
    assert!(matches!(error, Error::Unauthorized { .. }), "{error}");
    assert!(!error.to_string().contains("aaaa"), "the token shows: {error}");
    server.await.unwrap();

    let (listener, endpoint) = loopback().await;
    drop(listener);
    let error = open(endpoint).await.unwrap();
    assert!(matches!(error, Error::Unreachable { .. }), "{error}");

    let (listener, endpoint) = loopback().await;
    let server = tokio::spawn(answer_http(listener, "SSH-2.0-OpenSSH_9.2\r\n"));
    let error = open(endpoint).await.unwrap();
    assert!(matches!(error, Error::NotABridge { .. }), "{error}");
    server.await.unwrap();
}

#[tokio::test]
async fn an_endpoint_that_never_answers_is_given_up() {
    let (listener, endpoint) = loopback().await;
    let server = tokio::spawn(async move { listener.accept().await });
    let error = Connection::open(&endpoint, Duration::from_millis(50)).await.err().unwrap();
    assert!(matches!(error, Error::Unreachable { .. }), "{error}");
    drop(server.await);
}
