//! Commands that outlive a wait, ask for input, or take over the screen.

#![allow(clippy::unwrap_used, reason = "this is test code, also outside of test functions")]

use std::{
    fs,
    process::Command,
    time::{Duration, Instant},
};

use sandbox_shells::{
    Colours, Ended, InputHint, Job, Key, OnInput, Phase, Progress, Shell, Signal, StillRunning,
    Wait, WaitEnd, render,
};
use sandbox_test_support::{
    Home, LIMIT, ended, finish, recorders, run, start_of, test, text_of, until_printed, within,
};

async fn still_running(job: &Job, wait: Wait) -> StillRunning {
    match job.wait(wait).await.unwrap() {
        Progress::Running(running) => running,
        Progress::Finished(result) => panic!("ended: {result:?}"),
    }
}

fn screen(shell: &Shell, job: &Job) -> String {
    let output = shell.log().read(job.output().unwrap()).unwrap();
    render(&output, shell.size(), Colours::Strip)
}

async fn press(shell: &Shell, keys: &[&str]) {
    let keys = keys.iter().map(|key| key.parse::<Key>().unwrap()).collect::<Vec<_>>();
    shell.press(keys).await.unwrap();
}

#[test]
fn a_wait_ends_but_the_command_goes_on() {
    test(async {
        let home = Home::new();
        let shells = home.open().await;
        let shell = home.shell(&shells, "a").await;
        let fifo = home.work().join("gate");
        finish(&shell, "mkfifo gate").await;

        let job = shell
            .run("echo one; read -r line <gate; echo two; sleep 0.1; echo three")
            .await
            .unwrap();
        let begun = Instant::now();
        let running = still_running(&job, Wait::until_quiet(Duration::from_millis(400))).await;
        assert!(begun.elapsed() >= Duration::from_millis(400));
        assert_eq!((running.reason, running.input), (WaitEnd::Quiet, InputHint::None));
        assert_eq!(shell.log().read(running.output.clone()).unwrap(), b"one\r\n");

        let running = still_running(&job, Wait::at_most(Duration::from_millis(100))).await;
        assert_eq!(running.reason, WaitEnd::Limit);
        fs::write(&fifo, "go\n").unwrap();
        let result = ended(&job).await;
        // Output since the earlier answer begins at its end offset.
        let new = shell.log().read(running.output.end..result.output.end).unwrap();
        assert_eq!(new, b"two\r\nthree\r\n");

        // Continuous output postpones the limit for silence.
        let job = shell.run("for i in {1..14}; do echo $i; sleep 0.2; done").await.unwrap();
        let wait = Wait { quiet: Some(Duration::from_secs(2)), ..Wait::at_most(LIMIT) };
        assert!(matches!(job.wait(wait).await.unwrap(), Progress::Finished(_)));

        // Several callers may wait at once, and the shell knows its latest command.
        let job = shell.run("sleep 0.2; (exit 6)").await.unwrap();
        let other = shell.latest().unwrap();
        let (first, second) = tokio::join!(ended(&job), ended(&other));
        assert_eq!((first.exit_code, second.exit_code), (6, 6));
        shells.shut_down().await.unwrap();
    });
}

