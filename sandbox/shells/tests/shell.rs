//! Shells on a real tmux: commands, their results, and what must not disturb them.

#![allow(clippy::unwrap_used, reason = "this is test code, also outside of test functions")]

use std::{fs, os::unix::ffi::OsStrExt as _, time::Duration};

use sandbox_shells::{
    Config, Ended, Error, Job, Key, Phase, Progress, Shells, Signal, Size, Wait, WaitEnd,
};
use sandbox_test_support::{
    Home, LIMIT, ended, finish, helper, id, raw, run, start_of, test, text_of, until_printed,
    within,
};

#[test]
fn results_contain_everything_about_a_command() {
    test(async {
        let home = Home::new();
        let shells = home.open().await;
        let shell = home.shell(&shells, "a").await;
        assert_eq!(shell.status().cwd, home.work().canonicalize().unwrap());

        let result = finish(&shell, "echo hi").await;
        assert_eq!(raw(&shell, &result), b"hi\r\n");
        assert_eq!((result.exit_code, &result.ended), (0, &Ended::AtPrompt));
        assert_eq!(result.cwd, shell.status().cwd);
        assert!(!result.user.is_empty() && !result.machine.is_empty());
        assert!(result.duration < Duration::from_secs(10));
        assert_eq!((result.background_pid, result.lost), (None, 0));

        assert_eq!(run(&shell, "(exit 7)").await, (7, String::new()));
        assert_eq!(run(&shell, "echo $?").await, (0, "7\n".into()), "$? is kept between commands");
        let result = finish(&shell, "sleep 50 &").await;
        let pid = result.background_pid.expect("a background process");
        assert_eq!(text_of(&shell, &result), format!("[1] {pid}\n"));
        assert_eq!(run(&shell, "kill %1; wait %1; echo $?").await.0, 0);

        let bin = home.work().join("bin");
        fs::create_dir(&bin).unwrap();
        fs::write(bin.join("python"), "").unwrap();
        let result = finish(&shell, "chmod +x bin/python; PATH=$PWD/bin:$PATH").await;
        assert_eq!(result.python.as_deref(), Some(bin.join("python").as_path()));
        // Much less than a second, because the recorder may have seen the start marker late.
        let result = finish(&shell, "sleep 1").await;
        assert!(result.duration >= Duration::from_millis(200), "{:?}", result.duration);
        shells.shut_down().await.unwrap();
    });
}

#[test]
fn commands_are_data() {
    test(async {
        let home = Home::new();
        let shells = home.open().await;
        let shell = home.shell(&shells, "a").await;
        for (text, output) in [
            ("cat <<'E'\n$x `y` \"z\" \\n\nE", "$x `y` \"z\" \\n\n"),
            ("cat <<E\n$((1+1))\nE\necho after", "2\nafter\n"),
            ("echo 'a\nb' \"c'd\" e\\ f", "a\nb c'd e f\n"),
            ("echo a\\;b; echo a\\|cat; echo x\\&y;", "a;b\na|cat\nx&y\n"),
            ("for i in 1 2\ndo\n  echo $i\ndone", "1\n2\n"),
            ("f() {\n  echo \"in f: $1\"\n}\nf x", "in f: x\n"),
            ("echo ünïcödé 日本 🎉", "ünïcödé 日本 🎉\n"),
            ("echo '!!' \"!x\"", "!! !x\n"),
            ("Up=1; echo Enter", "Enter\n"),
            ("printf 'no newline'", "no newline"),
            ("\n\n  echo indented\n\n", "indented\n"),
            ("# only a comment", ""),
            ("", ""),
            ("echo one; # comment\necho two", "one\ntwo\n"),
            ("declare -A map=([k]=v); alias say=echo", ""),
            ("say ${map[k]}", "v\n"),
            ("printf '%s' '###PS1JSON###'", "###PS1JSON###"),
            ("echo $PAGER $GIT_PAGER $MANPAGER $SYSTEMD_PAGER", "cat cat cat cat\n"),
        ] {
            assert_eq!(run(&shell, text).await, (0, output.into()), "{text:?}");
        }
        assert_eq!(run(&shell, "if then").await.0, 2, "a syntax error is a result");
        assert_eq!(run(&shell, "echo 'never closed").await.0, 2);
        let error = shell.run("echo a\0b").await.unwrap_err();
        assert!(matches!(error, Error::Invalid(_)), "{error}");

        let mut script = String::from("total=0\n");
        while script.len() < 1 << 20 {
            script.push_str(
                "total=$((total + 1)) # a line like many others, with 'quotes' in \"it\"\n",
            );
        }
        let lines = script.lines().count() - 1;
        script.push_str("echo $total");
        assert_eq!(run(&shell, script).await, (0, format!("{lines}\n")));
        shells.shut_down().await.unwrap();
    });
}

