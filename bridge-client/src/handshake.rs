//! The upgrade to WebSocket, from the client's side.
//!
//! tungstenite's own handshake is not used, for two reasons: it writes the whole request, including the token, to the
//! `log` crate at trace level; and people need to know why the daemon refused, so each status becomes a sentence here.

use std::io;
use std::sync::Arc;

use bridge_protocol::SUBPROTOCOL;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio_tungstenite::tungstenite::handshake::client::generate_key;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use crate::endpoint::{Address, Endpoint};
use crate::error::Error;

/// Maximum length of the head of an answer. A longer head is not from a bridge.
const HEAD_BYTES: usize = 8 * 1024;

/// Maximum number of headers of an answer. An answer with more is not from a bridge.
const HEADERS: usize = 32;

/// Requests the upgrade. Returns the bytes that came after the head of the answer.
pub(crate) async fn upgrade(
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    endpoint: &Endpoint,
) -> Result<Vec<u8>, Error> {
    let unreachable = |cause: io::Error| Error::Unreachable {
        address: endpoint.address.clone(),
        cause: Arc::new(cause),
    };
    let key = generate_key();
    stream.write_all(request(endpoint, &key).as_bytes()).await.map_err(unreachable)?;
    stream.flush().await.map_err(unreachable)?;

    let mut head = Vec::with_capacity(1024);
    loop {
        if stream.read_buf(&mut head).await.map_err(unreachable)? == 0 {
            return Err(unreachable(io::ErrorKind::UnexpectedEof.into()));
        }
        if let Some(length) = judge(&head, &key, &endpoint.address)? {
            return Ok(head.split_off(length));
        }
        if head.len() > HEAD_BYTES {
            return Err(no_bridge(&endpoint.address, "its answer has no end"));
        }
    }
}

fn request(endpoint: &Endpoint, key: &str) -> String {
    let host = match &endpoint.address {
        Address::Tcp { host, port } => format!("{host}:{port}"),
        Address::Unix(_) => "localhost".to_owned(),
    };
    let (token, session) = (endpoint.token.expose(), &endpoint.session);
    format!(
        "GET / HTTP/1.1\r\n\
         Host: {host}\r\n\
         Upgrade: websocket\r\n\
         Connection: Upgrade\r\n\
         Sec-WebSocket-Key: {key}\r\n\
         Sec-WebSocket-Version: 13\r\n\
         Sec-WebSocket-Protocol: {SUBPROTOCOL}\r\n\
         Authorization: Bearer {token}\r\n\
         X-Run-Bridge-Session: {session}\r\n\
         \r\n"
    )
}

/// Checks the bytes that have arrived so far. Returns the length of a head that accepts the upgrade, `None` if the head is
/// incomplete, or an error if it refuses the upgrade.
fn judge(bytes: &[u8], key: &str, address: &Address) -> Result<Option<usize>, Error> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS];
    let mut response = httparse::Response::new(&mut headers);
    let length = match response.parse(bytes) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(_) => return Err(no_bridge(address, "it does not speak HTTP")),
    };
    match response.code.unwrap_or_default() {
        101 => {}
        401 => return Err(Error::Unauthorized { address: address.clone() }),
        status => {
            let reason = reason_for(status, &bytes[length..]);
            return Err(Error::Refused { address: address.clone(), status, reason });
        }
    }
    let header = |name: &str| {
        let mut found = response.headers.iter().filter(|h| h.name.eq_ignore_ascii_case(name));
        found.next().map(|header| header.value)
    };
    let says = |name, word: &str| {
        header(name).is_some_and(|value| value.eq_ignore_ascii_case(word.as_bytes()))
    };
    if !says("Upgrade", "websocket") || !says("Connection", "Upgrade") {
        return Err(no_bridge(address, "it switched to something else than WebSocket"));
    }
    if header("Sec-WebSocket-Accept") != Some(derive_accept_key(key.as_bytes()).as_bytes()) {
        return Err(no_bridge(address, "it answered somebody else's handshake"));
    }
    match header("Sec-WebSocket-Protocol") {
        Some(chosen) if chosen != SUBPROTOCOL.as_bytes() => {
            Err(no_bridge(address, "it speaks another subprotocol"))
        }
        _ => Ok(Some(length)),
    }
}

/// The first line of the body if there is one, otherwise the usual meaning of the status.
fn reason_for(status: u16, body: &[u8]) -> String {
    let said = String::from_utf8_lossy(body);
    let said: String = said.lines().next().unwrap_or_default().trim().chars().take(200).collect();
    let known = match status {
        403 => "connect from this machine and as the same user, without a proxy",
        503 => "it has as many connections as it may have; close some, or try later",
        _ => "check that client and daemon are of the same version",
    };
    if said.is_empty() { known.to_owned() } else { said }
}

