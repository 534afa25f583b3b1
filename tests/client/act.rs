use harness::{Daemon, SandboxDaemon, kernel_python};
use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::{Output, finish, run, start};

fn act(sandbox: &SandboxDaemon, arguments: &[&str]) -> Output {
    run(&sandbox.daemon, &[&["act"], arguments].concat())
}

#[track_caller]
fn check(sandbox: &SandboxDaemon, arguments: &[&str], code: i32, lines: &[&str]) {
    let output = act(sandbox, arguments);
    assert_eq!(output.code, Some(code), "{arguments:?}: {}", output.stderr);
    assert_eq!(output.lines, lines, "{arguments:?}");
}

#[test]
fn run_shows_the_output_and_ends_with_the_exit_code() {
    let sandbox = SandboxDaemon::start();
    check(
        &sandbox,
        &["run", "mkdir a; cd a; echo one; echo two >&2; (exit 7)"],
        7,
        &["one", "two"],
    );
    let below = sandbox.workspace().join("a");
    check(&sandbox, &["run", "pwd; printf 'no end'"], 0, &[below.to_str().unwrap(), "no end"]);
    let above = sandbox.workspace();
    check(&sandbox, &["run", "--fresh", "pwd"], 0, &[above.to_str().unwrap()]);
    check(&sandbox, &["run", "--shell", "other", "pwd"], 0, &[above.to_str().unwrap()]);
    let mut program = start(&sandbox.daemon, &["act", "run", "-"]);
    program.write("cat <<'E'\n$HOME \"x\"\nE\n");
    assert_eq!(finish(program).lines, ["$HOME \"x\""]);
    let output = act(&sandbox, &["run", "--json", "(exit 3)"]);
    let observation: Value = serde_json::from_str(&output.lines[0]).unwrap();
    assert_eq!(
        json!([
            output.code,
            observation["observation"],
            observation["extras"]["metadata"]["exit_code"]
        ]),
        json!([3, "run", 3])
    );
    let output = act(&sandbox, &["run", "a\nb"]);
    assert_eq!(output.code, Some(1));
    assert!(
        output.stderr.contains("Cannot execute multiple commands at once"),
        "{}",
        output.stderr
    );
    check(&sandbox, &["close"], 0, &[]);
    check(&sandbox, &["run", "pwd"], 0, &[above.to_str().unwrap()]);
}

#[test]
fn long_output_is_printed_completely() {
    let sandbox = SandboxDaemon::start();
    let output = act(&sandbox, &["run", "seq 1 300000"]);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    assert_eq!(output.lines.len(), 300_000);
    assert!(output.lines.iter().zip(1..).all(|(line, n)| *line == n.to_string()), "in order");
}

#[test]
fn a_command_that_keeps_running_is_reported_and_can_get_input() {
    let sandbox = SandboxDaemon::start();
    let ask = "echo ready; read x; echo got $x";
    // Start the shell first, so that its start does not use up the timeout.
    check(&sandbox, &["run", "true"], 0, &[]);
    let output = act(&sandbox, &["--timeout", "3", "run", ask]);
    assert_eq!(
        (output.code, &*output.lines),
        (Some(124), &["ready".to_owned()][..]),
        "{}",
        output.stderr
    );
    assert!(output.stderr.contains("timed out after 2.5 seconds"), "{}", output.stderr);
    let output = act(&sandbox, &["run", "echo no"]);
    assert_eq!(output.code, Some(124));
    assert!(output.stderr.contains("NOT executed"), "{}", output.stderr);
    let output = act(&sandbox, &["run", "--input", "it"]);
    assert_eq!((output.code, output.lines.last().map(String::as_str)), (Some(0), Some("got it")));
    let output = act(&sandbox, &["run", ""]);
    assert_eq!(output.lines, ["ERROR: No previous running command to retrieve logs from."]);
}

#[test]
fn ctrl_c_interrupts_the_command() {
    let sandbox = SandboxDaemon::start();
    let program = start(&sandbox.daemon, &["act", "run", "sh -c 'echo ready; exec sleep 1000'"]);
    program.line_with("ready");
    program.signal(Signal::SIGINT);
    assert_eq!(finish(program).code, Some(130));
    check(&sandbox, &["run", "echo free"], 0, &["free"]);
}