#[test]
fn directories_with_odd_names_are_reported_exactly() {
    test(async {
        let home = Home::new();
        let shells = home.open().await;
        let shell = home.shell(&shells, "a").await;
        let names: [&[u8]; 5] = [
            b"a \"b\" \\c",
            b"semi;colon%41",
            b"new\nline\x07bell\x1besc",
            "ünï".as_bytes(),
            b"\xff\xfe",
        ];
        for name in names {
            let path = home.work().join(std::ffi::OsStr::from_bytes(name));
            fs::create_dir(&path).unwrap();
            let quoted = [b"cd -- \"$OLD/\"$'".as_slice(), &escape(name), b"'"].concat();
            finish(&shell, format!("OLD={}", home.work().display())).await;
            let result = finish(&shell, quoted).await;
            assert_eq!((result.exit_code, &result.cwd), (0, &path));
        }
        shells.shut_down().await.unwrap();
    });
}

fn escape(name: &[u8]) -> Vec<u8> {
    name.iter().flat_map(|byte| format!("\\x{byte:02x}").into_bytes()).collect()
}

#[test]
fn the_reported_directory_is_the_real_one_whatever_pwd_says() {
    test(async {
        let home = Home::new();
        let shells = home.open().await;
        let shell = home.shell(&shells, "a").await;
        let deep = home.work().join("deep");
        fs::create_dir(&deep).unwrap();
        std::os::unix::fs::symlink(&deep, home.work().join("link")).unwrap();
        let link = home.work().join("link");
        for (text, place) in [
            ("cd deep", &deep),
            ("PWD=/forged", &deep),
            ("PWD=relative", &deep),
            ("unset PWD", &deep),
            ("cd /proc/self/cwd", &deep),
            ("cd ~/link", &link),
        ] {
            assert_eq!(finish(&shell, text).await.cwd, *place, "{text}");
        }
        finish(&shell, "unset PWD").await;
        assert_eq!(finish(&shell, "exit 3").await.exit_code, 3);
        assert_eq!(run(&shell, "pwd").await, (0, format!("{}\n", deep.display())));
        shells.shut_down().await.unwrap();
    });
}

#[test]
fn what_users_do_to_their_shell_does_not_break_it() {
    test(async {
        let home = Home::new();
        fs::write(
            home.work().join(".bashrc"),
            "sleep 0.7\nPS1='slow> '\nalias ll='echo aliased'\n",
        )
        .unwrap();
        let shells = home.open().await;
        let shell = home.shell(&shells, "a").await;
        assert_eq!(run(&shell, "echo first").await, (0, "first\n".into()), "after a slow .bashrc");
        assert_eq!(run(&shell, "ll").await, (0, "aliased\n".into()));
        for harm in [
            "PS1='$(echo x; false) '",
            "PROMPT_COMMAND='echo mine'",
            "PROMPT_COMMAND=",
            "PROMPT_COMMAND=(true true)",
            "unset PROMPT_COMMAND",
            "trap 'true' INT TERM EXIT",
            "set -u",
            "set -f; IFS=xyz",
            "set -o noclobber",
            "set -o vi",
            "set +o vi",
            "set -o emacs",
            "set +o emacs",
            "bind -r '\\C-m'",
            "bind '\"\\C-m\": accept-line'",
            "bind '\"\\C-e\": \"x\"'",
            "bind '\"\\C-^\": \"x\"'",
            "__sb() { echo mine; }",
            "shopt -s expand_aliases; alias __sb='echo mine'",
            "enable -n __sb",
            "set -o posix",
            "set +o posix",
            "shopt -s nocasematch extglob nullglob failglob",
            "LC_ALL=C",
            "unset HISTCONTROL; history -c",
            "stty -echo",
            "stty sane",
            "read() { echo mine; }; printf() { echo mine; }; local() { :; }; set() { :; }",
            "unset -f read printf local set",
            "exec 3>&1 4<&0",
            "readonly LINENO_COPY=1; unset BASH_CMDS",
            "unalias -a; alias echo='echo'",
            "ulimit -n 100",
        ] {
            let result = finish(&shell, harm).await;
            assert_eq!((result.exit_code, &result.ended), (0, &Ended::AtPrompt), "{harm}");
            let result = finish(&shell, "echo well; (exit 9)").await;
            assert_eq!(result.exit_code, 9, "{harm}");
            assert_eq!(text_of(&shell, &result), "well\n", "{harm}");
        }
        // A command that would not end a shell with `set -e` does not end it because of the builtin either.
        assert_eq!(run(&shell, "set -e").await.0, 0);
        assert_eq!(run(&shell, "! true").await.0, 1);
        assert_eq!(run(&shell, "set +e").await.0, 0);
        // Results arrive even if the shell's own output is redirected.
        assert_eq!(run(&shell, "exec >|out").await.0, 0);
        assert_eq!(run(&shell, "echo hidden; (exit 2)").await, (2, String::new()));
        assert_eq!(run(&shell, "exec >/dev/tty; cat out").await, (0, "hidden\n".into()));
        assert_eq!(shell.status().restarts, 0);
        shells.shut_down().await.unwrap();
    });
}

