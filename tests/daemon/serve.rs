use std::process::Stdio;

use harness::{Closed, Daemon, Program, binary, process_exists, run_directory, wait_until};
use nix::sys::signal::Signal;
use process_identity::Stat;
use serde_json::{Value, json};

fn files(daemon: &Daemon) -> usize {
    std::fs::read_dir(daemon.files()).map_or(0, Iterator::count)
}

#[test]
fn it_ends_cleanly_when_stdin_closes_or_a_signal_comes() {
    for how in ["stdin", "SIGTERM", "SIGINT", "SIGHUP"] {
        let mut daemon = Daemon::start_with(&["--unix"]);
        assert_eq!(files(&daemon), 3);
        let mut client = daemon.client();
        match how {
            "stdin" => daemon.program.close_stdin(),
            signal => daemon.program.signal(signal.parse::<Signal>().unwrap()),
        }
        assert_eq!(client.closed(), Closed(Some(1001)), "{how}");
        assert!(daemon.program.wait().success(), "{how}");
        assert_eq!(files(&daemon), 0, "{how}");
    }
}

#[test]
fn a_host_may_end_it() {
    let mut daemon = Daemon::start();
    let mut host = daemon.host("h");
    host.call("bridge/shutdown", Value::Null);
    assert!(daemon.program.wait().success());
}

#[test]
fn requests_on_their_way_are_answered_and_a_client_that_does_not_read_does_not_delay_the_end() {
    let mut daemon = Daemon::start();
    let mut host = daemon.host("h");
    // A client that never reads: its queue is full when the daemon ends.
    let mut deaf = daemon.client();
    for _ in 0..20 {
        deaf.send_request("vscode/chat", json!({}));
    }
    for _ in 0..20 {
        let request = host.request();
        host.answer(&request, json!("x".repeat(1 << 20)));
    }
    wait_until("its queue to fill", || daemon.status()["queuedBytes"].as_u64() > Some(1 << 20));
    let mut client = daemon.client();
    client.send_request("vscode/chat", json!({}));
    host.request();
    daemon.program.close_stdin();
    assert_eq!(client.receive()["error"]["data"]["kind"], "ShuttingDown");
    assert_eq!(client.closed(), Closed(Some(1001)));
    assert!(daemon.program.wait().success());
    assert_eq!(files(&daemon), 0);
}

#[test]
fn it_ends_when_nobody_has_been_connected_for_the_idle_timeout() {
    let mut daemon = Daemon::start_with(&["--idle-timeout", "2"]);
    let mut client = daemon.client();
    client.call("bridge/ping", Value::Null);
    drop(client);
    assert!(daemon.program.wait().success());
    assert!(daemon.program.stderr().contains("nobody has been connected"));
}

#[test]
fn it_ends_with_its_parent_even_if_somebody_else_holds_the_pipe() {
    let directory = run_directory();
    // The shell starts a daemon whose stdin is a pipe that another process holds open, and whose stdout a further
    // process reads. Both print their pids. Then the shell is killed.
    let script = r#"mkfifo "$XDG_RUNTIME_DIR/in"; sleep 1000 > "$XDG_RUNTIME_DIR/in" & echo $!
        "$0" serve < "$XDG_RUNTIME_DIR/in" | { read ready; echo "$ready"; echo $BASHPID; exec sleep 1000; }"#;
    let mut command = std::process::Command::new("bash");
    command
        .args(["-c", script])
        .arg(binary("bridge-daemon"))
        .env("XDG_RUNTIME_DIR", directory.path());
    let mut shell = Program::start(&mut command);
    let holder: u32 = shell.line().parse().unwrap();
    let ready: Value = serde_json::from_str(&shell.line()).unwrap();
    let reader: u32 = shell.line().parse().unwrap();
    let daemon = u32::try_from(ready["pid"].as_u64().unwrap()).unwrap();
    assert_eq!(Stat::of(daemon).unwrap().parent.cast_unsigned(), shell.pid());
    shell.signal(Signal::SIGKILL);
    wait_until("the daemon to end", || !process_exists(daemon));
    for pid in [holder, reader] {
        let _ =
            nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid.cast_signed()), Signal::SIGKILL);
    }
    shell.wait();
}

