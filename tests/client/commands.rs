use harness::Daemon;
use serde_json::{Value, json};

use crate::{finish, run, start};

/// Runs the command line while a host answers one request. Returns the request and the output.
fn answered(daemon: &Daemon, arguments: &[&str], result: Value) -> (Value, crate::Output) {
    let mut host = daemon.host("h");
    let program = start(daemon, arguments);
    let request = host.request();
    host.answer(&request, result);
    (request, finish(program))
}

#[test]
fn call_takes_names_with_and_without_prefix_and_params_in_three_ways() {
    let daemon = Daemon::start();
    for (name, canonical) in [
        ("vscode/chat", "vscode/chat"),
        ("chat", "vscode/chat"),
        ("show_message", "vscode/showMessage"),
        ("vscode/show_message", "vscode/showMessage"),
        ("execute_command", "vscode/executeCommand"),
        ("vscode/executeCommand", "vscode/executeCommand"),
        ("get_chat_history", "vscode/getChatHistory"),
    ] {
        let (request, output) =
            answered(&daemon, &["call", name, r#"{"message": "a b"}"#], json!({"x": [1, null]}));
        assert_eq!(
            (&request["method"], &request["params"]["message"]),
            (&json!(canonical), &json!("a b"))
        );
        assert_eq!(
            (output.code, output.lines),
            (Some(0), vec![r#"{"x":[1,null]}"#.to_owned()]),
            "{}",
            output.stderr
        );
    }
    let (request, _) = answered(
        &daemon,
        &["call", "chat", "message=hi", "n=5", "flag=true", "text=5x"],
        json!({}),
    );
    let params = &request["params"];
    assert_eq!(
        (&params["message"], &params["n"], &params["flag"], &params["text"]),
        (&json!("hi"), &json!(5), &json!(true), &json!("5x"))
    );
    let mut host = daemon.host("h");
    let mut program = start(&daemon, &["call", "chat", "-"]);
    program.write(r#"{"message": "from stdin"}"#);
    program.close_stdin();
    let request = host.request();
    assert_eq!(request["params"]["message"], "from stdin");
    host.answer(&request, json!({}));
    assert_eq!(finish(program).code, Some(0));
}

#[test]
fn results_are_printed_byte_for_byte() {
    let daemon = Daemon::start();
    let mut host = daemon.host("h");
    let program = start(&daemon, &["--json", "call", "chat", "message=x"]);
    let request = host.request();
    host.send_text(&format!(
        r#"{{"jsonrpc":"2.0","id":{},"result":{{"b":1e400,"a":1.0}}}}"#,
        request["id"]
    ));
    assert_eq!(finish(program).lines, [r#"{"b":1e400,"a":1.0}"#]);
}

#[test]
fn own_methods_can_be_called() {
    let daemon = Daemon::start();
    let output = run(&daemon, &["call", "bridge/ping"]);
    assert_eq!((output.code, output.lines), (Some(0), vec!["{}".to_owned()]));
    let output = run(&daemon, &["call", "runtime/list"]);
    assert_eq!(output.lines, ["[]"]);
}

#[test]
fn chat_prints_the_answer_and_passes_its_options() {
    let daemon = Daemon::start();
    let arguments = ["--timeout", "7.5", "chat", "--model", "small", "--conversation", "c", "2+2?"];
    let (request, output) = answered(&daemon, &arguments, json!({"response": "four\nof course"}));
    let expected =
        json!({"message": "2+2?", "model": "small", "conversationId": "c", "timeout": 7500});
    assert_eq!(request["params"], expected);
    assert_eq!(output.lines, ["four", "of course"]);
}

#[test]
fn a_blocked_chat_has_its_own_exit_code() {
    let daemon = Daemon::start();
    let (_, output) = answered(
        &daemon,
        &["chat", "x"],
        json!({"response": "", "blocked": true, "blockedReason": "no_model"}),
    );
    assert_eq!((output.code, output.lines.len()), (Some(8), 0));
    assert!(output.stderr.contains("no_model"), "{}", output.stderr);
}

#[test]
fn show_message_execute_command_and_history() {
    let daemon = Daemon::start();
    let arguments =
        ["show-message", "--level", "warning", "--button", "Yes", "--button", "No", "Sure?"];
    let (request, output) = answered(&daemon, &arguments, json!({"choice": "No"}));
    assert_eq!(
        (&request["params"]["level"], &request["params"]["buttons"]),
        (&json!("warning"), &json!(["Yes", "No"]))
    );
    assert_eq!(output.lines, ["No"]);
    let (request, output) =
        answered(&daemon, &["execute-command", "x.y", "[1]", "plain"], json!({"result": "done"}));
    assert_eq!(
        (&request["params"]["command"], &request["params"]["args"]),
        (&json!("x.y"), &json!([[1], "plain"]))
    );
    assert_eq!(output.lines, ["done"]);
    let messages = json!({"messages": [{"role": "user", "content": "q", "timestamp": 0}]});
    let (request, output) = answered(&daemon, &["history", "c1", "--limit", "3"], messages);
    assert_eq!(
        (&request["params"]["conversationId"], &request["params"]["limit"]),
        (&json!("c1"), &json!(3))
    );
    assert!(output.lines.join(" ").contains('q'));
}

#[test]
fn status_and_list_show_the_daemon_without_its_secrets() {
    let daemon = Daemon::start();
    let status = run(&daemon, &["--json", "status"]);
    let status: Value = serde_json::from_str(&status.lines.join("")).unwrap();
    assert_eq!(status["session"], daemon.ready["session"]);
    for flags in [&["list"][..], &["--json", "list"]] {
        let output = run(&daemon, flags);
        let text = output.lines.join("\n");
        assert!(text.contains(daemon.text("session")), "{text}");
        assert!(!text.contains(daemon.text("token")) && !text.contains(daemon.text("hostToken")));
    }
}

#[test]
fn tail_prints_each_request_until_the_daemon_ends() {
    let mut daemon = Daemon::start();
    let mut host = daemon.host("h");
    let mut tail = start(&daemon, &["--json", "tail"]);
    // `bridge/tail` is answered by the daemon and gives no record, so wait for the connection.
    harness::wait_until("the tail to be connected", || daemon.status()["clients"] == 2);
    let mut client = daemon.client();
    let record = record_of_a_call(&mut client, &mut host, &tail);
    assert_eq!((&record["method"], &record["outcome"]), (&json!("vscode/chat"), &json!("ok")));
    assert!(!record.to_string().contains("private"));
    drop(client);
    daemon.program.close_stdin();
    tail.wait();
}

/// Repeats a call until the tail has printed a line. The tail may still be subscribing at first.
fn record_of_a_call(
    client: &mut harness::Socket,
    host: &mut harness::Socket,
    tail: &harness::Program,
) -> Value {
    let mut line = None;
    harness::wait_until("a line of the tail", || {
        client.send_request("vscode/chat", json!({"message": "private"}));
        let request = host.request();
        host.answer(&request, json!("private"));
        client.receive();
        line = tail.try_line();
        line.is_some()
    });
    serde_json::from_str(&line.unwrap()).unwrap()
}

#[test]
fn completions_are_printed_for_each_shell() {
    for shell in ["bash", "zsh", "fish"] {
        let daemon = Daemon::start();
        let output = run(&daemon, &["completions", shell]);
        assert_eq!(output.code, Some(0));
        assert!(output.lines.join("\n").contains("show-message"));
    }
}

#[test]
fn a_closed_pipe_is_no_error() {
    let daemon = Daemon::start();
    let mut command = std::process::Command::new("bash");
    let script = format!(
        "{} completions bash | head -n 1 >/dev/null; echo \"${{PIPESTATUS[0]}}\"",
        harness::binary("bridge-client").display()
    );
    let output = command.args(["-c", &script]).output().unwrap();
    drop(daemon);
    let code: i32 = String::from_utf8(output.stdout).unwrap().trim().parse().unwrap();
    assert!(code == 0 || code == 141, "{code}");
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
}