#[test]
fn no_key_is_pressed_while_a_text_reads_keys() {
    test(async {
        let home = Home::new();
        let shells = home.open().await;
        let shell = home.shell(&shells, "a").await;
        let text = "trap 'echo caught' INT; bash -c 'echo up; exec sleep 100'; \
            read -r -n 1 -p 'sure? ' x; echo; echo \"<$x>\"; trap - INT";
        let job = shell.run(text).await.unwrap();
        until_printed(&shell, start_of(&job).await, "up").await;
        shell.press(vec![Key::interrupt()]).await.unwrap();
        asked(&job).await;
        shell.type_bytes("y").await.unwrap();
        let result = ended(&job).await;
        assert!(text_of(&shell, &result).ends_with("<y>\n"), "{result:?}");
        shells.shut_down().await.unwrap();
    });
}

#[test]
fn turning_line_editing_off_does_not_swallow_the_rest() {
    test(async {
        let home = Home::new();
        let shells = home.open().await;
        let shell = home.shell(&shells, "a").await;
        let text = "echo one; set +o emacs; echo two\nalias later='echo three'\nlater; (exit 5)";
        assert_eq!(run(&shell, text).await, (5, "one\ntwo\nthree\n".into()));
        assert_eq!(run(&shell, "echo next").await, (0, "next\n".into()));
        // If the text itself does not mention it, the text is interrupted, and the shell continues.
        assert_eq!(run(&shell, "off() { builtin set +o emacs; }").await.0, 0);
        let result = finish(&shell, "echo one; off; (exit 6)").await;
        assert_eq!((result.exit_code, &result.ended), (130, &Ended::AtPrompt));
        assert!(text_of(&shell, &result).starts_with("one\n"));
        assert_eq!(run(&shell, "echo next").await, (0, "next\n".into()));
        // Cases that look almost the same are not interrupted: the bash builtin `read`, and another program.
        let job = shell.run("read -r line; echo \"<$line>\"").await.unwrap();
        asked(&job).await;
        shell.type_bytes("a line\r").await.unwrap();
        assert_eq!(text_of(&shell, &*ended(&job).await), "a line\n<a line>\n");
        let job = shell.run("exec sed -u s/x/y/").await.unwrap();
        asked(&job).await;
        shell.type_bytes("xxx\r\x04").await.unwrap();
        let result = ended(&job).await;
        assert_eq!((result.exit_code, &result.ended), (0, &Ended::ShellExited));
        shells.shut_down().await.unwrap();
    });
}

/// Waits until the command waits for input.
async fn asked(job: &Job) {
    match job.wait(Wait::until_input(LIMIT)).await.unwrap() {
        Progress::Running(running) => assert_eq!(running.reason, WaitEnd::Input),
        Progress::Finished(result) => panic!("ended: {result:?}"),
    }
}

#[test]
fn set_x_and_debug_traps_show_the_users_commands_only() {
    test(async {
        let home = Home::new();
        let shells = home.open().await;
        let shell = home.shell(&shells, "a").await;
        assert_eq!(run(&shell, "set -x").await, (0, String::new()));
        let (_, output) = run(&shell, "echo x").await;
        assert!(output.contains("echo x\nx\n") && !output.contains("__sb"), "{output}");
        let job = shell.run("bash -c 'echo up; exec sleep 100'").await.unwrap();
        until_printed(&shell, start_of(&job).await, "\nup").await;
        shell.press(vec![Key::interrupt()]).await.unwrap();
        let interrupted = text_of(&shell, &*ended(&job).await);
        assert!(!interrupted.contains("__sb"), "{interrupted}");
        run(&shell, "set +x").await;
        run(&shell, "trap 'echo D:$BASH_COMMAND' DEBUG").await;
        let (_, output) = run(&shell, "true").await;
        assert!(output.contains("D:true\n") && !output.contains("__sb"), "{output}");
        shells.shut_down().await.unwrap();
    });
}

