//! Recovery from the death of owners, shells and tmux servers, and cleanup without leftovers.

#![allow(clippy::unwrap_used, reason = "this is test code, also outside of test functions")]

use std::{
    fs,
    pin::pin,
    process::{Command, Stdio},
    time::Duration,
};

use sandbox_shells::{Config, Ended, Error, Phase, ShellId, Shells};
use sandbox_test_support::{
    FLOOD, Home, Owner, check_flood, control_client, ended, finish, id, kill, processes_with, run,
    start_of, test, text_of, unique, until_changed, until_gone, until_printed, within,
};
use tokio::{io::AsyncReadExt as _, net::unix::pipe};

fn log_length(home: &Home) -> u64 {
    fs::metadata(home.root().join("shells/a/log")).map_or(0, |log| log.len())
}

#[test]
fn a_flood_survives_the_death_of_the_owner() {
    test(async {
        let home = Home::new();
        let mut owner = Owner::run(&home, FLOOD);
        owner.until_length(20_000_000);
        owner.kill();
        let shells = home.open().await;
        let shell = shells.get(&id("a")).expect("the shell is found again");
        assert_eq!(shell.status().phase, Phase::Running(1));
        assert!(log_length(&home) < 100_000_000, "the flood goes on");
        let result = ended(&shell.latest().unwrap()).await;
        assert_eq!((result.exit_code, result.lost, result.seq), (0, 0, 1));
        check_flood(&shell, result.output.clone()).await;
        shells.shut_down().await.unwrap();
        assert_eq!(processes_with(home.root().to_str().unwrap()), [""; 0]);
    });
}

/// The program has neither the shell's nonces nor its descriptors.
#[test]
fn a_program_that_replaced_the_shell_by_exec_survives_the_death_of_the_owner() {
    test(async {
        let home = Home::new();
        Command::new("mkfifo").arg(home.work().join("gate")).status().unwrap();
        let mut owner =
            Owner::run(&home, "exec sh -c 'echo started; read -r x <\"$HOME/gate\"; exit 5'");
        owner.until_printed("started");
        owner.kill();
        let shells = home.open().await;
        let shell = shells.get(&id("a")).expect("the shell is found again");
        assert_eq!(shell.status().phase, Phase::Running(1));
        fs::write(home.work().join("gate"), "go\n").unwrap();
        let result = ended(&shell.latest().unwrap()).await;
        assert_eq!((result.exit_code, &result.ended), (5, &Ended::ShellExited));
        assert_eq!(run(&shell, "echo next").await, (0, "next\n".into()));
        shells.shut_down().await.unwrap();
    });
}

/// The control client of a killed owner ends by itself, but at no definite time.
#[test]
fn a_control_client_that_lingers_does_no_harm() {
    test(async {
        let home = Home::new();
        for round in 0..5 {
            let mut owner = Owner::run(&home, "echo started; read -r x");
            owner.until_printed("started");
            let client = control_client(&home, None).await;
            let stopped = Command::new("kill").args(["-STOP", &client.pid.to_string()]).status();
            assert!(stopped.unwrap().success());
            owner.kill();
            let shells = home.open().await;
            assert!(!client.is_alive());
            let shell = shells.get(&id("a")).unwrap_or_else(|| panic!("lost in round {round}"));
            shell.type_bytes("go\r").await.unwrap();
            assert_eq!(ended(&shell.latest().unwrap()).await.exit_code, 0);
        }
        home.open().await.shut_down().await.unwrap();
    });
}

