//! The client of the original project, as its contract describes it: it sends the same bytes, and its reader has
//! the same weaknesses.
//!
//! It searches for the exact bytes `Sec-WebSocket-Accept: ` in the response. It reads the head in chunks of at
//! most 1024 bytes and discards the bytes after the head. It knows neither opcodes nor fragments, parses
//! every payload as JSON, and sends no pong. Its request id comes from a clock that often repeats.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant, SystemTime};

use base64::Engine;
use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};
use serde_json::{Value, json};

/// Poll interval of the client. If a pause within a frame is longer, it loses the part that it has read.
const POLL: Duration = Duration::from_millis(500);

pub struct EvolveClient {
    stream: TcpStream,
    /// Messages that the client received and discarded while it waited for an answer.
    pub thrown_away: Vec<Value>,
}

impl EvolveClient {
    /// Connects as the original client does. The error is the text of its exception.
    pub fn connect(port: u16, token: &str, session: &str) -> Result<Self, String> {
        let mut stream =
            TcpStream::connect(("127.0.0.1", port)).map_err(|error| error.to_string())?;
        stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        let key = base64::engine::general_purpose::STANDARD.encode(rand::random::<[u8; 16]>());
        let request = format!(
            "GET /?token={token}&session={session} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\n\
             Connection: Upgrade\r\nSec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).map_err(|error| error.to_string())?;
        let mut head = Vec::new();
        while !head.windows(4).any(|window| window == b"\r\n\r\n") {
            let mut chunk = [0; 1024];
            let count = stream.read(&mut chunk).map_err(|error| error.to_string())?;
            if count == 0 {
                return Err("IndexError: closed without an answer".into());
            }
            head.extend_from_slice(&chunk[..count]);
        }
        let end = head.windows(4).position(|window| window == b"\r\n\r\n").unwrap() + 4;
        let upgraded = head.starts_with(b"HTTP/1.1 101");
        if !upgraded {
            return Err("RuntimeError: Run bridge handshake failed".into());
        }
        assert_eq!(end, head.len(), "bytes that came with the head are lost to this client");
        let head = String::from_utf8(head).unwrap();
        let accept = tungstenite::handshake::derive_accept_key(key.as_bytes());
        if !head.contains(&format!("Sec-WebSocket-Accept: {accept}")) {
            return Err("RuntimeError: Run bridge handshake invalid".into());
        }
        stream.set_read_timeout(Some(POLL)).unwrap();
        Ok(Self { stream, thrown_away: Vec::new() })
    }

    /// Makes a blocking call. The error is the text of its exception; `timeout` is in seconds.
    pub fn call(&mut self, kind: &str, mut params: Value, timeout: f64) -> Result<Value, String> {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
        let id = u64::try_from(now.as_millis() % 1_000_000_000).unwrap();
        if kind == "vscode/chat" || kind == "vscode/executeCommand" {
            // Python prints whole seconds as integers.
            let ms = timeout * 1000.0;
            params["timeout"] = if timeout.fract() == 0.0 { json!(ms as u64) } else { json!(ms) };
        }
        let params = python_json(&params);
        self.send_text(&format!(r#"{{"id": {id}, "type": "{kind}", "params": {params}}}"#));
        self.wait_for(id, timeout)
    }

    pub fn wait_for(&mut self, id: u64, timeout: f64) -> Result<Value, String> {
        let deadline = Instant::now() + Duration::from_secs_f64(timeout);
        while Instant::now() < deadline {
            let Some(payload) = self.frame()? else { continue };
            if payload.is_empty() {
                continue;
            }
            let text =
                std::str::from_utf8(&payload).map_err(|_| "UnicodeDecodeError".to_owned())?;
            let Ok(message) = serde_json::from_str::<Value>(text) else { continue };
            if !message.is_object() {
                return Err("AttributeError: no object".into());
            }
            if message["id"] != id {
                self.thrown_away.push(message);
                continue;
            }
            return match &message["success"] {
                Value::Bool(true) => Ok(message["result"].clone()),
                _ => Err(match &message["error"] {
                    Value::String(error) => format!("RuntimeError: VSCode request failed: {error}"),
                    Value::Null => "RuntimeError: VSCode request failed: Unknown error".into(),
                    other => format!("RuntimeError: a dict: {other}"),
                }),
            };
        }
        Err(format!("RuntimeError: Request timeout after {timeout}s"))
    }

    /// Waits for the next event, while no request is in flight.
    pub fn event(&mut self) -> Value {
        let deadline = Instant::now() + crate::TIMEOUT;
        while Instant::now() < deadline {
            if let Ok(Some(payload)) = self.frame()
                && let Ok(message) = serde_json::from_slice(&payload)
            {
                return message;
            }
        }
        panic!("no event came");
    }

    /// Sends one masked text frame in one write, with a 64-bit length for large messages.
    pub fn send(&mut self, message: &Value) {
        self.send_text(&python_json(message));
    }

    pub fn send_text(&mut self, text: &str) {
        let mask: [u8; 4] = rand::random();
        let mut frame = vec![0x81];
        match text.len() {
            length @ 0..126 => frame.push(0x80 | length as u8),
            length @ 126..65536 => {
                frame.push(0x80 | 126);
                frame.extend_from_slice(&(length as u16).to_be_bytes());
            }
            length => {
                frame.push(0x80 | 127);
                frame.extend_from_slice(&(length as u64).to_be_bytes());
            }
        }
        frame.extend_from_slice(&mask);
        frame.extend(text.bytes().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask));
        self.stream.write_all(&frame).unwrap();
    }

    /// The payload of one frame, with any opcode. `None` if nothing comes for half a second.
    fn frame(&mut self) -> Result<Option<Vec<u8>>, String> {
        let mut head = [0; 2];
        match self.stream.read(&mut head[..1]) {
            Ok(0) => return Err("busy loop: the server closed the connection".into()),
            Ok(_) => {}
            Err(_) => return Ok(None),
        }
        // From here on, a pause loses the bytes read so far, and all later bytes are misread.
        let lost =
            |error: std::io::Error| format!("corrupt stream: a pause inside a frame ({error})");
        assert_eq!(head[0] & 0x80, 0x80, "this client never sees a fragmented message");
        self.stream.read_exact(&mut head[1..]).map_err(lost)?;
        let length = match head[1] & 0x7f {
            126 => {
                let mut bytes = [0; 2];
                self.stream.read_exact(&mut bytes).map_err(lost)?;
                u16::from_be_bytes(bytes).into()
            }
            127 => {
                let mut bytes = [0; 8];
                self.stream.read_exact(&mut bytes).map_err(lost)?;
                u64::from_be_bytes(bytes)
            }
            short => u64::from(short),
        };
        let mut payload = vec![0; usize::try_from(length).unwrap()];
        self.stream.read_exact(&mut payload).map_err(lost)?;
        Ok(Some(payload))
    }
}

/// JSON with the white space of Python's `json.dumps`.
fn python_json(value: &Value) -> String {
    struct Python;
    impl Formatter for Python {
        fn begin_array_value<W: ?Sized + Write>(
            &mut self,
            writer: &mut W,
            first: bool,
        ) -> std::io::Result<()> {
            if first { Ok(()) } else { writer.write_all(b", ") }
        }

        fn begin_object_key<W: ?Sized + Write>(
            &mut self,
            writer: &mut W,
            first: bool,
        ) -> std::io::Result<()> {
            if first { Ok(()) } else { writer.write_all(b", ") }
        }

        fn begin_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> std::io::Result<()> {
            writer.write_all(b": ")
        }
    }
    let mut text = Vec::new();
    value.serialize(&mut Serializer::with_formatter(&mut text, Python)).unwrap();
    String::from_utf8(text).unwrap()
}
