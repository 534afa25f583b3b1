//! The head of a request, and the answer to one that is refused.

use std::borrow::Cow;

use http::StatusCode;

/// Maximum length of a request head. A longer one is refused with 431.
pub const HEAD_BYTES: usize = 8 * 1024;
/// Maximum number of headers in a request. More are refused with 431.
pub const HEADERS: usize = 64;

/// Headers that must not be given twice: of two values, the gate and another reader could take different ones.
const DECISIVE: [&str; 9] = [
    "host",
    "origin",
    "sec-fetch-site",
    "authorization",
    "x-session-api-key",
    "upgrade",
    "connection",
    "sec-websocket-key",
    "sec-websocket-version",
];

/// Why a connection was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// HTTP status.
    pub status: u16,
    /// One sentence with cause and remedy. It never contains the right value.
    pub message: Cow<'static, str>,
    /// Whether the client may be guessing a secret. Then the answer is delayed.
    pub is_guess: bool,
}

impl Refusal {
    /// Refuses a request that nobody sends to guess a secret.
    pub fn new(status: u16, message: impl Into<Cow<'static, str>>) -> Self {
        Self { status, message: message.into(), is_guess: false }
    }

    /// Refuses a wrong or missing secret.
    pub fn guess(status: u16, message: impl Into<Cow<'static, str>>) -> Self {
        Self { is_guess: true, ..Self::new(status, message) }
    }

    /// The complete HTTP answer. Its body is a JSON object with the message as the member `member`.
    pub fn to_http(&self, member: &str) -> String {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::BAD_REQUEST);
        let reason = status.canonical_reason().unwrap_or_default();
        let extra = match self.status {
            401 => "WWW-Authenticate: Bearer\r\n",
            426 => "Sec-WebSocket-Version: 13\r\n",
            _ => "",
        };
        let body = serde_json::json!({ member: self.message }).to_string();
        format!(
            "HTTP/1.1 {} {reason}\r\n{extra}Content-Type: application/json\r\n\
             Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
            self.status,
            body.len()
        )
    }
}

/// A request head, complete and well-formed.
#[derive(Debug)]
pub struct Head<'a> {
    /// The HTTP method.
    pub method: &'a str,
    /// The target of the request up to the query.
    pub path: &'a str,
    /// The query, without its question mark.
    pub query: &'a str,
    /// Names and values of the headers.
    pub headers: Vec<(&'a str, &'a str)>,
    /// The number of bytes of the head.
    pub length: usize,
}

impl<'a> Head<'a> {
    /// Parses a head. Returns `None` if it is incomplete.
    pub fn parse(bytes: &'a [u8]) -> Result<Option<Self>, Refusal> {
        let mut headers = [httparse::EMPTY_HEADER; HEADERS];
        let mut request = httparse::Request::new(&mut headers);
        let length = match request.parse(bytes) {
            Ok(httparse::Status::Complete(length)) if length <= HEAD_BYTES => length,
            Ok(httparse::Status::Partial) if bytes.len() < HEAD_BYTES => return Ok(None),
            Ok(_) | Err(httparse::Error::TooManyHeaders) => {
                return Err(Refusal::new(431, "the request head is too large"));
            }
            Err(_) => return Err(Refusal::new(400, "not an HTTP request")),
        };
        let target = request.path.unwrap_or_default();
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let text = |value| std::str::from_utf8(value).map(str::trim);
        let headers: Vec<_> = request
            .headers
            .iter()
            .map(|header| Ok((header.name, text(header.value)?)))
            .collect::<Result<_, std::str::Utf8Error>>()
            .map_err(|_| Refusal::new(400, "a header is not UTF-8"))?;
        let head =
            Self { method: request.method.unwrap_or_default(), path, query, headers, length };
        match DECISIVE.iter().find(|name| head.all(name).count() > 1) {
            Some(name) => Err(Refusal::new(400, format!("header {name} is given twice"))),
            None => Ok(Some(head)),
        }
    }

    /// All values of a header.
    pub fn all(&self, name: &str) -> impl Iterator<Item = &'a str> {
        let fits = move |header: &&(&str, &str)| header.0.eq_ignore_ascii_case(name);
        self.headers.iter().filter(fits).map(|(_, value)| *value)
    }

    /// The first value of a header.
    pub fn get(&self, name: &str) -> Option<&'a str> {
        self.all(name).next()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_are_bounded_and_must_be_http() {
        let parse = |bytes: &[u8]| {
            Head::parse(bytes).map(|head| head.is_some()).map_err(|refusal| refusal.status)
        };
        assert_eq!(HEAD_BYTES, 8192);
        assert_eq!(parse(b""), Ok(false));
        assert_eq!(parse(b"GET / HTTP/1.1\r\nHost: x\r\n"), Ok(false));
        assert_eq!(parse(b"\x16\x03\x01\x02"), Err(400));
        assert_eq!(parse(b"GET / HTTP/1.1\r\nX: \xff\r\n\r\n"), Err(400));
        let padded = |length: usize| format!("GET / HTTP/1.1\r\nX: {}\r\n\r\n", "x".repeat(length));
        let overhead = padded(0).len();
        assert_eq!(parse(padded(HEAD_BYTES - overhead).as_bytes()), Ok(true));
        assert_eq!(parse(padded(HEAD_BYTES - overhead + 1).as_bytes()), Err(431));
        assert_eq!(
            parse(&padded(HEAD_BYTES).as_bytes()[..HEAD_BYTES]),
            Err(431),
            "unfinished at the limit"
        );
        let many = format!("GET / HTTP/1.1\r\n{}\r\n", "X: y\r\n".repeat(HEADERS + 1));
        assert_eq!(parse(many.as_bytes()), Err(431));
        let twice = "GET / HTTP/1.1\r\nX-Session-API-Key: a\r\nx-session-api-key: b\r\n\r\n";
        assert_eq!(parse(twice.as_bytes()), Err(400));
    }

    #[test]
    fn a_refusal_is_a_complete_answer() {
        let text = Refusal::new(403, "say \"please\"").to_http("detail");
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 403 Forbidden\r\n"), "{head}");
        assert!(head.contains(&format!("Content-Length: {}", body.len())));
        assert_eq!(body, r#"{"detail":"say \"please\""}"#);
    }
}
