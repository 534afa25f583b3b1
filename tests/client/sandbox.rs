use std::os::unix::fs::{DirBuilderExt as _, chown};

use harness::{Daemon, Program, SandboxDaemon, command, run_directory, wait_until};
use nix::sys::signal::Signal;
use nix::unistd::geteuid;
use serde_json::{Value, json};

use crate::{Said, finish, say, start};

fn sandbox(sandbox: &SandboxDaemon, arguments: &[&str]) -> Said {
    say(&sandbox.daemon, &[&["sandbox"], arguments].concat())
}

#[track_caller]
fn check(daemon: &SandboxDaemon, arguments: &[&str], code: i32, lines: &[&str]) {
    let said = sandbox(daemon, arguments);
    assert_eq!(said.code, Some(code), "{arguments:?}: {}", said.stderr);
    assert_eq!(said.lines, lines, "{arguments:?}");
}

#[test]
fn run_shows_the_output_and_ends_with_the_exit_code() {
    let daemon = SandboxDaemon::start();
    check(&daemon, &["run", "mkdir a; cd a; echo one; echo two >&2; (exit 7)"], 7, &["one", "two"]);
    let below = daemon.workspace().join("a");
    check(&daemon, &["run", "pwd"], 0, &[below.to_str().unwrap()]);
    check(
        &daemon,
        &["run", "--shell", "other", "basename $PWD; printf 'no end'"],
        0,
        &[daemon.workspace().file_name().unwrap().to_str().unwrap(), "no end"],
    );
    let mut program = start(&daemon.daemon, &["sandbox", "run", "-"]);
    program.write("cat <<'E'\n$HOME \"x\"\nE\n");
    program.close_stdin();
    assert_eq!(finish(program).lines, ["$HOME \"x\""]);
    let said = sandbox(&daemon, &["run", "--json", "exit 3"]);
    let result: Value = serde_json::from_str(&said.lines[0]).unwrap();
    assert_eq!(
        json!([said.code, result["exitCode"], result["ended"]]),
        json!([3, 3, "shellExited"])
    );
}

#[test]
fn long_output_is_printed_completely() {
    let daemon = SandboxDaemon::start();
    let said = sandbox(&daemon, &["run", "seq 1 300000"]);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    assert_eq!(said.lines.len(), 300_000);
    assert!(said.lines.iter().zip(1..).all(|(line, n)| *line == n.to_string()), "in order");
}

#[test]
fn a_command_that_keeps_running_is_reported_and_can_be_awaited_and_read_and_get_input() {
    let daemon = SandboxDaemon::start();
    let ask = "echo ready; read -s x; echo got $x";
    let said = sandbox(&daemon, &["run", "--limit", "0.3", ask]);
    assert_eq!(said.code, Some(124));
    assert!(said.stderr.contains("the command goes on"), "{}", said.stderr);
    // The terminal would echo input that is typed before the command waits for it.
    wait_until("the command to wait for input", || {
        let said = sandbox(&daemon, &["wait", "--return-on-input", "--limit", "0.3"]);
        assert_eq!(said.code, Some(124), "{}", said.stderr);
        said.stderr.contains("seems to wait for input")
    });
    assert!(sandbox(&daemon, &["shells"]).lines[0].contains("running 1"));
    check(&daemon, &["input", "it"], 0, &[]);
    check(&daemon, &["wait"], 0, &["ready", "got it"]);
    check(&daemon, &["wait", "--command", "1"], 0, &["ready", "got it"]);
    let said = sandbox(&daemon, &["wait", "--command", "2"]);
    assert_eq!(said.code, Some(1));
    assert!(said.stderr.contains("is 1, not 2"), "{}", said.stderr);
    check(&daemon, &["output"], 0, &["ready", "got it"]);
    let said = sandbox(&daemon, &["output", "--bytes", "9"]);
    assert_eq!(said.lines, ["ready"]);
    let words = said.stderr.strip_prefix("(there is more: read on with --from ").unwrap();
    let from = words.strip_suffix(")\n").unwrap();
    let said = sandbox(&daemon, &["output", "--from", from]);
    assert_eq!((&said.lines[0][..], &*said.stderr), ("got it", ""));
    let raw = sandbox(&daemon, &["--json", "output", "--raw"]).lines;
    let raw: Value = serde_json::from_str(&raw[0]).unwrap();
    assert_eq!(raw["base64"], "cmVhZHkNCmdvdCBpdA0K", "every byte: {raw}");
}

