use std::path::PathBuf;

use harness::{
    Placement, Program, SandboxDaemon, binary, command, in_both_placements, kernel_python,
    run_directory,
};
use serde_json::json;

const LANDLOCK: [&str; 2] = ["--require", "landlock"];

in_both_placements!(
    commands_write_only_in_the_workspace,
    cells_are_confined_as_commands_are,
    the_network_is_as_chosen,
    limits_hold_for_commands_and_cells_confined_or_not,
    a_daemon_that_confines_does_not_find_free_shells,
    a_confined_command_cannot_act_through_its_daemon,
);

/// Whether Linux has Landlock. If not, prints that the test is skipped.
fn landlock_works() -> bool {
    let mut doctor = Program::start(command(binary("sandbox")).arg("doctor"));
    doctor.wait();
    let works = doctor.rest().iter().any(|line| line.starts_with("isolation landlock: restricts"));
    if !works {
        eprintln!("skipped: this Linux has no Landlock");
    }
    works
}

/// The files with the tokens of the daemon.
fn connection_files(sandbox: &SandboxDaemon) -> Vec<PathBuf> {
    let mut files = sandbox.leftovers();
    files.retain(|path| path.extension().is_some_and(|it| it == "json"));
    assert!(files.len() >= 2, "one for clients and one for hosts: {files:?}");
    files
}

/// A command has no token: it cannot read a file with one and has no variable with one. Without a token the gate
/// refuses it as anybody else.
fn a_confined_command_cannot_act_through_its_daemon(placement: Placement) {
    if !landlock_works() {
        return;
    }
    let sandbox = SandboxDaemon::start_in(placement, &LANDLOCK);
    let mut client = sandbox.client();
    for file in connection_files(&sandbox) {
        let read = client.run(&format!("cat '{}'", file.display()));
        assert_ne!(read["exitCode"], 0, "{read}");
        assert!(!read.to_string().contains("token\\\""), "{read}");
    }
    let variables = client.run("env | grep ^RUN_BRIDGE_");
    assert_eq!(variables["exitCode"], 1, "{variables}");
    let port = sandbox.daemon.port();
    let head = format!(
        "GET / HTTP/1.1\\r\\nHost: 127.0.0.1:{port}\\r\\nConnection: Upgrade\\r\\nUpgrade: websocket\\r\\n\
         Sec-WebSocket-Version: 13\\r\\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\\r\\n\\r\\n"
    );
    let connect = format!("exec 3<>/dev/tcp/127.0.0.1/{port}; printf '{head}' >&3; head -1 <&3");
    let answer = client.run(&connect);
    assert!(answer["output"]["text"].as_str().unwrap().contains(" 401 "), "{answer}");
}

fn commands_write_only_in_the_workspace(placement: Placement) {
    if !landlock_works() {
        return;
    }
    let mut sandbox = SandboxDaemon::start_in(placement, &LANDLOCK);
    let mut client = sandbox.client();
    let outside = run_directory();
    let write = format!("echo x > {}/new", outside.path().display());
    for round in ["first", "after a kill"] {
        let inside = client.run("echo x > new && f=$(mktemp) && rm $f");
        assert_eq!(inside["exitCode"], 0, "{round}: {inside}");
        assert_ne!(client.run(&write)["exitCode"], 0, "{round}");
        let fresh = client.call("shell/create", json!({}))["shell"].clone();
        let ran = client.call("shell/run", json!({"shell": fresh, "command": write}));
        assert_ne!(ran["exitCode"], 0, "{round}");
        sandbox.kill_and_start_again();
        client = sandbox.client();
    }
    assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 0);
}

fn cells_are_confined_as_commands_are(placement: Placement) {
    if !landlock_works() {
        return;
    }
    let flags = [&LANDLOCK[..], &["--kernel-python", kernel_python()]].concat();
    let sandbox = SandboxDaemon::start_in(placement, &flags);
    let mut client = sandbox.client();
    let outside = run_directory();
    let code = format!(
        "import socket
def attempt(what):
    try: what(); return 'done'
    except OSError as error: return type(error).__name__
print(attempt(lambda: open('inside', 'w')),
      attempt(lambda: open('{}/new', 'w')),
      attempt(lambda: open('{}')),
      attempt(lambda: socket.socket(socket.AF_UNIX)))",
        outside.path().display(),
        connection_files(&sandbox)[0].display(),
    );
    let cell = client.call("cell/run", json!({"code": code}));
    assert_eq!(
        cell["text"].as_str().unwrap().trim(),
        "done PermissionError PermissionError PermissionError"
    );
    assert!(sandbox.workspace().join("inside").exists());
    assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 0);
}

