use harness::{Program, binary, process_exists, run_directory, wait_until};
use serde_json::{Value, json};

/// Runs a shell script with the terminal host; `bc` in it is the command line client.
fn run(flags: &[&str], script: &str) -> (Option<i32>, Vec<String>, String) {
    let directory = run_directory();
    let mut program = start(&directory, flags, script);
    program.close_stdin();
    let code = program.wait().code();
    assert_eq!(std::fs::read_dir(directory.path().join("run-bridge")).unwrap().count(), 0);
    (code, program.rest(), program.stderr())
}

fn start(directory: &tempfile::TempDir, flags: &[&str], script: &str) -> Program {
    let mut command = harness::command(binary("bridge-daemon"));
    let script = format!("bc() {{ {} \"$@\"; }}; {script}", binary("bridge-client").display());
    command.arg("run").args(flags).args(["--", "bash", "-c", &script]);
    command.env("XDG_RUNTIME_DIR", directory.path());
    Program::start(&mut command)
}

#[test]
fn chat_is_answered_by_the_chosen_command() {
    let (code, lines, _) = run(
        &["--chat-command", "tr a-z A-Z"],
        "bc chat 'what is it?'; bc call vscode/chat message=hello",
    );
    assert_eq!(code, Some(0));
    assert_eq!(lines[0], "WHAT IS IT?");
    let result: Value = serde_json::from_str(&lines[1]).unwrap();
    assert_eq!(result["response"], "HELLO");
}

#[test]
fn the_command_learns_model_and_conversation() {
    let flags = ["--chat-command", "echo \"$CHAT_MODEL/$CHAT_CONVERSATION\""];
    let (_, lines, _) = run(&flags, "bc chat --model small --conversation c7 x; bc chat x");
    assert_eq!(lines, ["small/c7", "/"]);
}

#[test]
fn without_anybody_to_answer_chat_is_blocked_with_its_reason() {
    let (code, lines, _) = run(&[], "bc call chat message=hi");
    assert_eq!(code, Some(0), "blocked is a result, not an error");
    let result: Value = serde_json::from_str(&lines[0]).unwrap();
    assert_eq!(result["blocked"], true);
    assert!(result["blockedReason"].as_str().unwrap().contains("--chat-command"));
}

#[test]
fn history_is_kept_by_conversation() {
    let script = "bc chat --conversation c one >/dev/null; bc chat --conversation c two >/dev/null; \
                  bc chat --conversation other x >/dev/null; bc call get_chat_history conversationId=c limit=3";
    let (_, lines, _) = run(&["--chat-command", "sed s/^/re:/"], script);
    let history: Value = serde_json::from_str(&lines[0]).unwrap();
    let said: Vec<_> = history["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|m| (&m["role"], &m["content"]))
        .collect();
    assert_eq!(
        said,
        [
            (&json!("assistant"), &json!("re:one")),
            (&json!("user"), &json!("two")),
            (&json!("assistant"), &json!("re:two"))
        ]
    );
}

#[test]
fn messages_are_printed_by_level_and_cannot_steer_the_terminal() {
    let script = r#"bc show-message plain; bc show-message --level warning careful; bc call show_message "$(printf '{"message":"\\u001b]0;x\\u0007","level":"error"}')""#;
    let (code, lines, stderr) = run(&[], script);
    assert_eq!(code, Some(0), "{stderr}");
    assert_eq!(stderr, "[info] plain\n[warning] careful\n[error] ␛]0;x␇\n");
    assert_eq!(lines.last().map(String::as_str), Some("{}"), "stdout is the program's own");
}

#[test]
fn commands_are_refused_unless_mapped() {
    let (_, lines, stderr) = run(
        &["--allow-command", "greet=echo hello"],
        "bc execute-command greet world; bc execute-command other; echo $?",
    );
    assert_eq!(lines, ["hello world", "1"]);
    assert!(stderr.contains("--allow-command other="), "{stderr}");
}

#[test]
fn missing_parameters_are_named() {
    for (call, name) in [
        ("chat", "message"),
        ("show_message", "message"),
        ("execute_command", "command"),
        ("get_chat_history", "conversationId"),
    ] {
        let (code, _, stderr) = run(&[], &format!("bc call {call}"));
        assert_eq!(code, Some(1));
        assert!(stderr.contains(&format!("Missing {name} parameter")), "{stderr}");
    }
}

#[test]
fn a_failing_chat_command_reports_why() {
    let (code, _, stderr) = run(&["--chat-command", "echo 'no key' >&2; exit 3"], "bc chat hi");
    assert_eq!(code, Some(1));
    assert!(stderr.contains("exit code 3") && stderr.contains("no key"), "{stderr}");
}

#[test]
fn a_cancelled_chat_leaves_no_process_behind() {
    let directory = run_directory();
    let marker = directory.path().join("pid");
    let chat = format!("echo $$ > {0}.new; mv {0}.new {0}; sleep 1000", marker.display());
    let mut program =
        start(&directory, &["--chat-command", &chat], "bc --timeout 3 chat hi; echo $?");
    assert_eq!(program.line(), "6");
    let pid: u32 = std::fs::read_to_string(&marker).unwrap().trim().parse().unwrap();
    wait_until("the chat command to be killed", || !process_exists(pid));
    program.close_stdin();
    program.wait();
}

#[test]
fn the_person_at_the_terminal_answers() {
    let directory = run_directory();
    let client = binary("bridge-client");
    let line = format!(
        "{} run -- bash -c '{1} chat \"Deploy?\"; {1} show-message --button Yes --button No \"Sure?\"'",
        binary("bridge-daemon").display(),
        client.display()
    );
    let mut terminal = Program::on_a_terminal(directory.path(), &line);
    terminal.line_with("[chat] Deploy?");
    terminal.write("go ahead\n");
    terminal.line_with("go ahead");
    terminal.line_with("Sure?");
    terminal.write("2\n");
    terminal.line_with("No");
    terminal.line_with("exit code 0");
    terminal.wait();
}
