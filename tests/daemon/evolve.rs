use harness::{Daemon, EvolveClient, Socket};
use serde_json::{Value, json};

fn connect(daemon: &Daemon) -> EvolveClient {
    EvolveClient::connect(daemon.port(), daemon.text("token"), daemon.text("session")).unwrap()
}

/// Lets the client call while the host answers one request with this result.
fn exchange(
    daemon: &Daemon,
    kind: &'static str,
    params: Value,
    result: Value,
) -> (Value, Result<Value, String>) {
    let mut client = connect(daemon);
    let mut host = daemon.host("h");
    let calling = std::thread::spawn(move || client.call(kind, params, 10.0));
    let request = host.request();
    host.answer(&request, result);
    (request, calling.join().unwrap())
}

#[test]
fn a_full_round_trip_of_each_method() {
    let daemon = Daemon::start();
    for (kind, params, result) in [
        (
            "vscode/chat",
            json!({"message": "Name three primes"}),
            json!({"response": "2, 3, 5", "conversationId": "c"}),
        ),
        (
            "vscode/executeCommand",
            json!({"command": "x", "args": [1, "a"]}),
            json!({"result": [1]}),
        ),
        (
            "vscode/getChatHistory",
            json!({"conversationId": "c", "limit": 10}),
            json!({"messages": []}),
        ),
        ("vscode/showMessage", json!({"message": "hi", "level": "info"}), json!({})),
    ] {
        let (request, answer) = exchange(&daemon, kind, params.clone(), result.clone());
        assert_eq!(request["method"], kind);
        for (name, value) in params.as_object().unwrap() {
            assert_eq!(request["params"][name], *value);
        }
        assert_eq!(answer, Ok(result));
    }
}

#[test]
fn wrong_credentials_are_refused_with_an_answer_before_the_upgrade() {
    let daemon = Daemon::start();
    let other = Daemon::start();
    let (token, session) = (daemon.text("token"), daemon.text("session"));
    for (token, session) in [
        ("wrong", session),
        ("", session),
        (token, "other"),
        (token, ""),
        (other.text("token"), session),
        (other.text("token"), other.text("session")),
        (daemon.text("hostToken"), session),
    ] {
        let refused = EvolveClient::connect(daemon.port(), token, session).err();
        assert_eq!(refused.as_deref(), Some("RuntimeError: Run bridge handshake failed"));
    }
}

#[test]
fn a_null_result_arrives_as_an_object_and_errors_as_text() {
    let daemon = Daemon::start();
    let (_, answer) =
        exchange(&daemon, "vscode/executeCommand", json!({"command": "x"}), Value::Null);
    assert_eq!(answer, Ok(json!({})));
    let mut client = connect(&daemon);
    let mut host = daemon.host("h");
    let calling =
        std::thread::spawn(move || client.call("vscode/chat", json!({"message": "x"}), 10.0));
    let request = host.request();
    host.send(&json!({"jsonrpc": "2.0", "id": request["id"], "error": {"code": 1, "message": "No model"}}));
    assert_eq!(
        calling.join().unwrap(),
        Err("RuntimeError: VSCode request failed: No model".into())
    );
}

#[test]
fn the_reason_of_a_timeout_arrives_before_its_own() {
    let daemon = Daemon::start();
    let _host = daemon.host("h");
    let mut client = connect(&daemon);
    let error = client.call("vscode/chat", json!({"message": "x"}), 2.5).unwrap_err();
    assert!(error.contains("vscode/chat timed out"), "{error}");
}

#[test]
fn fractions_of_a_millisecond_are_numbers_too() {
    let daemon = Daemon::start();
    let _host = daemon.host("h");
    let mut client = connect(&daemon);
    client.send_text(
        r#"{"id": 4, "type": "vscode/chat", "params": {"message": "x", "timeout": 700.5}}"#,
    );
    assert!(client.wait_for(4, 5.0).unwrap_err().contains("timed out"));
}

#[test]
fn a_late_answer_is_not_sent_at_all() {
    let daemon = Daemon::start();
    let mut host = daemon.host("h");
    let mut client = connect(&daemon);
    client.call("vscode/chat", json!({"message": "slow"}), 0.4).unwrap_err();
    let slow = host.request();
    assert_eq!(host.receive()["method"], "$/cancelRequest");
    host.answer(&slow, json!("late"));
    let calling = std::thread::spawn(move || {
        let answer = client.call("vscode/chat", json!({"message": "next"}), 10.0);
        (answer, client.thrown_away)
    });
    let next = host.request();
    host.answer(&next, json!({"response": "ok"}));
    assert_eq!(calling.join().unwrap(), (Ok(json!({"response": "ok"})), vec![]));
}

#[test]
fn repeated_ids_are_each_answered_with_the_same_type_of_id() {
    let daemon = Daemon::start();
    let mut host = daemon.host("h");
    let mut client = connect(&daemon);
    for n in 0..3 {
        client.send(&json!({"id": 5, "type": "vscode/chat", "params": {"message": n}}));
    }
    for _ in 0..3 {
        let request = host.request();
        let message = request["params"]["message"].clone();
        host.answer(&request, json!({"response": message}));
    }
    for n in 0..3 {
        assert_eq!(client.wait_for(5, 10.0).unwrap()["response"], n);
    }
}

