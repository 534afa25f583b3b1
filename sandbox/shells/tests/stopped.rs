//! A stopped tmux server: closing and listing shells does not wait for it.

#![allow(clippy::unwrap_used, reason = "this is test code, also outside of test functions")]

use std::{process::Command, time::Duration};

use sandbox_shells::{Ended, Phase, ProcessId, Progress, Wait};
use sandbox_test_support::{
    Home, ended, id, processes_with, run, test, unique, until_gone, until_printed, within,
};
use tokio::time::timeout;

/// Much less than the time that tmux has to answer, and much more than anything needs that does not wait for tmux.
const AT_ONCE: Duration = Duration::from_secs(5);

/// A stopped process, which is continued on drop.
struct Stopped(ProcessId);

impl Stopped {
    fn new(process: ProcessId) -> Self {
        signal(process, "-STOP");
        Self(process)
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        signal(self.0, "-CONT");
    }
}

fn signal(process: ProcessId, name: &str) {
    let sent = Command::new("kill").args([name, &process.pid.to_string()]).status();
    assert!(sent.unwrap().success());
}

#[test]
fn shells_are_closed_and_listed_at_once_though_tmux_is_stopped() {
    test(async {
        let home = Home::new();
        let shells = home.open().await;
        let shell = home.shell(&shells, "a").await;
        let other = home.shell(&shells, "b").await;
        let long = unique();
        let job = shell.run(format!("echo on; sleep {long}")).await.unwrap();
        until_printed(&shell, 0, "on\r\n").await;
        let stopped = Stopped::new(shells.server().await.unwrap());

        let listed = shells.list();
        assert_eq!(listed.len(), 2);
        assert_eq!(listed[0].status().phase, Phase::Running(1));
        // A key that tmux does not accept; nothing waits for it.
        let typing = tokio::spawn({
            let shell = shell.clone();
            async move { shell.type_bytes("x").await }
        });
        tokio::task::yield_now().await;
        timeout(AT_ONCE, shell.close()).await.expect("it does not wait for tmux").unwrap();
        assert_eq!(job.result().expect("it is over").ended, Ended::ShellClosed);
        assert_eq!(shell.status().phase, Phase::Closed);
        let names: Vec<_> = shells.list().iter().map(|shell| shell.id().clone()).collect();
        assert_eq!(names, [id("b")]);
        timeout(AT_ONCE, shell.close()).await.expect("twice is harmless").unwrap();
        // Its programs are ended without tmux.
        until_gone(&format!("sleep {long}")).await;
        assert!(timeout(AT_ONCE, typing).await.expect("it is over").unwrap().is_err());

        drop(stopped);
        // The name is free again after the cleanup, and the other shell is not affected.
        let again = within("the same name", shells.create(home.spec("a"))).await.unwrap();
        assert_eq!(run(&again, "echo again").await, (0, "again\n".into()));
        assert_eq!(run(&other, "echo other").await, (0, "other\n".into()));
        shells.shut_down().await.unwrap();
        assert_eq!(processes_with(home.root().to_str().unwrap()), [""; 0]);
    });
}

/// A command that is handed over while tmux is stopped runs once, when tmux is continued.
#[test]
fn a_command_waits_for_a_stopped_tmux_and_its_caller_does_not() {
    test(async {
        let home = Home::new();
        let shells = home.open().await;
        let shell = home.shell(&shells, "a").await;
        let stopped = Stopped::new(shells.server().await.unwrap());
        let job = timeout(AT_ONCE, shell.run("echo once >>times; (exit 4)"));
        let job = job.await.expect("it does not wait for tmux").unwrap();
        let wait = Wait::at_most(Duration::from_secs(4));
        assert!(matches!(job.wait(wait).await.unwrap(), Progress::Running(_)));
        drop(stopped);
        assert_eq!(ended(&job).await.exit_code, 4);
        assert_eq!(run(&shell, "cat times").await, (0, "once\n".into()));
        shells.shut_down().await.unwrap();
    });
}
