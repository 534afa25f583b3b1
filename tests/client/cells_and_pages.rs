use harness::{Daemon, Program, SandboxDaemon, command, kernel_python, wait_until};
use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::relays::scripted_tools;
use crate::{finish, run, start};

fn ran(ended: &str, more: Value) -> Value {
    let mut result =
        json!({"text": "a\nb\n", "ended": ended, "cwd": "/w", "python": "/usr/bin/python3"});
    result.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    result
}

#[test]
fn cells_print_their_text_and_the_exit_code_shows_how_they_ended() {
    let daemon = Daemon::start();
    let rule = |code: &str, result: Value| json!({"method": "cell/run", "when": {"code": code}, "result": result});
    let picture = json!([{"mediaType": "image/png", "base64": "iVBORw0KGgo="}]);
    let rules = json!({"runtimeId": "w1", "rules": [
        rule("fine", ran("finished", json!({"pictures": picture}))),
        rule("wrong", ran("raised", json!({}))),
        rule("slow", ran("timedOut", json!({"omittedBytes": 7}))),
        rule("dead", ran("kernelDied", json!({"newKernel": "wasStuck"}))),
        {"method": "cell/restart", "result": {}},
    ]});
    let (_host, log) = scripted_tools(&daemon, &rules);
    for (code, exit, words) in [
        ("fine", 0, &["(pictures: 1; --json prints them)"][..]),
        ("wrong", 1, &[]),
        ("slow", 124, &["7 bytes of output were omitted", "give it more time with --limit"]),
        ("dead", 1, &["the kernel died while the cell ran", "without earlier variables"]),
    ] {
        let output = run(&daemon, &["cell", "run", code]);
        assert_eq!((output.code, output.lines), (Some(exit), vec!["a".to_owned(), "b".to_owned()]));
        assert!(
            words.iter().all(|words| output.stderr.contains(words)),
            "{code}: {}",
            output.stderr
        );
    }
    let mut program =
        start(&daemon, &["cell", "run", "--json", "--restart", "--limit", "1.5", "-"]);
    program.write("fine");
    let output = finish(program);
    assert_eq!(serde_json::from_str::<Value>(&output.lines[0]).unwrap()["ended"], "finished");
    assert_eq!(run(&daemon, &["cell", "restart", "--shell", "s1"]).code, Some(0));
    let log = std::fs::read_to_string(log).unwrap();
    let params = json!({"code": "fine", "limitMs": 1500.0, "restart": true, "shell": "main"});
    for params in [params, json!({"shell": "s1"})] {
        let got = |line: &str| serde_json::from_str::<Value>(line).unwrap()["params"] == params;
        assert!(log.lines().any(got), "{params}: {log}");
    }
}

