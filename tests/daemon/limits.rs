use std::time::{Duration, Instant};

use harness::{Closed, Daemon, Socket, http, wait_until};
use process_identity::Stat;
use serde_json::{Value, json};
use tungstenite::Message;

fn resident_kib(daemon: &Daemon) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", daemon.program.pid())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn a_frame_that_announces_too_much_is_refused_unread() {
    let daemon = Daemon::start();
    let mut client = daemon.client();
    let before = resident_kib(&daemon);
    let mut header = vec![0x81, 0x80 | 127];
    header.extend_from_slice(&(1_u64 << 30).to_be_bytes());
    header.extend_from_slice(&[1, 2, 3, 4]);
    client.raw().write_all(&header).unwrap();
    assert_eq!(client.closed(), Closed(Some(1009)));
    assert!(resident_kib(&daemon) < before + 4096);
}

#[test]
fn fragments_add_up_to_the_same_limit() {
    let daemon = Daemon::start();
    let mut client = daemon.client();
    let part = |first: bool| {
        let opcode = if first { 0x01 } else { 0x00 };
        let mut frame = vec![opcode, 0x80 | 127];
        frame.extend_from_slice(&(1_u64 << 20).to_be_bytes());
        frame.extend_from_slice(&[0; 4]);
        frame.resize(frame.len() + (1 << 20), b'x');
        frame
    };
    for n in 0..20 {
        if client.raw().write_all(&part(n == 0)).is_err() {
            break;
        }
    }
    assert!(matches!(client.closed(), Closed(Some(1009) | None)));
    assert_eq!(daemon.status()["clients"], 1);
}

#[test]
fn messages_up_to_the_limit_pass() {
    let daemon = Daemon::start();
    let mut host = daemon.host("h");
    let mut client = daemon.client();
    client.send_request("vscode/chat", json!({"message": "x".repeat((16 << 20) - 200)}));
    let request = host.request();
    host.answer(&request, request["params"].clone());
    assert_eq!(client.receive()["result"], request["params"]);
}

#[test]
fn a_request_that_grows_beyond_the_limit_is_refused_by_name() {
    let daemon = Daemon::start();
    let _host = daemon.host("h");
    let mut client = daemon.client();
    // The alias is shorter than the canonical name, under which the host would get it.
    let empty = json!({"id": 1, "type": "chat", "params": {"message": ""}}).to_string();
    let padding = "x".repeat((16 << 20) - empty.len());
    client.send(&json!({"id": 1, "type": "chat", "params": {"message": padding}}));
    assert_eq!(client.receive()["code"], -32007);
}

#[test]
fn binary_messages_and_broken_frames_end_the_connection_by_code() {
    let daemon = Daemon::start();
    let mut client = daemon.client();
    client.send_message(Message::binary(vec![1, 2, 3])).unwrap();
    assert_eq!(client.closed(), Closed(Some(1003)));
    let mut client = daemon.client();
    client.raw().write_all(&[0x81, 0x82, 0, 0, 0, 0, 0xff, 0xfe]).unwrap();
    assert_eq!(client.closed(), Closed(Some(1007)));
    let mut client = daemon.client();
    client.raw().write_all(&[0x81, 0x02, b'{', b'}']).unwrap();
    assert_eq!(client.closed(), Closed(Some(1002)), "an unmasked frame");
}

