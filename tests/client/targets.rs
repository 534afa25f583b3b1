use harness::{Daemon, SandboxDaemon};
use serde_json::{Value, json};

use crate::relays::scripted;
use crate::say;

/// The parameters of each request that a scripted host has logged.
fn received(log: &std::path::Path) -> Vec<Value> {
    let log = std::fs::read_to_string(log).unwrap();
    let lines = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.filter(|line| line["event"] == "request").map(|line| line["params"].clone()).collect()
}

#[test]
fn the_flags_become_runtime_id_and_path_in_the_parameters() {
    let daemon = Daemon::start();
    let rules = json!({"runtimeId": "w1", "rules": [
        {"method": "cell/restart", "result": {}},
        {"method": "page/browse", "result": {"url": "file:///w/a.html", "text": ""}},
        {"method": "vscode/showMessage", "result": {}},
    ]});
    let (_host, log) = scripted(&daemon, &rules);
    let real = daemon.runtime_directory().canonicalize().unwrap();
    let here = real.to_str().unwrap();
    let file = format!("{here}/a.html");
    for (arguments, params) in [
        (&["cell", "restart"][..], json!({"shell": "main"})),
        (&["cell", "--runtime", "w1", "restart"], json!({"shell": "main", "runtimeId": "w1"})),
        (&["cell", "restart", "--in", here], json!({"shell": "main", "path": here})),
        (&["page", "browse", "--in", here, "a.html"], json!({"url": file, "path": here})),
        (
            &["page", "browse", "--runtime", "w1", "http://x/"],
            json!({"url": "http://x/", "runtimeId": "w1"}),
        ),
        (
            &["show-message", "hi", "--runtime", "w1"],
            json!({"message": "hi", "level": "info", "runtimeId": "w1"}),
        ),
    ] {
        let said = say(&daemon, arguments);
        assert_eq!(said.code, Some(0), "{arguments:?}: {}", said.stderr);
        assert_eq!(received(&log).pop(), Some(params), "{arguments:?}");
    }
    let said = say(&daemon, &["cell", "restart", "--runtime", "none"]);
    assert_eq!(said.code, Some(7), "{}", said.stderr);
}

#[test]
fn every_request_of_a_followed_command_goes_to_the_same_runtime() {
    let sandbox = SandboxDaemon::start();
    let workspace = sandbox.workspace();
    let here = workspace.to_str().unwrap();
    for arguments in
        [&["shell", "run", "--in", here, "echo one"][..], &["act", "--in", here, "run", "echo one"]]
    {
        let said = say(&sandbox.daemon, arguments);
        assert_eq!(
            (said.code, &said.lines[..]),
            (Some(0), &["one".to_owned()][..]),
            "{}",
            said.stderr
        );
    }
}
