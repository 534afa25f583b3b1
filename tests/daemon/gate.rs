use std::io::{Read, Write};
use std::net::TcpStream;

use harness::{Daemon, TIMEOUT, http, http_request, raw_exchange, wait_until};
use serde_json::Value;

const UPGRADE: [&str; 4] = [
    "Upgrade: websocket",
    "Connection: Upgrade",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
    "Sec-WebSocket-Version: 13",
];

fn upgrade(daemon: &Daemon, extra: &[&str]) -> u16 {
    let bearer = format!("Authorization: Bearer {}", daemon.text("token"));
    http(daemon.port(), "GET /", &[&UPGRADE[..], &[&*bearer], extra].concat(), "").status
}

#[test]
fn web_pages_and_rebound_names_are_refused() {
    let daemon = Daemon::start();
    assert_eq!(upgrade(&daemon, &[]), 101);
    for origin in ["https://evil.example", "null", "http://localhost"] {
        assert_eq!(upgrade(&daemon, &[&format!("Origin: {origin}")]), 403);
    }
    assert_eq!(upgrade(&daemon, &["Host: evil.example"]), 400, "two hosts");
    let request = http_request(daemon.port(), "GET /", &UPGRADE, "");
    let rebound = request.replace("Host: 127.0.0.1:", "Host: evil.example:");
    assert_eq!(raw_exchange(daemon.port(), rebound.as_bytes()).status, 403);
}

#[test]
fn a_form_post_from_a_page_does_nothing() {
    let daemon = Daemon::start();
    let headers = ["Origin: https://evil.example", "Content-Type: text/plain"];
    assert_eq!(http(daemon.port(), "POST /submit", &headers, "{}").status, 403);
    assert_eq!(http(daemon.port(), "POST /submit", &headers[1..], "{}").status, 401);
}

#[test]
fn an_allowed_origin_still_needs_the_token() {
    let daemon = Daemon::start_with(&["--allow-origin", "https://mine.example"]);
    assert_eq!(upgrade(&daemon, &["Origin: https://mine.example"]), 101);
    assert_eq!(
        http(
            daemon.port(),
            "GET /",
            &[&UPGRADE[..], &["Origin: https://mine.example"]].concat(),
            ""
        )
        .status,
        401
    );
}

#[test]
fn query_tokens_can_be_switched_off() {
    for (flags, status) in [(&[][..], 101), (&["--no-query-token"], 401)] {
        let daemon = Daemon::start_with(flags);
        let line =
            format!("GET /?token={}&session={}", daemon.text("token"), daemon.text("session"));
        assert_eq!(http(daemon.port(), &line, &UPGRADE, "").status, status);
    }
}

#[test]
fn compression_is_never_agreed_on() {
    let daemon = Daemon::start();
    let bearer = format!("Authorization: Bearer {}", daemon.text("token"));
    let offer = ["Sec-WebSocket-Extensions: permessage-deflate", &bearer];
    let answer = http(daemon.port(), "GET /", &[&UPGRADE[..], &offer].concat(), "");
    assert_eq!(answer.status, 101);
    assert!(!answer.head.to_lowercase().contains("extensions"));
}

#[test]
fn strangers_cannot_lock_others_out() {
    let daemon = Daemon::start();
    let silent: Vec<_> =
        (0..200).map(|_| TcpStream::connect(("127.0.0.1", daemon.port())).unwrap()).collect();
    assert_eq!(upgrade(&daemon, &[]), 101, "while 200 connections have sent nothing");
    // The oldest were closed at once, long before their two seconds were over.
    let mut oldest = &silent[0];
    oldest.set_read_timeout(Some(TIMEOUT)).unwrap();
    assert!(matches!(oldest.read(&mut [0; 1]), Ok(0) | Err(_)));
}

#[test]
fn a_head_that_does_not_come_is_given_up() {
    let daemon = Daemon::start();
    let answer = raw_exchange(daemon.port(), b"GET / HTTP/1.1\r\nHost: ");
    assert_eq!(answer.status, 408);
}

