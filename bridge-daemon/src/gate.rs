//! The gate: decides from the request head alone whether a connection is admitted.
//!
//! Every connection, WebSocket or plain HTTP, is checked here before anything else of it is read. A web page fails by
//! its `Origin`, a rebound DNS name by its `Host`, a stranger by the token. The token is compared in constant time,
//! with all tokens, on every path; the one that matches decides what its holder may do. The gate does no I/O.

mod tokens;

use std::borrow::Cow;
use std::sync::Arc;

use bridge_protocol::web_page::{self, is_from_page};
use bridge_protocol::{Dialect, SUBPROTOCOL, SessionId};
use hyper::StatusCode;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use crate::broker::{Grant, Role};
pub use tokens::Tokens;

/// Maximum length of a request head. A longer one is refused with 431.
pub const HEAD_BYTES: usize = 8 * 1024;
/// Maximum number of headers in a request. More are refused with 431.
const HEADERS: usize = 64;

/// Headers that must not be given twice: of two values, the gate and another reader could take different ones.
const DECISIVE: [&str; 8] = [
    "host",
    "origin",
    "sec-fetch-site",
    "authorization",
    "upgrade",
    "connection",
    "sec-websocket-key",
    "sec-websocket-version",
];

/// The settings of the gate.
#[derive(Debug)]
pub struct Gate {
    /// The tokens that are accepted.
    pub tokens: Arc<Tokens>,
    /// The one session that this daemon serves.
    pub session: SessionId,
    /// Origins that may connect; none by default.
    pub allowed_origins: Vec<String>,
    /// Whether the token may come in the query, as the original client sends it.
    pub query_token: bool,
}

/// How the connection reached us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// Loopback TCP.
    Tcp {
        /// The port of the daemon.
        port: u16,
    },
    /// A Unix socket. The peer has been checked to be a process of the same user.
    Unix,
}

/// What an admitted connection may do.
#[derive(Debug, PartialEq, Eq)]
pub enum Admission {
    /// Speak WebSocket.
    WebSocket {
        /// What its token allows.
        grant: Grant,
        /// The bridge dialect for clients that show their token in the query, as the original one does.
        dialect: Dialect,
        /// The head of the HTTP answer.
        answer: String,
    },
    /// Make one plain request.
    Http(Route),
}

/// A plain route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// `GET /healthz`
    Health,
    /// `GET /status`
    Status,
    /// `GET /metrics`
    Metrics,
    /// `POST /submit`
    Submit,
}

impl Route {
    /// The route of a path, and the HTTP method that it takes.
    fn of(path: &str) -> Option<(Self, &'static str)> {
        match path {
            "/healthz" => Some((Self::Health, "GET")),
            "/status" => Some((Self::Status, "GET")),
            "/metrics" => Some((Self::Metrics, "GET")),
            "/submit" => Some((Self::Submit, "POST")),
            _ => None,
        }
    }
}

/// Why a connection was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// HTTP status.
    pub status: u16,
    /// One sentence with cause and remedy. It never contains the right value.
    pub message: Cow<'static, str>,
}

impl Refusal {
    /// Creates a refusal.
    pub fn new(status: u16, message: impl Into<Cow<'static, str>>) -> Self {
        Self { status, message: message.into() }
    }

    /// The complete HTTP answer.
    pub fn to_http(&self) -> String {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::BAD_REQUEST);
        let reason = status.canonical_reason().unwrap_or_default();
        let extra = match self.status {
            401 => "WWW-Authenticate: Bearer\r\n",
            426 => "Sec-WebSocket-Version: 13\r\n",
            _ => "",
        };
        let body = serde_json::json!({ "error": self.message }).to_string();
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
    method: &'a str,
    path: &'a str,
    query: &'a str,
    headers: Vec<(&'a str, &'a str)>,
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

    fn all(&self, name: &str) -> impl Iterator<Item = &'a str> {
        let fits = move |header: &&(&str, &str)| header.0.eq_ignore_ascii_case(name);
        self.headers.iter().filter(fits).map(|(_, value)| *value)
    }

    fn get(&self, name: &str) -> Option<&'a str> {
        self.all(name).next()
    }

    fn first_of(&self, names: &[&str]) -> Option<&'a str> {
        names.iter().find_map(|name| self.get(name))
    }

    fn query_value(&self, name: &str) -> Option<Cow<'a, str>> {
        let mut pairs = form_urlencoded::parse(self.query.as_bytes());
        pairs.find(|(key, _)| key == name).map(|(_, value)| value)
    }

    fn bearer(&self) -> Option<&'a str> {
        let (scheme, token) = self.get("authorization")?.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
    }

    fn wants_websocket(&self) -> bool {
        self.get("upgrade").is_some_and(|value| value.eq_ignore_ascii_case("websocket"))
    }
}

