//! The builtin that the shells load: what it must preserve, and what it must not depend on.

#![allow(clippy::unwrap_used, reason = "this is test code, also outside of test functions")]

use std::fs;

use sandbox_shells::Error;
use sandbox_test_support::{Home, finish, run, test, until_printed, within};

#[test]
fn a_command_finds_the_state_that_the_previous_one_left() {
    test(async {
        let home = Home::new();
        let shells = home.open().await;
        let shell = home.shell(&shells, "a").await;
        run(&shell, "false | true").await;
        assert_eq!(run(&shell, "echo ${PIPESTATUS[@]}").await.1, "1 0\n");
        run(&shell, "echo a b").await;
        assert_eq!(run(&shell, "echo $_").await.1, "b\n");
        assert_eq!(run(&shell, "fc -ln -1 -1").await.1.trim(), "echo $_");
        run(&shell, "echo again").await;
        assert_eq!(run(&shell, "fc -s").await, (0, "echo again\nagain\n".into()));
        // A text that bash aborts ends with its exit code, here and in a subshell.
        assert_eq!(run(&shell, "true").await.0, 0);
        assert_eq!(run(&shell, "declare -i n; n=1/0; echo not reached").await.0, 1);
        let (code, output) = run(&shell, "x=$(n=1/0); sleep 0.1; echo late").await;
        assert!(code == 0 && output.ends_with("late\n"), "{code}: {output}");
        assert_eq!(run(&shell, "(n=1/0) & wait; echo late").await.0, 0);
        // A program started by PROMPT_COMMAND does not count as a person's program.
        let holding =
            "PROMPT_COMMAND='bash -c \"echo holding; until [ -e go ]; do sleep 0.01; done\"'";
        let end = finish(&shell, holding).await.output.end;
        until_printed(&shell, end, "holding").await;
        let let_go = async {
            // Let the command be requested first.
            tokio::task::yield_now().await;
            fs::write(home.work().join("go"), "").unwrap();
        };
        let (next, ()) = tokio::join!(run(&shell, "echo next"), let_go);
        assert_eq!(next, (0, "next\n".into()));
        run(&shell, "PROMPT_COMMAND=").await;
        // Scripts may close all descriptors that they do not know.
        run(&shell, "for n in {3..255}; do eval \"exec $n>&-\"; done").await;
        assert_eq!(run(&shell, "echo open").await, (0, "open\n".into()));
        assert_eq!(shell.status().restarts, 0);
        // A shell that ends before it has taken a command does not provide its exit code.
        run(&shell, "PROMPT_COMMAND='exit 9'").await;
        let result = finish(&shell, "touch made").await;
        let is_made = home.work().join("made").exists();
        assert_eq!((result.exit_code == 0, result.exit_code == 9), (is_made, false), "{result:?}");
        shells.shut_down().await.unwrap();
    });
}

#[test]
fn a_shell_starts_although_its_start_up_file_fails() {
    test(async {
        let home = Home::new();
        let shells = home.open().await;
        for (name, text) in [
            ("a", "declare -i n; n=1/0"),
            ("b", "set -e; [ -f /nonexistent ] && . /nonexistent"),
            ("c", "bind() { return 1; }; set -e"),
        ] {
            fs::write(home.work().join(".bashrc"), text).unwrap();
            let shell = home.shell(&shells, name).await;
            assert_eq!(run(&shell, "echo up").await, (0, "up\n".into()), "{text}");
        }
        shells.shut_down().await.unwrap();
    });
}

#[test]
fn a_shell_that_cannot_load_its_builtin_says_what_it_needs() {
    test(async {
        let home = Home::new();
        let shells = home.open().await;
        fs::remove_file(home.root().join("builtin.so")).unwrap();
        let error = within("creating a shell", shells.create(home.spec("a"))).await.unwrap_err();
        assert!(matches!(error, Error::ShellDidNotStart { .. }), "{error}");
        for words in ["cannot open shared object file", "not mounted with noexec"] {
            assert!(error.to_string().contains(words), "{error}");
        }
        shells.shut_down().await.unwrap();
    });
}