#[test]
fn heads_are_bounded() {
    let daemon = Daemon::start();
    let long = format!("X-Long: {}", "x".repeat(9000));
    assert_eq!(http(daemon.port(), "GET /", &[&long], "").status, 431);
    assert_eq!(
        raw_exchange(daemon.port(), b"\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03").status,
        400,
        "TLS"
    );
}

#[test]
fn guessing_is_counted_slow_and_harmless() {
    let daemon = Daemon::start();
    let port = daemon.port();
    let guessers: Vec<_> = (0..4)
        .map(|_| {
            std::thread::spawn(move || {
                let statuses = (0..50).map(|n| {
                    let guess = format!("Authorization: Bearer {n:064x}");
                    http(port, "GET /", &[&UPGRADE[..], &[&*guess]].concat(), "").status
                });
                statuses.collect::<Vec<_>>()
            })
        })
        .collect();
    let begun = std::time::Instant::now();
    assert_eq!(upgrade(&daemon, &[]), 101, "others are served meanwhile");
    for guesser in guessers {
        assert!(guesser.join().unwrap().into_iter().all(|status| status == 401));
    }
    assert!(begun.elapsed().as_secs_f64() > 4.0, "each of 50 guesses in a row waits 100 ms");
    assert_eq!(daemon.status()["counters"]["refusedConnections"], 200);
}

#[test]
fn a_flood_of_guesses_is_answered_without_tying_anything_up() {
    let daemon = Daemon::start();
    let guess = http_request(
        daemon.port(),
        "GET /",
        &[&UPGRADE[..], &["Authorization: Bearer x"]].concat(),
        "",
    );
    let mut flood: Vec<_> =
        (0..300).map(|_| TcpStream::connect(("127.0.0.1", daemon.port())).unwrap()).collect();
    for stream in &mut flood {
        // Connections that were closed as half-open may fail.
        let _ = stream.write_all(guess.as_bytes());
    }
    assert_eq!(upgrade(&daemon, &[]), 101);
    let mut newest = flood.pop().unwrap();
    newest.set_read_timeout(Some(TIMEOUT)).unwrap();
    let mut answer = [0; 12];
    newest.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"HTTP/1.1 401");
}

#[test]
fn secrets_are_in_no_log_argument_or_environment() {
    let daemon = Daemon::start_with(&["--log-format", "json"]);
    let secrets = [daemon.text("token"), daemon.text("hostToken")];
    // Make the daemon log: good and bad connections, a request with content, an error.
    let mut host = daemon.host("h");
    let mut client = daemon.client();
    client.send_request("vscode/chat", serde_json::json!({"message": "private words"}));
    let request = host.request();
    host.answer(&request, serde_json::json!({"response": "private answer"}));
    client.receive();
    upgrade(&daemon, &["Origin: x"]);
    let line = format!("GET /?token={}&session=nope", daemon.text("token"));
    http(daemon.port(), &line, &UPGRADE, "");
    drop(client);
    wait_until("the log of the end", || daemon.program.stderr().contains("disconnected"));
    let log = daemon.program.stderr();
    assert!(log.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()), "JSON lines");
    assert!(log.contains("vscode/chat") && log.contains("\"outcome\":\"ok\""));
    let pid = daemon.program.pid();
    let read = |name| {
        String::from_utf8_lossy(&std::fs::read(format!("/proc/{pid}/{name}")).unwrap_or_default())
            .into_owned()
    };
    // Only root can read the environment of a process that is not dumpable.
    assert!(!read("cmdline").is_empty());
    assert_eq!(nix::unistd::geteuid().is_root(), !read("environ").is_empty());
    for text in [log, read("cmdline"), read("environ"), daemon.status().to_string()] {
        for secret in secrets.into_iter().chain(["private words", "private answer"]) {
            assert!(!text.contains(secret), "{text}");
        }
    }
}
