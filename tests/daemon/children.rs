use std::path::Path;

use harness::{Daemon, Installation, Program, command, process_exists, wait_until};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;
use tempfile::TempDir;

/// A daemon with the sandboxes `outer` and, in a folder of it, `inner`.
struct Two {
    installation: Installation,
    daemon: Daemon,
    workspace: TempDir,
}

impl Two {
    fn start() -> Self {
        let installation = Installation::new();
        let workspace = harness::run_directory();
        let inner = workspace.path().join("inner");
        std::fs::create_dir(&inner).unwrap();
        for (id, folder) in [("outer", workspace.path()), ("inner", &*inner)] {
            let served = [("shell/run", json!({"by": id})), ("shell/wait", json!("silent"))];
            installation.serve(id, Some(folder), false, &served);
        }
        let named = |id: &str, folder: &Path| format!("{id}={}", folder.display());
        let (outer, inner) = (named("outer", workspace.path()), named("inner", &inner));
        let daemon = installation.start(&["--sandbox", &outer, "--sandbox", &inner]);
        Self { installation, daemon, workspace }
    }

    fn path(&self, below: &str) -> String {
        self.workspace.path().join(below).to_str().unwrap().to_owned()
    }

    fn kill(&self, id: &str) -> u32 {
        let pid = self.installation.pid(id);
        kill(Pid::from_raw(pid.cast_signed()), Signal::SIGKILL).unwrap();
        pid
    }
}

#[test]
fn a_path_or_an_id_chooses_among_sandboxes_and_nothing_is_guessed() {
    let two = Two::start();
    let mut client = two.daemon.client();
    for (params, id) in [
        (json!({"runtimeId": "outer"}), "outer"),
        (json!({"runtimeId": "inner"}), "inner"),
        (json!({"path": two.path("x")}), "outer"),
        (json!({"path": two.path("inner")}), "inner"),
        (json!({"path": two.path("inner/x")}), "inner"),
        (json!({"path": two.path("innermost")}), "outer"),
    ] {
        assert_eq!(client.call("shell/run", params.clone())["by"], id, "{params}");
    }
    let refused = client.refused("shell/run", json!({}));
    assert_eq!(refused["data"]["kind"], "AmbiguousRuntime");
    assert_eq!(refused["data"]["runtimes"], json!(["outer", "inner"]));
    let message = refused["message"].as_str().unwrap();
    let candidates =
        format!("outer ({}), inner ({})", two.path("").trim_end_matches('/'), two.path("inner"));
    assert!(message.contains(&candidates) && message.contains("params.runtimeId"), "{message}");
    let outside = client.refused("shell/run", json!({"path": "/nowhere"}));
    assert_eq!(outside["data"]["kind"], "HostUnavailable");
    assert!(outside["message"].as_str().unwrap().contains(&candidates), "{outside}");
    client.call("bridge/hello", json!({"protocol": 1, "path": two.path("inner/deep")}));
    assert_eq!(client.call("shell/run", json!({}))["by"], "inner", "the connection has chosen");
}