fn no_bridge(address: &Address, reason: &str) -> Error {
    Error::NotABridge { address: address.clone(), reason: reason.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_daemon::within;
    use bridge_protocol::Secret;

    fn address() -> Address {
        "ws://127.0.0.1:4711/".parse().unwrap()
    }

    fn grant(extra: &str) -> String {
        let accept = derive_accept_key(b"key");
        format!(
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
             Sec-WebSocket-Accept: {accept}\r\n{extra}\r\n"
        )
    }

    fn check(answer: &str) -> Result<Option<usize>, Error> {
        judge(answer.as_bytes(), "key", &address())
    }

    #[test]
    fn the_request_shows_token_session_and_subprotocol() {
        let endpoint = Endpoint {
            address: address(),
            token: Secret::new("t".repeat(64)),
            session: "s1".parse().unwrap(),
        };
        let text = request(&endpoint, "k==");
        for line in [
            "GET / HTTP/1.1\r\n",
            "\r\nHost: 127.0.0.1:4711\r\n",
            "\r\nSec-WebSocket-Key: k==\r\n",
            "\r\nSec-WebSocket-Protocol: run-bridge.v1\r\n",
            &format!("\r\nAuthorization: Bearer {}\r\n", "t".repeat(64)),
            "\r\nX-Run-Bridge-Session: s1\r\n",
        ] {
            assert!(text.contains(line), "{line} is not in {text}");
        }
        assert!(text.ends_with("\r\n\r\n") && !text.contains("Origin"));
        let unix = Endpoint { address: Address::Unix("/x".into()), ..endpoint };
        assert!(request(&unix, "k").contains("\r\nHost: localhost\r\n"));
    }

    #[test]
    fn an_upgrade_is_granted_by_the_right_digest() {
        let answer = grant("Sec-WebSocket-Protocol: run-bridge.v1\r\n");
        assert_eq!(check(&answer).unwrap(), Some(answer.len()));
        assert_eq!(check(&grant("")).unwrap(), Some(grant("").len()));
        assert_eq!(check(&answer[..answer.len() - 1]).unwrap(), None);
        for bad in [
            grant("").replace("Accept: ", "Accept: x"),
            grant("").replace("Upgrade: websocket", "Upgrade: h2c"),
            grant("").replace("Connection: Upgrade", "Connection: close"),
            grant("Sec-WebSocket-Protocol: other\r\n"),
            "SSH-2.0-OpenSSH_9.2\r\n".to_owned(),
        ] {
            assert!(matches!(check(&bad), Err(Error::NotABridge { .. })), "{bad}");
        }
    }

    #[test]
    fn refusals_keep_status_and_reason() {
        let error = check("HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n").unwrap_err();
        assert!(matches!(error, Error::Unauthorized { .. }));
        match check("HTTP/1.1 403 Forbidden\r\n\r\nan Origin is not allowed\nmore").unwrap_err() {
            Error::Refused { status: 403, reason, .. } => {
                assert_eq!(reason, "an Origin is not allowed");
            }
            other => panic!("{other:?}"),
        }
        match check("HTTP/1.1 503 Service Unavailable\r\n\r\n").unwrap_err() {
            Error::Refused { status: 503, reason, .. } => assert!(reason.contains("try later")),
            other => panic!("{other:?}"),
        }
        match check("HTTP/1.1 418 Teapot\r\n\r\n").unwrap_err() {
            Error::Refused { status: 418, reason, .. } => assert!(reason.contains("same version")),
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_without_end_and_one_without_beginning_are_told_apart() {
        let endpoint = Endpoint {
            address: address(),
            token: Secret::new("t"),
            session: "s1".parse().unwrap(),
        };
        let (mut ours, mut theirs) = tokio::io::duplex(64 * 1024);
        let flood = format!("HTTP/1.1 101 X\r\nX-Long: {}", "a".repeat(2 * HEAD_BYTES));
        theirs.write_all(flood.as_bytes()).await.unwrap();
        let error = within("a verdict", upgrade(&mut ours, &endpoint)).await.unwrap_err();
        assert!(matches!(error, Error::NotABridge { .. }), "{error}");

        let (mut ours, mut theirs) = tokio::io::duplex(64 * 1024);
        theirs.write_all(b"HTTP/1.1 101").await.unwrap();
        theirs.shutdown().await.unwrap();
        let error = within("a verdict", upgrade(&mut ours, &endpoint)).await.unwrap_err();
        assert!(matches!(error, Error::Unreachable { .. }), "{error}");

        let (mut ours, theirs) = tokio::io::duplex(64 * 1024);
        drop(theirs);
        let error = upgrade(&mut ours, &endpoint).await.unwrap_err();
        assert!(matches!(error, Error::Unreachable { .. }), "{error}");
    }
}