#[test]
fn depth_ids_and_duplicate_members_are_checked_on_the_wire() {
    let daemon = Daemon::start();
    let _host = daemon.host("h");
    let mut client = daemon.client();
    let deep = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"chat","params":{}{}}}"#,
        "[".repeat(200_000),
        "]".repeat(200_000)
    );
    let long_id = format!(r#"{{"jsonrpc":"2.0","id":"{}","method":"chat"}}"#, "i".repeat(500_000));
    let long_name = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{}"}}"#, "m".repeat(129));
    for (text, code) in [
        (deep.as_str(), -32700),
        (r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"chat"}"#, -32700),
        (r#"{"jsonrpc":"2.0","id":{"a":1},"method":"chat"}"#, -32600),
        (long_id.as_str(), -32600),
        (long_name.as_str(), -32600),
        (r#"[{"jsonrpc":"2.0","id":1,"method":"chat"}]"#, -32005),
    ] {
        client.send_text(text);
        let answer = client.receive_text();
        assert!(answer.len() < 1000, "nothing large is echoed");
        assert_eq!(serde_json::from_str::<Value>(&answer).unwrap()["error"]["code"], code);
    }
    for _ in 0..101 {
        client.send_text("{");
    }
    assert_eq!(client.closed(), Closed(Some(1008)));
}

#[test]
fn a_client_has_at_most_256_requests_at_the_host_and_loses_none() {
    let daemon = Daemon::start();
    let mut host = daemon.host("h");
    let mut client = daemon.client();
    for n in 0..400 {
        client.send_request("vscode/chat", json!({"n": n}));
    }
    let mut waiting: Vec<_> = (0..256).map(|_| host.request()).collect();
    // Other clients are served: the daemon has stopped reading from this one only.
    let mut other = daemon.client();
    other.send_request("vscode/showMessage", json!({}));
    let next = host.request();
    assert_eq!(next["method"], "vscode/showMessage", "the 257th of the first client is not here");
    host.answer(&next, json!({}));
    other.receive();
    for n in 0..400 {
        let request = waiting.remove(0);
        assert_eq!(request["params"]["n"], n);
        host.answer(&request, json!(n));
        if n + 256 < 400 {
            waiting.push(host.request());
        }
    }
    for n in 0..400 {
        assert_eq!(client.receive()["result"], n);
    }
}

#[test]
fn a_client_at_its_limit_is_kept_alive_and_may_cancel() {
    let daemon = Daemon::start_with(&["--ping-interval", "0.5"]);
    let mut host = daemon.host("h");
    let mut client = daemon.client();
    let hosting = std::thread::spawn(move || {
        for _ in 0..256 {
            host.request();
        }
        let cancel = host.receive();
        let next = host.request();
        host.answer(&next, json!("next"));
        (cancel, host)
    });
    for _ in 0..256 {
        client.send_request("vscode/chat", json!({}));
    }
    // After many ping intervals it is still connected, although none of its requests is read.
    let mut other = daemon.client();
    let begun = Instant::now();
    wait_until("many ping intervals", || {
        other.call("bridge/ping", Value::Null);
        begun.elapsed() > Duration::from_secs(3)
    });
    client.send(&json!({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": 7}}));
    assert_eq!(client.receive()["error"]["data"]["kind"], "RequestCancelled");
    let id = client.send_request("vscode/chat", json!({}));
    let answer = client.receive();
    assert_eq!((&answer["id"], &answer["result"]), (&json!(id), &json!("next")));
    let (cancel, _host) = hosting.join().unwrap();
    assert_eq!(cancel["method"], "$/cancelRequest");
}

#[test]
fn a_host_that_neither_reads_nor_answers_pings_is_closed() {
    let daemon = Daemon::start_with(&["--ping-interval", "2"]);
    let silent = json!({"rules": [{"method": "vscode/chat", "silent": true}]});
    let host = harness::Program::start(daemon.scripted_host(&silent));
    host.line();
    host.signal(nix::sys::signal::Signal::SIGSTOP);
    // More than the socket's buffer holds, so the daemon's write blocks.
    let mut client = daemon.client();
    for _ in 0..20 {
        client.send_request(
            "vscode/chat",
            json!({"message": "x".repeat(1 << 20), "timeout": 600_000}),
        );
    }
    // Its requests in flight fail at once; later requests find no host.
    let kinds: Vec<_> = (0..20)
        .map(|_| client.receive()["error"]["data"]["kind"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(kinds[0], "HostGone");
    assert!(kinds.iter().all(|kind| kind == "HostGone" || kind == "HostUnavailable"), "{kinds:?}");
}

#[test]
fn clients_that_do_not_read_cannot_block_everybody() {
    // Long enough for a host that prints 168 MiB on a busy machine before it can answer a ping.
    let daemon = Daemon::start_with(&["--ping-interval", "5"]);
    let mut host = daemon.host("h");
    std::thread::spawn(move || {
        loop {
            let message = host.receive();
            match message["method"].as_str() {
                Some("vscode/chat") => host.answer(&message, json!("x".repeat(14 << 20))),
                Some("vscode/showMessage") => host.answer(&message, json!("served")),
                _ => {}
            }
        }
    });
    let mut deaf: Vec<_> = (0..12).map(|_| daemon.client()).collect();
    for client in &mut deaf {
        client.send_request("vscode/chat", json!({"timeout": 600_000}));
    }
    let mut prompt = daemon.client();
    wait_until("the deaf ones to be given up", || {
        prompt.send_request("vscode/showMessage", json!({}));
        // It may get *Overloaded* for a moment, but not for long.
        let answer = prompt.receive();
        let mut observer = daemon.client();
        let clients = observer.call("bridge/status", Value::Null)["clients"].as_u64();
        answer["result"] == "served" && clients <= Some(2)
    });
}

#[test]
fn a_flood_of_pings_is_not_answered_without_bound() {
    let daemon = Daemon::start();
    let mut client = daemon.client();
    let before = resident_kib(&daemon);
    let mut ping = vec![0x89, 0x80 | 125, 0, 0, 0, 0];
    ping.resize(6 + 125, b'p');
    let flood = ping.repeat(1000);
    // 60 MiB of pings whose pongs nobody reads; the daemon may cut the connection at any time.
    for _ in 0..480 {
        if std::io::Write::write_all(client.raw(), &flood).is_err() {
            break;
        }
    }
    let after = resident_kib(&daemon);
    assert!(after < before + 40 * 1024, "{before} KiB became {after} KiB");
}

#[test]
fn errors_do_not_echo_what_they_complain_about_at_length() {
    let daemon = Daemon::start();
    let _host = daemon.host("h");
    let mut client = daemon.client();
    let long = "\u{7f}".repeat(1 << 20);
    for text in [
        json!({"jsonrpc": "2.0", "id": 1, "method": "chat", "params": {"runtimeId": long}})
            .to_string(),
        json!({"jsonrpc": "2.0", "id": 1, "method": "chat", "params": {"timeout": long}})
            .to_string(),
        json!({"jsonrpc": "2.0", "id": 1, "method": "runtime/get", "params": {"runtimeId": long}})
            .to_string(),
        json!({"jsonrpc": "2.0", "id": 1, "method": "bridge/hello", "params": {"protocol": long}})
            .to_string(),
        format!(r#"{{"{long}":1,"{long}":2}}"#),
    ] {
        client.send_text(&text);
        let answer = client.receive_text();
        assert!(answer.len() < 2000, "{} bytes: {:.300}", answer.len(), answer);
    }
}

#[test]
fn all_clients_together_have_at_most_4096_requests() {
    let daemon = Daemon::start();
    let mut host = daemon.host("h");
    let mut clients: Vec<_> = (0..17).map(|_| daemon.client()).collect();
    let mut asked = 0;
    for client in &mut clients {
        for _ in 0..250 {
            client.send_request("vscode/chat", json!({"timeout": 60_000}));
        }
        // The host reads its requests, so that its own queue is never full.
        for _ in asked..4096.min(asked + 250) {
            host.request();
        }
        asked += 250;
    }
    let refused = clients.last_mut().unwrap().receive();
    assert_eq!(refused["error"]["data"]["kind"], "Overloaded");
    drop(clients);
    wait_until("the books to be even", || daemon.status()["inFlight"] == 0);
}

#[test]
fn connections_are_limited_and_the_refusal_names_the_limit() {
    let daemon = Daemon::start_with(&["--max-connections", "3"]);
    let clients: Vec<_> = (0..3).map(|_| daemon.client()).collect();
    let bearer = format!("Authorization: Bearer {}", daemon.text("token"));
    let headers = [
        "Upgrade: websocket",
        "Connection: Upgrade",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
        "Sec-WebSocket-Version: 13",
        &bearer,
    ];
    let full = http(daemon.port(), "GET /", &headers, "");
    assert_eq!(full.status, 503);
    assert!(full.body.contains("all 3 connections"), "{}", full.body);
    drop(clients);
    wait_until("room again", || Socket::try_connect(daemon.port(), daemon.text("token")).is_ok());
}

#[test]
fn a_client_that_does_not_read_costs_a_bounded_amount_and_delays_nobody() {
    let daemon = Daemon::start();
    let mut host = daemon.host("h");
    std::thread::spawn(move || {
        let big = json!("x".repeat(1 << 20));
        loop {
            let message = host.receive();
            match message["method"].as_str() {
                Some("vscode/chat") => host.answer(&message, big.clone()),
                Some("vscode/showMessage") => host.answer(&message, message["params"].clone()),
                _ => {}
            }
        }
    });
    let (mut lazy, mut prompt) = (daemon.client(), daemon.client());
    let before = resident_kib(&daemon);
    for _ in 0..100 {
        lazy.send_request("vscode/chat", json!({"message": "big"}));
    }
    wait_until("the lazy one to be cut off", || {
        let params = json!({"still": "served"});
        assert_eq!(prompt.call("vscode/showMessage", params.clone()), params);
        daemon.status()["counters"]["slowConsumers"] == 1
    });
    assert!(matches!(lazy.closed(), Closed(Some(1013) | None)));
    let after = resident_kib(&daemon);
    assert!(after < before + 80 * 1024, "{before} KiB became {after} KiB");
}

#[test]
fn a_host_that_does_not_read_makes_its_callers_hear_of_overload() {
    let daemon = Daemon::start();
    let _deaf = daemon.host("deaf");
    let mut clients: Vec<_> = (0..4).map(|_| daemon.client()).collect();
    let big = "x".repeat(1 << 20);
    // Together more than the host's queue and the socket buffers hold; each client stays below its own limit.
    for client in &mut clients {
        for _ in 0..25 {
            client.send_request("vscode/chat", json!({"message": big}));
        }
    }
    let refused = clients.last_mut().unwrap().receive();
    assert_eq!(refused["error"]["data"]["kind"], "Overloaded", "{refused}");
    assert!(daemon.status()["queuedBytes"].as_u64().unwrap() <= 32 << 20);
    drop(clients);
}

#[test]
fn running_out_of_descriptors_neither_spins_nor_lasts() {
    let daemon = Daemon::start_by(|command| {
        // A shell lowers the limit for the daemon alone.
        let program = command.get_program().to_owned();
        let args: Vec<_> = command.get_args().map(ToOwned::to_owned).collect();
        let environment: Vec<_> =
            command.get_envs().map(|(k, v)| (k.to_owned(), v.map(ToOwned::to_owned))).collect();
        *command = std::process::Command::new("sh");
        command.args(["-c", "ulimit -n 80; exec \"$@\"", "sh"]).arg(program).args(args);
        for (name, value) in environment {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
    });
    let flood: Vec<_> = (0..120)
        .map(|_| std::net::TcpStream::connect(("127.0.0.1", daemon.port())).unwrap())
        .collect();
    wait_until("the daemon to run out", || daemon.program.stderr().contains("cannot accept"));
    let ticks = || Stat::of(daemon.program.pid()).unwrap().cpu_ticks;
    // A busy loop would use a whole core: 100 ticks per second.
    let (before, begun) = (ticks(), Instant::now());
    wait_until("a second to pass", || begun.elapsed() > Duration::from_secs(1));
    assert!(ticks() - before < 30, "{} ticks in a second", ticks() - before);
    drop(flood);
    wait_until("it to accept again", || {
        Socket::try_connect(daemon.port(), daemon.text("token")).is_ok()
    });
}

#[test]
fn a_thousand_clients_are_served() {
    let daemon = Daemon::start();
    let mut host = daemon.host("h");
    let mut clients: Vec<_> = (0..1000).map(|_| daemon.client()).collect();
    for (n, client) in clients.iter_mut().enumerate() {
        client.send_request("vscode/chat", json!({"n": n}));
        let request = host.request();
        host.answer(&request, request["params"]["n"].clone());
    }
    for (n, client) in clients.iter_mut().enumerate() {
        assert_eq!(client.receive()["result"], n);
    }
}
