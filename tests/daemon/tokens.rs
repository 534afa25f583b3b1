use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use harness::{Daemon, EvolveClient, Program, Socket, http, process_exists, wait_until};
use serde_json::{Value, json};

fn make(socket: &mut Socket, params: Value) -> String {
    socket.call("bridge/createToken", params)["token"].as_str().unwrap().to_owned()
}

/// A client token with these rights.
fn client_token(daemon: &Daemon, rights: Value) -> String {
    make(&mut daemon.client(), json!({"role": "client", "rights": rights}))
}

fn host_connection(daemon: &Daemon) -> Socket {
    Socket::connect(daemon.port(), daemon.text("hostToken"))
}

#[test]
fn a_narrower_token_is_refused_what_it_lacks_at_every_door() {
    let daemon = Daemon::start();
    let mut host = daemon.host("h");
    let token = client_token(&daemon, json!(["read"]));
    let mut client = Socket::connect(daemon.port(), &token);
    let hello = client.call("bridge/hello", json!({"protocol": 1}));
    assert_eq!((&hello["role"], &hello["rights"]), (&json!("client"), &json!(["read"])));
    for (method, needs) in
        [("vscode/chat", "chat"), ("execute_command", "editor"), ("shell/run", "run")]
    {
        let refused = client.refused(method, json!({}));
        assert_eq!(refused["code"], -32060, "{method}");
        assert_eq!(refused["data"]["needs"], json!([needs]), "{method}");
        assert!(refused["message"].as_str().unwrap().contains("bridge-client token"), "{refused}");
    }
    client.call("runtime/list", Value::Null);
    let bearer = format!("Authorization: Bearer {token}");
    let full = format!("Authorization: Bearer {}", daemon.text("token"));
    let submit = r#"{"resumeToken": "none"}"#;
    assert_eq!(http(daemon.port(), "POST /submit", &[&bearer], submit).status, 403);
    assert_eq!(http(daemon.port(), "POST /submit", &[&full], submit).status, 404, "let in");
    assert_eq!(http(daemon.port(), "GET /status", &[&bearer], "").status, 200, "as bridge/status");
    let none = client_token(&daemon, json!([]));
    assert_eq!(
        Socket::connect(daemon.port(), &none).refused("file/read", json!({}))["code"],
        -32060
    );
    // None of these requests has reached the window.
    let mut allowed = daemon.client();
    allowed.send_request("vscode/chat", json!({"message": "first"}));
    assert_eq!(host.request()["params"]["message"], "first");
    assert_eq!(daemon.status()["counters"]["forbidden"], 4);
}

#[test]
fn the_original_client_can_have_a_narrower_token_too() {
    let daemon = Daemon::start();
    let mut host = daemon.host("h");
    let token = client_token(&daemon, json!(["chat"]));
    let mut client = EvolveClient::connect(daemon.port(), &token, daemon.text("session")).unwrap();
    let refused = client.call("execute_command", json!({"command": "x"}), 5.0).unwrap_err();
    assert!(refused.contains("lacks the right editor"), "{refused}");
    let answering = std::thread::spawn(move || {
        let request = host.request();
        host.answer(&request, json!({"response": "y"}));
    });
    assert_eq!(client.call("chat", json!({"message": "x"}), 5.0).unwrap()["response"], "y");
    answering.join().unwrap();
}

#[test]
fn tokens_cannot_give_more_than_they_have_and_end_with_the_session() {
    let daemon = Daemon::start();
    let narrow = client_token(&daemon, json!(["read", "chat"]));
    let mut client = Socket::connect(daemon.port(), &narrow);
    let refused =
        client.refused("bridge/createToken", json!({"role": "client", "rights": ["run", "chat"]}));
    assert_eq!(refused["data"]["needs"], json!(["run"]));
    make(&mut client, json!({"role": "client", "rights": ["chat"]}));
    let host = json!({"role": "host", "runtimeIds": ["a"], "tools": ["file/*"]});
    assert_eq!(client.refused("bridge/createToken", host)["data"]["kind"], "WrongRole");
    let other = Daemon::start();
    assert!(Socket::try_connect(other.port(), &narrow).is_err(), "another session");
    assert!(!daemon.program.stderr().contains(&narrow), "in no log");
}