#[test]
fn secrets_are_printed_to_a_pipe_only() {
    let directory = run_directory();
    let path = directory.path().join("out");
    let mut command = harness::command(binary("bridge-daemon"));
    command.arg("serve").env("XDG_RUNTIME_DIR", directory.path());
    command
        .stdin(Stdio::piped())
        .stdout(std::fs::File::create(&path).unwrap())
        .stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    wait_until("the ready line", || std::fs::read_to_string(&path).unwrap().ends_with('\n'));
    drop(child.stdin.take());
    child.wait().unwrap();
    let ready: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    let names: Vec<_> = ready.as_object().unwrap().keys().cloned().collect();
    assert_eq!(names, ["addr", "pid", "session", "version"]);
}

#[test]
fn two_daemons_have_different_secrets_and_refuse_each_others() {
    let (one, two) = (Daemon::start(), Daemon::start());
    for name in ["token", "hostToken", "session"] {
        assert_ne!(one.text(name), two.text(name));
    }
    assert_ne!(one.text("token"), one.text("hostToken"));
    for name in ["token", "hostToken"] {
        assert!(harness::Socket::try_connect(one.port(), two.text(name)).is_err());
    }
}

#[test]
fn a_token_is_worthless_after_a_restart() {
    let mut daemon = Daemon::start();
    let (old_token, port) = (daemon.text("token").to_owned(), daemon.port());
    daemon.program.close_stdin();
    daemon.program.wait();
    let again = Daemon::start_with(&["--port", &port.to_string()]);
    assert!(harness::Socket::try_connect(again.port(), &old_token).is_err());
}

#[test]
fn a_taken_port_or_session_is_named_with_the_remedy() {
    let daemon = Daemon::start_with(&["--session", "mine"]);
    let port = daemon.port().to_string();
    let attempt = |flags: [&str; 2]| {
        let mut program = Program::start(daemon.command("bridge-daemon").arg("serve").args(flags));
        (program.wait().code(), program.stderr())
    };
    let (code, message) = attempt(["--port", &port]);
    assert_eq!(code, Some(125));
    assert!(message.contains(&format!("port {port}")) && message.contains("--port"), "{message}");
    let (code, message) = attempt(["--session", "mine"]);
    assert_eq!(code, Some(125));
    assert!(message.contains("session mine") && message.contains("--session"), "{message}");
    assert_eq!(message.lines().count(), 1, "one line: {message}");
    assert_eq!(daemon.status()["session"], "mine", "the first is unharmed");
}

#[test]
fn a_place_that_others_can_enter_is_refused() {
    let directory = run_directory();
    std::fs::create_dir(directory.path().join("run-bridge")).unwrap();
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(directory.path().join("run-bridge"), open).unwrap();
    let mut command = harness::command(binary("bridge-daemon"));
    let mut program = Program::start(command.arg("serve").env("XDG_RUNTIME_DIR", directory.path()));
    assert_eq!(program.wait().code(), Some(125));
    assert!(program.stderr().contains("0700"), "{}", program.stderr());
}

#[test]
fn files_of_the_dead_are_swept_by_the_next() {
    let mut dead = Daemon::start_with(&["--unix", "--session", "same"]);
    dead.program.signal(Signal::SIGKILL);
    dead.program.wait();
    assert_eq!(files(&dead), 3, "SIGKILL leaves them");
    let next = Program::start(dead.command("bridge-daemon").args([
        "serve",
        "--unix",
        "--session",
        "same",
    ]));
    let ready: Value = serde_json::from_str(&next.line()).unwrap();
    let text = std::fs::read_to_string(dead.files().join("same.json")).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap()["pid"], ready["pid"]);
}

#[test]
fn no_host_is_an_error_that_says_how_to_get_one() {
    let daemon = Daemon::start_with(&["--host-wait", "0"]);
    let mut client = daemon.client();
    client.send_request("vscode/chat", json!({}));
    let error = client.receive()["error"].clone();
    assert_eq!(error["data"]["kind"], "HostUnavailable");
    assert!(error["message"].as_str().unwrap().contains("VS Code"), "{error}");
}