#[test]
fn waiting_for_input_is_detected_and_does_not_count_as_an_end() {
    test(async {
        let home = Home::new();
        let shells = home.open().await;
        let shell = home.shell(&shells, "a").await;
        for (text, hint, answer, end) in [
            ("read -r -p 'name? ' x; echo \"got $x\"", InputHint::Line, "bob\r", "got bob\n"),
            (
                "read -r -s -p 'password: ' x; echo \"[${#x}]\"",
                InputHint::Hidden,
                "hidden\r",
                "[6]\n",
            ),
            ("read -r -n 1 -p 'sure? [y/n] ' x; echo \" $x\"", InputHint::Keys, "y", " y\n"),
            ("cat", InputHint::Line, "\x04", ""),
            (
                "python3 -c 'import getpass; print(len(getpass.getpass()))'",
                InputHint::Hidden,
                "secret\r",
                "6\n",
            ),
        ] {
            let job = shell.run(text).await.unwrap();
            let running = still_running(&job, Wait::until_input(LIMIT)).await;
            assert_eq!((running.reason, running.input), (WaitEnd::Input, hint), "{text}");
            shell.type_bytes(answer).await.unwrap();
            let result = ended(&job).await;
            let output = text_of(&shell, &result);
            assert!(output.ends_with(end), "{text}: {output:?}");
            assert!(!output.contains("secret"), "a password is not echoed");
        }
        // Also when the question comes after the first check, or some time before the read.
        let late = Wait { on_input: OnInput::Return, ..Wait::forever() };
        for text in [
            "echo working; sleep 0.5; read -r -p 'name? ' x",
            "printf 'name? '; sleep 0.5; read -r x",
        ] {
            let job = shell.run(text).await.unwrap();
            let running = within("the question", still_running(&job, late)).await;
            assert_eq!(
                (running.reason, running.input),
                (WaitEnd::Input, InputHint::Line),
                "{text}"
            );
            shell.type_bytes("bob\r").await.unwrap();
            assert_eq!(ended(&job).await.exit_code, 0);
        }
        let job = shell.run("sleep 1").await.unwrap();
        let wait = Wait { on_input: OnInput::Return, ..Wait::at_most(Duration::from_millis(500)) };
        assert_eq!(
            still_running(&job, wait).await.input,
            InputHint::None,
            "sleeping is not asking"
        );
        ended(&job).await;
        shells.shut_down().await.unwrap();
    });
}

#[test]
fn interactive_programs_can_be_used() {
    test(async {
        let home = Home::new();
        let shells = home.open().await;
        let shell = home.shell(&shells, "a").await;

        let job = shell.run("python3 -i -q").await.unwrap();
        until_printed(&shell, 0, ">>> ").await;
        shell.type_bytes("x = 6 * 7\rprint('answer', x)\r").await.unwrap();
        until_printed(&shell, start_of(&job).await, "answer 42").await;
        let running = still_running(&job, Wait::until_input(LIMIT)).await;
        assert_eq!(running.reason, WaitEnd::Input);
        press(&shell, &["C-d"]).await;
        assert_eq!(ended(&job).await.exit_code, 0);

        let job = shell.run("vim -u NONE -N new.txt").await.unwrap();
        until_printed(&shell, start_of(&job).await, "new.txt").await;
        still_running(&job, Wait::until_input(LIMIT)).await;
        shell.type_bytes("ihello from vim").await.unwrap();
        until_printed(&shell, start_of(&job).await, "vim").await;
        press(&shell, &["ESC"]).await;
        shell.type_bytes(":wq\r").await.unwrap();
        assert_eq!(ended(&job).await.exit_code, 0);
        assert_eq!(run(&shell, "cat new.txt").await, (0, "hello from vim\n".into()));

        let job = shell.run("seq 1 500 | less").await.unwrap();
        let running = still_running(&job, Wait::until_input(LIMIT)).await;
        assert_eq!(running.input, InputHint::Keys);
        assert!(screen(&shell, &job).starts_with("1\n2\n3\n"));
        shell.type_bytes("G").await.unwrap();
        until_printed(&shell, start_of(&job).await, "500").await;
        shell.type_bytes("q").await.unwrap();
        assert_eq!(ended(&job).await.exit_code, 0);

        // A tmux with its own server inside the pane.
        let socket = home.work().join("inner");
        let nested = format!(
            "tmux -S {} -f /dev/null new-session 'echo inside; read -r x'",
            socket.display()
        );
        let job = shell.run(nested).await.unwrap();
        until_printed(&shell, start_of(&job).await, "inside").await;
        shell.type_bytes("\r").await.unwrap();
        assert_eq!(ended(&job).await.exit_code, 0);
        assert_eq!(run(&shell, "echo after").await, (0, "after\n".into()));
        shells.shut_down().await.unwrap();
    });
}

#[test]
fn typed_text_arrives_unchanged_however_long_it_is_and_whatever_it_contains() {
    test(async {
        let home = Home::new();
        let shells = home.open().await;
        let shell = home.shell(&shells, "a").await;
        finish(&shell, "stty -echo").await;
        // Names of keys, characters that separate tmux commands, and more than fits into one tmux command.
        let mut text = String::from("Up\nEnter\nC-c\n;\nsend-keys;\n#{pid} %H $x\n");
        while text.len() < 100_000 {
            text.push_str("a line like many others, with 'quotes', \\ and ünïcödé\n");
        }
        let job = shell.run("cat >typed; (exit 3)").await.unwrap();
        job.started().await.unwrap();
        shell.type_bytes(text.replace('\n', "\r") + "\x04").await.unwrap();
        assert_eq!(ended(&job).await.exit_code, 3);
        assert_eq!(fs::read_to_string(home.work().join("typed")).unwrap(), text);
        shells.shut_down().await.unwrap();
    });
}