#[test]
fn on_a_terminal_the_output_of_a_cell_is_streamed() {
    let daemon = Daemon::start();
    let fifo = daemon.runtime_directory().join("fifo");
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let rules = json!({"runtimeId": "w1", "rules": [{
        "method": "cell/run", "when": {"stream": true}, "progress": [{"text": "early\n"}], "fifo": fifo,
        "result": ran("raised", json!({"text": "early\n"})),
    }]});
    let (_host, _) = scripted_tools(&daemon, &rules);
    let client = daemon.run_command("bridge-client");
    let mut script = command("script");
    script.envs(client.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let line = format!("{} cell run x", client.get_program().display());
    let mut terminal = Program::start(script.args(["-qefc", &line, "/dev/null"]));
    terminal.line_with("early");
    std::fs::write(&fifo, "").unwrap();
    assert_eq!(terminal.wait().code(), Some(1));
    assert_eq!(terminal.rest(), [""; 0], "the text is not printed twice");
}

#[test]
fn pages_are_printed_and_their_pictures_saved() {
    let daemon = Daemon::start();
    let rules = json!({"runtimeId": "w1", "rules": [
        {"method": "page/browse", "when": {"url": "http://a/"}, "result": {
            "url": "http://a/", "text": "A title\n", "pngBase64": "iVBORw0KGgo=",
        }},
        {"method": "page/browse", "when": {"limitMs": 500.0}, "result": {
            "url": "http://b/", "text": "half", "error": "it took too long",
        }},
        {"method": "page/browse", "result": {"url": "http://c/", "text": "plain"}},
    ]});
    let (_host, _) = scripted_tools(&daemon, &rules);
    let picture = daemon.runtime_directory().join("page.png");
    let output =
        run(&daemon, &["page", "browse", "http://a/", "--picture", picture.to_str().unwrap()]);
    assert_eq!((output.code, &output.lines[..]), (Some(0), &["A title".to_owned()][..]));
    assert_eq!(std::fs::read(&picture).unwrap(), b"\x89PNG\r\n\x1a\n");
    let output = run(&daemon, &["page", "browse", "http://b/", "--limit", "0.5"]);
    assert_eq!((output.code, &output.lines[..]), (Some(1), &["half".to_owned()][..]));
    assert!(output.stderr.contains("it took too long"), "{}", output.stderr);
    let output =
        run(&daemon, &["page", "browse", "http://c/", "--picture", picture.to_str().unwrap()]);
    assert_eq!(output.code, Some(2));
    assert!(output.stderr.contains("there is no picture of the page"), "{}", output.stderr);
}

#[test]
fn cells_run_in_the_kernel_of_a_shell() {
    let sandbox = SandboxDaemon::start_with(&["--kernel-python", kernel_python()]);
    let cell = |arguments: &[&str]| run(&sandbox.daemon, &[&["cell"], arguments].concat());
    let check = |arguments: &[&str], code: i32, lines: &[&str]| {
        let output = cell(arguments);
        assert_eq!(output.code, Some(code), "{arguments:?}: {}", output.stderr);
        assert_eq!(output.lines, lines, "{arguments:?}");
    };
    let environment = "mkdir sub; cd sub; export NAME=World";
    assert_eq!(run(&sandbox.daemon, &["shell", "run", environment]).code, Some(0));
    check(&["run", "import os; print(os.environ['NAME']); x = 6; x * 7"], 0, &["World", "42"]);
    check(&["run", "os.path.basename(os.getcwd())"], 0, &["'sub'"]);
    check(&["run", "--shell", "other", "'x' in globals()"], 0, &["False"]);
    let failed = cell(&["run", "1/0"]);
    assert_eq!(failed.code, Some(1));
    assert_eq!(failed.lines.last().unwrap(), "ZeroDivisionError: division by zero");
    let slow = "import time; time.sleep(1000)";
    assert_eq!(cell(&["run", "--limit", "0.5", slow]).code, Some(124));
    let program = start(
        &sandbox.daemon,
        &["cell", "run", "open('ready', 'w'); import time; time.sleep(1000)"],
    );
    let ready = sandbox.workspace().join("sub/ready");
    wait_until("the cell to begin", || ready.exists());
    program.signal(Signal::SIGINT);
    assert_eq!(finish(program).code, Some(130));
    check(&["run", "x + 1"], 0, &["7"]);
    check(&["restart"], 0, &[]);
    check(&["run", "'x' in globals()"], 0, &["False"]);
    check(&["run", "--restart", "x = 1"], 0, &[]);
}

#[test]
fn pages_of_the_workspace_are_shown() {
    let sandbox = SandboxDaemon::start_with(&["--browser-program", "/no/such/browser"]);
    let page = "<h1>A title</h1><a href='next.html'>next</a>";
    std::fs::create_dir(sandbox.workspace().join("docs")).unwrap();
    std::fs::write(sandbox.workspace().join("docs/page.html"), page).unwrap();
    let docs = sandbox.workspace().join("docs");
    for arguments in [
        &["page", "browse", "docs/page.html"][..],
        &["page", "--in", docs.to_str().unwrap(), "browse", "page.html"],
    ] {
        let output = run(&sandbox.daemon, arguments);
        assert_eq!(output.code, Some(0), "{}", output.stderr);
        assert!(output.lines.iter().any(|line| line.contains("A title")), "{:?}", output.lines);
    }
    let output = run(&sandbox.daemon, &["page", "browse", "missing.html"]);
    assert_eq!(output.code, Some(1));
    assert!(output.stderr.contains("missing.html"), "{}", output.stderr);
}
