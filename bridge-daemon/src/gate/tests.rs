use bridge_protocol::{Right, Rights, Secret};

use super::*;
use crate::broker::HostGrant;

const PORT: u16 = 4000;

fn gate() -> Gate {
    let tokens = Tokens::default();
    for (bits, grant) in [
        (0xc1, Grant::Client(Rights::ALL)),
        (0xb0, Grant::Host(Arc::new(HostGrant::general([], &[])))),
        (0xd2, Grant::Client(Rights::of(&[Right::Read]))),
        (0xe3, Grant::Host(Arc::new(HostGrant::child("sandbox", &["file"], false)))),
    ] {
        tokens.add(Secret::from_random([bits; 32]), grant).unwrap();
    }
    Gate {
        tokens: Arc::new(tokens),
        session: "s1".parse().unwrap(),
        allowed_origins: vec!["https://allowed.example".into()],
        query_token: true,
    }
}

fn client_token() -> String {
    "c1".repeat(32)
}

fn host_token() -> String {
    "b0".repeat(32)
}

/// A good upgrade by header, with lines replaced (`Name: value`) or removed (`Name`).
fn upgrade(changes: &[&str]) -> String {
    request("GET / HTTP/1.1", changes)
}

fn request(line: &str, changes: &[&str]) -> String {
    let mut lines = vec![
        "Host: 127.0.0.1:4000".to_owned(),
        "Upgrade: websocket".to_owned(),
        "Connection: Upgrade".to_owned(),
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==".to_owned(),
        "Sec-WebSocket-Version: 13".to_owned(),
        format!("Authorization: Bearer {}", client_token()),
    ];
    for change in changes {
        let name = change.split(':').next().unwrap();
        if let Some(added) = change.strip_prefix('+') {
            lines.push(added.to_owned());
            continue;
        }
        lines.retain(|line| line.split(':').next() != Some(name));
        if change.contains(':') {
            lines.push((*change).to_owned());
        }
    }
    format!("{line}\r\n{}\r\n\r\n", lines.join("\r\n"))
}

fn verdict_at(gate: &Gate, text: &str, transport: Transport) -> Result<Admission, u16> {
    let refused = |refusal: Refusal| refusal.status;
    let head = Head::parse(text.as_bytes()).map_err(refused)?.expect("complete");
    gate.admit(&head, transport).map_err(refused)
}

fn verdict(text: &str) -> Result<Admission, u16> {
    verdict_at(&gate(), text, Transport::Tcp { port: PORT })
}

#[track_caller]
fn assert_role(text: &str, expected: Role, expected_dialect: Dialect) {
    match verdict(text) {
        Ok(Admission::WebSocket { grant, dialect, .. }) => {
            assert_eq!((grant.role(), dialect), (expected, expected_dialect));
        }
        other => panic!("{other:?} for {text}"),
    }
}

#[test]
fn the_token_decides_the_role() {
    assert_role(&upgrade(&[]), Role::Client, Dialect::JsonRpc);
    let host = format!("Authorization: Bearer {}", host_token());
    assert_role(&upgrade(&[&host]), Role::Host, Dialect::JsonRpc);
    assert_role(&upgrade(&["+X-Run-Bridge-Session: s1"]), Role::Client, Dialect::JsonRpc);
}

#[test]
fn the_original_client_shows_its_token_in_the_query() {
    let by_query = |token: &str, rest: &str| {
        request(&format!("GET /?token={token}{rest} HTTP/1.1"), &["Authorization"])
    };
    assert_role(&by_query(&client_token(), "&session=s1"), Role::Client, Dialect::Bridge);
    assert_eq!(verdict(&by_query(&client_token(), "")), Err(401), "it always names its session");
    assert_eq!(verdict(&by_query(&client_token(), "&session=s2")), Err(401));
    assert_eq!(verdict(&by_query(&host_token(), "&session=s1")), Err(401), "clients only");
    let strict = Gate { query_token: false, ..gate() };
    let text = by_query(&client_token(), "&session=s1");
    assert_eq!(verdict_at(&strict, &text, Transport::Tcp { port: PORT }), Err(401));
    // A wrong header is not made good by a right query.
    let both = request(
        &format!("GET /?token={}&session=s1 HTTP/1.1", client_token()),
        &["Authorization: Bearer wrong"],
    );
    assert_eq!(verdict(&both), Err(401));
}

#[test]
fn wrong_credentials_are_refused_before_the_upgrade() {
    let long = format!("Authorization: Bearer {}0", client_token());
    let basic = format!("Authorization: Basic {}", client_token());
    for changes in [
        &["Authorization"][..],
        &["Authorization: Bearer"],
        &["Authorization: Bearer "],
        &["Authorization: Bearer wrong"],
        &[&long],
        &[&basic],
        &["+X-Run-Bridge-Session: other"],
    ] {
        assert_eq!(verdict(&upgrade(changes)), Err(401), "{changes:?}");
    }
}