#[test]
fn background_jobs_live_on_and_may_print_later() {
    test(async {
        let home = Home::new();
        let shells = home.open().await;
        let shell = home.shell(&shells, "a").await;
        finish(&shell, "mkfifo gate").await;
        let result = finish(&shell, "{ read -r x <gate; echo late; } &").await;
        assert_eq!(result.exit_code, 0);
        let from = shell.log().len().unwrap();
        fs::write(home.work().join("gate"), "go\n").unwrap();
        until_printed(&shell, from, "late").await;
        assert_eq!(run(&shell, "jobs -p | wc -l").await.0, 0);
        let (_, output) = run(&shell, "set +o noclobber; : device; true & wait").await;
        assert!(output.starts_with("[1] "), "{output}");
        assert_eq!(run(&shell, "echo next").await, (0, "next\n".into()));
        shells.shut_down().await.unwrap();
    });
}

#[test]
fn a_persons_program_in_the_foreground_is_respected() {
    test(async {
        let home = Home::new();
        let shells = home.open().await;
        let shell = home.shell(&shells, "a").await;
        let from = shell.log().len().unwrap();
        shell.type_bytes("sh -c 'echo by hand; exec cat'\r").await.unwrap();
        until_printed(&shell, from, "by hand\r\n").await;
        let error = shell.run("echo x").await.unwrap_err();
        assert!(matches!(error, sandbox_shells::Error::OccupiedByHand(_)), "{error}");
        // An unfinished typed line is cleared, not run.
        let from = shell.log().len().unwrap();
        press(&shell, &["C-d"]).await;
        until_printed(&shell, from, "\x1b[?2004h").await;
        shell.type_bytes("echo half a li").await.unwrap();
        until_printed(&shell, from, "half a li").await;
        assert_eq!(run(&shell, "echo whole").await, (0, "whole\n".into()));
        shells.shut_down().await.unwrap();
    });
}

