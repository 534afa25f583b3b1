//! Tests of commands.

use std::{
    fs,
    io::{Read as _, Write as _},
    net::TcpStream,
};

use serde_json::{Value, json};

use crate::server::{Options, Server, content, exit_code, metadata, until_exists};

const NO_METADATA: [&str; 4] = ["username", "hostname", "working_dir", "py_interpreter_path"];

/// Waits again until the running command has printed something or has ended.
fn poll(server: &Server) -> Value {
    loop {
        let observation = server.run("");
        assert!(!content(&observation).starts_with("ERROR: No previous"), "nothing runs");
        if !content(&observation).is_empty() || exit_code(&observation) != -1 {
            return observation;
        }
    }
}

/// Starts a command and waits until it has printed something.
fn start(server: &Server, command: &str, printed: &str) {
    let mut observation = server.action_within("run", json!({ "command": command }), Some(1.0));
    let mut seen = content(&observation).to_owned();
    while !seen.contains(printed) {
        observation = server.action_within("run", json!({"command": ""}), Some(1.0));
        assert_eq!(exit_code(&observation), -1, "{observation}");
        seen += content(&observation);
    }
}

#[test]
fn a_result_has_every_key_in_its_place() {
    let server = Server::start();
    let event = json!({"action": {"action": "run", "args": {"command": " echo hi "}}});
    let reply = server.post("/execute_action", &event.to_string());
    let begin = "{\"message\":\"Command `echo hi` executed with exit code 0.\",\"observation\":\"run\",\
        \"content\":\"hi\",\"extras\":{\"command\":\"echo hi\",\"metadata\":{\"exit_code\":0,\"pid\":-1,\
        \"username\":\"";
    let end = "\"prefix\":\"\",\"suffix\":\"\\n[The command completed with exit code 0.]\"},\
        \"hidden\":false},\"success\":true}";
    assert!(reply.text.starts_with(begin), "{}", reply.text);
    assert!(reply.text.ends_with(end), "{}", reply.text);
    let observation = reply.json();
    assert_eq!(metadata(&observation, "working_dir"), server.work().to_str().unwrap());
    assert_eq!(metadata(&observation, "username"), server.output("id -un"));
    assert_eq!(metadata(&observation, "hostname"), server.output("echo ${HOSTNAME%%.*}"));
    let python = server.output("command -v python || command -v python3 || :");
    assert_eq!(metadata(&observation, "py_interpreter_path"), python);
}

#[test]
fn a_failure_has_its_code() {
    let server = Server::start();
    let observation = server.run("(exit 42)");
    assert_eq!((exit_code(&observation), &observation["success"]), (42, &json!(false)));
    assert_eq!(metadata(&observation, "suffix"), "\n[The command completed with exit code 42.]");
    assert_eq!(observation["message"], "Command `(exit 42)` executed with exit code 42.");
    assert_eq!(server.output("echo $?"), "42");
}

#[test]
fn the_shell_remembers() {
    let server = Server::start();
    server.output("mkdir -p 'a \"b\\' && cd 'a \"b\\' && export X=1 && f() { echo f $X; }");
    assert_eq!(server.output("f"), "f 1");
    let observation = server.run("pwd");
    let expected = server.path("a \"b\\");
    assert_eq!(
        (content(&observation), metadata(&observation, "working_dir")),
        (&*expected, &*expected)
    );
}

