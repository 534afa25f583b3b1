use harness::{Closed, Daemon, Socket, wait_until};
use serde_json::{Value, json};

#[test]
fn payloads_arrive_byte_for_byte_over_real_sockets() {
    let daemon = Daemon::start();
    let mut host = daemon.host("h");
    let mut client = daemon.client();
    let payload =
        r#"{"z":1e400, "a":1.0,"s":"\u0031\ud800 ü","n":12345678901234567890,"nested":[[{}]]}"#;
    client.send_text(&format!(
        r#"{{"jsonrpc":"2.0","id":"\u0031","method":"chat","params":{payload}}}"#
    ));
    let request = host.receive_text();
    assert!(
        request.ends_with(&format!(r#""method":"vscode/chat","params":{payload}}}"#)),
        "{request}"
    );
    host.send_text(&format!(r#"{{"jsonrpc":"2.0","id":1,"result":{payload}}}"#));
    assert_eq!(
        client.receive_text(),
        format!(r#"{{"jsonrpc":"2.0","id":"\u0031","result":{payload}}}"#)
    );
}

#[test]
fn progress_arrives_before_the_host_has_finished() {
    let daemon = Daemon::start();
    let mut host = daemon.host("h");
    let mut client = daemon.client();
    let id = client.send_request("vscode/chat", json!({"message": "x"}));
    let request = host.request();
    for word in ["one", "two"] {
        let params = json!({"id": request["id"], "value": {"text": word}});
        host.send(&json!({"jsonrpc": "2.0", "method": "$/progress", "params": params}));
        // The host continues only after the caller has received this piece.
        assert_eq!(client.receive()["params"], json!({"id": id, "value": {"text": word}}));
    }
    host.answer(&request, json!("done"));
    assert_eq!(client.receive()["result"], "done");
}

#[test]
fn requests_of_one_connection_overlap() {
    let daemon = Daemon::start();
    let mut host = daemon.host("h");
    let mut client = daemon.client();
    let ids: Vec<_> =
        (0..50).map(|n| client.send_request("vscode/chat", json!({"n": n}))).collect();
    let requests: Vec<_> = (0..50).map(|_| host.request()).collect();
    for request in requests.iter().rev() {
        host.answer(request, request["params"]["n"].clone());
    }
    for n in (0..50).rev() {
        let answer = client.receive();
        assert_eq!((&answer["id"], &answer["result"]), (&json!(ids[n]), &json!(n)));
    }
}

#[test]
fn a_client_cannot_become_a_host() {
    let daemon = Daemon::start();
    let mut client = daemon.client();
    for method in ["runtime/register", "runtime/update", "runtime/unregister", "bridge/shutdown"] {
        client.send_request(method, json!({"methods": ["vscode/chat"]}));
        assert_eq!(client.receive()["error"]["code"], -32061, "{method}");
    }
    assert_eq!(client.call("runtime/list", Value::Null), json!([]));
}

#[test]
fn a_client_cannot_answer_in_a_hosts_name() {
    let daemon = Daemon::start();
    let mut host = daemon.host("h");
    let (mut client, mut rogue) = (daemon.client(), daemon.client());
    client.send_request("vscode/chat", json!({}));
    let request = host.request();
    rogue.answer(&request, json!("forged"));
    rogue.call("bridge/ping", Value::Null);
    host.answer(&request, json!("real"));
    assert_eq!(client.receive()["result"], "real");
    assert_eq!(daemon.status()["counters"]["forgedAnswers"], 1);
}

#[test]
fn the_host_is_told_when_the_caller_cancels_leaves_or_runs_out_of_time() {
    let daemon = Daemon::start();
    let mut host = daemon.host("h");
    let mut client = daemon.client();
    let id = client.send_request("vscode/chat", json!({}));
    let cancelled = host.request();
    client.send(&json!({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": id}}));
    assert_eq!(host.receive()["params"]["id"], cancelled["id"]);
    assert_eq!(client.receive()["error"]["code"], -32800);
    client.send_request("vscode/chat", json!({"timeout": 50}));
    let late = host.request();
    assert_eq!(host.receive()["params"]["id"], late["id"]);
    assert_eq!(client.receive()["error"]["data"]["kind"], "Timeout");
    client.send_request("vscode/chat", json!({}));
    let left = host.request();
    drop(client);
    assert_eq!(host.receive()["params"]["id"], left["id"]);
}

#[test]
fn the_host_goes_and_comes_back() {
    let daemon = Daemon::start();
    let mut host = daemon.host("window");
    let mut client = daemon.client();
    client.send_request("vscode/chat", json!({}));
    host.request();
    drop(host);
    let gone = client.receive();
    assert_eq!(
        gone["error"]["data"],
        json!({"kind": "HostGone", "retryable": false, "mayHaveExecuted": true})
    );
    client.send_request("vscode/chat", json!({"message": "waits"}));
    let mut back = daemon.host("window");
    let request = back.request();
    back.answer(&request, json!("hello again"));
    assert_eq!(client.receive()["result"], "hello again");
}

#[test]
fn a_newer_registration_replaces_the_older_connection() {
    let daemon = Daemon::start();
    let mut old = daemon.host("window");
    let mut new = daemon.host("window");
    assert_eq!(old.closed(), Closed(Some(4409)));
    let mut client = daemon.client();
    client.send_request("vscode/chat", json!({}));
    let request = new.request();
    new.answer(&request, json!(1));
    assert_eq!(client.receive()["result"], 1);
}

#[test]
fn own_methods_check_their_parameters_and_versions() {
    let daemon = Daemon::start();
    let mut client = daemon.client();
    let hello = client.call("bridge/hello", json!({"protocol": 1, "name": "test"}));
    assert_eq!(
        (&hello["protocol"], &hello["role"], &hello["session"]),
        (&json!(1), &json!("client"), &daemon.ready["session"])
    );
    client.send_request("bridge/hello", json!({"protocol": 2}));
    assert_eq!(client.receive()["error"]["data"]["supported"], json!([1]));
    client.send_request("bridge/hello", json!({}));
    let error = client.receive()["error"].clone();
    assert_eq!(error["code"], -32602);
    assert!(error["message"].as_str().unwrap().contains("protocol"), "{error}");
    client.send_request("bridge/nothing", Value::Null);
    assert_eq!(client.receive()["error"]["code"], -32601);
}

#[test]
fn a_unix_socket_serves_the_same_bridge() {
    let daemon = Daemon::start_with(&["--unix"]);
    let path = daemon.files().join(format!("{}.sock", daemon.text("session")));
    let mode =
        std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&path).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
    let mut host = daemon.host("h");
    let mut client = Socket::connect_unix(&path, daemon.text("token"));
    client.send_request("vscode/chat", json!({}));
    let request = host.request();
    host.answer(&request, json!("over unix"));
    assert_eq!(client.receive()["result"], "over unix");
    let mut daemon = daemon;
    daemon.program.close_stdin();
    daemon.program.wait();
    assert!(!path.exists());
}

#[test]
fn tail_shows_each_request_without_its_content() {
    let daemon = Daemon::start();
    let mut host = daemon.host("h");
    let (mut tail, mut client) = (daemon.client(), daemon.client());
    tail.call("bridge/tail", Value::Null);
    client.call("bridge/hello", json!({"protocol": 1, "name": "script"}));
    client.send_request("vscode/chat", json!({"message": "secret"}));
    let request = host.request();
    host.answer(&request, json!({"response": "secret"}));
    let record = tail.receive();
    assert_eq!(record["method"], "bridge/request");
    assert_eq!(
        (&record["params"]["clientName"], &record["params"]["outcome"]),
        (&json!("script"), &json!("ok"))
    );
    assert!(!record.to_string().contains("secret"));
}

#[test]
fn a_goodbye_is_returned() {
    let daemon = Daemon::start();
    let mut client = daemon.client();
    let code = tungstenite::protocol::frame::coding::CloseCode::Normal;
    let frame = tungstenite::protocol::CloseFrame { code, reason: "done".into() };
    client.send_message(tungstenite::Message::Close(Some(frame))).unwrap();
    assert_eq!(client.closed(), Closed(Some(1000)));
}

#[test]
fn a_dead_client_does_not_take_its_host_down() {
    let daemon = Daemon::start();
    let mut host = daemon.host("h");
    let mut clients: Vec<_> = (0..20).map(|_| daemon.client()).collect();
    for client in &mut clients {
        client.send_request("vscode/chat", json!({}));
    }
    let requests: Vec<_> = (0..20).map(|_| host.request()).collect();
    drop(clients);
    for request in &requests {
        host.answer(request, json!("x".repeat(100_000)));
    }
    wait_until("the clients to be gone", || daemon.status()["clients"] == 1);
    let mut client = daemon.client();
    client.send_request("vscode/chat", json!({"message": "still there?"}));
    loop {
        let message = host.receive();
        if message["method"] == "vscode/chat" {
            host.answer(&message, json!("yes"));
            break;
        }
    }
    assert_eq!(client.receive()["result"], "yes");
}
