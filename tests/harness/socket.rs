//! A WebSocket that exchanges JSON values.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use nix::libc;
use serde_json::{Value, json};
use tungstenite::client::IntoClientRequest;
use tungstenite::handshake::client::Request;
use tungstenite::protocol::WebSocketConfig;
use tungstenite::{Error, Message, WebSocket};

use crate::TIMEOUT;

/// A stream for a WebSocket: TCP or Unix socket.
pub trait Stream: Read + Write + Send {
    fn set_timeout(&self, timeout: Option<Duration>);
    fn shut_down(&self, half: Shutdown);
    /// From now on Linux sends nothing to the other end, not even the end of the connection.
    fn mute(&self);
}

/// The socket option `TCP_REPAIR`, made for moving connections to another machine.
#[derive(Clone, Copy)]
struct Repair;
nix::setsockopt_impl!(
    Repair,
    libc::IPPROTO_TCP,
    libc::TCP_REPAIR,
    bool,
    nix::sys::socket::sockopt::SetBool
);

impl Stream for TcpStream {
    fn mute(&self) {
        // Needs a privilege. Without it, the connection ends in the usual way.
        let _ = nix::sys::socket::setsockopt(self, Repair, &true);
    }

    fn shut_down(&self, half: Shutdown) {
        let _ = self.shutdown(half);
    }

    fn set_timeout(&self, timeout: Option<Duration>) {
        self.set_read_timeout(timeout).unwrap();
    }
}

impl Stream for UnixStream {
    fn mute(&self) {}

    fn shut_down(&self, half: Shutdown) {
        let _ = self.shutdown(half);
    }

    fn set_timeout(&self, timeout: Option<Duration>) {
        self.set_read_timeout(timeout).unwrap();
    }
}

/// A connection of a client or a host; its token decides the role.
pub struct Socket {
    inner: WebSocket<Box<dyn Stream>>,
    next_id: u64,
}

/// The end of a connection, with the close code if a close frame came.
#[derive(Debug, PartialEq, Eq)]
pub struct Closed(pub Option<u16>);

impl Socket {
    #[track_caller]
    pub fn connect(port: u16, token: &str) -> Self {
        Self::try_connect(port, token).unwrap_or_else(|error| panic!("cannot connect: {error}"))
    }

    pub fn try_connect(port: u16, token: &str) -> Result<Self, Box<Error>> {
        let stream =
            TcpStream::connect(("127.0.0.1", port)).map_err(|error| Box::new(error.into()))?;
        stream.set_nodelay(true).unwrap();
        Self::open(Box::new(stream), &format!("ws://127.0.0.1:{port}/"), token)
    }

    pub fn connect_unix(path: &Path, token: &str) -> Self {
        let stream = UnixStream::connect(path).unwrap();
        Self::open(Box::new(stream), "ws://localhost/", token).unwrap()
    }

    fn open(stream: Box<dyn Stream>, url: &str, token: &str) -> Result<Self, Box<Error>> {
        stream.set_timeout(Some(TIMEOUT));
        let mut request: Request = url.into_client_request().unwrap();
        let bearer = format!("Bearer {token}").parse().unwrap();
        request.headers_mut().insert("authorization", bearer);
        let config = WebSocketConfig::default().max_frame_size(None).max_message_size(None);
        match tungstenite::client::client_with_config(request, stream, Some(config)) {
            Ok((inner, _)) => Ok(Self { inner, next_id: 0 }),
            Err(tungstenite::HandshakeError::Failure(error)) => Err(Box::new(error)),
            Err(tungstenite::HandshakeError::Interrupted(_)) => {
                panic!("the handshake took too long")
            }
        }
    }

    pub fn register(&mut self, runtime_id: &str) {
        let methods = json!([
            "vscode/chat",
            "vscode/showMessage",
            "vscode/executeCommand",
            "vscode/getChatHistory",
            "dapEvent"
        ]);
        let registered =
            self.call("runtime/register", json!({"runtimeId": runtime_id, "methods": methods}));
        assert_eq!(registered["runtimeId"], runtime_id);
    }

    #[track_caller]
    pub fn send(&mut self, message: &Value) {
        self.send_text(&message.to_string());
    }

    #[track_caller]
    pub fn send_text(&mut self, text: &str) {
        self.inner.send(Message::text(text)).unwrap();
    }

    pub fn send_message(&mut self, message: Message) -> Result<(), Box<Error>> {
        self.inner.send(message).map_err(Box::new)
    }

    /// Sends a JSON-RPC request and returns its id, without waiting for the answer.
    #[track_caller]
    pub fn send_request(&mut self, method: &str, params: Value) -> u64 {
        self.next_id += 1;
        let mut request = json!({"jsonrpc": "2.0", "id": self.next_id, "method": method});
        if !params.is_null() {
            request["params"] = params;
        }
        self.send(&request);
        self.next_id
    }

    /// Sends a request and waits for its result. Other messages are skipped.
    #[track_caller]
    pub fn call(&mut self, method: &str, params: Value) -> Value {
        let id = self.send_request(method, params);
        loop {
            let message = self.receive();
            if message["id"] == id {
                assert!(message["error"].is_null(), "{method} failed: {message}");
                return message["result"].clone();
            }
        }
    }

    #[track_caller]
    pub fn receive(&mut self) -> Value {
        serde_json::from_str(&self.receive_text()).unwrap()
    }

    #[track_caller]
    pub fn receive_text(&mut self) -> String {
        self.next_text().expect("a message, not the end of the connection")
    }

    /// The next text message, or `None` when the connection has ended.
    #[track_caller]
    pub fn next_text(&mut self) -> Option<String> {
        let limit = Instant::now() + TIMEOUT;
        loop {
            // Pings restart the socket's own read timeout.
            assert!(Instant::now() < limit, "no message within {TIMEOUT:?}");
            match self.inner.read() {
                Ok(Message::Text(text)) => return Some(text.to_string()),
                Ok(Message::Ping(_) | Message::Pong(_)) => {}
                Err(Error::Io(error)) => match error.kind() {
                    // System calls are interrupted when the machine resumes from sleep.
                    ErrorKind::Interrupted => {}
                    ErrorKind::WouldBlock => panic!("no message within {TIMEOUT:?}"),
                    _ => return None,
                },
                Ok(_) | Err(_) => return None,
            }
        }
    }

    /// The next request that this host gets.
    #[track_caller]
    pub fn request(&mut self) -> Value {
        let message = self.receive();
        assert!(message["method"].is_string() && !message["id"].is_null(), "no request: {message}");
        message
    }

    /// Answers a request.
    #[track_caller]
    pub fn answer(&mut self, request: &Value, result: Value) {
        self.send(&json!({"jsonrpc": "2.0", "id": request["id"], "result": result}));
    }

    /// Reads until the connection ends.
    #[track_caller]
    pub fn closed(&mut self) -> Closed {
        loop {
            match self.inner.read() {
                Ok(Message::Close(frame)) => {
                    let _ = self.inner.flush();
                    return Closed(frame.map(|frame| frame.code.into()));
                }
                Ok(_) => {}
                Err(Error::Io(error)) if error.kind() == ErrorKind::Interrupted => {}
                Err(Error::Io(error)) if error.kind() == ErrorKind::WouldBlock => {
                    panic!("the connection is still open");
                }
                Err(_) => return Closed(None),
            }
        }
    }

    /// Drops the connection in such a way that the other end gets no notice.
    pub fn vanish(mut self) {
        self.raw().mute();
    }

    pub fn raw(&mut self) -> &mut (dyn Stream + 'static) {
        &mut **self.inner.get_mut()
    }
}
