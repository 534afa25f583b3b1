use harness::{Daemon, SandboxDaemon};
use serde_json::{Value, json};

use crate::relays::scripted_tools;
use crate::run;

/// The parameters of each request that a scripted host has logged.
fn received(log: &std::path::Path) -> Vec<Value> {
    let log = std::fs::read_to_string(log).unwrap();
    let lines = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.filter(|line| line["event"] == "request").map(|line| line["params"].clone()).collect()
}

#[test]
fn the_flags_become_runtime_id_and_path_in_the_parameters() {
    let daemon = Daemon::start();
    let rules = json!({"runtimeId": "w1", "workspaceFolders": ["/"], "rules": [
        {"method": "shell/list", "result": {"shells": []}},
        {"method": "shell/create", "result": {
            "shell": "s", "state": "idle", "cwd": "/w", "pid": 1, "columns": 1, "rows": 1, "restarts": 0, "logEnd": 0,
        }},
        {"method": "file/read", "result": {"kind": "text", "text": "", "encoding": "UTF-8"}},
        {"method": "file/move", "result": {}},
        {"method": "cell/restart", "result": {}},
        {"method": "page/browse", "result": {"url": "file:///w/a.html", "text": ""}},
        {"method": "vscode/showMessage", "result": {}},
    ]});
    let (_host, log) = scripted_tools(&daemon, &rules);
    let real = daemon.runtime_directory().canonicalize().unwrap();
    let here = real.to_str().unwrap();
    let file = format!("{here}/a");
    for (arguments, params) in [
        (&["shell", "list"][..], json!({})),
        (&["shell", "--runtime", "w1", "list"], json!({"runtimeId": "w1"})),
        (&["shell", "list", "--in", here], json!({"path": here})),
        (&["shell", "create", "--in", here, "--cwd", "a"], json!({"path": here, "cwd": file})),
        (&["file", "read", "a"], json!({"path": "a"})),
        (&["file", "read", "--in", here, "a"], json!({"path": file})),
        (
            &["file", "read", "--in", here, "--runtime", "w1", "/b"],
            json!({"path": "/b", "runtimeId": "w1"}),
        ),
        (&["file", "mv", "--in", here, "a", "/b"], json!({"from": file, "to": "/b", "path": file})),
        (&["file", "mv", "/a", "b"], json!({"from": "/a", "to": "b", "path": "/a"})),
        (&["cell", "restart", "--in", here], json!({"shell": "main", "path": here})),
        (&["page", "browse", "--in", here, "a"], json!({"url": file, "path": here})),
        (
            &["page", "browse", "--runtime", "w1", "http://x/"],
            json!({"url": "http://x/", "runtimeId": "w1"}),
        ),
        (
            &["show-message", "hi", "--runtime", "w1"],
            json!({"message": "hi", "level": "info", "runtimeId": "w1"}),
        ),
    ] {
        let output = run(&daemon, arguments);
        assert_eq!(output.code, Some(0), "{arguments:?}: {}", output.stderr);
        assert_eq!(received(&log).pop(), Some(params), "{arguments:?}");
    }
    let output = run(&daemon, &["shell", "list", "--runtime", "none"]);
    assert_eq!(output.code, Some(7), "{}", output.stderr);
}

#[test]
fn every_request_of_a_followed_command_goes_to_the_same_runtime() {
    let sandbox = SandboxDaemon::start();
    let workspace = sandbox.workspace();
    let here = workspace.to_str().unwrap();
    for arguments in
        [&["shell", "run", "--in", here, "echo one"][..], &["act", "--in", here, "run", "echo one"]]
    {
        let output = run(&sandbox.daemon, arguments);
        assert_eq!(
            (output.code, &output.lines[..]),
            (Some(0), &["one".to_owned()][..]),
            "{}",
            output.stderr
        );
    }
}