#[test]
fn variables_are_set_as_the_client_sets_them() {
    let server = Server::start();
    server.output(r#"export A="x \"y\" z"; export B="2";"#);
    server.output(r#"grep -q 'A' ~/.bashrc || echo "export A=\"x\"" >> ~/.bashrc"#);
    assert_eq!(server.output("echo \"$A$B\""), "x \"y\" z2");
}

#[test]
fn nothing_runs_so_there_is_nothing_to_wait_for() {
    let server = Server::start();
    for (observation, text) in [
        (server.run(""), "ERROR: No previous running command to retrieve logs from."),
        (server.run("  "), "ERROR: No previous running command to retrieve logs from."),
        (server.input("x"), "ERROR: No previous running command to interact with."),
        (server.input("C-c"), "ERROR: No previous running command to interact with."),
    ] {
        assert_eq!((content(&observation), exit_code(&observation)), (text, -1));
        assert_eq!(observation["extras"]["command"], "");
        assert_eq!((metadata(&observation, "prefix"), metadata(&observation, "suffix")), ("", ""));
    }
    assert_eq!(server.output("echo ok"), "ok");
}

#[test]
fn several_commands_are_refused() {
    let server = Server::start();
    let observation = server.run("touch one\ntouch two # and\n# more");
    assert_eq!(observation["observation"], "error");
    let text = content(&observation);
    assert!(text.contains("Cannot execute multiple commands at once"), "{text}");
    assert!(text.contains("\n(1) touch one\n(2) touch two # and\n# more"), "{text}");
    assert_eq!(server.output("ls"), "");
    assert_eq!(server.output("for i in 1 2; do\n  echo $i\ndone"), "1\n2");
    assert_eq!(server.output("echo a; echo b && echo c | cat"), "a\nb\nc");
    assert_eq!(server.output("cat <<EOF\nx\n  y\nEOF"), "x\n  y");
}

#[test]
fn no_depth_of_nesting_ends_the_server_or_holds_it_up() {
    let server = Server::start();
    for text in
        ["{ ".repeat(20_000), "( ".repeat(60), "$(".repeat(20_000), "case x in a) ".repeat(30)]
    {
        let observation = server.action_within("run", json!({ "command": text }), Some(20.0));
        // Bash gets the text; its result does not matter here.
        assert_eq!(observation["observation"], "run", "{observation}");
        assert_ne!(exit_code(&observation), 0);
        assert_eq!(server.get("/alive").json(), json!({"status": "ok"}));
        server.action("run", json!({"command": "C-c", "is_input": true}));
        assert_eq!(server.output("echo hi"), "hi");
    }
}

#[test]
fn text_reaches_bash_byte_for_byte() {
    let server = Server::start();
    server.output("mkdir d && echo x > d/f");
    for (command, output) in [
        (r"echo a\|cat", "a|cat"),
        (r"echo a\;b", "a;b"),
        (r"echo x\&y", "x&y"),
        (r"echo x\>y", "x>y"),
        ("echo x;", "x"),
        (r"find d -type f -exec grep -l x {} \;", "d/f"),
        ("echo \"!!\"", "!!"),
        ("echo 'ä 🦀'", "ä 🦀"),
        ("echo -n x", "x"),
        ("printf 'a\\tb\\n'", "a       b"),
        ("printf '\\033[31mred\\033[0m\\n'", "red"),
        ("printf '10%%\\r100%%\\n'", "100%"),
        ("printf 'x%.0s' {1..1500}", &"x".repeat(1500)),
        ("echo a \\\n  b", "a b"),
    ] {
        assert_eq!(server.output(command), output, "{command}");
    }
    // Names of keys are ordinary words.
    for word in ["Enter", "Up", "Space"] {
        assert_eq!(exit_code(&server.run(word)), 127, "{word}");
    }
}

#[test]
fn a_comment_does_nothing() {
    let server = Server::start();
    server.run("(exit 7)");
    let observation = server.run("# only a comment");
    assert_eq!((exit_code(&observation), content(&observation)), (7, ""));
}

#[test]
fn a_hard_limit_leaves_the_command_running() {
    let server = Server::start();
    let args = json!({"command": "mkfifo go; echo begun; read x < go; echo end"});
    let observation = server.action_within("run", args, Some(1.5));
    assert_eq!(exit_code(&observation), -1);
    assert_eq!(observation["extras"]["metadata"]["pid"], -1);
    for field in NO_METADATA {
        assert!(observation["extras"]["metadata"][field].is_null(), "{observation}");
    }
    assert_eq!(metadata(&observation, "prefix"), "");
    let suffix = metadata(&observation, "suffix");
    assert!(suffix.starts_with("\n[The command timed out after 1.5 seconds. "), "{suffix}");
    for choice in ["''", "input", "C-c", "C-z", "C-d", "timeout"] {
        assert!(suffix.contains(choice), "{suffix}");
    }
    assert!(suffix.ends_with(']'));

    let refused = server.run("echo new");
    assert_eq!(exit_code(&refused), -1);
    let suffix = metadata(&refused, "suffix");
    let begin =
        "\n[Your command \"echo new\" is NOT executed. The previous command is still running";
    assert!(suffix.starts_with(begin) && suffix.contains("`is_input` = `true`"), "{suffix}");
    let refused_key = server.run("C-c");
    assert_eq!(exit_code(&refused_key), -1, "a key is sent only as input");

    let again = server.action_within("run", json!({"command": ""}), Some(3.0));
    assert!(metadata(&again, "suffix").contains("timed out after 3.0 seconds"), "{again}");
    assert_eq!(metadata(&again, "prefix"), "[Below is the output of the previous command.]\n");

    fs::write(server.path("go"), "x\n").unwrap();
    let last = server.settle(server.run(""));
    let told = [&observation, &refused, &refused_key, &again, &last].map(content).concat();
    assert_eq!(told.replace('\n', ""), "begunend");
    assert_eq!((exit_code(&last), metadata(&last, "prefix")), (0, ""));
    assert_eq!(last["extras"]["command"], "");
}

#[test]
fn silence_ends_the_wait_and_each_poll_shows_new_output() {
    let server = Server::impatient();
    server.output("mkfifo pipe");
    let first = server.run("while read -r line; do echo $line; done 0<> pipe");
    assert_eq!(exit_code(&first), -1);
    let suffix = metadata(&first, "suffix");
    assert!(suffix.starts_with("\n[The command has no new output after 1 seconds. "), "{suffix}");
    for number in 1..=5 {
        let mut pipe = fs::OpenOptions::new().write(true).open(server.path("pipe")).unwrap();
        std::io::Write::write_all(&mut pipe, format!("{number}\n").as_bytes()).unwrap();
        let observation = poll(&server);
        assert_eq!(content(&observation), number.to_string());
        assert_eq!(
            metadata(&observation, "prefix"),
            "[Below is the output of the previous command.]\n"
        );
    }
    let ended = server.settle(server.input("C-c"));
    assert_eq!((exit_code(&ended), content(&ended)), (130, "^C"));
}

#[test]
fn a_blocking_command_may_be_silent() {
    let server = Server::impatient();
    let args = json!({"command": "sleep 2.5; echo done", "blocking": true});
    let observation = server.action_within("run", args, Some(60.0));
    assert_eq!((exit_code(&observation), content(&observation)), (0, "done"));
}

#[test]
fn input_goes_to_the_program() {
    let server = Server::start();
    start(&server, "read -p 'Enter name: ' name && echo \"Hello $name\"", "Enter name:");
    let answer = server.input("John");
    assert_eq!((content(&answer), exit_code(&answer)), ("Hello John", 0));
    assert_eq!(metadata(&answer, "prefix"), "");

    let program = "import sys; print(\"ready\"); print(sys.stdin.read().upper())";
    start(&server, &format!("python3 -c '{program}'"), "ready");
    server.action_within("run", json!({"command": "abc", "is_input": true}), Some(0.1));
    let ended = server.input("C-d");
    assert_eq!(exit_code(&ended), 0);
    assert!(content(&ended).contains("ABC"), "{ended}");
    let suffix = metadata(&ended, "suffix");
    assert_eq!(suffix, "\n[The command completed with exit code 0. CTRL+D was sent.]");
}

#[test]
fn an_unfinished_command_waits_for_its_rest() {
    let server = Server::start();
    let first = server.run("cat << EOF");
    let suffix = metadata(&first, "suffix");
    assert!(suffix.starts_with("\n[The command has no new output after 600 seconds. "), "{suffix}");
    assert!(suffix.contains("It is incomplete"), "{suffix}");
    for line in ["  first", "second \\; | & line"] {
        assert_eq!(exit_code(&server.input(line)), -1);
    }
    let refused = server.run("ls");
    assert!(metadata(&refused, "suffix").contains("is NOT executed"), "{refused}");
    let last = server.input("EOF");
    assert_eq!((exit_code(&last), content(&last)), (0, "  first\nsecond \\; | & line"));
    server.run("echo 'never closed");
    let given_up = server.input("C-c");
    assert_eq!((exit_code(&given_up), content(&given_up)), (130, "^C"));
    assert_eq!(server.output("echo $?"), "130");
    // A blocking command does not wait for output that cannot come, and does not mention a time.
    let blocking = json!({"command": "for x in 1 2; do", "blocking": true});
    let observation = server.action_within("run", blocking, Some(30.0));
    let suffix = metadata(&observation, "suffix");
    assert!(suffix.starts_with("\n[The command has not begun. It is incomplete"), "{suffix}");
    assert!(!suffix.contains("seconds"), "{suffix}");
    assert_eq!(content(&server.input("echo $x; done")), "1\n2");
}

#[test]
fn keys_stop_and_interrupt() {
    let server = Server::start();
    let idle = server.run("C-c");
    assert_eq!((exit_code(&idle), content(&idle)), (130, "^C"));
    assert_eq!(server.output("echo $?"), "130");
    start(&server, "sh -c 'echo ready; exec sleep 1000'", "ready");
    let ended = server.input("C-c");
    assert_eq!((exit_code(&ended), content(&ended)), (130, "^C"));
    let suffix = metadata(&ended, "suffix");
    assert_eq!(suffix, "\n[The command completed with exit code 130. CTRL+C was sent.]");
    start(&server, "sh -c 'echo ready; exec sleep 1000'", "ready");
    let stopped = server.input("C-z");
    assert_eq!(exit_code(&stopped), 148, "{stopped}");
    assert!(content(&stopped).contains("Stopped"), "{stopped}");
    server.output("kill %1; wait 2>/dev/null; :");
}

#[test]
fn a_background_job_holds_nothing_back() {
    let server = Server::start();
    let observation = server.run("sleep 1000 &");
    let pid = observation["extras"]["metadata"]["pid"].as_u64().unwrap();
    assert_eq!(content(&observation), format!("[1] {pid}"));
    assert_eq!(server.output("jobs -p"), pid.to_string());
    assert_eq!(server.run("true")["extras"]["metadata"]["pid"].as_u64(), Some(pid));
    server.output("kill %1; wait 2>/dev/null; :");
}

#[test]
fn exit_gives_a_new_shell_in_the_same_place() {
    let server = Server::start();
    server.output("mkdir sub && cd sub && X=1");
    let observation = server.run("exit 5");
    assert_eq!(exit_code(&observation), 5);
    let suffix = metadata(&observation, "suffix");
    assert!(
        suffix.starts_with("\n[The command completed with exit code 5. The shell ended"),
        "{suffix}"
    );
    assert_eq!(server.output("echo \"${PWD##*/} $X\""), "sub");
    server.run("set -e");
    let failed = server.run("false");
    assert_eq!(exit_code(&failed), 1, "{failed}");
    let ended = server.run("C-d");
    assert!(metadata(&ended, "suffix").contains("CTRL+D was sent."), "{ended}");
    assert_eq!(server.output("echo ${PWD##*/}"), "sub");
}

#[test]
fn a_static_command_has_a_shell_of_its_own() {
    let server = Server::start();
    server.output("mkdir other && cd other && X=1");
    let run = |args: Value| server.action("run", args);
    let observation = run(json!({"command": "pwd; echo \"[$X]\"; cd /", "is_static": true}));
    assert_eq!(content(&observation), format!("{}\n[]", server.work().display()));
    let elsewhere = json!({"command": "pwd", "is_static": true, "cwd": "/usr", "hidden": true});
    let observation = run(elsewhere);
    assert_eq!(content(&observation), "/usr");
    assert_eq!(observation["extras"]["hidden"], true);
    assert_eq!(server.output("echo ${PWD##*/} $X"), "other 1");
    let missing = run(json!({"command": "pwd", "is_static": true, "cwd": "/no/such"}));
    assert_eq!(missing["observation"], "error", "{missing}");
}

#[test]
fn a_static_command_does_not_wait_for_the_main_one() {
    let server = Server::start();
    server.output("mkfifo go");
    server.action_within("run", json!({"command": "read x < go"}), Some(0.1));
    let observation = server.action("run", json!({"command": "echo beside", "is_static": true}));
    assert_eq!(content(&observation), "beside");
    fs::write(server.path("go"), "x\n").unwrap();
    assert_eq!(exit_code(&server.settle(server.run(""))), 0);
}

#[test]
fn a_large_heredoc_arrives_whole() {
    let server = Server::start();
    let lines = (0..1000)
        .fold(String::new(), |text, n| text + &format!("line {n:04} $x `y` 'z' \"q\" \\\\ end\n"));
    assert!(lines.len() > 28_000);
    assert_eq!(server.output(&format!("cat > big <<'EOF'\n{lines}EOF")), "");
    assert_eq!(fs::read_to_string(server.path("big")).unwrap(), lines);
}

#[test]
fn close_ends_the_shell_and_the_next_command_gets_another() {
    let server = Server::start();
    server.output("X=1; cd /");
    let closed = server.action("close", json!({}));
    assert_eq!(closed["observation"], "success");
    let again = server.action("close", json!({}));
    assert_eq!(again["observation"], "success", "closing twice is no error");
    assert_eq!(server.output("echo \"[$X]\" $PWD"), format!("[] {}", server.work().display()));
}

#[test]
fn output_begins_the_silence_anew() {
    let server = Server::start_with(&Options { quiet: Some(2), ..Options::default() });
    let observation = server.run("for i in 1 2 3 4 5 6; do echo $i; sleep 0.5; done");
    assert_eq!((exit_code(&observation), content(&observation)), (0, "1\n2\n3\n4\n5\n6"));
}

#[test]
fn git_never_waits_for_a_key() {
    let pager = "sh -c 'cat; read -r key </dev/tty'";
    let variables = ["PAGER", "GIT_PAGER"].map(|name| (name, pager.to_owned())).to_vec();
    let server = Server::start_with(&Options { variables, ..Options::default() });
    server.output("git init -q && git config user.name a && git config user.email a@example.org");
    server.output("git commit -q --allow-empty -m told");
    let observation = server.action_within("run", json!({"command": "git log"}), Some(20.0));
    assert_eq!(exit_code(&observation), 0, "{observation}");
    assert!(content(&observation).contains("told"), "{observation}");
}

#[test]
fn static_commands_do_not_wait_for_the_main_shell() {
    let server = Server::start();
    server.output("mkfifo go");
    std::thread::scope(|scope| {
        let main = scope.spawn(|| server.output("touch begun; read -r x < go; echo $x"));
        until_exists(&server.work().join("begun"));
        let args = json!({"command": "echo beside", "is_static": true, "hidden": true});
        let beside = server.action("run", args);
        assert_eq!((exit_code(&beside), content(&beside)), (0, "beside"));
        assert!(!main.is_finished());
        fs::write(server.path("go"), "on\n").unwrap();
        assert_eq!(main.join().unwrap(), "on");
    });
}

#[test]
fn commands_run_in_the_order_in_which_they_came() {
    let server = Server::start();
    server.output("mkfifo go");
    let mut clients = Vec::new();
    for number in 0..6 {
        let command = match number {
            0 => "touch begun; read -r x < go; echo 0 >> order".to_owned(),
            _ => format!("echo {number} >> order"),
        };
        let event = json!({"action": {"action": "run", "args": {"command": command}}}).to_string();
        let mut client = TcpStream::connect(server.address()).unwrap();
        let head = "POST /execute_action HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n";
        let key = server.key_line();
        write!(client, "{head}{key}Content-Length: {}\r\n\r\n{event}", event.len()).unwrap();
        clients.push(client);
        // A command is answered after the one before it, so that one has arrived, too.
        assert_eq!(server.get("/alive").status, 200);
    }
    until_exists(&server.work().join("begun"));
    fs::write(server.path("go"), "on\n").unwrap();
    for mut client in clients {
        let mut answer = String::new();
        client.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
    assert_eq!(server.output("cat order"), "0\n1\n2\n3\n4\n5");
}

/// The parser of the grammar panics on the first two. What it cannot parse is left to bash.
#[test]
fn texts_that_the_grammar_cannot_bear_harm_nobody() {
    let mut server = Server::start();
    let deep = "$( ".repeat(3000);
    for text in ["9999999999[>x", "$(<< >\n", "9999999999[>x\necho b", &deep] {
        let observation = server.run(text);
        assert!(observation["observation"].is_string(), "{text:?}: {observation}");
        assert_eq!(server.get("/alive").text, r#"{"status":"ok"}"#);
        // Ends what may be unfinished.
        server.input("C-c");
    }
    assert_eq!(server.output("echo still here"), "still here");
    let several = server.run("echo a\necho b");
    assert!(content(&several).contains("multiple commands"), "{several}");
    assert_eq!(server.end(), Some(0));
}