#[test]
fn web_pages_are_refused_by_their_origin() {
    for origin in
        ["Origin: https://evil.example", "Origin: null", "Origin: http://127.0.0.1:4000", "Origin:"]
    {
        assert_eq!(verdict(&upgrade(&[&format!("+{origin}")])), Err(403), "{origin}");
    }
    assert_role(&upgrade(&["+Origin: https://allowed.example"]), Role::Client, Dialect::JsonRpc);
    let post = request("POST /submit HTTP/1.1", &["Upgrade", "+Origin: https://evil.example"]);
    assert_eq!(verdict(&post), Err(403), "plain requests too");
    let health = request("GET /healthz HTTP/1.1", &["Upgrade", "+Origin: null"]);
    assert_eq!(verdict(&health), Err(403), "even harmless ones");
    let picture = request("GET /healthz HTTP/1.1", &["Upgrade", "+Sec-Fetch-Site: cross-site"]);
    assert_eq!(verdict(&picture), Err(403), "a fetch without an Origin");
    let typed = request("GET /healthz HTTP/1.1", &["Upgrade", "+Sec-Fetch-Site: none"]);
    assert_eq!(verdict(&typed), Ok(Admission::Http(Route::Health)), "by a person");
}

#[test]
fn rebound_names_are_refused_by_their_host() {
    for host in [
        "Host: evil.example:4000",
        "Host: 127.0.0.1",
        "Host: 127.0.0.1:4001",
        "Host: 127.0.0.1:40000",
        "Host: 127.0.0.1.evil.example:4000",
        "Host: 0.0.0.0:4000",
        "Host: localhost:4000:4000",
        "Host: ",
    ] {
        assert_eq!(verdict(&upgrade(&[host])), Err(403), "{host}");
    }
    assert_eq!(verdict(&upgrade(&["Host"])), Err(400));
    for host in ["Host: localhost:4000", "Host: LocalHost:4000", "Host: [::1]:4000"] {
        assert_role(&upgrade(&[host]), Role::Client, Dialect::JsonRpc);
    }
    let on_socket = verdict_at(&gate(), &upgrade(&["Host: anything"]), Transport::Unix);
    assert!(on_socket.is_ok(), "on a Unix socket the user was checked instead");
}

#[test]
fn decisive_headers_may_not_be_given_twice() {
    for extra in [
        "+Host: 127.0.0.1:4000",
        "+host: evil.example",
        "+Authorization: Bearer x",
        "+Sec-Fetch-Site: none\r\nSec-Fetch-Site: none",
        "+Upgrade: websocket",
        "+Connection: Upgrade",
        "+Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
        "+Sec-WebSocket-Version: 13",
    ] {
        assert_eq!(verdict(&upgrade(&[extra])), Err(400), "{extra}");
    }
    let origins = upgrade(&["+Origin: https://allowed.example", "+origin: https://evil.example"]);
    assert_eq!(verdict(&origins), Err(400));
}

#[test]
fn the_answer_is_spelt_as_the_original_client_wants_it() {
    let Ok(Admission::WebSocket { answer, .. }) = verdict(&upgrade(&[])) else { panic!() };
    assert_eq!(
        answer,
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n"
    );
    let offered = upgrade(&[
        "+Sec-WebSocket-Protocol: other, run-bridge.v1",
        "+Sec-WebSocket-Extensions: permessage-deflate",
    ]);
    let Ok(Admission::WebSocket { answer, .. }) = verdict(&offered) else { panic!() };
    assert!(answer.contains("Sec-WebSocket-Protocol: run-bridge.v1\r\n"));
    assert!(!answer.contains("Extensions"), "no extension is ever accepted");
    let other = upgrade(&["+Sec-WebSocket-Protocol: other"]);
    let Ok(Admission::WebSocket { answer, .. }) = verdict(&other) else { panic!() };
    assert!(!answer.contains("Sec-WebSocket-Protocol"), "only what was offered and is ours");
}

#[test]
fn malformed_upgrades_are_refused() {
    for (changes, status) in [
        (&["Connection: keep-alive"][..], 400),
        (&["Connection"], 400),
        (&["Sec-WebSocket-Version: 8"], 426),
        (&["Sec-WebSocket-Version"], 426),
        (&["Sec-WebSocket-Key: short"], 400),
        (&["Sec-WebSocket-Key"], 400),
    ] {
        assert_eq!(verdict(&upgrade(changes)), Err(status), "{changes:?}");
    }
    assert_eq!(verdict(&request("POST / HTTP/1.1", &[])), Err(405));
    assert_eq!(verdict(&request("GET /other HTTP/1.1", &[])), Err(404));
}

