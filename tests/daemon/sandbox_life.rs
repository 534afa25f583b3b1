use std::time::{Duration, SystemTime};

use harness::{
    Daemon, Placement, Program, SandboxDaemon, Socket, binary, command, in_both_placements,
    process_exists, run_directory, wait_until,
};
use serde_json::{Value, json};

in_both_placements!(
    a_killed_daemons_shells_commands_and_logs_are_found_again,
    a_clean_end_leaves_no_process_and_no_file,
    shells_of_a_killed_daemon_end_when_their_lease_is_over,
    a_killed_tmux_takes_its_shells_with_it_and_new_ones_can_be_started,
    a_daemon_with_an_idle_shell_sleeps,
    calls_for_a_window_wait_for_one_beside_the_sandbox,
);

#[test]
fn without_the_flag_there_is_no_sandbox() {
    let daemon = Daemon::start();
    let mut client = daemon.client();
    for method in ["shell/run", "file/read", "cell/run"] {
        let error = client.refused(method, json!({"command": "true"}));
        assert_eq!(error["data"]["kind"], "MethodNotFound");
        assert!(error["message"].as_str().unwrap().contains("--sandbox DIR"), "{error}");
    }
    let mut program =
        Program::start(
            command(binary("bridge-daemon"))
                .env("XDG_RUNTIME_DIR", daemon.runtime_directory())
                .args(["serve", "--sandbox", "/nonexistent"]),
        );
    assert_eq!(program.wait().code(), Some(125));
    assert!(program.stderr().contains("name a directory that exists"), "{}", program.stderr());
}

fn a_killed_daemons_shells_commands_and_logs_are_found_again(placement: Placement) {
    let mut sandbox = SandboxDaemon::start_in(placement, &[]);
    let mut client = sandbox.client();
    client.run("cd /; kept=yes; echo before");
    client.run_until("main", "echo ready; read -s x; echo \"$kept $x\"", "ready");
    let before = client.call("shell/list", json!({}));
    sandbox.kill_and_start_again();

    let mut client = sandbox.client();
    let after = client.call("shell/list", json!({}));
    let facts = |shells: &Value| {
        let shell = &shells["shells"][0];
        json!([shell["shell"], shell["state"], shell["command"], shell["pid"]])
    };
    assert_eq!(facts(&after), facts(&before));
    assert_eq!(facts(&after)[1], "running");
    client.type_secretly("main", "found");
    let ended = client.call("shell/wait", json!({}));
    assert_eq!(
        json!([ended["exitCode"], ended["output"]["text"], ended["cwd"]]),
        json!([0, "ready\nyes found", "/"])
    );
    let log = client.call("shell/read", json!({"from": 0}));
    assert!(log["text"].as_str().unwrap().contains("before"), "{log}");
}

fn a_clean_end_leaves_no_process_and_no_file(placement: Placement) {
    let mut sandbox = SandboxDaemon::start_in(placement, &[]);
    let mut client = sandbox.client();
    let background =
        client.run("nohup sleep 1000 > /dev/null 2>&1 & (trap '' HUP TERM; sleep 1000) &");
    let id = client.run_until("other", "echo $$ ready; sleep 1000", "ready");
    let mut pids: Vec<u32> = sandbox.client().call("shell/list", json!({}))["shells"]
        .as_array()
        .unwrap()
        .iter()
        .map(|shell| shell["pid"].as_u64().unwrap() as u32)
        .collect();
    pids.push(background["backgroundPid"].as_u64().unwrap() as u32);
    assert_eq!(pids.len(), 3);
    let state = sandbox.state();
    sandbox.end();
    assert_eq!(client.answer_to(id)["error"]["data"]["kind"], "ShuttingDown");
    assert_eq!(sandbox.leftovers(), Vec::<std::path::PathBuf>::new());
    let all = || processes_that_mention(state.to_str().unwrap());
    wait_until("the end of tmux, keeper and recorders", || all().is_empty());
    for pid in pids {
        wait_until(&format!("the end of process {pid}"), || !process_exists(pid));
    }
}

/// Processes with this text among their arguments.
fn processes_that_mention(text: &str) -> Vec<u32> {
    let mentions = |pid: &u32| {
        let arguments = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        process_exists(*pid) && String::from_utf8_lossy(&arguments).contains(text)
    };
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(mentions).collect()
}

fn shells_of_a_killed_daemon_end_when_their_lease_is_over(placement: Placement) {
    let mut sandbox = SandboxDaemon::start_in(placement, &[]);
    let ran = sandbox.client().run("sleep 1000 &");
    let background = ran["backgroundPid"].as_u64().unwrap() as u32;
    let state = sandbox.state();
    sandbox.kill();
    let sweep = || {
        let mut sweep = command(binary("sandbox"));
        let mut program = Program::start(sweep.arg("sweep").arg(&state));
        assert!(program.wait().success(), "{}", program.stderr());
    };
    sweep();
    assert!(process_exists(background), "the lease has just begun");
    let lock = std::fs::File::options().write(true).open(state.join("run-bridge.lock")).unwrap();
    lock.set_modified(SystemTime::now() - Duration::from_secs(2 * 3600)).unwrap();
    drop(lock);
    sweep();
    wait_until("the end of the background process", || !process_exists(background));
    let all = || processes_that_mention(state.to_str().unwrap());
    wait_until("the end of tmux, keeper and recorders", || all().is_empty());
    assert!(!state.exists());
}