#[test]
fn ctrl_c_interrupts_the_command_and_a_second_one_ends_the_wait() {
    let daemon = SandboxDaemon::start();
    // The program itself prints `ready`: a key that comes while bash is starting it would reach only bash.
    let sleeper = "sh -c 'echo ready; exec sleep 1000'";
    let program = start(&daemon.daemon, &["sandbox", "run", sleeper]);
    program.line_with("ready");
    program.signal(Signal::SIGINT);
    assert_eq!(finish(program).code, Some(130), "the code of the interrupted command");
    let stubborn = "trap 'echo no' INT; echo ready; while true; do read x; done";
    let program = start(&daemon.daemon, &["sandbox", "run", stubborn]);
    program.line_with("ready");
    program.signal(Signal::SIGINT);
    program.line_with("no");
    program.signal(Signal::SIGINT);
    let said = finish(program);
    assert_eq!(said.code, Some(130));
    assert!(said.stderr.contains("the command goes on"), "{}", said.stderr);
    check(&daemon, &["--json", "signal", "sigkill"], 0, &["{}"]);
}

#[test]
fn shells_are_created_listed_resized_and_closed() {
    let daemon = SandboxDaemon::start();
    check(&daemon, &["create", "s1", "--env", "A=b c", "--columns", "90"], 0, &["s1"]);
    check(&daemon, &["run", "--shell", "s1", "echo $A; stty size"], 0, &["b c", "48 90"]);
    check(&daemon, &["resize", "--shell", "s1", "70", "20"], 0, &[]);
    check(&daemon, &["run", "--shell", "s1", "stty size"], 0, &["20 70"]);
    let shells = sandbox(&daemon, &["shells"]).lines;
    assert!(shells.len() == 1 && shells[0].starts_with("s1  "), "{shells:?}");
    let attach = sandbox(&daemon, &["attach", "s1", "--read-only"]).lines;
    assert!(
        attach[0].contains("attach-session -r"),
        "without a terminal it is printed: {attach:?}"
    );
    check(&daemon, &["close", "s1"], 0, &[]);
    let said = sandbox(&daemon, &["close", "s1"]);
    assert_eq!(said.code, Some(1));
    assert!(said.stderr.contains("there is no shell s1"), "{}", said.stderr);
}

#[test]
fn file_subcommands_do_as_they_say() {
    let daemon = SandboxDaemon::start();
    let mut program = start(&daemon.daemon, &["sandbox", "write", "src/a.py", "-"]);
    program.write("x = 1\ny = 2\nz = 3\n");
    assert_eq!(finish(program).code, Some(0));
    check(&daemon, &["read", "src/a.py", "--lines", "2:"], 0, &["y = 2", "z = 3"]);
    check(&daemon, &["read", "src/a.py", "--tail", "1"], 0, &["z = 3"]);
    let edited = sandbox(&daemon, &["edit", "src/a.py", "--old", "y = 2", "--new", "y = 4"]).lines;
    assert!(edited.contains(&"+y = 4".to_owned()), "{edited:?}");
    check(&daemon, &["grep", "y =", "--files", "**/*.py"], 0, &["src/a.py:2:y = 4"]);
    sandbox(&daemon, &["undo", "src/a.py"]);
    check(&daemon, &["read", "src/a.py", "--lines", "2:2"], 0, &["y = 2"]);
    check(
        &daemon,
        &["edit", "b", "--new", "new"],
        0,
        &["--- b", "+++ b", "@@ -0,0 +1 @@", "+new", "\\ No newline at end of file"],
    );
    check(&daemon, &["cp", "src", "copy"], 0, &[]);
    check(&daemon, &["mv", "b", "copy/b"], 0, &[]);
    check(&daemon, &["mkdir", "empty"], 0, &[]);
    check(&daemon, &["ls"], 0, &["copy/", "empty/", "src/"]);
    check(&daemon, &["ls", "--nested", "copy"], 0, &["a.py", "b"]);
    check(&daemon, &["glob", "**/a.py"], 0, &["copy/a.py", "src/a.py"]);
    check(&daemon, &["rmdir", "empty"], 0, &[]);
    check(&daemon, &["rm", "-r", "copy"], 0, &[]);
    let stat: Value = serde_json::from_str(&sandbox(&daemon, &["stat", "src"]).lines[0]).unwrap();
    assert_eq!(stat["kind"], "directory");
    std::fs::write(daemon.workspace().join("blob"), b"\x00\x01\n").unwrap();
    let program = start(&daemon.daemon, &["sandbox", "read", "blob"]);
    assert_eq!(finish(program).lines, ["\u{0}\u{1}"]);
    let mut program = start(&daemon.daemon, &["sandbox", "write", "binary", "-"]);
    program.write(b"\x89PNG\r\n\x1a\n\xff\0");
    assert_eq!(finish(program).code, Some(0));
    let binary = std::fs::read(daemon.workspace().join("binary")).unwrap();
    assert_eq!(binary, b"\x89PNG\r\n\x1a\n\xff\0");
    let said = sandbox(&daemon, &["--json", "read", "binary"]);
    let media: Value = serde_json::from_str(&said.lines[0]).unwrap();
    let expected = json!({"kind": "media", "mediaType": "image/png", "base64": "iVBORw0KGgr/AA=="});
    assert_eq!(media, expected);
    std::fs::write(daemon.workspace().join("big"), "x".repeat(11 << 20)).unwrap();
    assert!(sandbox(&daemon, &["read", "big"]).stderr.contains("big"));
    let said = sandbox(&daemon, &["read", "big", "--limit-bytes", "12000000"]);
    assert_eq!(said.lines[0].len(), 11 << 20, "{}", said.stderr);
    for (arguments, code, words) in [
        (&["read", "../secret"][..], 1, "leads out of the workspace"),
        (&["read", "missing"], 1, "does not exist"),
        (&["rm", "src"], 1, "is a directory"),
        (&["read", "src/a.py", "--lines", "x"], 2, "FIRST:LAST"),
    ] {
        let said = sandbox(&daemon, arguments);
        assert_eq!(said.code, Some(code), "{arguments:?}");
        assert!(said.stderr.contains(words), "{}", said.stderr);
    }
}

