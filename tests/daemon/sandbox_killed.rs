//! The sandbox's process dies: its calls fail with a typed error, its shells keep running, and nobody else is affected.

use harness::{Placement, SandboxDaemon, in_both_placements, process_exists, wait_until};
use nix::sys::signal::Signal;
use serde_json::{Value, json};

in_both_placements!(
    a_sandbox_that_dies_fails_its_calls_and_goes_on_with_its_shells,
    a_sandbox_that_is_terminated_ends_its_shells,
    a_sandbox_ends_with_a_killed_daemon_and_leaves_its_shells,
);

/// SIGABRT as after a panic or exhausted memory, SIGSEGV as after a stack overflow, and SIGKILL as of the OOM killer.
fn a_sandbox_that_dies_fails_its_calls_and_goes_on_with_its_shells(placement: Placement) {
    let mut sandbox = SandboxDaemon::start_in(placement, &[]);
    let mut window = sandbox.daemon.host("w");
    let (mut client, mut other) = (sandbox.client(), sandbox.client());
    for (round, signal) in
        [Signal::SIGKILL, Signal::SIGSEGV, Signal::SIGABRT].into_iter().enumerate()
    {
        client.run("cd /; kept=yes");
        let chat = other.send_request("vscode/chat", json!({"message": "hi"}));
        let asked = window.request();
        let command = "echo ready; read -s x; echo \"$kept $x\"";
        let id = client.run_until("main", command, "ready");
        let before = sandbox.client().call("shell/list", json!({}))["shells"][0].clone();
        sandbox.kill_sandbox(signal);

        let error = client.answer_to(id)["error"]["data"].clone();
        let facts = json!([error["kind"], error["mayHaveExecuted"]]);
        assert_eq!(facts, json!(["HostGone", true]), "{signal}: {error}");
        // The next call waits for the sandbox's return.
        let after = client.call("shell/list", json!({}))["shells"][0].clone();
        let facts = |shell: &Value| json!([shell["pid"], shell["state"], shell["command"]]);
        assert_eq!(facts(&after), facts(&before), "{signal}");
        client.type_secretly("main", &round.to_string());
        let ended = client.call("shell/wait", json!({"command": before["command"]}));
        assert_eq!(ended["output"]["text"], format!("ready\nyes {round}"), "{signal}: {ended}");

        window.answer(&asked, json!({"response": "here"}));
        assert_eq!(other.answer_to(chat)["result"]["response"], "here", "{signal}");
    }
    assert!(sandbox.daemon.program.is_running());
}

fn a_sandbox_that_is_terminated_ends_its_shells(placement: Placement) {
    let mut sandbox = SandboxDaemon::start_in(placement, &[]);
    let mut client = sandbox.client();
    let background = client.run("sleep 1000 &")["backgroundPid"].as_u64().unwrap() as u32;
    sandbox.kill_sandbox(Signal::SIGTERM);
    wait_until("the end of the background process", || !process_exists(background));
    assert_eq!(client.call("shell/list", json!({})), json!({"shells": []}));
}

fn a_sandbox_ends_with_a_killed_daemon_and_leaves_its_shells(placement: Placement) {
    let mut sandbox = SandboxDaemon::start_in(placement, &[]);
    let background = sandbox.client().run("sleep 1000 &")["backgroundPid"].as_u64().unwrap() as u32;
    let host = sandbox.sandbox_pid();
    sandbox.kill_daemon();
    wait_until("the end of the sandbox", || !process_exists(host));
    assert!(process_exists(background), "its shells are the next sandbox's");
    sandbox.kill_and_start_again();
    let shells = sandbox.client().call("shell/list", json!({}));
    assert_eq!(shells["shells"][0]["shell"], "main");
}