#[test]
fn file_subcommands_do_as_they_say() {
    let sandbox = SandboxDaemon::start();
    let mut program = start(&sandbox.daemon, &["act", "write", "src/a.py"]);
    program.write("x = 1\ny = 2\n");
    assert_eq!(finish(program).code, Some(0));
    let path = sandbox.workspace().join("src/a.py");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "x = 1\ny = 2\n");
    check(&sandbox, &["read", "src/a.py", "--start", "1"], 0, &["y = 2"]);
    check(&sandbox, &["read", path.to_str().unwrap(), "--end", "1"], 0, &["x = 1"]);
    let viewed = act(&sandbox, &["read", "src/a.py", "--view"]).lines;
    assert!(viewed.contains(&"     2\ty = 2".to_owned()), "{viewed:?}");
    let edited = act(&sandbox, &["edit", "src/a.py", "--old", "y = 2", "--new", "y = 4"]);
    assert!(edited.lines.concat().contains("has been edited"), "{}", edited.stderr);
    act(&sandbox, &["edit", "src/a.py", "--insert-after", "0", "--new", "import os"]);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "import os\nx = 1\ny = 4\n");
    assert_eq!(act(&sandbox, &["undo", "src/a.py"]).code, Some(0));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "x = 1\ny = 4\n");
    act(&sandbox, &["edit", "new", "--new", "exactly"]);
    check(&sandbox, &["read", "new"], 0, &["exactly"]);
    check(&sandbox, &["write", "new", "--content", "over"], 0, &[]);
    check(&sandbox, &["read", "new"], 0, &["over"]);
    act(&sandbox, &["write", "page.html", "--content", "<a href='/next'>next</a>"]);
    let page = act(&sandbox, &["browse", "page.html"]);
    assert_eq!(page.code, Some(0), "{}", page.stderr);
    assert!(page.lines.contains(&"[1]: /next".to_owned()), "{:?}", page.lines);
    check(&sandbox, &["mkdir", "d/e"], 0, &[]);
    check(&sandbox, &["rmdir", "d/e"], 0, &[]);
    check(&sandbox, &["rm", "new"], 0, &[]);
    check(&sandbox, &["rm", "-r", "src"], 0, &[]);
    for (arguments, words) in [
        (&["read", "../secret"][..], "leads out of the workspace"),
        (&["read", "missing"], "File not found"),
        (&["edit", "missing", "--old", "a", "--new", "b"], "does not exist"),
        (&["rm", "d"], "is a directory"),
        (&["browse", "missing.html"], "does not exist"),
    ] {
        let output = act(&sandbox, arguments);
        assert_eq!(output.code, Some(1), "{arguments:?}");
        assert!(output.stderr.contains(words), "{}", output.stderr);
    }
    let output = act(&sandbox, &["--json", "read", "missing"]);
    let observation: Value = serde_json::from_str(&output.lines[0]).unwrap();
    assert_eq!(json!([output.code, observation["extras"]["error_id"]]), json!([1, "not_found"]));
    assert_eq!(output.lines.len(), 1);
}

#[test]
fn cells_print_and_are_interrupted() {
    let sandbox = SandboxDaemon::start_with(&["--kernel-python", kernel_python()]);
    check(&sandbox, &["ipython", "print('six'); x = 6; x * 7"], 0, &["six", "42"]);
    assert_eq!(run(&sandbox.daemon, &["act", "ipython", "1/0"]).code, Some(1));
    let mut program = start(&sandbox.daemon, &["act", "ipython", "-"]);
    program.write("print('ready', flush=True)\nimport time\ntime.sleep(1000)\n");
    program.close_stdin();
    program.line_with("ready");
    program.signal(Signal::SIGINT);
    assert_eq!(finish(program).code, Some(130));
    check(&sandbox, &["ipython", "x + 1"], 0, &["7"]);
    let output = act(&sandbox, &["ipython", "print('x' * 20_000_000); raise Exception('the end')"]);
    assert_eq!(output.code, Some(1));
    assert_eq!(output.lines.last().unwrap(), "Exception: the end");
    let (bytes, _) = output.stderr.split_once(" bytes of output were omitted").unwrap();
    let bytes = bytes.strip_prefix("bridge-client: ").unwrap();
    assert!(output.lines.contains(&format!("[{bytes} bytes of output were omitted here.]")));
    let anew = "[A new kernel was started; variables of an earlier one are lost.]";
    check(&sandbox, &["restart-kernel"], 0, &[anew]);
    check(&sandbox, &["ipython", "'x' in globals()"], 0, &["False"]);
}

#[test]
fn without_a_sandbox_the_error_names_the_flag() {
    let daemon = Daemon::start();
    let output = run(&daemon, &["act", "run", "true"]);
    assert_eq!(output.code, Some(1));
    assert!(output.stderr.contains("--sandbox DIR"), "{}", output.stderr);
}
