use harness::{Daemon, Program, SandboxDaemon, command, run_directory, wait_until};
use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::{Output, finish, run, start};

fn shell(sandbox: &SandboxDaemon, arguments: &[&str]) -> Output {
    run(&sandbox.daemon, &[&["shell"], arguments].concat())
}

#[track_caller]
fn check(daemon: &SandboxDaemon, arguments: &[&str], code: i32, lines: &[&str]) {
    let output = shell(daemon, arguments);
    assert_eq!(output.code, Some(code), "{arguments:?}: {}", output.stderr);
    assert_eq!(output.lines, lines, "{arguments:?}");
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
    let mut program = start(&daemon.daemon, &["shell", "run", "-"]);
    program.write("cat <<'E'\n$HOME \"x\"\nE\n");
    program.close_stdin();
    assert_eq!(finish(program).lines, ["$HOME \"x\""]);
    let output = shell(&daemon, &["run", "--json", "exit 3"]);
    let result: Value = serde_json::from_str(&output.lines[0]).unwrap();
    assert_eq!(
        json!([output.code, result["exitCode"], result["ended"]]),
        json!([3, 3, "shellExited"])
    );
}

#[test]
fn long_output_is_printed_completely() {
    let daemon = SandboxDaemon::start();
    let output = shell(&daemon, &["run", "seq 1 300000"]);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    assert_eq!(output.lines.len(), 300_000);
    assert!(output.lines.iter().zip(1..).all(|(line, n)| *line == n.to_string()), "in order");
}

#[test]
fn a_command_that_keeps_running_is_reported_and_can_be_awaited_and_read_and_get_input() {
    let daemon = SandboxDaemon::start();
    let ask = "echo ready; read -s x; echo got $x";
    let output = shell(&daemon, &["run", "--limit", "0.3", ask]);
    assert_eq!(output.code, Some(124));
    assert!(output.stderr.contains("the command goes on"), "{}", output.stderr);
    // The terminal would echo input that is typed before the command waits for it.
    wait_until("the command to wait for input", || {
        let output = shell(&daemon, &["wait", "--return-on-input", "--limit", "0.3"]);
        assert_eq!(output.code, Some(124), "{}", output.stderr);
        output.stderr.contains("seems to wait for input")
    });
    assert!(shell(&daemon, &["list"]).lines[0].contains("running 1"));
    check(&daemon, &["input", "it"], 0, &[]);
    check(&daemon, &["wait"], 0, &["ready", "got it"]);
    check(&daemon, &["wait", "--command", "1"], 0, &["ready", "got it"]);
    let output = shell(&daemon, &["wait", "--command", "2"]);
    assert_eq!(output.code, Some(1));
    assert!(output.stderr.contains("is 1, not 2"), "{}", output.stderr);
    check(&daemon, &["read"], 0, &["ready", "got it"]);
    let output = shell(&daemon, &["read", "--bytes", "9"]);
    assert_eq!(output.lines, ["ready"]);
    let words = output.stderr.strip_prefix("(there is more: read on with --from ").unwrap();
    let from = words.strip_suffix(")\n").unwrap();
    let output = shell(&daemon, &["read", "--from", from]);
    assert_eq!((&output.lines[0][..], &*output.stderr), ("got it", ""));
    let raw = shell(&daemon, &["--json", "read", "--raw"]).lines;
    let raw: Value = serde_json::from_str(&raw[0]).unwrap();
    assert_eq!(raw["base64"], "cmVhZHkNCmdvdCBpdA0K", "every byte: {raw}");
}

#[test]
fn ctrl_c_interrupts_the_command_and_a_second_one_ends_the_wait() {
    let daemon = SandboxDaemon::start();
    // The program itself prints `ready`: a key that comes while bash is starting it would reach only bash.
    let sleeper = "sh -c 'echo ready; exec sleep 1000'";
    let program = start(&daemon.daemon, &["shell", "run", sleeper]);
    program.line_with("ready");
    program.signal(Signal::SIGINT);
    assert_eq!(finish(program).code, Some(130), "the code of the interrupted command");
    let stubborn = "trap 'echo no' INT; echo ready; while true; do read x; done";
    let program = start(&daemon.daemon, &["shell", "run", stubborn]);
    program.line_with("ready");
    program.signal(Signal::SIGINT);
    program.line_with("no");
    program.signal(Signal::SIGINT);
    let output = finish(program);
    assert_eq!(output.code, Some(130));
    assert!(output.stderr.contains("the command goes on"), "{}", output.stderr);
    check(&daemon, &["--json", "signal", "sigkill"], 0, &["{}"]);
}

