//! A hundred shells at once, and one idle shell.

#![allow(clippy::unwrap_used, reason = "this is test code, also outside of test functions")]

use std::process::{Command, Stdio};

use sandbox_shells::{Progress, Wait};
use sandbox_test_support::{Home, LIMIT, Owner, processes_with, recorders, test, text_of, within};

#[test]
fn a_hundred_shells_do_not_mix() {
    const SHELLS: usize = 100;
    const COMMANDS: usize = 100;
    test(async {
        let home = Home::new();
        let shells = home.open().await;
        let mut hundred = Vec::new();
        for number in 0..SHELLS {
            hundred.push(home.shell(&shells, &format!("s{number}")).await);
        }
        let mut tasks = tokio::task::JoinSet::new();
        for (number, shell) in hundred.into_iter().enumerate() {
            tasks.spawn_local(async move {
                for command in 0..COMMANDS {
                    let text = format!("echo {number}-{command}; n=$((n+1)); (exit $n)");
                    let expected =
                        (i32::try_from(command).unwrap() + 1, format!("{number}-{command}\n"));
                    // On a busy machine each command may wait long, so only all together have a limit.
                    let job = shell.run(text).await.unwrap();
                    let progress = job.wait(Wait::forever()).await.unwrap();
                    let Progress::Finished(result) = progress else { panic!("{progress:?}") };
                    assert_eq!((result.exit_code, text_of(&shell, &result)), expected);
                }
            });
        }
        // All of them end at about the same time.
        let limit = 10 * LIMIT;
        let joined = tokio::time::timeout(limit, tasks.join_all()).await;
        assert_eq!(joined.expect("all commands end in time").len(), SHELLS);
        assert_eq!(shells.list().len(), SHELLS);
        within("shutting down", shells.shut_down()).await.unwrap();
        assert_eq!(processes_with(home.root().to_str().unwrap()), [""; 0]);
    });
}

#[test]
fn an_idle_shell_causes_no_wake_ups() {
    let home = Home::new();
    let mut owner = Owner::run(&home, "echo waiting; sleep 1006");
    owner.until_printed("waiting");
    let mut ask = Command::new("tmux");
    ask.arg("-S").arg(home.root().join("tmux")).env_remove("TMUX");
    ask.args(["display-message", "-p", "-t", "=keeper:", "#{pane_pid}"]);
    let keeper = String::from_utf8(ask.output().unwrap().stdout).unwrap();
    let pids = [owner.pid(), recorders(&home)[0], keeper.trim().parse().unwrap()];
    let mut watch = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/wake-ups"));
    watch.arg("10").args(pids.map(|pid| pid.to_string())).stderr(Stdio::inherit());
    let output = watch.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    owner.kill();
    test(async { home.open().await.shut_down().await.unwrap() });
}