#[test]
fn plain_routes_need_the_token_too() {
    let plain =
        |line: &str, changes: &[&str]| verdict(&request(line, &[&["Upgrade"], changes].concat()));
    assert_eq!(
        plain("GET /healthz HTTP/1.1", &["Authorization"]),
        Ok(Admission::Http(Route::Health))
    );
    for (line, route) in [
        ("GET /status HTTP/1.1", Route::Status),
        ("GET /metrics HTTP/1.1", Route::Metrics),
        ("POST /submit HTTP/1.1", Route::Submit),
    ] {
        assert_eq!(plain(line, &[]), Ok(Admission::Http(route)));
        assert_eq!(plain(line, &["Authorization"]), Err(401), "{line}");
    }
    let in_query = format!("GET /status?token={}&session=s1 HTTP/1.1", client_token());
    assert_eq!(
        plain(&in_query, &["Authorization"]),
        Err(401),
        "a query token opens WebSockets only"
    );
    let evolve = format!("+X-Evolve-Token: {}", client_token());
    assert_eq!(
        plain("POST /submit?session=s1 HTTP/1.1", &["Authorization", &evolve]),
        Ok(Admission::Http(Route::Submit))
    );
    assert_eq!(plain("POST /submit?session=s2 HTTP/1.1", &["Authorization", &evolve]), Err(401));
    assert_eq!(plain("GET /submit HTTP/1.1", &[]), Err(405));
    assert_eq!(plain("POST /status HTTP/1.1", &[]), Err(405));
    assert_eq!(plain("POST /healthz HTTP/1.1", &[]), Err(405));
    assert_eq!(plain("GET /nothing HTTP/1.1", &[]), Err(404));
    assert_eq!(
        plain("GET /nothing HTTP/1.1", &["Authorization"]),
        Err(401),
        "strangers learn nothing"
    );
}

#[test]
fn each_token_opens_the_gate_with_its_own_grant() {
    let bearer = |bits: &str| format!("Authorization: Bearer {}", bits.repeat(32));
    let granted = |bits: &str| match verdict(&upgrade(&[&bearer(bits)])) {
        Ok(Admission::WebSocket { grant, .. }) => grant,
        other => panic!("{other:?}"),
    };
    assert_eq!(granted("d2").rights(), Some(Rights::of(&[Right::Read])));
    assert_eq!(granted("c1").rights(), Some(Rights::ALL));
    assert_eq!(granted("e3").rights(), None);
    let by_query = request(
        &format!("GET /?token={}&session=s1 HTTP/1.1", "d2".repeat(32)),
        &["Authorization"],
    );
    assert_role(&by_query, Role::Client, Dialect::Bridge);
    let plain = |line: &str, bits: &str| verdict(&request(line, &["Upgrade", &bearer(bits)]));
    for bits in ["d2", "e3"] {
        assert_eq!(plain("GET /status HTTP/1.1", bits), Ok(Admission::Http(Route::Status)));
        assert_eq!(plain("POST /submit HTTP/1.1", bits), Err(403), "{bits}");
    }
    for bits in ["c1", "b0"] {
        assert_eq!(plain("POST /submit HTTP/1.1", bits), Ok(Admission::Http(Route::Submit)));
    }
}

#[test]
fn refusals_are_complete_answers_without_secrets() {
    let refusal = verdict_text(&upgrade(&["Authorization: Bearer wrong"]));
    assert!(refusal.starts_with("HTTP/1.1 401 Unauthorized\r\n"));
    assert!(refusal.contains("\r\nWWW-Authenticate: Bearer\r\n"));
    let version = verdict_text(&upgrade(&["Sec-WebSocket-Version: 8"]));
    assert!(version.starts_with("HTTP/1.1 426 Upgrade Required\r\nSec-WebSocket-Version: 13\r\n"));
    assert!(!refusal.contains(&client_token()) && !refusal.contains("wrong\""));
    let (head, body) = refusal.split_once("\r\n\r\n").unwrap();
    assert!(head.contains(&format!("Content-Length: {}", body.len())));
    assert!(serde_json::from_str::<serde_json::Value>(body).unwrap()["error"].is_string());
}

fn verdict_text(text: &str) -> String {
    let head = Head::parse(text.as_bytes()).unwrap().unwrap();
    gate().admit(&head, Transport::Tcp { port: PORT }).unwrap_err().to_http("error")
}