#[test]
fn shells_are_created_listed_resized_and_closed() {
    let daemon = SandboxDaemon::start();
    check(&daemon, &["create", "s1", "--env", "A=b c", "--columns", "90"], 0, &["s1"]);
    check(&daemon, &["run", "--shell", "s1", "echo $A; stty size"], 0, &["b c", "48 90"]);
    check(&daemon, &["resize", "--shell", "s1", "70", "20"], 0, &[]);
    check(&daemon, &["run", "--shell", "s1", "stty size"], 0, &["20 70"]);
    let shells = shell(&daemon, &["list"]).lines;
    assert!(shells.len() == 1 && shells[0].starts_with("s1  "), "{shells:?}");
    let attach = shell(&daemon, &["attach", "s1", "--read-only"]).lines;
    assert!(
        attach[0].contains("attach-session -r"),
        "without a terminal it is printed: {attach:?}"
    );
    check(&daemon, &["close", "s1"], 0, &[]);
    let output = shell(&daemon, &["close", "s1"]);
    assert_eq!(output.code, Some(1));
    let remedy = "there is no shell s1: start it with `bridge-client shell create`";
    assert!(
        output.stderr.contains(remedy),
        "a person gets verbs of this program: {}",
        output.stderr
    );
}

#[test]
fn a_person_attaches_to_a_shell() {
    let daemon = SandboxDaemon::start();
    shell(&daemon, &["run", "echo seen before"]);
    let attach = shell(&daemon, &["attach"]).lines.remove(0);
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
    shell(&daemon, &["run", "echo seen before"]);
    let client = daemon.daemon.run_command("bridge-client");
    let attach = format!("{} shell attach", client.get_program().display());
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
fn lost_output_is_reported() {
    let daemon = SandboxDaemon::start_with(&["--log-quota", "1"]);
    let print = "head -c 3000000 /dev/zero | tr '\\0' x";
    let output = shell(&daemon, &["run", print]);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    let lost = 3_000_000 - output.lines[0].len();
    assert!(lost > 0 && output.lines[0].len() > 1_000_000, "{lost}");
    let sentence =
        format!("bridge-client: {lost} bytes of output were lost: the log of shell main");
    assert!(output.stderr.contains(&sentence), "{}", output.stderr);
    // A command that is still running reports its loss, too.
    let output = shell(&daemon, &["run", "--return-on-input", &format!("{print}; read x")]);
    assert_eq!(output.code, Some(124));
    assert!(output.stderr.contains("bytes of output were lost"), "{}", output.stderr);
    check(&daemon, &["close"], 0, &[]);
    let output = shell(&daemon, &["run", "echo kept"]);
    assert_eq!((&output.lines[..], &*output.stderr), (&["kept".to_owned()][..], ""));

    let output = run(&daemon.daemon, &["act", "run", print]);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    assert!(output.stderr.contains("of shell agent"), "{}", output.stderr);
    let output = run(&daemon.daemon, &["act", "--json", "run", "echo lost"]);
    let observation: Value = serde_json::from_str(&output.lines[0]).unwrap();
    let suffix = observation["extras"]["metadata"]["suffix"].as_str().unwrap();
    assert_eq!(observation["extras"]["lost"], 6, "with its line end: {observation}");
    assert!(suffix.contains("[6 bytes of output were lost"), "{suffix}");
}

#[test]
fn colours_are_kept_if_asked_for() {
    let daemon = SandboxDaemon::start();
    let print = "printf 'a\\033[31mred\\033[0m\\n'";
    check(&daemon, &["run", print], 0, &["a\u{1b}[31mred\u{1b}[0m"]);
    check(&daemon, &["read"], 0, &["ared"]);
    let coloured = shell(&daemon, &["read", "--colours"]).lines;
    assert!(coloured[0].contains("31mred"), "{coloured:?}");
    for (flags, has_colours) in [(&["--json"][..], false), (&["--json", "--colours"], true)] {
        let output = shell(&daemon, &[&["run"], flags, &[print]].concat());
        let result: Value = serde_json::from_str(&output.lines[0]).unwrap();
        let text = result["output"]["text"].as_str().unwrap();
        assert_eq!(text.contains("31mred"), has_colours, "{text:?}");
    }
}

#[test]
fn without_a_sandbox_the_error_names_the_flag() {
    let daemon = Daemon::start();
    let output = run(&daemon, &["shell", "run", "true"]);
    assert_eq!(output.code, Some(1));
    assert!(output.stderr.contains("--sandbox DIR"), "{}", output.stderr);
}