#[test]
fn the_next_owner_knows_the_result_of_a_command_that_ended_without_one() {
    test(async {
        let home = Home::new();
        Command::new("mkfifo").arg(home.work().join("gate")).status().unwrap();
        let mut owner =
            Owner::run(&home, "cd /usr; echo started; read -r x <\"$HOME/gate\"; (exit 9)");
        owner.until_printed("started");
        owner.kill();
        fs::write(home.work().join("gate"), "go\n").unwrap();
        let index = home.root().join("shells/a/index");
        let has_ended = || fs::read_to_string(&index).unwrap().contains("E;1;;9;");
        until_changed(&index, "its end", has_ended).await;
        let shells = home.open().await;
        let shell = shells.get(&id("a")).unwrap();
        let result = shell.latest().unwrap().result().expect("it has ended long ago");
        assert_eq!((result.exit_code, &result.ended), (9, &Ended::AtPrompt));
        assert_eq!(
            (text_of(&shell, &result).as_str(), result.cwd.to_str()),
            ("started\n", Some("/usr"))
        );
        assert_eq!(run(&shell, "pwd").await, (0, "/usr\n".into()));
        drop((shell, shells));

        // Now the shell itself ends while there is no owner.
        let mut owner = Owner::run(&home, "echo again; read -r x <\"$HOME/gate\"; exit 7");
        owner.until_printed("again");
        owner.kill();
        fs::write(home.work().join("gate"), "go\n").unwrap();
        let shells = home.open().await;
        let shell = shells.get(&id("a")).unwrap();
        let result = ended(&shell.latest().unwrap()).await;
        assert_eq!((result.exit_code, &result.ended), (7, &Ended::ShellExited));
        assert_eq!(run(&shell, "pwd").await, (0, "/usr\n".into()));
        shells.shut_down().await.unwrap();
    });
}

#[test]
fn there_is_one_owner_and_it_touches_only_its_own_state_directory() {
    test(async {
        let (home, other) = (Home::new(), Home::new());
        let shells = home.open().await;
        assert!(matches!(Shells::open(home.config()).await, Err(Error::RootInUse { .. })));
        let shell = home.shell(&shells, "a").await;
        let strangers = other.open().await;
        let stranger = other.shell(&strangers, "a").await;
        strangers.shut_down().await.unwrap();
        assert_eq!(stranger.status().phase, Phase::Closed);
        assert_eq!(run(&shell, "echo here").await, (0, "here\n".into()));
        // Files that do not belong to a shell are not touched.
        fs::write(home.root().join("shells/not a shell"), "").unwrap();
        drop((shell, shells));
        let shells = home.open().await;
        assert!(home.root().join("shells/not a shell").exists());
        fs::remove_file(home.root().join("shells/not a shell")).unwrap();
        shells.shut_down().await.unwrap();
    });
}

#[test]
fn nothing_is_left_of_a_closed_shell() {
    test(async {
        let home = Home::new();
        let shells = home.open().await;
        let shell = home.shell(&shells, "a").await;
        let keep = home.shell(&shells, "keep").await;
        // A duration that no other program uses, so that these processes can be recognised.
        let long = unique();
        let stubborn = format!(
            "nohup sleep {long}1 >/dev/null 2>&1 & disown
            setsid sleep {long}2 >/dev/null 2>&1 &
            (trap '' HUP TERM INT; while :; do sleep 1; done) &
            setsid bash -c 'trap \"\" HUP; sleep {long}3 & wait' &
            echo all up"
        );
        finish(&shell, stubborn).await;
        let running = shell.run(format!("sleep {long}4")).await.unwrap();
        running.started().await.unwrap();
        let process = shell.status().shell;
        within("closing", shell.close()).await.unwrap();
        assert_eq!(ended(&running).await.ended, Ended::ShellClosed);
        assert!(!process.is_alive());
        assert_eq!(processes_with(&format!("sleep {long}")), [""; 0]);
        assert_eq!(processes_with(home.root().join("shells/a").to_str().unwrap()), [""; 0]);
        assert!(!home.root().join("shells/a").exists());
        assert_eq!(run(&keep, "echo kept").await, (0, "kept\n".into()));
        let server = shells.server().await.unwrap();
        within("shutting down", shells.shut_down()).await.unwrap();
        assert!(!server.is_alive());
        assert_eq!(fs::read_dir(home.root()).unwrap().count(), 0, "the state directory is empty");
        assert_eq!(processes_with(home.root().to_str().unwrap()), [""; 0]);
    });
}

