//! Tests of the launcher in `examples/openhands`, with the command lines by which OpenHands starts
//! its server.

use std::{
    io::{BufRead as _, BufReader, Read as _},
    os::unix::fs::symlink,
    path::Path,
    process::{Child, Command, Stdio},
};

use crate::server::signal;

const LAUNCHER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/openhands/python");
/// The arguments that the local runtime passes to its interpreter.
const LOCAL: &str = "-u -m openhands.runtime.action_execution_server 0 --working-dir WORK --plugins agent_skills \
    jupyter vscode --username USER --user-id 1000 --no-enable-browser";
/// The arguments that the Docker runtime passes to `micromamba`.
const DOCKER: &str = "run -n openhands poetry run python -u -m openhands.runtime.action_execution_server 0 \
    --working-dir WORK --plugins agent_skills jupyter vscode --username openhands --user-id 1000 \
    --browsergym-eval-env some/env";

/// Puts the launcher in the place of a program, in this directory.
fn take_place(home: &Path, name: &str) {
    // Done by another process: a file that this process has open for writing cannot be executed.
    assert!(Command::new("cp").arg(LAUNCHER).arg(home.join(name)).status().unwrap().success());
    symlink("/bin/sh", home.join(format!("{name}.real"))).unwrap();
}

fn launch(home: &Path, name: &str, line: &str, flags: &str) -> Child {
    let work = home.join("work");
    let line = line.replace("WORK", work.to_str().unwrap()).replace("USER", "somebody");
    let programs = Path::new(env!("CARGO_BIN_EXE_openhands-edge")).parent().unwrap();
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    let mut command = Command::new(home.join(name));
    command.args(line.split_whitespace()).env("PATH", path).env("SANDBOX_FLAGS", flags);
    // The tests must not create a user on this machine.
    command.env("SU_TO_USER", "false").env("HOME", home).env("TMPDIR", home);
    for name in
        ["SESSION_API_KEY", "RUNTIME_USERNAME", "VSCODE_PORT", "SANDBOX_HOST", "XDG_RUNTIME_DIR"]
    {
        command.env_remove(name);
    }
    command.stderr(Stdio::piped()).spawn().unwrap()
}

fn check_alive(name: &str, line: &str, flags: &str, host: &str) {
    let home = tempfile::Builder::new().prefix("oh").tempdir_in("/tmp").unwrap();
    take_place(home.path(), name);
    let mut child = launch(home.path(), name, line, flags);
    let mut errors = BufReader::new(child.stderr.take().unwrap());
    let mut printed = String::new();
    while !printed.contains("http://") && errors.read_line(&mut printed).unwrap() > 0 {}
    let (_, url) = printed.split_once("http://").unwrap_or_else(|| panic!("{printed}"));
    let (bound, port) = url.trim().rsplit_once(':').unwrap();
    assert_eq!(bound, host, "{printed}");
    let url = format!("http://127.0.0.1:{port}/alive");
    let reply = ureq::get(url).call().unwrap().body_mut().read_to_string().unwrap();
    assert!(reply.contains("status"), "{reply}");
    signal(child.id(), "TERM");
    errors.read_to_string(&mut printed).unwrap();
    assert!(child.wait().unwrap().success(), "{printed}");
    assert!(home.path().join("work").is_dir());
}

#[test]
fn the_local_runtime_gets_our_server() {
    check_alive("python", LOCAL, "", "127.0.0.1");
}

#[test]
fn the_docker_runtime_gets_our_server() {
    check_alive("micromamba", DOCKER, "--host 0.0.0.0 --without-key", "0.0.0.0");
}

#[test]
fn other_command_lines_run_the_original_program() {
    let home = tempfile::tempdir().unwrap();
    take_place(home.path(), "python");
    let place = home.path().join("python");
    for arguments in [
        &["-c", "printf '%s,' \"$0\" \"$@\"", "a b", "", "*"][..],
        &["-c", "printf '%s,' \"$0\" \"$@\"", "-m", "openhands.runtime.action_execution_server"],
    ] {
        let output = Command::new(&place).args(arguments).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        assert_eq!(String::from_utf8(output.stdout).unwrap(), arguments[2..].join(",") + ",");
    }
    // Python programs have several names.
    symlink("python", home.path().join("python3")).unwrap();
    let output = Command::new(home.path().join("python3")).args(["-c", "echo it"]).output();
    assert_eq!(output.unwrap().stdout, b"it\n");
    // Python finds its installation by this path, and starts other programs from it.
    let output = Command::new(&place).args(["-c", "echo $0"]).output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap().trim_end(), place.to_str().unwrap());
}
