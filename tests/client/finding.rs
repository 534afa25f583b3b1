use harness::{Daemon, Program};
use nix::sys::signal::Signal;
use serde_json::Value;

use crate::finish;

#[test]
fn one_daemon_is_found_by_its_file() {
    let daemon = Daemon::start();
    let output = finish(Program::start(daemon.command("bridge-client").args(["--json", "status"])));
    let status: Value = serde_json::from_str(&output.lines.join("")).unwrap();
    assert_eq!(status["session"], daemon.ready["session"]);
}

#[test]
fn with_several_daemons_one_must_be_chosen() {
    let one = Daemon::start_with(&["--session", "one"]);
    let two = Program::start(one.command("bridge-daemon").args(["serve", "--session", "two"]));
    two.line();
    let output = finish(Program::start(one.command("bridge-client").arg("status")));
    assert_eq!(output.code, Some(3));
    for word in ["one", "two", "--session"] {
        assert!(output.stderr.contains(word), "{}", output.stderr);
    }
    for session in ["one", "two"] {
        let output = finish(Program::start(one.command("bridge-client").args([
            "--session",
            session,
            "--json",
            "status",
        ])));
        let status: Value = serde_json::from_str(&output.lines.join("")).unwrap();
        assert_eq!(status["session"], session);
    }
    let output =
        finish(Program::start(one.command("bridge-client").args(["--session", "three", "status"])));
    assert_eq!(output.code, Some(3), "{}", output.stderr);
}

#[test]
fn variables_come_before_files_and_their_families_do_not_mix() {
    let (daemon, other) = (Daemon::start(), Daemon::start());
    let session = |command: &mut std::process::Command| {
        let output = finish(Program::start(command));
        let text = output.lines.join("");
        serde_json::from_str::<Value>(&text)
            .map(|status| status["session"].as_str().unwrap_or_default().to_owned())
            .unwrap_or(output.stderr)
    };
    let mut command = daemon.command("bridge-client");
    command.args(["--json", "status"]);
    for (name, value) in other.ready["env"].as_object().unwrap() {
        command.env(name, value.as_str().unwrap());
    }
    assert_eq!(session(&mut command), other.text("session"), "the environment before the files");
    let mut command = daemon.run_command("bridge-client");
    command.args(["--json", "status"]);
    for (name, value) in other.ready["env"].as_object().unwrap() {
        if name.starts_with("EVOLVE") {
            command.env(name, value.as_str().unwrap());
        }
    }
    assert_eq!(session(&mut command), daemon.text("session"), "the short family first");
    command.env_remove("RUN_BRIDGE_TOKEN");
    assert_eq!(session(&mut command), other.text("session"), "an incomplete family does not count");
}

#[test]
fn a_daemon_is_found_by_its_unix_socket() {
    let daemon = Daemon::start_with(&["--unix"]);
    let mut host = daemon.host("h");
    let program = Program::start(daemon.command("bridge-client").args(["chat", "x"]));
    let request = host.request();
    host.answer(&request, serde_json::json!({"response": "yes"}));
    assert_eq!(finish(program).lines, ["yes"]);
    let address = format!(
        "unix:{}",
        daemon.files().join(format!("{}.sock", daemon.text("session"))).display()
    );
    let mut command = daemon.run_command("bridge-client");
    let output = finish(Program::start(
        command.args(["call", "bridge/ping"]).env("RUN_BRIDGE_ADDR", address),
    ));
    assert_eq!(output.lines, ["{}"], "{}", output.stderr);
}

#[test]
fn list_removes_the_files_of_dead_daemons() {
    let mut daemon = Daemon::start();
    daemon.program.signal(Signal::SIGKILL);
    daemon.program.wait();
    assert_eq!(std::fs::read_dir(daemon.files()).unwrap().count(), 2);
    let output = finish(Program::start(daemon.command("bridge-client").args(["--json", "list"])));
    assert_eq!((output.code, output.lines), (Some(0), vec!["[]".to_owned()]));
    assert_eq!(std::fs::read_dir(daemon.files()).unwrap().count(), 0);
}