#[test]
fn a_control_client_that_is_not_drained_does_not_delay_the_shutdown() {
    test(async {
        let home = Home::new();
        let shells = home.open().await;
        let shell = home.shell(&shells, "a").await;
        // A control client of somebody else that receives output, which nobody reads.
        let mut client = Command::new("tmux")
            .arg("-S")
            .arg(home.root().join("tmux"))
            .args(["-C", "attach-session", "-t", "=s-a"])
            .env_remove("TMUX")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        finish(&shell, "head -c 20000000 /dev/zero | tr '\\0' x").await;
        let server = shells.server().await.unwrap();
        within("shutting down", shells.shut_down()).await.unwrap();
        assert!(!server.is_alive());
        // Fails if the client has ended with the server.
        let _ = client.kill();
        client.wait().unwrap();
        assert_eq!(processes_with(home.root().to_str().unwrap()), [""; 0]);
    });
}

#[test]
fn shells_end_with_their_lease() {
    test(async {
        let home = Home::new();
        let shells =
            home.open_with(Config { lease: Duration::from_secs(1), ..home.config() }).await;
        home.shell(&shells, "a").await;
        let server = shells.server().await.unwrap();
        drop(shells);
        within("the end of the lease", server.ended()).await.unwrap();
        until_gone(home.root().to_str().unwrap()).await;
        assert!(!home.root().exists(), "the state directory is gone too");
    });
}

#[test]
fn a_killed_server_ends_the_shells_and_can_be_started_again() {
    test(async {
        let home = Home::new();
        let shells = home.open().await;
        let shell = home.shell(&shells, "a").await;
        let long = unique();
        let job = shell.run(format!("echo on; sleep {long}")).await.unwrap();
        until_printed(&shell, 0, "on\r\n").await;
        kill(shells.server().await.unwrap());
        assert_eq!(ended(&job).await.ended, Ended::ServerGone);
        let first = shells.server().await.unwrap();
        // A new shell gets a new server, as soon as everything of the old one is cleaned up.
        let other = home.shell(&shells, "b").await;
        assert_eq!(shell.status().phase, Phase::Lost);
        assert!(matches!(shell.run("echo").await, Err(Error::ServerGone)));
        shell.close().await.unwrap();
        assert_eq!(processes_with(&format!("sleep {long}")), [""; 0]);
        assert_ne!(shells.server().await.unwrap(), first);
        assert_eq!(run(&other, "echo new").await, (0, "new\n".into()));
        assert!(shells.get(&id("a")).is_none() && shells.is_lost(&id("a")));
        let shell = home.shell(&shells, "a").await;
        assert!(!shells.is_lost(&id("a")));
        assert_eq!(run(&shell, "echo again").await, (0, "again\n".into()));

        // The server may also die while there is no owner.
        kill(shells.server().await.unwrap());
        drop((shell, other, shells));
        let shells = home.open().await;
        assert!(shells.list().is_empty());
        let shell = home.shell(&shells, "a").await;
        assert_eq!(run(&shell, "echo new").await, (0, "new\n".into()));
        shells.shut_down().await.unwrap();
        assert_eq!(processes_with(home.root().to_str().unwrap()), [""; 0]);
    });
}

#[test]
fn the_next_owner_lists_the_shells_by_name() {
    test(async {
        let home = Home::new();
        let shells = home.open().await;
        for name in ["b", "a", "c"] {
            home.shell(&shells, name).await;
        }
        drop(shells);
        let shells = home.open().await;
        let names = shells.list().iter().map(|shell| shell.id().clone()).collect::<Vec<ShellId>>();
        assert_eq!(names, [id("a"), id("b"), id("c")]);
        shells.shut_down().await.unwrap();
    });
}