impl Gate {
    /// Admits a connection, or returns why not.
    pub fn admit(&self, head: &Head<'_>, transport: Transport) -> Result<Admission, Refusal> {
        self.check_origin(head)?;
        check_host(head, transport)?;
        let upgrade = head.wants_websocket();
        let route = Route::of(head.path).filter(|_| !upgrade);
        if route == Some((Route::Health, head.method)) {
            return Ok(Admission::Http(Route::Health));
        }
        let (grant, dialect) = self.authenticate(head, upgrade)?;
        if upgrade {
            let answer = upgrade_answer(head)?;
            return Ok(Admission::WebSocket { grant, dialect, answer });
        }
        match route {
            Some((Route::Submit, "POST")) if head.method == "POST" && !grant.may_talk() => {
                let reason = "the token lacks the right chat, which /submit needs";
                Err(Refusal::new(403, reason))
            }
            Some((route, method)) if method == head.method => Ok(Admission::Http(route)),
            Some((_, method)) => Err(Refusal::new(405, format!("use {method} here"))),
            None => Err(Refusal::new(404, "no such path: connect a WebSocket to /")),
        }
    }

    fn check_origin(&self, head: &Head<'_>) -> Result<(), Refusal> {
        let [origin, fetch_site] =
            ["origin", "sec-fetch-site"].map(|name| head.get(name).map(str::as_bytes));
        if is_from_page(origin, fetch_site, &self.allowed_origins) {
            let reason = "web pages may not connect: send no Origin header, or start the daemon \
                          with --allow-origin";
            return Err(Refusal::new(403, reason));
        }
        Ok(())
    }

    fn authenticate(&self, head: &Head<'_>, upgrade: bool) -> Result<(Grant, Dialect), Refusal> {
        let headers = ["x-evolve-run-bridge-token", "x-evolve-token"];
        let by_header = head.bearer().or_else(|| head.first_of(&headers));
        let by_query = (upgrade && self.query_token).then(|| head.query_value("token")).flatten();
        let sessions = ["x-run-bridge-session", "x-evolve-run-bridge-session", "x-evolve-session"];
        let session =
            head.first_of(&sessions).map(Cow::Borrowed).or_else(|| head.query_value("session"));
        // Both are compared in any case, so that the time reveals nothing.
        let granted_by_header = self.tokens.grant(by_header);
        let granted_by_query = self.tokens.grant(by_query.as_deref());
        let session_fits = match session {
            Some(session) => session == self.session.as_str(),
            // The original client always names its session.
            None => by_header.is_some(),
        };
        let admitted = match (granted_by_header, granted_by_query) {
            (Some(grant), _) => Some((grant, Dialect::JsonRpc)),
            // The query does not make up for a wrong header, and is for clients only.
            (None, Some(grant)) if by_header.is_none() && grant.role() == Role::Client => {
                Some((grant, Dialect::Bridge))
            }
            _ => None,
        };
        admitted.filter(|_| session_fits).ok_or_else(|| {
            let reason = "wrong token or session: use RUN_BRIDGE_TOKEN and RUN_BRIDGE_SESSION of \
                          the run that this daemon serves";
            Refusal::new(401, reason)
        })
    }
}

/// Checks that `Host` is the daemon's own address. Any other name was made to point here by DNS rebinding.
fn check_host(head: &Head<'_>, transport: Transport) -> Result<(), Refusal> {
    let Transport::Tcp { port } = transport else { return Ok(()) };
    let host = head.get("host").ok_or_else(|| Refusal::new(400, "header host is missing"))?;
    let is_ours = |host: web_page::Host<'_>| host.is_loopback() && host.port == Some(port);
    match web_page::Host::parse(host).is_some_and(is_ours) {
        true => Ok(()),
        false => Err(Refusal::new(403, "Host must be the loopback address and port of the daemon")),
    }
}

/// Builds the answer that accepts the upgrade. Header names are spelt as in RFC 6455, because the original client
/// compares them byte for byte.
fn upgrade_answer(head: &Head<'_>) -> Result<String, Refusal> {
    if head.path != "/" {
        return Err(Refusal::new(404, "no such path: connect to /"));
    }
    if head.method != "GET" {
        return Err(Refusal::new(405, "a WebSocket request must use GET"));
    }
    let lists_upgrade =
        |value: &str| value.split(',').any(|option| option.trim().eq_ignore_ascii_case("upgrade"));
    if !head.get("connection").is_some_and(lists_upgrade) {
        return Err(Refusal::new(400, "header connection must list upgrade"));
    }
    if head.get("sec-websocket-version") != Some("13") {
        return Err(Refusal::new(426, "only WebSocket version 13 is supported"));
    }
    let key = head.get("sec-websocket-key").filter(|key| key.len() == 24);
    let key =
        key.ok_or_else(|| Refusal::new(400, "header sec-websocket-key is missing or malformed"))?;
    let offers = head.all("sec-websocket-protocol").flat_map(|value| value.split(','));
    let chosen = match offers.map(str::trim).any(|offer| offer == SUBPROTOCOL) {
        true => format!("Sec-WebSocket-Protocol: {SUBPROTOCOL}\r\n"),
        false => String::new(),
    };
    let accept = derive_accept_key(key.as_bytes());
    Ok(format!(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Accept: {accept}\r\n{chosen}\r\n"
    ))
}

#[cfg(test)]
mod tests;
