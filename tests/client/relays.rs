use harness::{Daemon, Program};
use serde_json::{Value, json};

use crate::{finish, start};

#[test]
fn stdio_relays_messages_byte_for_byte_both_ways() {
    let daemon = Daemon::start();
    let mut host = daemon.host("h");
    let mut relay = start(&daemon, &["stdio"]);
    relay.write(
        "{\"jsonrpc\":\"2.0\",\"id\":\"\\u0031\",\"method\":\"chat\",\"params\":{\"n\":1e400}}\n",
    );
    let request = host.receive_text();
    assert!(request.contains("\"params\":{\"n\":1e400}"), "{request}");
    let id = serde_json::from_str::<Value>(&request.replace("1e400", "1")).unwrap()["id"].clone();
    host.send(&json!({"jsonrpc": "2.0", "method": "$/progress", "params": {"id": id, "value": {"text": "a"}}}));
    assert_eq!(
        relay.line(),
        r#"{"jsonrpc":"2.0","method":"$/progress","params":{"id":"\u0031","value":{"text":"a"}}}"#
    );
    // The end of stdin must not lose an answer that comes later.
    relay.close_stdin();
    host.send_text(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":1.0}}"#));
    let output = finish(relay);
    assert_eq!(
        (output.code, output.lines),
        (Some(0), vec![r#"{"jsonrpc":"2.0","id":"\u0031","result":1.0}"#.to_owned()])
    );
}

#[test]
fn stdio_answers_invalid_lines_with_errors_and_goes_on() {
    let daemon = Daemon::start();
    let mut relay = start(&daemon, &["stdio"]);
    relay.write("nonsense\n\n{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"bridge/ping\"}\n");
    assert!(relay.line().contains("-32700"));
    assert_eq!(relay.line(), r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
    assert_eq!(finish(relay).code, Some(0));
}

/// Starts a scripted host with these rules, and waits until it has registered. Also returns the path of its log.
pub fn scripted(daemon: &Daemon, rules: &Value) -> (Program, std::path::PathBuf) {
    let log = daemon.runtime_directory().join("log.jsonl");
    let mut command = daemon.scripted_host(rules);
    let host = Program::start(command.arg("--log").arg(&log));
    assert!(serde_json::from_str::<Value>(&host.line()).unwrap()["runtimeId"].is_string());
    (host, log)
}

/// A scripted host with the runtimeId `w1` that serves tools, which the session's own host token does not allow.
pub fn scripted_tools(daemon: &Daemon, rules: &Value) -> (Program, std::path::PathBuf) {
    let token = daemon.runtime_directory().join("token");
    let tools = "shell/*,file/*,cell/*,page/*,vscode/*";
    let arguments = ["token", "--host", "--runtime", "w1", "--tools", tools, "--output"];
    let mut command = daemon.command("bridge-client");
    command.args(["--session", daemon.text("session")]).args(arguments).arg(&token);
    assert_eq!(finish(Program::start(command)).code, Some(0));
    let log = daemon.runtime_directory().join("log.jsonl");
    let mut command = daemon.scripted_host(rules);
    command.arg("--token-file").arg(&token);
    let host = Program::start(command.arg("--log").arg(&log));
    assert!(serde_json::from_str::<Value>(&host.line()).unwrap()["runtimeId"].is_string());
    (host, log)
}

#[test]
fn a_scripted_host_answers_by_the_first_matching_rule() {
    let daemon = Daemon::start();
    let rules = json!({"runtimeId": "scripted", "rules": [
        {"method": "vscode/chat", "when": {"message": "2+2?"}, "result": {"response": "4"}},
        {"method": "vscode/chat", "result": {"response": "You output: ${message}"}},
        {"method": "vscode/executeCommand", "error": {"code": -32054, "message": "not here"}},
        {"method": "my/own", "result": [1]},
    ]});
    let (_host, log) = scripted(&daemon, &rules);
    let mut client = daemon.client();
    assert_eq!(client.call("chat", json!({"message": "2+2?"}))["response"], "4");
    assert_eq!(client.call("chat", json!({"message": "hello"}))["response"], "You output: hello");
    assert_eq!(client.call("my/own", Value::Null), json!([1]));
    client.send_request("execute_command", json!({"command": "x"}));
    assert_eq!(client.receive()["error"], json!({"code": -32054, "message": "not here"}));
    assert_eq!(client.call("runtime/list", Value::Null)[0]["runtimeId"], "scripted");
    let log = std::fs::read_to_string(log).unwrap();
    let first: Value = serde_json::from_str(log.lines().next().unwrap()).unwrap();
    assert_eq!((&first["event"], &first["params"]["message"]), (&json!("request"), &json!("2+2?")));
}

#[test]
fn a_scripted_host_can_wait_for_a_fifo_before_it_answers() {
    let daemon = Daemon::start();
    let fifo = daemon.runtime_directory().join("fifo");
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let rules = json!({"rules": [{"method": "vscode/chat", "progress": [{"text": "early"}], "fifo": fifo, "result": {"response": "late"}}]});
    let (_host, _) = scripted(&daemon, &rules);
    let mut client = daemon.client();
    client.send_request("chat", json!({"message": "x"}));
    assert_eq!(
        client.receive()["params"]["value"]["text"],
        "early",
        "while the host waits for the FIFO"
    );
    std::fs::write(&fifo, "").unwrap();
    assert_eq!(client.receive()["result"]["response"], "late");
}

#[test]
fn a_scripted_host_that_is_replaced_reports_it_and_ends() {
    let daemon = Daemon::start();
    let rules = json!({"runtimeId": "same", "rules": [{"method": "vscode/chat", "result": {}}]});
    let (host, _) = scripted(&daemon, &rules);
    let _newer = daemon.host("same");
    let output = finish(host);
    assert_ne!(output.code, Some(0));
    assert!(output.stderr.contains("same"), "{}", output.stderr);
}