#[test]
fn unreadable_files_and_directories_are_counted() {
    if !geteuid().is_root() {
        eprintln!("skipped: only root can make files of others");
        return;
    }
    let daemon = SandboxDaemon::start_without_privileges();
    std::fs::write(daemon.workspace().join("a"), "x").unwrap();
    let closed = daemon.workspace().join("closed");
    std::fs::DirBuilder::new().mode(0o700).create(&closed).unwrap();
    chown(&closed, Some(65534), Some(65534)).unwrap();
    for (arguments, lines) in [
        (&["ls", "--nested"][..], &["a", "closed/"][..]),
        (&["glob", "*"], &["a"]),
        (&["grep", "x"], &["a:1:x"]),
    ] {
        let said = sandbox(&daemon, arguments);
        assert_eq!(said.lines, lines, "{}", said.stderr);
        assert_eq!(
            said.stderr, "(files or directories that could not be read: 1)\n",
            "{arguments:?}"
        );
    }
    let said = sandbox(&daemon, &["ls", "--limit", "1"]);
    assert_eq!(said.lines.len(), 1);
    assert!(said.stderr.contains("there are more: raise --limit"), "{}", said.stderr);
}

#[test]
fn a_change_of_the_owner_of_a_file_is_reported() {
    if !geteuid().is_root() {
        eprintln!("skipped: only root can make files of others");
        return;
    }
    let daemon = SandboxDaemon::start_without_privileges();
    let file = daemon.workspace().join("a");
    for path in [&file, &daemon.workspace().join("b")] {
        std::fs::write(path, "old").unwrap();
    }
    for arguments in [
        &["write", "a", "x"][..],
        &["edit", "a", "--old", "x", "--new", "y"],
        &["undo", "a"],
        &["cp", "--replace", "b", "a"],
    ] {
        chown(&file, Some(65534), Some(65534)).unwrap();
        let said = sandbox(&daemon, arguments);
        assert_eq!(said.code, Some(0), "{}", said.stderr);
        assert!(said.stderr.contains("belongs to the daemon's user now"), "{arguments:?}");
    }
    assert_eq!(
        sandbox(&daemon, &["write", "a", "x"]).stderr,
        "",
        "the file already belongs to the daemon's user"
    );
}

#[test]
fn a_person_attaches_to_a_shell() {
    let daemon = SandboxDaemon::start();
    sandbox(&daemon, &["run", "echo seen before"]);
    let attach = sandbox(&daemon, &["attach"]).lines.remove(0);
    let directory = run_directory();
    let line = format!("TERM=xterm {attach}");
    let mut terminal = Program::on_a_terminal(directory.path(), &line);
    terminal.line_with("seen before");
    terminal.write("exec 9>by-hand; echo typed >&9\r");
    wait_until("what was typed to be carried out", || {
        std::fs::read_to_string(daemon.workspace().join("by-hand"))
            .is_ok_and(|text| text == "typed\n")
    });
    check(&daemon, &["close"], 0, &[]);
    terminal.wait();
}