fn a_killed_tmux_takes_its_shells_with_it_and_new_ones_can_be_started(placement: Placement) {
    let sandbox = SandboxDaemon::start_in(placement, &[]);
    let mut client = sandbox.client();
    client.run("cd /; kept=yes");
    let id = client.run_until("other", "echo ready; sleep 1000", "ready");
    let server = tmux_says(&sandbox, &["#{pid}"]);
    assert!(command("kill").args(["-9", &server]).status().unwrap().success());
    assert_eq!(client.answer_to(id)["result"]["ended"], "serverGone");

    // The old shells are gone. The error says so, instead of silently starting new ones of the same name.
    for (method, params) in [
        ("shell/run", json!({"command": "pwd"})),
        ("shell/run", json!({"command": "pwd", "shell": "other"})),
        ("shell/wait", json!({})),
        ("shell/keys", json!({"keys": ["C-c"]})),
    ] {
        let error = client.refused(method, params);
        let facts = json!([error["data"]["kind"], error["data"]["reason"]]);
        assert_eq!(facts, json!(["HostGone", "serverGone"]), "{method}: {error}");
    }
    assert_eq!(client.call("shell/list", json!({}))["shells"], json!([]));
    client.call("shell/create", json!({"shell": "main"}));
    assert_eq!(client.run("echo ${kept-new}")["output"]["text"], "new");
    let again = json!({"command": "echo here", "shell": "other", "create": true});
    assert_eq!(client.call("shell/run", again)["output"]["text"], "here");
}

/// The value of a tmux format in the private tmux server of the sandbox.
fn tmux_says(sandbox: &SandboxDaemon, format: &[&str]) -> String {
    let mut ask = command("tmux");
    ask.arg("-S").arg(sandbox.state().join("tmux")).args(["display-message", "-p"]).args(format);
    String::from_utf8(ask.output().unwrap().stdout).unwrap().trim().to_owned()
}

fn a_daemon_with_an_idle_shell_sleeps(placement: Placement) {
    let sandbox = SandboxDaemon::start_in(placement, &[]);
    let mut client = sandbox.client();
    client.run("echo hi");
    client.run_until("other", "echo ready; sleep 1000", "ready");
    drop(client);
    let keeper = tmux_says(&sandbox, &["-t", "=keeper:", "#{pane_pid}"]);
    let index = std::fs::read_to_string(sandbox.state().join("shells/main/index")).unwrap();
    let recorder = index.lines().next().unwrap().split(' ').nth(3).unwrap();
    let daemon = sandbox.daemon.program.pid().to_string();
    let host = sandbox.sandbox_pid().to_string();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../scripts/wake-ups");
    let mut watch = command(script);
    let output = watch.args(["10", &daemon, &host, recorder, &keeper]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn without_tmux_the_daemon_does_not_start_and_leaves_nothing() {
    let (runtime, workspace) = (run_directory(), run_directory());
    let mut daemon = command(binary("bridge-daemon"));
    daemon.env("XDG_RUNTIME_DIR", runtime.path()).env("PATH", workspace.path());
    let mut program = Program::start(daemon.args(["serve", "--sandbox"]).arg(workspace.path()));
    assert_eq!(program.wait().code(), Some(125));
    assert!(program.stderr().contains("install tmux"), "{}", program.stderr());
    assert_eq!(std::fs::read_dir(runtime.path().join("run-bridge")).unwrap().count(), 0);
}

#[test]
fn a_run_ends_its_shells() {
    let (runtime, workspace) = (run_directory(), run_directory());
    let mut daemon = command(binary("bridge-daemon"));
    daemon.env("XDG_RUNTIME_DIR", runtime.path()).env("HOME", runtime.path());
    daemon.args(["run", "--sandbox"]).arg(workspace.path()).arg("--").arg(binary("bridge-client"));
    daemon.args(["call", "shell/run", "command=sleep 1000 & echo here"]);
    let mut program = Program::start(daemon);
    let result: Value = serde_json::from_str(&program.line()).unwrap();
    assert!(program.wait().success(), "{}", program.stderr());
    let pid = result["backgroundPid"].as_u64().unwrap() as u32;
    wait_until("the end of the background process", || !process_exists(pid));
    assert_eq!(std::fs::read_dir(runtime.path().join("run-bridge")).unwrap().count(), 0);
}

#[test]
fn a_window_cannot_take_the_sandbox_over() {
    let sandbox = SandboxDaemon::start();
    let port = sandbox.daemon.port();
    let mut window = Socket::connect(port, sandbox.daemon.text("hostToken"));
    for params in [
        json!({"runtimeId": "w", "methods": ["vscode/chat", "shell/run"]}),
        json!({"runtimeId": "w", "methods": ["file/read"]}),
        json!({"runtimeId": "w", "methods": ["action/execute"]}),
        json!({"runtimeId": "sandbox", "methods": ["vscode/chat"]}),
    ] {
        let error = window.refused("runtime/register", params);
        assert_eq!(error["data"]["kind"], "Forbidden");
    }
    window.register("w");
    let grab = json!({"methods": ["vscode/chat", "shell/run"], "focused": true});
    window.refused("runtime/update", grab);
    window.call("runtime/update", json!({"focused": true}));
    let mut client = sandbox.client();
    assert_eq!(client.run("echo mine")["output"]["text"], "mine");
    let named = json!({"command": "true", "runtimeId": "w"});
    assert_eq!(client.refused("shell/run", named)["data"]["kind"], "MethodNotFound");
}

fn calls_for_a_window_wait_for_one_beside_the_sandbox(placement: Placement) {
    let sandbox = SandboxDaemon::start_in(placement, &[]);
    let mut client = sandbox.client();
    let id = client.send_request("vscode/chat", json!({"message": "hi"}));
    // When the daemon answers this request, it has read the one before.
    client.run("true");
    let mut window = sandbox.daemon.host("w");
    let request = window.request();
    window.answer(&request, json!({"response": "here"}));
    assert_eq!(client.answer_to(id)["result"]["response"], "here");
}
