use harness::{Daemon, Program, command};
use serde_json::{Value, json};

use crate::relays::scripted_tools;
use crate::{finish, say, start};

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
        ("slow", 124, &["7 bytes of output were left out", "give it more time with --limit"]),
        ("dead", 1, &["the kernel died under the cell", "without earlier variables"]),
    ] {
        let said = say(&daemon, &["cell", "run", code]);
        assert_eq!((said.code, said.lines), (Some(exit), vec!["a".to_owned(), "b".to_owned()]));
        assert!(words.iter().all(|words| said.stderr.contains(words)), "{code}: {}", said.stderr);
    }
    let mut program =
        start(&daemon, &["cell", "run", "--json", "--restart", "--limit", "1.5", "-"]);
    program.write("fine");
    let said = finish(program);
    assert_eq!(serde_json::from_str::<Value>(&said.lines[0]).unwrap()["ended"], "finished");
    assert_eq!(say(&daemon, &["cell", "restart", "--shell", "s1"]).code, Some(0));
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
    let gate = daemon.runtime_directory().join("gate");
    nix::unistd::mkfifo(&gate, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let rules = json!({"runtimeId": "w1", "rules": [{
        "method": "cell/run", "when": {"stream": true}, "progress": [{"text": "early\n"}], "gate": gate,
        "result": ran("raised", json!({"text": "early\n"})),
    }]});
    let (_host, _) = scripted_tools(&daemon, &rules);
    let client = daemon.run_command("bridge-client");
    let mut script = command("script");
    script.envs(client.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let line = format!("{} cell run x", client.get_program().display());
    let mut terminal = Program::start(script.args(["-qefc", &line, "/dev/null"]));
    terminal.line_with("early");
    std::fs::write(&gate, "").unwrap();
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
    let said =
        say(&daemon, &["page", "browse", "http://a/", "--picture", picture.to_str().unwrap()]);
    assert_eq!((said.code, &said.lines[..]), (Some(0), &["A title".to_owned()][..]));
    assert_eq!(std::fs::read(&picture).unwrap(), b"\x89PNG\r\n\x1a\n");
    let said = say(&daemon, &["page", "browse", "http://b/", "--limit", "0.5"]);
    assert_eq!((said.code, &said.lines[..]), (Some(1), &["half".to_owned()][..]));
    assert!(said.stderr.contains("it took too long"), "{}", said.stderr);
    let said =
        say(&daemon, &["page", "browse", "http://c/", "--picture", picture.to_str().unwrap()]);
    assert_eq!(said.code, Some(2));
    assert!(said.stderr.contains("there is no picture of the page"), "{}", said.stderr);
}