/// `attach` runs on a terminal of its own here, instead of printing the command line.
#[test]
fn on_a_terminal_attach_opens_the_shell() {
    let daemon = SandboxDaemon::start();
    sandbox(&daemon, &["run", "echo seen before"]);
    let client = daemon.daemon.run_command("bridge-client");
    let attach = format!("{} sandbox attach", client.get_program().display());
    let mut script = command("script");
    script.envs(client.get_envs().filter_map(|(name, value)| Some((name, value?))));
    script.args(["-qfc", &attach, "/dev/null"]).env("TERM", "xterm").env("TMUX", "/of/another,1,0");
    let mut terminal = Program::start(&mut script);
    terminal.line_with("seen before");
    terminal.write("exec 9>by-hand; echo typed >&9\r");
    wait_until("what was typed to be carried out", || {
        std::fs::read_to_string(daemon.workspace().join("by-hand"))
            .is_ok_and(|text| text == "typed\n")
    });
    // Detach by Ctrl-B d; the shell goes on.
    terminal.write("\u{2}d");
    assert_eq!(terminal.wait().code(), Some(0));
    check(&daemon, &["run", "echo still there"], 0, &["still there"]);
}

#[test]
fn output_that_could_not_be_kept_is_told() {
    let daemon = SandboxDaemon::start_with(&["--log-quota", "1"]);
    let print = "head -c 3000000 /dev/zero | tr '\\0' x";
    let said = sandbox(&daemon, &["run", print]);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    let lost = 3_000_000 - said.lines[0].len();
    assert!(lost > 0 && said.lines[0].len() > 1_000_000, "{lost}");
    let sentence =
        format!("bridge-client: {lost} bytes of output were lost: the log of shell main");
    assert!(said.stderr.contains(&sentence), "{}", said.stderr);
    // A command that is still running reports its loss, too.
    let said = sandbox(&daemon, &["run", "--return-on-input", &format!("{print}; read x")]);
    assert_eq!(said.code, Some(124));
    assert!(said.stderr.contains("bytes of output were lost"), "{}", said.stderr);
    check(&daemon, &["close"], 0, &[]);
    let said = sandbox(&daemon, &["run", "echo kept"]);
    assert_eq!((&said.lines[..], &*said.stderr), (&["kept".to_owned()][..], ""));

    let said = say(&daemon.daemon, &["act", "run", print]);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    assert!(said.stderr.contains("of shell agent"), "{}", said.stderr);
    let said = say(&daemon.daemon, &["act", "--json", "run", "echo lost"]);
    let observation: Value = serde_json::from_str(&said.lines[0]).unwrap();
    let suffix = observation["extras"]["metadata"]["suffix"].as_str().unwrap();
    assert_eq!(observation["extras"]["lost"], 6, "with its line end: {observation}");
    assert!(suffix.contains("[6 bytes of output were lost"), "{suffix}");
}

#[test]
fn colours_are_kept_if_asked_for() {
    let daemon = SandboxDaemon::start();
    let print = "printf 'a\\033[31mred\\033[0m\\n'";
    check(&daemon, &["run", print], 0, &["a\u{1b}[31mred\u{1b}[0m"]);
    check(&daemon, &["output"], 0, &["ared"]);
    let coloured = sandbox(&daemon, &["output", "--colours"]).lines;
    assert!(coloured[0].contains("31mred"), "{coloured:?}");
    for (flags, has_colours) in [(&["--json"][..], false), (&["--json", "--colours"], true)] {
        let said = sandbox(&daemon, &[&["run"], flags, &[print]].concat());
        let result: Value = serde_json::from_str(&said.lines[0]).unwrap();
        let text = result["output"]["text"].as_str().unwrap();
        assert_eq!(text.contains("31mred"), has_colours, "{text:?}");
    }
}

#[test]
fn without_a_sandbox_the_error_names_the_flag() {
    let daemon = Daemon::start();
    let said = say(&daemon, &["sandbox", "run", "true"]);
    assert_eq!(said.code, Some(1));
    assert!(said.stderr.contains("--sandbox DIR"), "{}", said.stderr);
}
