//! Owners that die, shells and servers that die, and leaving nothing behind.

#![allow(clippy::unwrap_used, reason = "this is test code, also outside of test functions")]

mod support;

use std::{
    fs,
    process::{Child, Command, Stdio},
    time::Duration,
};

use sandbox::{
    Error,
    shell::{Config, Ended, Phase, ProcessId, SessionId, Shells},
};
use support::{
    FLOOD, Home, LIMIT, check_flood, ended, finish, id, processes_with, run, test, text_of,
    until_printed, within,
};

/// Another process that owns the shells, to be killed.
struct Owner(Child);

impl Owner {
    fn run(home: &Home, lease: u64, command: &str) -> Self {
        let child = Command::new(env!("CARGO_BIN_EXE_sandbox"))
            .args(["shell", "--lease", &lease.to_string(), "--root"])
            .arg(home.root())
            .args(["run", "a", command])
            .current_dir(home.work())
            .env("HOME", home.work())
            .stdout(Stdio::null())
            .spawn();
        Self(child.unwrap())
    }

    fn kill(mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// Waits for a condition about files, which tell nobody when they change.
async fn until(what: &str, condition: impl Fn() -> bool) {
    within(what, async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

fn kill(process: ProcessId) {
    let status = Command::new("kill").args(["-9", &process.pid.to_string()]).status();
    assert!(status.unwrap().success(), "{process:?} is there to be killed");
}

/// A number that means nothing to anybody else on this machine.
fn unique() -> u32 {
    rand::random_range(1_000_000..10_000_000)
}

fn log_length(home: &Home) -> u64 {
    fs::metadata(home.root().join("sessions/a/log")).map_or(0, |log| log.len())
}

#[test]
fn a_flood_survives_the_death_of_the_owner() {
    test(async {
        let home = Home::new();
        let owner = Owner::run(&home, 3600, FLOOD);
        until("a part of the flood", || log_length(&home) > 20_000_000).await;
        owner.kill();
        let shells = home.open().await;
        let session = shells.get(&id("a")).expect("the session is found again");
        assert_eq!(session.status().phase, Phase::Running(1));
        assert!(log_length(&home) < 100_000_000, "the flood goes on");
        let result = ended(&session.latest().unwrap()).await;
        assert_eq!((result.exit_code, result.lost, result.seq), (0, 0, 1));
        check_flood(&session, &result).await;
        shells.shut_down().await.unwrap();
        assert_eq!(processes_with(home.root().to_str().unwrap()), [""; 0]);
    });
}

#[test]
fn what_ended_without_an_owner_is_known_to_the_next() {
    test(async {
        let home = Home::new();
        let owner =
            Owner::run(&home, 3600, "cd /usr; echo started; read -r x <\"$HOME/gate\"; (exit 9)");
        Command::new("mkfifo").arg(home.work().join("gate")).status().unwrap();
        let started = home.root().join("sessions/a/log");
        until("the command", || {
            fs::read_to_string(&started).is_ok_and(|log| log.contains("started"))
        })
        .await;
        owner.kill();
        fs::write(home.work().join("gate"), "go\n").unwrap();
        let index = home.root().join("sessions/a/index");
        until("its end", || {
            fs::read_to_string(&index).is_ok_and(|index| index.contains("E;1;;9;"))
        })
        .await;
        let shells = home.open().await;
        let session = shells.get(&id("a")).unwrap();
        let result = session.latest().unwrap().result().expect("it has ended long ago");
        assert_eq!((result.exit_code, &result.ended), (9, &Ended::AtPrompt));
        assert_eq!(
            (text_of(&session, &result).as_str(), result.cwd.to_str()),
            ("started\n", Some("/usr"))
        );
        assert_eq!(run(&session, "pwd").await, (0, "/usr\n".into()));
        drop((session, shells));

        // Now the shell itself ends while nobody owns it.
        let owner = Owner::run(&home, 3600, "echo again; read -r x <\"$HOME/gate\"; exit 7");
        until("the command", || {
            fs::read_to_string(&started).is_ok_and(|log| log.contains("again"))
        })
        .await;
        owner.kill();
        fs::write(home.work().join("gate"), "go\n").unwrap();
        let shells = home.open().await;
        let session = shells.get(&id("a")).unwrap();
        let result = ended(&session.latest().unwrap()).await;
        assert_eq!((result.exit_code, &result.ended), (7, &Ended::ShellExited));
        assert_eq!(run(&session, "pwd").await, (0, "/usr\n".into()));
        shells.shut_down().await.unwrap();
    });
}

#[test]
fn owners_may_be_killed_at_any_moment() {
    test(async {
        let home = Home::new();
        let mut known = 0;
        for round in 0..24u64 {
            let owner = Owner::run(&home, 3600, "echo x; sleep 0.01; echo y; (exit 3)");
            // The moment is what varies here; nothing is awaited.
            tokio::time::sleep(Duration::from_millis(round * 3)).await;
            owner.kill();
            let shells = home.open().await;
            let session = match shells.get(&id("a")) {
                Some(session) => session,
                None => home.session(&shells, "a").await,
            };
            if let Some(job) = session.latest().filter(|job| job.seq() > known) {
                let result = ended(&job).await;
                assert_eq!((result.exit_code, text_of(&session, &result).as_str()), (3, "x\ny\n"));
            }
            assert_eq!(run(&session, format!("echo {round}")).await, (0, format!("{round}\n")));
            known = session.latest().unwrap().seq();
            drop((session, shells));
        }
        home.open().await.shut_down().await.unwrap();
        assert_eq!(processes_with(home.root().to_str().unwrap()), [""; 0]);
    });
}

#[test]
fn only_one_owner_and_only_its_own_things() {
    test(async {
        let (home, other) = (Home::new(), Home::new());
        let shells = home.open().await;
        assert!(matches!(Shells::open(home.config()).await, Err(Error::RootInUse { .. })));
        let session = home.session(&shells, "a").await;
        let strangers = other.open().await;
        let stranger = other.session(&strangers, "a").await;
        strangers.shut_down().await.unwrap();
        assert_eq!(stranger.status().phase, Phase::Closed);
        assert_eq!(run(&session, "echo here").await, (0, "here\n".into()));
        // What is no session is left alone.
        fs::write(home.root().join("sessions/not a session"), "").unwrap();
        drop((session, shells));
        let shells = home.open().await;
        assert!(home.root().join("sessions/not a session").exists());
        fs::remove_file(home.root().join("sessions/not a session")).unwrap();
        shells.shut_down().await.unwrap();
    });
}

#[test]
fn nothing_is_left_of_a_closed_session() {
    test(async {
        let home = Home::new();
        let shells = home.open().await;
        let session = home.session(&shells, "a").await;
        let keep = home.session(&shells, "keep").await;
        // A duration that no other program has, so that these can be recognised.
        let long = unique();
        let stubborn = format!(
            "nohup sleep {long}1 >/dev/null 2>&1 & disown
            setsid sleep {long}2 >/dev/null 2>&1 &
            (trap '' HUP TERM INT; while :; do sleep 1; done) &
            setsid bash -c 'trap \"\" HUP; sleep {long}3 & wait' &
            echo all up"
        );
        finish(&session, stubborn).await;
        let running = session.run(format!("sleep {long}4")).await.unwrap();
        running.started().await.unwrap();
        let shell = session.status().shell;
        within("closing", session.close()).await.unwrap();
        assert_eq!(ended(&running).await.ended, Ended::SessionClosed);
        assert!(!shell.is_alive());
        assert_eq!(processes_with(&format!("sleep {long}")), [""; 0]);
        assert_eq!(processes_with(home.root().join("sessions/a").to_str().unwrap()), [""; 0]);
        assert!(!home.root().join("sessions/a").exists());
        assert_eq!(run(&keep, "echo kept").await, (0, "kept\n".into()));
        let server = shells.server();
        within("shutting down", shells.shut_down()).await.unwrap();
        assert!(!server.is_alive());
        assert_eq!(fs::read_dir(home.root()).unwrap().count(), 0, "the state directory is empty");
        assert_eq!(processes_with(home.root().to_str().unwrap()), [""; 0]);
    });
}

#[test]
fn a_control_client_that_is_not_drained_does_not_hold_up_the_end() {
    test(async {
        let home = Home::new();
        let shells = home.open().await;
        let session = home.session(&shells, "a").await;
        // A foreign control client with output on, whose output nobody reads.
        let mut client = Command::new("tmux")
            .arg("-S")
            .arg(home.root().join("tmux"))
            .args(["-C", "attach-session", "-t", "=s-a"])
            .env_remove("TMUX")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        finish(&session, "head -c 20000000 /dev/zero | tr '\\0' x").await;
        let server = shells.server();
        within("shutting down", shells.shut_down()).await.unwrap();
        assert!(!server.is_alive());
        let _ = client.kill();
        client.wait().unwrap();
        assert_eq!(processes_with(home.root().to_str().unwrap()), [""; 0]);
    });
}

#[test]
fn sessions_end_with_their_lease() {
    test(async {
        let home = Home::new();
        let shells =
            home.open_with(Config { lease: Duration::from_secs(1), ..home.config() }).await;
        home.session(&shells, "a").await;
        let server = shells.server();
        drop(shells);
        within("the end of the lease", server.ended()).await.unwrap();
        until("the sweeping", || !home.root().join("owner.lock").exists()).await;
        until("the end of the sweeper", || {
            processes_with(home.root().to_str().unwrap()).is_empty()
        })
        .await;
    });
}

#[test]
fn a_killed_recorder_is_replaced() {
    test(async {
        let home = Home::new();
        let shells = home.open().await;
        let session = home.session(&shells, "a").await;
        let index = home.root().join("sessions/a/index");
        let recorders = || {
            let index = fs::read_to_string(&index).unwrap();
            let lines = index.lines().filter(|line| line.starts_with("O "));
            lines
                .map(|line| line.rsplit(' ').next().unwrap().parse::<u32>().unwrap())
                .collect::<Vec<_>>()
        };
        let first = recorders()[0];
        Command::new("kill").args(["-9", &first.to_string()]).status().unwrap();
        until("another recorder", || recorders().len() == 2).await;
        assert!(ProcessId::of(recorders()[1]).unwrap().is_alive());
        assert_eq!(run(&session, "echo recorded").await, (0, "recorded\n".into()));
        shells.shut_down().await.unwrap();
    });
}

#[test]
fn a_killed_server_ends_the_sessions_and_can_be_started_again() {
    test(async {
        let home = Home::new();
        let shells = home.open().await;
        let session = home.session(&shells, "a").await;
        let long = unique();
        let job = session.run(format!("echo on; sleep {long}")).await.unwrap();
        until_printed(&session, 0, "on\r\n").await;
        kill(shells.server());
        assert_eq!(ended(&job).await.ended, Ended::ServerGone);
        let first = shells.server();
        // Whoever needs a session gets it on a new server, as soon as nothing is left of the old one.
        let other = home.session(&shells, "b").await;
        assert_eq!(session.status().phase, Phase::Lost);
        assert!(matches!(session.run("echo").await, Err(Error::ServerGone)));
        session.close().await.unwrap();
        assert_eq!(processes_with(&format!("sleep {long}")), [""; 0]);
        assert_ne!(shells.server(), first);
        assert_eq!(run(&other, "echo new").await, (0, "new\n".into()));
        assert!(shells.get(&id("a")).is_none() && shells.is_lost(&id("a")));
        let session = home.session(&shells, "a").await;
        assert!(!shells.is_lost(&id("a")));
        assert_eq!(run(&session, "echo again").await, (0, "again\n".into()));

        // It may also die while nobody owns it.
        kill(shells.server());
        drop((session, other, shells));
        let shells = home.open().await;
        assert!(shells.list().is_empty());
        let session = home.session(&shells, "a").await;
        assert_eq!(run(&session, "echo new").await, (0, "new\n".into()));
        shells.shut_down().await.unwrap();
        assert_eq!(processes_with(home.root().to_str().unwrap()), [""; 0]);
    });
}

#[test]
fn a_hundred_sessions_do_not_mix() {
    const SESSIONS: usize = 100;
    const COMMANDS: usize = 20;
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
        while let Some(task) =
            tokio::time::timeout(LIMIT, tasks.join_next()).await.expect("in time")
        {
            task.unwrap();
        }
        assert_eq!(shells.list().len(), SESSIONS);
        within("shutting down", shells.shut_down()).await.unwrap();
        assert_eq!(processes_with(home.root().to_str().unwrap()), [""; 0]);
    });
}

#[test]
fn an_idle_session_wakes_nobody() {
    if Command::new("strace").arg("-V").stdout(Stdio::null()).status().is_err() {
        eprintln!("skipped: there is no strace to count wake-ups with");
        return;
    }
    test(async {
        let home = Home::new();
        let owner = Owner::run(&home, 3600, "echo waiting; sleep 1006");
        let log = home.root().join("sessions/a/log");
        until("the command", || fs::read_to_string(&log).is_ok_and(|log| log.contains("waiting")))
            .await;
        let index = fs::read_to_string(home.root().join("sessions/a/index")).unwrap();
        let recorder = index.lines().next().unwrap().rsplit(' ').next().unwrap().to_owned();
        // The owner takes its one look after 200 ms of quiet; from then on there is nothing to do.
        tokio::time::sleep(Duration::from_millis(500)).await;
        let trace = home.work().join("trace");
        let status = Command::new("timeout")
            .args(["-s", "INT", "4", "strace", "-f", "-qq", "-o"])
            .arg(&trace)
            .args(["-p", &owner.0.id().to_string(), "-p", &recorder])
            .stderr(Stdio::null())
            .status();
        status.unwrap();
        let calls = fs::read_to_string(&trace).unwrap();
        // The calls in which they sleep are shown as interrupted by the tracer itself.
        let woken = calls.lines().filter(|line| {
            !line.contains("epoll_wait")
                && !line.contains("read(0")
                && !line.contains("restart_syscall")
        });
        assert_eq!(woken.collect::<Vec<_>>(), [""; 0]);
        assert!(calls.lines().count() <= 4, "{calls}");
        owner.kill();
        home.open().await.shut_down().await.unwrap();
    });
}

#[test]
fn names_of_sessions_are_found_again() {
    test(async {
        let home = Home::new();
        let shells = home.open().await;
        for name in ["b", "a", "c"] {
            home.session(&shells, name).await;
        }
        drop(shells);
        let shells = home.open().await;
        let names =
            shells.list().iter().map(|session| session.id().clone()).collect::<Vec<SessionId>>();
        assert_eq!(names, [id("a"), id("b"), id("c")]);
        shells.shut_down().await.unwrap();
    });
}