#[test]
fn keys_signals_and_input_reach_the_program() {
    test(async {
        let home = Home::new();
        let shells = home.open().await;
        let shell = home.shell(&shells, "a").await;

        // The program itself prints this line: before that, Ctrl-C would reach the shell.
        let sleeping = "bash -c 'echo up; exec sleep 100'";
        let job = shell.run(sleeping).await.unwrap();
        until_printed(&shell, 0, "up").await;
        assert!(matches!(shell.run("echo").await, Err(Error::Busy { seq: 1, .. })));
        shell.press(vec![Key::interrupt()]).await.unwrap();
        assert_eq!(ended(&job).await.exit_code, 130);

        let job =
            shell.run("unset PROMPT_COMMAND; bash -c 'echo go; exec sleep 100'").await.unwrap();
        until_printed(&shell, start_of(&job).await, "go").await;
        shell.press(vec![Key::interrupt()]).await.unwrap();
        assert_eq!(ended(&job).await.exit_code, 130, "also when the hook at the prompt is gone");

        let job = shell.run(sleeping).await.unwrap();
        until_printed(&shell, start_of(&job).await, "up").await;
        shell.press(vec!["C-z".parse().unwrap()]).await.unwrap();
        let result = ended(&job).await;
        assert_eq!(result.exit_code, 148);
        assert!(text_of(&shell, &result).contains("Stopped"));
        assert_eq!(finish(&shell, "kill %1").await.exit_code, 0);

        let job = shell.run("IFS= read -r -p 'name? ' name; echo \"<$name>\"").await.unwrap();
        until_printed(&shell, 0, "name? ").await;
        shell.type_bytes(" a;b\\; \"ü\"\r").await.unwrap();
        let result = ended(&job).await;
        // The shell reports the death of the background job at some time in between.
        let output = text_of(&shell, &result);
        let lines: Vec<_> = output.lines().filter(|line| !line.starts_with("[1]+")).collect();
        assert_eq!(lines, ["name?  a;b\\; \"ü\"", "< a;b\\; \"ü\">"]);

        let job = shell.run("cat >copy; wc -l <copy").await.unwrap();
        job.started().await.unwrap();
        shell.type_bytes("one\rtwo\r").await.unwrap();
        shell.press(vec!["C-d".parse().unwrap()]).await.unwrap();
        let result = ended(&job).await;
        assert!(text_of(&shell, &result).ends_with("2\n"));

        // A process that ignores Ctrl-C is ended by a signal that it cannot ignore.
        let job = shell
            .run("bash -c \"trap '' INT TERM; echo up; while :; do sleep 0.1; done\"")
            .await
            .unwrap();
        until_printed(&shell, start_of(&job).await, "up").await;
        shell.press(vec![Key::interrupt()]).await.unwrap();
        until_printed(&shell, start_of(&job).await, "^C").await;
        shell.signal(Signal::Terminate).await.unwrap();
        assert!(job.result().is_none());
        shell.signal(Signal::Kill).await.unwrap();
        assert_eq!(ended(&job).await.exit_code, 137);

        shell.resize(Size { columns: 93, rows: 31 }).await.unwrap();
        assert_eq!(run(&shell, "stty size").await, (0, "31 93\n".into()));
        shells.shut_down().await.unwrap();
    });
}