#[test]
fn a_made_host_token_serves_what_it_names_and_cannot_end_the_daemon() {
    let daemon = Daemon::start();
    let params = json!({"role": "host", "runtimeIds": ["box"], "tools": ["file/*"]});
    let token = make(&mut host_connection(&daemon), params);
    let mut host = Socket::connect(daemon.port(), &token);
    for params in [
        json!({"runtimeId": "other", "methods": ["file/read"]}),
        json!({"runtimeId": "box", "methods": ["shell/run"]}),
        json!({"runtimeId": "box", "methods": ["vscode/chat"]}),
    ] {
        assert_eq!(host.refused("runtime/register", params.clone())["code"], -32060, "{params}");
    }
    assert_eq!(host.refused("bridge/shutdown", json!({}))["code"], -32060);
    host.call("runtime/register", json!({"methods": ["file/read"]}));
    let mut client = daemon.client();
    client.send_request("file/read", json!({"path": "x"}));
    let request = host.request();
    host.answer(&request, json!({"text": "y"}));
    assert_eq!(client.receive()["result"]["text"], "y");
    assert_eq!(client.call("runtime/list", Value::Null)[0]["runtimeId"], "box");
}

#[test]
fn the_command_prints_a_client_token_and_nothing_else() {
    let daemon = Daemon::start();
    let output =
        daemon.run_command("bridge-client").args(["token", "--rights", "read,chat"]).output();
    let output = output.unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    let token = printed.strip_suffix('\n').unwrap();
    assert!(token.len() == 64 && token.bytes().all(|byte| byte.is_ascii_hexdigit()), "{printed:?}");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    let hello = Socket::connect(daemon.port(), token).call("bridge/hello", json!({"protocol": 1}));
    assert_eq!(hello["rights"], json!(["chat", "read"]));
    let refused = daemon
        .run_command("bridge-client")
        .env("RUN_BRIDGE_TOKEN", token)
        .args(["token", "--rights", "run"])
        .output()
        .unwrap();
    assert_eq!((refused.status.code(), refused.stdout.len()), (Some(1), 0));
}

#[test]
fn the_command_writes_a_host_token_to_a_private_file_that_a_host_can_use() {
    let daemon = Daemon::start();
    let folder = harness::run_directory();
    let file = folder.path().join("box.token");
    let make = || {
        let mut command = daemon.command("bridge-client");
        command.args([
            "token",
            "--host",
            "--runtime",
            "box",
            "--tools",
            "file/*,shell/run",
            "--output",
        ]);
        command.arg(&file).output().unwrap()
    };
    let output = make();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.stdout, b"");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let again = make();
    assert_eq!(again.status.code(), Some(2), "it does not write over what is there");
    let rules =
        json!({"runtimeId": "box", "rules": [{"method": "file/read", "result": {"text": "y"}}]});
    let host = Program::start(daemon.scripted_host(&rules).arg("--token-file").arg(&file));
    assert_eq!(host.line(), r#"{"runtimeId":"box"}"#);
    assert_eq!(daemon.client().call("file/read", json!({"path": "x"}))["text"], "y");
}

#[test]
fn a_run_can_give_its_program_fewer_rights_than_the_session_has() {
    let runtime = harness::run_directory();
    let client = harness::binary("bridge-client");
    // The program prints the rights of its own token, and then those of the session's token.
    let script = r#""$0" call bridge/hello protocol=1
        env -u RUN_BRIDGE_ADDR -u RUN_BRIDGE_TOKEN -u EVOLVE_RUN_BRIDGE_ADDR "$0" call bridge/hello protocol=1"#;
    let mut run = harness::command(harness::binary("bridge-daemon"));
    run.env("XDG_RUNTIME_DIR", runtime.path()).stderr(Stdio::piped());
    run.args(["run", "--rights", "read,chat", "--", "sh", "-c", script]).arg(client);
    let mut program = Program::start(&mut run);
    let rights = |line: String| serde_json::from_str::<Value>(&line).unwrap()["rights"].clone();
    assert_eq!(rights(program.line()), json!(["chat", "read"]));
    assert_eq!(rights(program.line()), json!(["chat", "read", "write", "run", "editor"]));
    assert!(program.wait().success(), "{}", program.stderr());
    wait_until("the end", || !process_exists(program.pid()));
}
