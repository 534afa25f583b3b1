use std::process::Command;

use harness::{Program, Socket, binary, process_exists, run_directory, wait_until};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use tempfile::TempDir;

fn run(directory: &TempDir, flags: &[&str], script: &str) -> Program {
    let mut command = harness::command(binary("bridge-daemon"));
    command.arg("run").args(flags).args(["--", "bash", "-c", script]);
    command.env("XDG_RUNTIME_DIR", directory.path());
    Program::start(&mut command)
}

fn left_over(directory: &TempDir) -> usize {
    std::fs::read_dir(directory.path().join("run-bridge")).map_or(0, Iterator::count)
}

#[test]
fn the_program_gets_the_variables_and_its_exit_code_is_ours() {
    let directory = run_directory();
    let script = "env | grep -E 'RUN_BRIDGE_|no_proxy|NO_PROXY' | sort; exit 7";
    let mut program = run(&directory, &["--session", "s"], script);
    assert_eq!(program.wait().code(), Some(7));
    let lines = program.rest();
    let value = |name: &str| {
        let prefix = format!("{name}=");
        lines
            .iter()
            .find_map(|line| line.strip_prefix(&prefix))
            .unwrap_or_else(|| panic!("no {name} in {lines:?}"))
    };
    for name in ["ADDR", "TOKEN", "SESSION"] {
        assert_eq!(
            value(&format!("RUN_BRIDGE_{name}")),
            value(&format!("EVOLVE_RUN_BRIDGE_{name}"))
        );
    }
    assert_eq!((value("RUN_BRIDGE_SESSION"), value("RUN_BRIDGE_TOKEN").len()), ("s", 64));
    assert!(value("no_proxy").contains("127.0.0.1") && value("NO_PROXY").contains("localhost"));
    assert_eq!(program.stderr(), "", "quiet by default");
    assert_eq!(left_over(&directory), 0);
}

#[test]
fn exit_codes_show_signals_and_failures_to_start() {
    let directory = run_directory();
    assert_eq!(run(&directory, &[], "kill -9 $$").wait().code(), Some(137));
    let attempt = |program: &str| {
        let mut command = harness::command(binary("bridge-daemon"));
        command.args(["run", "--", program]).env("XDG_RUNTIME_DIR", directory.path());
        let mut program = Program::start(&mut command);
        (program.wait().code(), program.stderr())
    };
    let (code, message) = attempt("no-such-program");
    assert_eq!(code, Some(127));
    assert!(
        message.contains("no-such-program")
            && message.contains("PATH")
            && message.lines().count() == 1,
        "{message}"
    );
    let (code, message) = attempt("/etc/passwd");
    assert_eq!(code, Some(126));
    assert!(message.contains("chmod"), "{message}");
    assert_eq!(left_over(&directory), 0);
}

#[test]
fn wrong_usage_is_explained() {
    let mut program = Program::start(harness::command(binary("bridge-daemon")).args(["run"]));
    assert_eq!(program.wait().code(), Some(2));
    assert!(program.stderr().contains("Usage:"), "{}", program.stderr());
}

/// A Python program that prints `ready` and ends with a code of its own for each signal.
const DECIDES: &str = "import signal, sys\n\
    def decide(number, frame): print('got', number, flush=True); sys.exit(40 + number)\n\
    for name in ('SIGTERM', 'SIGHUP', 'SIGUSR1', 'SIGINT'): signal.signal(getattr(signal, name), decide)\n\
    print('ready', flush=True)\n\
    while True: signal.pause()";

#[test]
fn signals_reach_the_program_and_it_decides() {
    let directory = run_directory();
    for signal in [Signal::SIGTERM, Signal::SIGHUP, Signal::SIGUSR1, Signal::SIGINT] {
        let mut command = harness::command(binary("bridge-daemon"));
        command
            .args(["run", "--", "python3", "-c", DECIDES])
            .env("XDG_RUNTIME_DIR", directory.path());
        let mut program = Program::start(&mut command);
        program.line();
        program.signal(signal);
        assert_eq!(program.wait().code(), Some(40 + signal as i32), "{signal}");
    }
    assert_eq!(left_over(&directory), 0);
}

#[test]
fn a_program_that_ignores_sigterm_is_killed_after_its_grace() {
    let directory = run_directory();
    let mut program =
        run(&directory, &["--grace", "0.2"], "trap '' TERM; echo $$; exec sleep 1000");
    let child: u32 = program.line().parse().unwrap();
    program.signal(Signal::SIGTERM);
    assert_eq!(program.wait().code(), Some(137));
    assert!(!process_exists(child));
    assert!(program.stderr().contains("did not end within"), "{}", program.stderr());
}