#[test]
fn a_killed_child_fails_its_calls_at_once_and_is_restarted() {
    let two = Two::start();
    let (mut client, mut other) = (two.daemon.client(), two.daemon.client());
    let before = two.installation.pid("inner");
    let waiting = client.send_request("shell/wait", json!({"runtimeId": "inner"}));
    let elsewhere = other.send_request("shell/wait", json!({"runtimeId": "outer"}));
    wait_until("both to work", || {
        two.daemon.status()["runtimes"]
            .as_array()
            .unwrap()
            .iter()
            .all(|runtime| runtime["inFlight"] == 1)
    });
    assert_eq!(two.kill("inner"), before);
    let gone = client.answer_to(waiting);
    let data = json!({"kind": "HostGone", "retryable": false, "mayHaveExecuted": true});
    assert_eq!(gone["error"]["data"], data);
    // This call waits for the restart.
    assert_eq!(client.call("shell/run", json!({"runtimeId": "inner"}))["by"], "inner");
    assert_eq!(client.call("shell/run", json!({"path": two.path("inner")}))["by"], "inner");
    assert_ne!(two.installation.pid("inner"), before);
    // The other sandbox and its callers are not affected.
    other
        .send(&json!({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": elsewhere}}));
    assert_eq!(other.answer_to(elsewhere)["error"]["data"]["kind"], "RequestCancelled");
    // The same again, several times in a row.
    for _ in 0..3 {
        let waiting = client.send_request("shell/wait", json!({"runtimeId": "outer"}));
        wait_until("it to work", || two.daemon.status()["inFlight"] == 1);
        two.kill("outer");
        assert_eq!(client.answer_to(waiting)["error"]["data"]["kind"], "HostGone");
        assert_eq!(client.call("shell/run", json!({"runtimeId": "outer"}))["by"], "outer");
    }
}

#[test]
fn children_inherit_one_connection_and_the_limits_of_the_user() {
    let two = Two::start();
    let open = two.installation.read("outer.descriptors");
    let sockets = open.lines().filter(|line| line.contains("socket:")).count();
    assert_eq!(sockets, 1, "{open}");
    let (soft, _) =
        nix::sys::resource::getrlimit(nix::sys::resource::Resource::RLIMIT_NOFILE).unwrap();
    assert_eq!(two.installation.read("outer.limit").trim(), soft.to_string());
    let given = two.installation.read("outer.arguments");
    let session = two.daemon.text("session");
    for argument in
        ["host --id=outer --workspace=", &format!(" --session={session} "), " --connection-fd "]
    {
        assert!(given.contains(argument), "{given}");
    }
    let files = format!(" --runtime-directory={} ", two.daemon.files().display());
    assert!(given.contains(&files), "{given}");
    for secret in [two.daemon.text("token"), two.daemon.text("hostToken")] {
        assert!(!given.contains(secret));
    }
}

#[test]
fn children_end_with_the_daemon_whether_it_ends_or_is_killed() {
    for by_signal in [false, true] {
        let mut two = Two::start();
        let pids = ["outer", "inner"].map(|id| two.installation.pid(id));
        match by_signal {
            true => two.daemon.program.signal(Signal::SIGKILL),
            false => two.daemon.program.close_stdin(),
        }
        let status = two.daemon.program.wait();
        assert_eq!(status.success(), !by_signal);
        for pid in pids {
            match by_signal {
                true => wait_until("the end of a child", || !process_exists(pid)),
                false => assert!(!process_exists(pid), "the daemon waits for its children"),
            }
        }
    }
}

#[test]
fn a_child_that_cannot_start_keeps_the_daemon_from_starting() {
    let installation = Installation::new();
    let runtime = harness::run_directory();
    installation.serve("good", Some(runtime.path()), false, &[("shell/run", json!({}))]);
    let good = format!("good={}", runtime.path().display());
    let start = |flags: &[&str]| {
        let mut serve = command(installation.path("bridge-daemon"));
        serve.env("XDG_RUNTIME_DIR", runtime.path()).arg("serve").args(flags);
        let mut program = Program::start(serve);
        (program.wait().code(), program.stderr())
    };
    let (code, message) = start(&["--sandbox", &good, "--sandbox", "bad=/nonexistent"]);
    assert_eq!(code, Some(125));
    assert!(message.contains("/nonexistent is no directory"), "{message}");
    assert!(message.contains("the host bad did not start"), "{message}");
    assert!(!process_exists(installation.pid("good")), "nothing is left");
    let (code, message) = start(&["--sandbox", &good, "--sandbox", &good]);
    assert_eq!(code, Some(125));
    assert!(message.contains("the name good is taken"), "{message}");
}

#[test]
fn no_other_host_can_be_a_child_or_serve_its_tools() {
    let two = Two::start();
    let mut window = harness::Socket::connect(two.daemon.port(), two.daemon.text("hostToken"));
    for params in [
        json!({"runtimeId": "outer", "methods": ["vscode/chat"]}),
        json!({"runtimeId": "openhands", "methods": ["vscode/chat"]}),
        json!({"runtimeId": "terminal", "methods": ["vscode/chat"]}),
        json!({"runtimeId": "w", "methods": ["vscode/chat", "shell/run"]}),
        json!({"runtimeId": "w", "methods": ["action/execute"], "edge": true}),
    ] {
        let refused = window.refused("runtime/register", params.clone());
        assert_eq!(refused["data"]["kind"], "Forbidden", "{params}");
    }
    window.register("w");
    let refused = window.refused("runtime/update", json!({"methods": ["file/read"]}));
    assert_eq!(refused["data"]["tools"], json!(["file/read"]));
    two.daemon.client().call("shell/run", json!({"runtimeId": "outer"}));
}

#[test]
fn an_edge_beside_the_daemon_is_started_with_the_sandboxes_and_takes_its_methods() {
    let installation = Installation::new();
    let workspace = harness::run_directory();
    installation.serve("sandbox", Some(workspace.path()), false, &[("shell/run", json!({}))]);
    let flags = ["--sandbox", workspace.path().to_str().unwrap()];
    let daemon = installation.start(&flags);
    let refused = daemon.client().refused("action/execute", json!({}));
    assert_eq!(refused["data"]["kind"], "MethodNotFound");
    assert!(refused["message"].as_str().unwrap().contains("openhands-edge"), "{refused}");
    drop(daemon);

    installation.install("openhands-edge");
    installation.serve(
        "openhands-edge",
        None,
        true,
        &[("action/execute", json!({"observation": "x"}))],
    );
    let daemon = installation.start(&flags);
    let mut client = daemon.client();
    for params in [json!({}), json!({"runtimeId": "sandbox"}), json!({"path": "/nowhere"})] {
        assert_eq!(client.call("action/execute", params)["observation"], "x");
    }
    let edge = client.call("runtime/get", json!({"runtimeId": "openhands"}));
    assert_eq!(edge["edge"], true);
    let given = installation.read("openhands-edge.arguments");
    assert!(
        given.starts_with("host --connection-fd ") && given.contains(" --client-fd "),
        "{given}"
    );
    let open = installation.read("openhands-edge.descriptors");
    assert_eq!(open.lines().filter(|line| line.contains("socket:")).count(), 2, "{open}");
    assert_eq!(daemon.status()["clients"], 3, "the edge's own, ours, and the one that asks");
}