#[test]
fn a_dead_shell_is_reported_and_replaced_in_its_directory() {
    test(async {
        let home = Home::new();
        let shells = home.open().await;
        let shell = home.shell(&shells, "a").await;
        fs::create_dir(home.work().join("deep")).unwrap();
        let before = finish(&shell, "cd deep").await;
        let deep = home.work().join("deep");
        for (text, code) in [
            ("echo bye; exit 3", 3),
            ("exec sh -c 'echo bye; exit 4'", 4),
            ("set -e; echo bye; (exit 5); echo not reached", 5),
            ("echo bye; kill -9 $$", 137),
        ] {
            let result = finish(&shell, text).await;
            assert_eq!((result.exit_code, &result.ended), (code, &Ended::ShellExited), "{text}");
            assert_eq!((&result.user, &result.machine), (&before.user, &before.machine), "{text}");
            assert_eq!(result.python, before.python, "{text}");
            let output = text_of(&shell, &result);
            assert!(
                output.starts_with("bye\n") && !output.contains("not reached"),
                "{text}: {output}"
            );
            // The next command waits for the new shell.
            assert_eq!(run(&shell, "pwd").await, (0, format!("{}\n", deep.display())), "{text}");
        }
        assert_eq!(shell.status().restarts, 4);
        // Ctrl-D at the prompt belongs to no command; the shell is replaced all the same. Wait until bash edits its
        // line, which it shows by enabling bracketed paste: before that, Linux would handle the key.
        let latest = finish(&shell, "true").await;
        until_printed(&shell, latest.output.end, "\x1b[?2004h").await;
        shell.press(vec!["C-d".parse().unwrap()]).await.unwrap();
        within("the restart", async {
            while shell.status().restarts < 5 {
                tokio::task::yield_now().await;
            }
        })
        .await;
        assert_eq!(run(&shell, "echo back").await, (0, "back\n".into()));
        assert_eq!(shell.status().phase, Phase::Idle);
        shells.shut_down().await.unwrap();
    });
}

#[test]
fn environment_and_names_are_taken_as_given() {
    test(async {
        let home = Home::new();
        let shells = home.open().await;
        let mut spec = home.spec("a");
        let value = "a \"b\" 'c' $d\n%e;ü";
        spec.environment.push(("MINE".into(), value.into()));
        spec.environment.push(("LONG".into(), "x".repeat(100_000).into()));
        let shell = shells.create(spec).await.unwrap();
        assert_eq!(
            run(&shell, "printf %s \"$MINE\"; echo ${#LONG}").await.1,
            format!("{value}100000\n")
        );
        assert_eq!(run(&shell, "env | grep -c ^MINE=; echo ${TMUX-none}").await.1, "1\nnone\n");
        finish(&shell, "export LATER=1; unset LONG; private=2; false | (exit 3)").await;
        let seq = shell.latest().unwrap().seq();
        let exports = shell.exports().await.unwrap();
        let exported = |name: &str| {
            exports
                .iter()
                .find(|(other, _)| other == name)
                .map(|(_, value)| value.to_str().unwrap())
        };
        assert_eq!((exported("MINE"), exported("LATER")), (Some(value), Some("1")));
        let absent = ["LONG", "private", "SANDBOX_SHELL", "PWD", "SHLVL"];
        assert_eq!(absent.map(exported), [None; 5]);
        assert_eq!(shell.latest().unwrap().seq(), seq);
        let known = run(&shell, "echo $? ${PIPESTATUS[@]}; fc -ln -1 -1").await.1;
        assert!(
            known.starts_with("3 1 3\n") && known.ends_with("(exit 3)\n"),
            "not noticed: {known}"
        );
        assert_eq!(fs::metadata(home.root().join("shells/a/exports")).unwrap().len(), 0);
        assert!(matches!(shells.create(home.spec("a")).await, Err(Error::ShellExists(_))));
        let mut bad = home.spec("b");
        bad.environment.push(("1X".into(), "".into()));
        assert!(matches!(shells.create(bad).await, Err(Error::Invalid(_))));
        let nowhere = sandbox_shells::ShellSpec { cwd: "/nowhere".into(), ..home.spec("b") };
        assert!(matches!(shells.create(nowhere).await, Err(Error::Invalid(_))));
        assert_eq!(shells.list().len(), 1);
        assert!(shells.get(&id("a")).is_some());
        shell.close().await.unwrap();
        shell.close().await.unwrap();
        assert!(matches!(shell.run("x").await, Err(Error::ShellClosed(_))));
        assert!(shells.list().is_empty());
        home.shell(&shells, "a").await;
        shells.shut_down().await.unwrap();
    });
}

#[test]
fn a_relative_program_path_is_resolved_and_a_missing_program_is_refused() {
    test(async {
        let home = Home::new();
        // A relative path of the program is made absolute.
        let directory = std::env::current_dir().unwrap();
        let up = directory.components().skip(1).map(|_| "..").collect::<Vec<_>>().join("/");
        let program = format!("{up}{}", helper().display());
        let shells = home.open_with(Config { program: program.into(), ..home.config() }).await;
        let shell = home.shell(&shells, "a").await;
        assert_eq!(run(&shell, "echo up").await, (0, "up\n".into()));
        shells.shut_down().await.unwrap();
        let program = "nowhere/sandbox".into();
        let error = Shells::open(Config { program, ..home.config() }).await.unwrap_err();
        assert!(error.to_string().contains("nowhere/sandbox does not exist"), "{error}");
    });
}