fn the_network_is_as_chosen(placement: Placement) {
    if !landlock_works() {
        return;
    }
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let connect = format!("(exec 3<>/dev/tcp/127.0.0.1/{port})");
    let mut sandbox = SandboxDaemon::start_in(placement, &LANDLOCK);
    for (network, works) in [("all", true), ("none", false), (&*port, true), ("1", false)] {
        let python = ["--kernel-python", kernel_python()];
        let flags = [&LANDLOCK[..], &["--network", network], &python].concat();
        sandbox.kill_and_start_with(&flags);
        let mut client = sandbox.client();
        let ran = client.run(&connect);
        assert_eq!(ran["exitCode"] == 0, works, "{network}: {ran}");
        match network {
            "all" => {
                let cell = client.call("cell/run", json!({"code": "1"}));
                assert_eq!(cell["ended"], "finished", "{cell}");
            }
            _ => {
                let url = format!("http://127.0.0.1:{port}/");
                for (method, params) in
                    [("cell/run", json!({"code": "1"})), ("page/browse", json!({"url": url}))]
                {
                    let error = client.refused(method, params);
                    assert_eq!(error["data"]["reason"], "unavailable", "{error}");
                }
            }
        }
    }
}

fn limits_hold_for_commands_and_cells_confined_or_not(placement: Placement) {
    let mut limits = [
        ["--limit-cpu", "1000"],
        ["--limit-memory", "3000"],
        ["--limit-file-size", "1"],
        ["--kernel-python", kernel_python()],
    ]
    .concat();
    // Refused for root.
    let is_root = rustix::process::getuid().is_root();
    if !is_root {
        limits.extend(["--limit-processes", "4000"]);
    }
    for walls in [&LANDLOCK[..], &[]] {
        if !walls.is_empty() && !landlock_works() {
            continue;
        }
        let sandbox = SandboxDaemon::start_in(placement, &[walls, &limits].concat());
        let mut client = sandbox.client();
        let told = client.run("ulimit -t; ulimit -v; ulimit -f");
        assert_eq!(told["output"]["text"], "1000\n3072000\n1024");
        if !is_root {
            assert_eq!(client.run("ulimit -u")["output"]["text"], "4000");
        }
        let ran = client.run("head -c 2M /dev/zero > big");
        assert_eq!(ran["exitCode"], 128 + 25, "SIGXFSZ: {ran}");
        assert_eq!(sandbox.workspace().join("big").metadata().unwrap().len(), 1 << 20);
        let code = "import resource\nresource.getrlimit(resource.RLIMIT_FSIZE)[0]";
        let cell = client.call("cell/run", json!({"code": code}));
        assert_eq!(cell["text"], "1048576", "{cell}");
    }
}

fn a_daemon_that_confines_does_not_find_free_shells(placement: Placement) {
    if !landlock_works() {
        return;
    }
    let mut sandbox = SandboxDaemon::start_in(placement, &[]);
    sandbox.client().run("free=yes");
    sandbox.kill_and_start_with(&LANDLOCK);
    let mut client = sandbox.client();
    assert_eq!(client.call("shell/list", json!({})), json!({"shells": []}));
    assert_eq!(client.run("echo \"<$free>\"")["output"]["text"], "<>");
}

#[test]
fn a_sandbox_that_cannot_be_confined_is_not_started() {
    let (runtime, workspace) = (run_directory(), run_directory());
    let start = |flags: &[&str], temporary: &std::path::Path| {
        let mut daemon = command(binary("bridge-daemon"));
        daemon.env("XDG_RUNTIME_DIR", runtime.path()).env("TMPDIR", temporary);
        let mut program = Program::start(daemon.arg("serve").args(flags));
        (program.wait().code(), program.stderr())
    };
    let workspace = workspace.path().to_str().unwrap();
    for (flags, code, word) in [
        (&["--require", "landlock"][..], 2, "--sandbox"),
        (&["--sandbox", workspace, "--require", "docker"], 125, "none or landlock"),
        (&["--network", "none"], 2, "--sandbox"),
        (&["--limit-memory", "9"], 2, "--sandbox"),
        (&["--sandbox", workspace, "--network", "some"], 125, "listen:"),
        (&["--sandbox", workspace, "--limit-file-size", "0"], 125, "--limit-file-size"),
        (&["--sandbox", workspace, "--network", "none"], 125, "--require landlock"),
    ] {
        let (ended, said) = start(flags, runtime.path());
        assert_eq!(ended, Some(code), "{said}");
        assert!(said.contains(word), "{said}");
    }
    // The state directory is where commands may write, so they could change their own policy.
    if landlock_works() {
        let flags = ["--sandbox", workspace, "--require", "landlock"];
        let (ended, said) = start(&flags, runtime.path());
        assert_eq!(ended, Some(125), "{said}");
        assert!(said.contains("choose another"), "{said}");
        let left = std::fs::read_dir(runtime.path().join("run-bridge")).unwrap();
        assert_eq!(left.count(), 0, "nothing is left behind");
    }
}