/// They have left the shell's process session and cleared its environment, and one of them has lost its parent.
#[test]
fn programs_that_hide_are_ended_with_their_shell() {
    test(async {
        let home = Home::new();
        let shells = home.open().await;
        let shell = home.shell(&shells, "a").await;
        let (child, orphan, late) = (unique(), unique(), unique());
        let command = format!(
            "setsid env -i sh -c \"echo third; while kill -0 $$; do sleep 0.01; done; sleep {late}; :\" & \
             setsid env -i sh -c 'echo first; exec sleep {child}' & \
             (setsid env -i sh -c 'sleep {orphan} & echo second' &)"
        );
        let job = shell.run(command).await.unwrap();
        let from = start_of(&job).await;
        for word in ["first", "second", "third"] {
            until_printed(&shell, from, word).await;
        }
        ended(&job).await;
        // Waits, because the command line of a process is empty for a moment during `exec`.
        for hidden in [child, orphan] {
            within("the hidden program", async {
                while processes_with(&format!("sleep {hidden}")).is_empty() {
                    tokio::task::yield_now().await;
                }
            })
            .await;
        }
        shells.shut_down().await.unwrap();
        for hidden in [child, orphan, late] {
            assert_eq!(processes_with(&format!("sleep {hidden}")), [""; 0]);
        }
    });
}

/// A server that is overloaded may refuse a client, and starting tmux may fail.
#[test]
fn a_control_client_is_replaced_although_the_first_attempt_fails() {
    test(async {
        let home = Home::new();
        let tmux = home.work().join("tmux");
        // A tmux that fails once if the file `tmux.fault` exists. Another process writes it: Linux does not execute a file
        // that any thread of the tests has open for writing.
        let script = "mv \"$0.fault\" \"$0.failed\" 2>/dev/null && exit 1; exec tmux \"$@\"";
        let write = "printf '#!/bin/sh\n%s\n' \"$1\" >\"$2\" && chmod +x \"$2\"";
        let mut writer = Command::new("sh");
        writer.args(["-c", write, "sh", script]).arg(&tmux);
        assert!(writer.status().unwrap().success());
        let shells = home.open_with(Config { tmux: tmux.clone(), ..home.config() }).await;
        let shell = home.shell(&shells, "a").await;
        run(&shell, "kept=yes").await;
        let client = control_client(&home, None).await;
        fs::write(tmux.with_extension("fault"), "").unwrap();
        kill(client);
        control_client(&home, Some(client)).await;
        assert!(tmux.with_extension("failed").exists(), "the first attempt has failed");
        assert_eq!(run(&shell, "echo $kept").await, (0, "yes\n".into()));
        shells.shut_down().await.unwrap();
    });
}

/// A slow disk may delay a long text until its shell has died and was replaced.
#[test]
fn a_text_that_is_written_late_does_not_replace_the_next_one() {
    test(async {
        let home = Home::new();
        let shells = home.open().await;
        let shell = home.shell(&shells, "a").await;
        // A pipe in the place of the file: the write takes until the text is read.
        let file = home.root().join("shells/a/command");
        fs::remove_file(&file).unwrap();
        assert!(Command::new("mkfifo").arg(&file).status().unwrap().success());
        let mut pipe = pipe::OpenOptions::new().read_write(true).open_receiver(&file).unwrap();
        let mut late = pin!(shell.run(format!("echo late {}", "x".repeat(1 << 20))));
        let mut beginning = [0; 9];
        within("the beginning of the text", async {
            tokio::select! {
                _ = &mut late => panic!("the text is not written yet"),
                read = pipe.read_exact(&mut beginning) => read.unwrap(),
            }
        })
        .await;
        assert_eq!(&beginning, b"echo late");
        fs::rename(&file, home.work().join("pipe")).unwrap();
        fs::write(&file, "").unwrap();
        kill(shell.status().shell);
        let result = ended(&within("the lost command", late).await.unwrap()).await;
        assert_eq!((&result.ended, result.exit_code), (&Ended::ShellExited, -1));
        // The next shell is at its prompt.
        within("the exports", shell.exports()).await.unwrap();

        let mut next = pin!(shell.run("echo next"));
        tokio::select! {
            biased;
            _ = &mut next => panic!("it waits for the earlier text"),
            refused = shell.exports() => assert!(matches!(refused, Err(Error::Busy { .. }))),
        }
        within("the rest of the text", async {
            let mut rest = Vec::new();
            while !rest.ends_with(b"\0") {
                pipe.read_buf(&mut rest).await.unwrap();
            }
        })
        .await;
        let result = ended(&within("the next command", next).await.unwrap()).await;
        assert_eq!(text_of(&shell, &result), "next\n");
        shells.shut_down().await.unwrap();
    });
}
