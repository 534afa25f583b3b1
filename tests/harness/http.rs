//! Plain HTTP without a library, so that a test controls every byte.

use std::io::{Read, Write};
use std::net::TcpStream;

use crate::TIMEOUT;

pub struct HttpAnswer {
    pub status: u16,
    pub head: String,
    pub body: String,
}

/// A request with correct `Host` and `Content-Length`, and the given headers.
pub fn http_request(port: u16, line: &str, headers: &[&str], body: &str) -> String {
    let mut text = format!("{line} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n");
    for header in headers {
        text.push_str(header);
        text.push_str("\r\n");
    }
    if !body.is_empty() {
        text.push_str(&format!("Content-Length: {}\r\n", body.len()));
    }
    format!("{text}\r\n{body}")
}

#[track_caller]
pub fn http(port: u16, line: &str, headers: &[&str], body: &str) -> HttpAnswer {
    raw_exchange(port, http_request(port, line, headers, body).as_bytes())
}

/// Sends bytes, and reads the whole response.
#[track_caller]
pub fn raw_exchange(port: u16, bytes: &[u8]) -> HttpAnswer {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    stream.write_all(bytes).unwrap();
    let mut answer = Vec::new();
    let mut chunk = [0; 4096];
    // An upgrade leaves the connection open: its head is the whole response.
    while !answer.starts_with(b"HTTP/1.1 101") || !answer.ends_with(b"\r\n\r\n") {
        match stream.read(&mut chunk) {
            Ok(0) => break,
            Ok(count) => answer.extend_from_slice(&chunk[..count]),
            Err(error) => panic!("no answer: {error}"),
        }
    }
    let text = String::from_utf8(answer).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no HTTP: {text:?}"));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    HttpAnswer {
        status: status.unwrap_or_else(|| panic!("no status: {head}")),
        head: head.to_owned(),
        body: body.to_owned(),
    }
}