fn tmux(home: &Home, arguments: &[&str]) -> String {
    let mut command = Command::new("tmux");
    command.arg("-S").arg(home.root().join("tmux")).env_remove("TMUX").args(arguments);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Runs a command in the shell `a`, and checks that it was sent once: with each attempt it gets other nonces.
async fn run_at_first_attempt(home: &Home, shell: &Shell, text: &str) -> (i32, String) {
    let digests = || fs::read(home.root().join("shells/a/expected")).unwrap();
    let job = shell.run(text).await.unwrap();
    let sent = digests();
    let result = ended(&job).await;
    assert_eq!(digests(), sent, "{text:?} was sent again");
    (result.exit_code, text_of(shell, &result))
}

#[test]
fn a_person_in_copy_mode_does_not_delay_commands() {
    test(async {
        let home = Home::new();
        let shells = home.open().await;
        let shell = home.shell(&shells, "a").await;
        let enter_copy_mode = || tmux(&home, &["copy-mode", "-t", "=s-a:"]);
        enter_copy_mode();
        assert_eq!(
            run_at_first_attempt(&home, &shell, "echo through").await,
            (0, "through\n".into())
        );
        // Input for a program gets through as well.
        let job = shell.run("read -r line; echo \"<$line>\"; sleep 1000").await.unwrap();
        let from = start_of(&job).await;
        enter_copy_mode();
        shell.type_bytes("typed\r").await.unwrap();
        until_printed(&shell, from, "<typed>").await;
        enter_copy_mode();
        press(&shell, &["C-c"]).await;
        assert_eq!(ended(&job).await.exit_code, 130);
        // While nothing is typed, the person stays in copy mode.
        enter_copy_mode();
        assert_eq!(
            tmux(&home, &["display-message", "-p", "-t", "=s-a:", "#{pane_in_mode}"]),
            "1\n"
        );
        shells.shut_down().await.unwrap();
    });
}

#[test]
fn an_unfinished_command_at_the_prompt_is_discarded() {
    test(async {
        let home = Home::new();
        let shells = home.open().await;
        let shell = home.shell(&shells, "a").await;
        assert_eq!(run(&shell, "(exit 3)").await.0, 3);
        for (typed, setting) in [
            ("cat <<END\r", "trap 'echo trapped' INT"),
            ("for x in 1 2\r", "trap '' INT"),
            ("echo \"open\r", "set -o vi"),
            ("echo $(ls \r (\r", "PS1= PS2="),
            ("if true\rthen echo '\r", "unset PS1"),
            ("echo \\\r", "true"),
        ] {
            for line in typed.split_inclusive('\r') {
                let from = shell.log().len().unwrap();
                shell.type_bytes(line).await.unwrap();
                // bash begins to edit the next line.
                until_printed(&shell, from, "\x1b[?2004h").await;
            }
            // Sending it again would succeed without the behaviour tested here.
            assert_eq!(
                run_at_first_attempt(&home, &shell, "echo $? ${PIPESTATUS[@]}").await,
                (0, "3 3\n".into()),
                "{typed:?}"
            );
            assert_eq!(run(&shell, format!("{setting}; (exit 3)")).await, (3, String::new()));
        }
        assert_eq!(shell.status().restarts, 0);
        shells.shut_down().await.unwrap();
    });
}

/// Markers may arrive late, for instance from a recorder that waits for its disk.
#[test]
fn a_command_whose_markers_are_late_is_not_run_again() {
    test(async {
        let home = Home::new();
        let shells = home.open().await;
        let shell = home.shell(&shells, "a").await;
        let recorder = recorders(&home)[0];
        let signal = |name: &str| {
            let sent = Command::new("kill").args([name, &recorder.to_string()]).status().unwrap();
            assert!(sent.success());
        };
        signal("-STOP");
        let job = shell.run("echo once >> times").await.unwrap();
        // Longer than the time after which a command is sent again.
        let wait = Wait { limit: Some(Duration::from_secs(7)), ..Wait::default() };
        still_running(&job, wait).await;
        signal("-CONT");
        assert_eq!(ended(&job).await.exit_code, 0);
        assert_eq!(fs::read_to_string(home.work().join("times")).unwrap(), "once\n");
        shells.shut_down().await.unwrap();
    });
}

/// `read -e`, typed by a person, edits a line like the prompt, and looks like the prompt from outside.
#[test]
fn a_command_that_is_interrupted_before_it_begins_never_does() {
    test(async {
        let home = Home::new();
        let shells = home.open().await;
        let shell = home.shell(&shells, "a").await;
        finish(&shell, "true").await;
        let start = shell.log().len().unwrap();
        // It takes the keys that run the command as its input.
        shell.type_bytes("read -ep 'who? ' x\r").await.unwrap();
        until_printed(&shell, start, "\x1b[?2004hwho? ").await;
        let job = within("sending the command", shell.run("echo one >>times")).await.unwrap();
        shell.press(vec![Key::interrupt()]).await.unwrap();
        assert_eq!(ended(&job).await.exit_code, -1);
        assert_eq!(run(&shell, "echo two >>times; (exit 2)").await.0, 2);
        assert_eq!(fs::read_to_string(home.work().join("times")).unwrap(), "two\n");
        shells.shut_down().await.unwrap();
    });
}

#[test]
fn unfinished_key_sequences_and_traps_do_not_delay_a_command() {
    test(async {
        let home = Home::new();
        let shells = home.open().await;
        let shell = home.shell(&shells, "a").await;
        finish(&shell, "trap 'exit 3' INT; v=1").await;
        for key in ["ESC", "C-x", "C-v"] {
            press(&shell, &[key]).await;
            assert_eq!(run(&shell, "echo v=$v").await, (0, "v=1\n".into()), "{key}");
        }
        // A DEBUG trap that blocks our builtin prevents the command from beginning, and this is reported.
        finish(&shell, "trap - INT; shopt -s extdebug; trap '[[ $BASH_COMMAND == echo* ]]' DEBUG")
            .await;
        assert_eq!(finish(&shell, "echo hi").await.exit_code, -1);
        shell.close().await.unwrap();
        shells.shut_down().await.unwrap();
    });
}

#[test]
fn a_bash_that_replaced_the_shell_by_exec_gets_no_keys() {
    test(async {
        let home = Home::new();
        let shells = home.open().await;
        let shell = home.shell(&shells, "a").await;
        let job = shell.run("exec bash --norc").await.unwrap();
        let from = start_of(&job).await;
        until_printed(&shell, from, "bash-").await;
        let progress = still_running(&job, Wait::at_most(Duration::from_secs(1))).await;
        assert_eq!(progress.input, InputHint::Keys);
        shell.type_bytes("echo here; exit 6\r").await.unwrap();
        let result = ended(&job).await;
        assert_eq!((result.exit_code, &result.ended), (6, &Ended::ShellExited));
        assert!(!text_of(&shell, &result).contains("77"), "{}", text_of(&shell, &result));
        shells.shut_down().await.unwrap();
    });
}

#[test]
fn a_program_that_has_left_its_terminal_has_no_foreground_to_signal() {
    test(async {
        let home = Home::new();
        let shells = home.open().await;
        let shell = home.shell(&shells, "a").await;
        let leave = "import fcntl, os, termios, time; fcntl.ioctl(0, termios.TIOCNOTTY); \
            os.write(1, b'left'); time.sleep(1000)";
        let job = shell.run(format!("exec python3 -c \"{leave}\"")).await.unwrap();
        until_printed(&shell, start_of(&job).await, "left").await;
        shell.signal(Signal::Terminate).await.unwrap();
        assert!(job.result().is_none());
        within("closing", shell.close()).await.unwrap();
        // Its output can still be read although the shell is gone.
        let result = job.result().unwrap();
        assert_eq!(result.ended, Ended::ShellClosed);
        assert!(text_of(&shell, &result).starts_with("left"));
        shells.shut_down().await.unwrap();
    });
}

#[test]
fn background_jobs_that_print_continuously_do_not_split_markers() {
    test(async {
        let home = Home::new();
        let shells = home.open().await;
        let shell = home.shell(&shells, "a").await;
        let noise = "(while :; do printf '\\033]7717;noise;%s\\007{\"x\":1}\\n' $RANDOM; done) &";
        finish(&shell, format!("{noise} {noise}")).await;
        for code in 0..40 {
            assert_eq!(finish(&shell, format!("(exit {code})")).await.exit_code, code);
        }
        finish(&shell, "kill %1 %2").await;
        shells.shut_down().await.unwrap();
    });
}

#[test]
fn a_command_whose_key_went_to_another_reader_is_sent_again() {
    test(async {
        let home = Home::new();
        let shells = home.open().await;
        let shell = home.shell(&shells, "a").await;
        let from = shell.log().len().unwrap();
        shell.type_bytes("read -ep one: a; read -ep two: b; read -ep three: c\r").await.unwrap();
        until_printed(&shell, from, "one:").await;
        until_printed(&shell, from, "\x1b[?2004l").await;
        assert_eq!(run(&shell, "echo through").await, (0, "through\n".into()));
        assert_eq!(shell.status().restarts, 0);
        shells.shut_down().await.unwrap();
    });
}

/// A caller that went away before the shell was ready has no handle of the command and cannot know that it runs.
#[test]
fn a_command_whose_caller_has_gone_away_is_not_begun() {
    test(async {
        let home = Home::new();
        let gate = home.work().join("gate");
        Command::new("mkfifo").arg(&gate).status().unwrap();
        let shells = home.open().await;
        let shell = home.shell(&shells, "a").await;
        fs::write(home.work().join(".bashrc"), "read -r x <~/gate").unwrap();
        let job = shell.run("exit 3").await.unwrap();
        let is_starting = async {
            while shell.status().phase != Phase::Starting {
                tokio::task::yield_now().await;
            }
        };
        within("the next shell", is_starting).await;
        let impatient = shell.run("echo ran >ran");
        let waited = tokio::time::timeout(Duration::from_millis(100), impatient).await;
        assert!(waited.is_err(), "the shell waits at the gate");
        let patient = tokio::spawn({
            let shell = shell.clone();
            async move { shell.run("ls ran; (exit 4)").await }
        });
        tokio::task::yield_now().await;
        fs::write(&gate, "go\n").unwrap();
        assert_eq!(ended(&job).await.exit_code, 3);
        let job = within("its turn", patient).await.unwrap();
        // The caller that went away was the first in the queue, and must not block the prompt for the next one.
        assert_eq!(ended(&job.unwrap()).await.exit_code, 4);
        assert!(!home.work().join("ran").exists());
        shells.shut_down().await.unwrap();
    });
}
