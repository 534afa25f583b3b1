//! The gate: decides from the request head alone whether a connection is admitted.
//!
//! Every connection, WebSocket or plain HTTP, is checked here before anything else of it is read. A web page fails by
//! its `Origin`, a rebound DNS name by its `Host`, a stranger by the token. The token is compared in constant time,
//! with all tokens, on every path; the one that matches decides what its holder may do. The gate does no I/O: the crate
//! `listener` reads heads and answers refusals.

mod tokens;

use std::borrow::Cow;
use std::sync::Arc;

use bridge_protocol::web_page::{self, is_from_page};
use bridge_protocol::{Dialect, SUBPROTOCOL, SessionId};
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use crate::broker::{Grant, Role};
pub use listener::{Head, Refusal};
pub use tokens::Tokens;

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

impl Gate {
    /// Admits a connection, or returns why not.
    pub fn admit(&self, head: &Head<'_>, transport: Transport) -> Result<Admission, Refusal> {
        self.check_origin(head)?;
        check_host(head, transport)?;
        let upgrade = wants_websocket(head);
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
        let by_header = bearer(head).or_else(|| first_of(head, &headers));
        let by_query = (upgrade && self.query_token).then(|| query_value(head, "token")).flatten();
        let sessions = ["x-run-bridge-session", "x-evolve-run-bridge-session", "x-evolve-session"];
        let session =
            first_of(head, &sessions).map(Cow::Borrowed).or_else(|| query_value(head, "session"));
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
            Refusal::guess(401, reason)
        })
    }
}

fn first_of<'a>(head: &Head<'a>, names: &[&str]) -> Option<&'a str> {
    names.iter().find_map(|name| head.get(name))
}

fn query_value<'a>(head: &Head<'a>, name: &str) -> Option<Cow<'a, str>> {
    let mut pairs = form_urlencoded::parse(head.query.as_bytes());
    pairs.find(|(key, _)| key == name).map(|(_, value)| value)
}

fn bearer<'a>(head: &Head<'a>) -> Option<&'a str> {
    let (scheme, token) = head.get("authorization")?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

fn wants_websocket(head: &Head<'_>) -> bool {
    head.get("upgrade").is_some_and(|value| value.eq_ignore_ascii_case("websocket"))
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