#[test]
fn large_messages_travel_unfragmented_both_ways() {
    let daemon = Daemon::start();
    let big = "x".repeat(5 << 20);
    let (request, answer) =
        exchange(&daemon, "vscode/chat", json!({"message": big}), json!({"response": big}));
    assert_eq!(request["params"]["message"], big);
    assert_eq!(answer.unwrap()["response"], big);
}

#[test]
fn text_that_is_no_json_is_answered_and_the_connection_lives_on() {
    let daemon = Daemon::start();
    let mut client = connect(&daemon);
    client.send_text("not json");
    assert_eq!(
        client.event(),
        json!({"id": null, "success": false, "error": "Invalid JSON", "code": -32700, "data": {"kind": "ParseError", "retryable": false}})
    );
    client.send_text(r#"{"id": 9, "type": "vscode/chat", "params": {"message": NaN}}"#);
    assert!(client.wait_for(9, 10.0).unwrap_err().contains("NaN"));
    assert!(client.call("bridge/ping", json!({}), 10.0).is_ok());
}

#[test]
fn unknown_types_are_named() {
    let daemon = Daemon::start();
    let _host = daemon.host("h");
    let error = connect(&daemon).call("vscode/dance", json!({}), 10.0).unwrap_err();
    assert_eq!(error, "RuntimeError: VSCode request failed: Unknown request type: vscode/dance");
}

#[test]
fn it_is_never_pinged_and_never_dropped_for_silence_but_others_are() {
    let daemon = Daemon::start_with(&["--ping-interval", "0.05"]);
    let mut client = connect(&daemon);
    // A connection with a header token that never answers pings: its end shows that several intervals have passed.
    let mut silent = Socket::connect(daemon.port(), daemon.text("token"));
    let mut bytes = Vec::new();
    std::io::Read::read_to_end(silent.raw(), &mut bytes).unwrap();
    // At least two empty pings (more if this machine is slow), then a close frame.
    let pings = bytes.chunks(2).take_while(|frame| *frame == b"\x89\x00").count();
    assert!(pings >= 2, "{bytes:?}");
    let close = &bytes[pings * 2..];
    assert_eq!((close[0], &close[2..4]), (0x88, &4408_u16.to_be_bytes()[..]));
    assert!(client.call("bridge/ping", json!({}), 10.0).is_ok());
    assert!(client.thrown_away.is_empty());
}

#[test]
fn its_end_without_goodbye_is_normal() {
    let daemon = Daemon::start();
    let mut host = daemon.host("h");
    let mut client = connect(&daemon);
    client.send(&json!({"id": 1, "type": "vscode/chat", "params": {"message": "x"}}));
    let request = host.request();
    drop(client);
    let cancel = host.receive();
    assert_eq!(
        (&cancel["method"], &cancel["params"]["id"]),
        (&json!("$/cancelRequest"), &request["id"])
    );
}

#[test]
fn when_the_daemon_ends_it_is_answered_first_and_closed_without_a_reason() {
    let mut daemon = Daemon::start();
    let mut host = daemon.host("h");
    let mut client = connect(&daemon);
    client.send(&json!({"id": 1, "type": "vscode/chat", "params": {"message": "x"}}));
    host.request();
    daemon.program.close_stdin();
    assert_eq!(
        client.wait_for(1, 10.0),
        Err("RuntimeError: VSCode request failed: the bridge is ending".into())
    );
    // Then comes an empty close frame, which the original client ignores.
    assert_eq!(client.wait_for(2, 10.0), Err("busy loop: the server closed the connection".into()));
}

#[test]
fn operations_are_announced_once_and_their_submit_waits_for_the_answer() {
    let daemon = Daemon::start();
    let mut host = daemon.host("h");
    let (mut client, mut other) = (connect(&daemon), connect(&daemon));
    let started = json!({"type": "dapEvent", "event": "asyncOperationStarted",
        "body": {"operationId": 7, "resumeToken": "evo_7", "operationType": "form", "timeoutMs": 300_000}});
    client.send(&started);
    client.send(&started);
    client.send(&json!({"id": 1, "type": "vscode/chat", "params": {"message": "x"}}));
    let announced = host.receive();
    assert_eq!(announced["params"]["body"]["resumeToken"], "evo_7");
    let request = host.request();
    let body = json!({"operationId": "7", "resumeToken": "evo_7", "result": {"ship": true}, "error": null});
    host.send(&json!({"jsonrpc": "2.0", "method": "dapEvent", "params": {"event": "asyncOperationSubmit", "body": body}}));
    host.answer(&request, json!({}));
    client.wait_for(1, 10.0).unwrap();
    assert!(client.thrown_away.is_empty(), "the event did not come while the request waited");
    assert_eq!(
        client.event(),
        json!({"type": "dapEvent", "event": "asyncOperationSubmit", "body": body})
    );
    assert!(other.call("bridge/ping", json!({}), 10.0).is_ok());
    assert!(other.thrown_away.is_empty(), "nobody else hears of it");
}

#[test]
fn both_families_of_variables_hold_the_same_values() {
    let daemon = Daemon::start();
    let env = daemon.ready["env"].as_object().unwrap();
    assert_eq!(env.len(), 6);
    for (short, value) in [("ADDR", "addr"), ("TOKEN", "token"), ("SESSION", "session")] {
        for family in ["RUN_BRIDGE", "EVOLVE_RUN_BRIDGE"] {
            assert_eq!(env[&format!("{family}_{short}")], daemon.ready[value]);
        }
    }
    assert!(
        daemon.text("addr").starts_with("ws://127.0.0.1:") && daemon.text("addr").ends_with('/')
    );
}