#[test]
fn when_the_daemon_is_killed_the_program_is_told_to_end() {
    let directory = run_directory();
    let script = format!("echo $$; exec python3 -c {}", quoted(DECIDES));
    let mut program = run(&directory, &[], &script);
    let child: u32 = program.line().parse().unwrap();
    assert_eq!(program.line(), "ready");
    program.signal(Signal::SIGKILL);
    program.wait();
    assert_eq!(program.line(), "got 15");
    wait_until("the program to end", || !process_exists(child));
    assert_eq!(left_over(&directory), 2, "the connection files, for the next one to sweep");
    assert!(run(&directory, &[], "true").wait().success());
}

#[test]
fn descriptors_and_limits_do_not_leak_into_the_program() {
    let directory = run_directory();
    let mut program = run(&directory, &[], "ls /proc/self/fd | wc -l; ulimit -n");
    let mut plain =
        Program::start(Command::new("bash").args(["-c", "ls /proc/self/fd | wc -l; ulimit -n"]));
    assert_eq!([program.line(), program.line()], [plain.line(), plain.line()]);
    program.wait();
    plain.wait();
}

#[test]
fn the_terminals_own_interrupt_reaches_the_program_once() {
    let directory = run_directory();
    // `script` gives the run a terminal of its own, on which Ctrl-C is typed.
    let program = "import signal, sys\n\
        count = 0\n\
        def interrupted(*_):\n  global count; count += 1; print('interrupt', count, flush=True)\n\
        signal.signal(signal.SIGINT, interrupted)\n\
        print('ready', flush=True)\n\
        sys.stdin.readline()\n\
        print('total', count, flush=True)";
    let line =
        format!("{} run -- python3 -c {}", binary("bridge-daemon").display(), quoted(program));
    let mut terminal = Program::on_a_terminal(directory.path(), &line);
    terminal.line_with("ready");
    terminal.write("\x03");
    terminal.line_with("interrupt 1");
    terminal.write("\n");
    terminal.line_with("total 1");
    terminal.line_with("exit code 0");
    terminal.wait();
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[test]
fn with_an_editor_calls_wait_for_a_window_that_attaches_through_the_files() {
    let directory = run_directory();
    let client = binary("bridge-client");
    let script = format!("{} chat 'What is 2+2?'", client.display());
    let mut program = run(&directory, &["--host", "editor", "--session", "net"], &script);
    let path = directory.path().join("run-bridge/net.json");
    wait_until("the connection file", || path.exists());
    let read = |name: &str| -> Value {
        serde_json::from_str(
            &std::fs::read_to_string(directory.path().join("run-bridge").join(name)).unwrap(),
        )
        .unwrap()
    };
    let (file, host_file) = (read("net.json"), read("net.host.json"));
    assert_eq!((&file["wantsEditor"], &file["program"]), (&json!(true), &json!("bash")));
    let address = file["addr"].as_str().unwrap().trim_end_matches('/');
    let port = address.rsplit(':').next().unwrap().parse().unwrap();
    let attach = || {
        let mut window = Socket::connect(port, host_file["hostToken"].as_str().unwrap());
        window.register("window");
        window
    };
    let mut window = attach();
    assert_eq!(window.request()["params"]["message"], "What is 2+2?");
    drop(window);
    // The window is reloaded during a call: the call fails with a clear error, and the run continues.
    assert_eq!(program.wait().code(), Some(7));
    assert!(program.stderr().contains("host went away"), "{}", program.stderr());
    assert_eq!(left_over(&directory), 0);
}

#[test]
fn a_window_can_attach_again_after_a_reload() {
    let directory = run_directory();
    let script = format!("read -r; {} chat again", binary("bridge-client").display());
    let mut program = run(&directory, &["--host", "editor", "--session", "net"], &script);
    let path = directory.path().join("run-bridge/net.host.json");
    wait_until("the host file", || path.exists());
    let host_file: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    let file = std::fs::read_to_string(directory.path().join("run-bridge/net.json")).unwrap();
    let address =
        serde_json::from_str::<Value>(&file).unwrap()["addr"].as_str().unwrap().to_owned();
    let port = address.trim_end_matches('/').rsplit(':').next().unwrap().parse().unwrap();
    let token = host_file["hostToken"].as_str().unwrap();
    let mut first = Socket::connect(port, token);
    first.register("window");
    drop(first);
    program.write("go\n");
    let mut second = Socket::connect(port, token);
    second.register("window");
    let request = second.request();
    second.answer(&request, json!({"response": "here I am"}));
    assert_eq!(program.line(), "here I am");
    assert!(program.wait().success());
}

#[test]
fn the_daemon_lives_exactly_as_long_as_the_run() {
    let directory = run_directory();
    let mut program = run(&directory, &["--session", "s"], "echo $PPID; read -r");
    let daemon: u32 = program.line().parse().unwrap();
    assert_eq!(daemon, program.pid());
    assert!(directory.path().join("run-bridge/s.json").exists());
    program.write("\n");
    program.wait();
    assert!(!process_exists(daemon));
    assert!(kill(Pid::from_raw(daemon.cast_signed()), None).is_err());
    assert_eq!(left_over(&directory), 0);
}
