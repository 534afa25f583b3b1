use harness::{Daemon, Program, run_directory};
use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::{Output, finish, run, start};

/// Checks the exit code, and that stderr is one line with these words.
#[track_caller]
fn explains(output: &Output, code: i32, words: &[&str]) {
    assert_eq!(output.code, Some(code), "{}", output.stderr);
    assert_eq!(output.stderr.lines().count(), 1, "{}", output.stderr);
    for word in words {
        assert!(output.stderr.contains(word), "no {word:?} in {}", output.stderr);
    }
}

fn outside(arguments: &[&str], variables: &[(&str, &str)]) -> Output {
    let directory = run_directory();
    let mut command = harness::command(harness::binary("bridge-client"));
    command
        .args(arguments)
        .envs(variables.iter().copied())
        .env("XDG_RUNTIME_DIR", directory.path());
    finish(Program::start(&mut command))
}

#[test]
fn without_a_daemon_the_error_says_how_to_start_one() {
    explains(&outside(&["call", "vscode/chat", "message=x"], &[]), 3, &["bridge-daemon run"]);
}

#[test]
fn the_error_names_an_address_that_is_dead_or_invalid() {
    let variables = [
        ("RUN_BRIDGE_ADDR", "ws://127.0.0.1:1/"),
        ("RUN_BRIDGE_TOKEN", "x"),
        ("RUN_BRIDGE_SESSION", "s"),
    ];
    explains(&outside(&["chat", "x"], &variables), 4, &["127.0.0.1:1"]);
    let nonsense = [("RUN_BRIDGE_ADDR", "http://nowhere"), variables[1], variables[2]];
    explains(&outside(&["chat", "x"], &nonsense), 2, &["http://nowhere", "ws://127.0.0.1:PORT/"]);
}

#[test]
fn a_wrong_token_is_refused_without_being_shown() {
    let daemon = Daemon::start();
    let mut command = daemon.run_command("bridge-client");
    let output =
        finish(Program::start(command.args(["chat", "x"]).env("RUN_BRIDGE_TOKEN", "f".repeat(64))));
    explains(&output, 5, &["token"]);
    assert!(!output.stderr.contains("ffff"));
}

#[test]
fn each_kind_of_failed_request_has_its_exit_code() {
    let daemon = Daemon::start_with(&["--host-wait", "0"]);
    explains(&run(&daemon, &["chat", "x"]), 7, &["VS Code"]);
    explains(&run(&daemon, &["call", "nothing/like-it"]), 1, &["nothing/like-it"]);
    let mut host = daemon.host("h");
    explains(&run(&daemon, &["--timeout", "0.2", "chat", "x"]), 6, &["timed out"]);
    assert_eq!(host.request()["method"], "vscode/chat");
    assert_eq!(host.receive()["method"], "$/cancelRequest");
    let program = start(&daemon, &["chat", "x"]);
    host.request();
    drop(host);
    explains(&finish(program), 7, &["host went away"]);
}

#[test]
fn with_json_the_error_is_json_too() {
    let daemon = Daemon::start_with(&["--host-wait", "0"]);
    let output = run(&daemon, &["--json", "chat", "x"]);
    let error: Value = serde_json::from_str(&output.lines.join("")).unwrap();
    assert_eq!(
        (&error["error"]["code"], &error["error"]["kind"]),
        (&json!(-32050), &json!("HostUnavailable"))
    );
}

#[test]
fn the_death_of_the_daemon_is_reported_at_once() {
    let daemon = Daemon::start();
    let mut host = daemon.host("h");
    let program = start(&daemon, &["chat", "x"]);
    host.request();
    daemon.program.signal(Signal::SIGKILL);
    explains(&finish(program), 4, &["ended", "may have been carried out"]);
}

#[test]
fn ctrl_c_cancels_at_the_host_first() {
    let daemon = Daemon::start();
    let mut host = daemon.host("h");
    let program = start(&daemon, &["chat", "x"]);
    let request = host.request();
    program.signal(Signal::SIGINT);
    let cancel = host.receive();
    assert_eq!(
        (&cancel["method"], &cancel["params"]["id"]),
        (&json!("$/cancelRequest"), &request["id"])
    );
    assert_eq!(finish(program).code, Some(130));
}

#[test]
fn bad_usage_is_explained() {
    let daemon = Daemon::start();
    for arguments in [
        &["call"][..],
        &["call", "chat", "{not json"],
        &["call", "chat", "novalue"],
        &["--timeout", "soon", "chat", "x"],
        &["--timeout", "-1", "chat", "x"],
        &["show-message", "--level", "loud", "x"],
        &["host", "--rules", "/nonexistent/rules.json"],
        &["dance"],
    ] {
        let output = run(&daemon, arguments);
        assert_eq!(output.code, Some(2), "{arguments:?}: {}", output.stderr);
        assert!(!output.stderr.is_empty(), "{arguments:?}");
    }
}
