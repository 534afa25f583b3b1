//! A hundred sessions at once, and one that does nothing.

#![allow(clippy::unwrap_used, reason = "this is test code, also outside of test functions")]

mod support;

use std::{fs, process::Command, time::Duration};

use support::{Home, LIMIT, Owner, processes_with, recorders, run, test, within};

#[test]
fn a_hundred_sessions_do_not_mix() {
    const SESSIONS: usize = 100;
    const COMMANDS: usize = 100;
    test(async {
        let home = Home::new();
        let shells = home.open().await;
        let mut sessions = Vec::new();
        for number in 0..SESSIONS {
            sessions.push(home.session(&shells, &format!("s{number}")).await);
        }
        let mut tasks = tokio::task::JoinSet::new();
        for (number, session) in sessions.into_iter().enumerate() {
            tasks.spawn_local(async move {
                for command in 0..COMMANDS {
                    let text = format!("echo {number}-{command}; n=$((n+1)); (exit $n)");
                    let expected =
                        (i32::try_from(command).unwrap() + 1, format!("{number}-{command}\n"));
                    assert_eq!(run(&session, text).await, expected);
                }
            });
        }
        // They all end at about the same time.
        let limit = 10 * LIMIT;
        let joined = tokio::time::timeout(limit, tasks.join_all()).await;
        assert_eq!(joined.expect("all commands end in time").len(), SESSIONS);
        assert_eq!(shells.list().len(), SESSIONS);
        within("shutting down", shells.shut_down()).await.unwrap();
        assert_eq!(processes_with(home.root().to_str().unwrap()), [""; 0]);
    });
}

/// What an owner that waits for a command, its recorder and its keeper do in so many seconds, one line
/// for each: the call in which it sleeps.
fn calls(home: &Home, seconds: u32, pids: &[u32]) -> Option<String> {
    let trace = home.work().join("trace");
    let mut strace = Command::new("timeout");
    strace.args(["-s", "INT", &seconds.to_string(), "strace", "-f", "-o"]).arg(&trace);
    let output = strace.args(pids.iter().flat_map(|pid| ["-p".into(), pid.to_string()])).output();
    let said = String::from_utf8_lossy(&output.unwrap().stderr).into_owned();
    if said.contains("not permitted") || said.contains("No such file") {
        eprintln!("wake-ups are counted without strace, which says {said}");
        return None;
    }
    Some(fs::read_to_string(trace).unwrap())
}

/// How often the threads of a process have gone to sleep so far.
fn sleeps(pid: u32) -> u64 {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let count = |thread: std::path::PathBuf| -> u64 {
        let status = fs::read_to_string(thread.join("status")).unwrap();
        let line = status.lines().find(|line| line.starts_with("voluntary_ctxt_switches")).unwrap();
        line.rsplit('\t').next().unwrap().parse().unwrap()
    };
    threads.map(|thread| count(thread.unwrap().path())).sum()
}

#[test]
fn an_idle_session_wakes_nobody() {
    const SECONDS: u32 = 10;
    let home = Home::new();
    let mut owner = Owner::run(&home, "echo waiting; sleep 1006");
    owner.until_printed("waiting");
    let mut ask = Command::new("tmux");
    ask.arg("-S").arg(home.root().join("tmux")).env_remove("TMUX");
    ask.args(["display-message", "-p", "-t", "=keeper:", "#{pane_pid}"]);
    let keeper = String::from_utf8(ask.output().unwrap().stdout).unwrap();
    let pids = [owner.pid(), recorders(&home)[0], keeper.trim().parse().unwrap()];
    // The owner takes one look after 200 ms of quiet, so the first of these is not the last, and
    // on a slow machine perhaps not the second either.
    let mut seen = Vec::new();
    let is_idle = [1, SECONDS, SECONDS].into_iter().any(|seconds| {
        let (happened, is_quiet) = match calls(&home, seconds, &pids) {
            Some(calls) => {
                let is_quiet = calls.lines().count() == pids.len();
                (calls, is_quiet)
            }
            None => {
                let before = pids.map(sleeps);
                std::thread::sleep(Duration::from_secs(seconds.into()));
                let after = pids.map(sleeps);
                (format!("{before:?} {after:?}"), before == after)
            }
        };
        seen.push(happened);
        seconds == SECONDS && is_quiet
    });
    assert!(is_idle, "{}", seen.join("\n---\n"));
    owner.kill();
    test(async { home.open().await.shut_down().await.unwrap() });
}
