//! Bugs found by random faults (`tests/chaos`): truncated files, full disks, and bugs of tmux.

#![allow(clippy::unwrap_used, reason = "this is test code, also outside of test functions")]

use std::{
    fs,
    process::{Command, Stdio},
};

use sandbox_shells::{Config, ProcessId};
use sandbox_test_support::{Home, ended, id, run, start_of, test, text_of, until_printed, within};

#[test]
fn a_damaged_process_number_does_not_lead_to_another_process() {
    test(async {
        let home = Home::new();
        let shells = home.open().await;
        let shell = home.shell(&shells, "a").await;
        let process = shell.status().shell;
        drop((shell, shells));
        // A truncated number may name another process; here it is this test.
        let pid = home.root().join("shells/a/pid");
        for text in [std::process::id().to_string(), String::new()] {
            fs::write(&pid, text).unwrap();
            let shells = home.open().await;
            let shell = shells.get(&id("a")).expect("the shell is found");
            assert_eq!(shell.status().shell, process);
            assert_eq!(run(&shell, "echo alive").await, (0, "alive\n".into()));
        }
        home.open().await.shut_down().await.unwrap();
    });
}

/// Its files stay: they are the only record of its processes. The other shells are adopted.
#[test]
fn a_shell_whose_ledger_cannot_be_read_is_left_to_the_next_owner() {
    test(async {
        let home = Home::new();
        let shells = home.open().await;
        for name in ["a", "b", "c"] {
            run(&home.shell(&shells, name).await, format!("name={name}")).await;
        }
        drop(shells);
        let entry = home.root().join("shells/b/shell.json");
        let aside = entry.with_extension("aside");
        fs::rename(&entry, &aside).unwrap();
        // Reading a directory fails, like reading a file from a damaged disk.
        fs::create_dir(&entry).unwrap();
        let shells = home.open().await;
        let names: Vec<_> = shells.list().iter().map(|shell| shell.id().clone()).collect();
        assert_eq!(names, [id("a"), id("c")]);
        drop(shells);
        fs::remove_dir(&entry).unwrap();
        fs::rename(&aside, &entry).unwrap();
        let shells = home.open().await;
        for name in ["a", "b", "c"] {
            let shell = shells.get(&id(name)).expect("the shell is found");
            assert_eq!(run(&shell, "echo $name").await, (0, format!("{name}\n")));
        }
        shells.shut_down().await.unwrap();
    });
}

#[test]
fn after_a_restart_a_command_has_lost_only_what_it_printed_itself() {
    test(async {
        let home = Home::new();
        let open = || home.open_with(Config { log_quota: 2000, ..home.config() });
        let shells = open().await;
        let shell = home.shell(&shells, "a").await;
        let flood = ended(&shell.run("seq 1 10000").await.unwrap()).await;
        assert!(flood.lost > 10_000, "{flood:?}");
        shell.run("read line; echo $line").await.unwrap();
        drop((shell, shells));
        let shells = open().await;
        let shell = shells.get(&id("a")).expect("the shell is found");
        let job = shell.latest().expect("the command is found");
        job.started().await.unwrap();
        shell.type_bytes("word\r").await.unwrap();
        let lost = ended(&job).await.lost;
        // The terminal also echoes the typed word.
        assert_eq!(lost, "word\r\nword\r\n".len() as u64);
        shells.shut_down().await.unwrap();
    });
}

#[test]
fn output_that_was_truncated_from_a_log_is_reported_as_lost() {
    test(async {
        let home = Home::new();
        let shells = home.open().await;
        let shell = home.shell(&shells, "a").await;
        let job = shell.run("echo gone; read -r x; echo kept").await.unwrap();
        let from = start_of(&job).await;
        until_printed(&shell, from, "gone\r\n").await;
        let log = fs::File::options().write(true).open(shell.log().path()).unwrap();
        log.set_len(from).unwrap();
        shell.type_bytes("\r").await.unwrap();
        let result = ended(&job).await;
        assert_eq!((result.exit_code, result.lost), (0, "gone\r\n".len() as u64));
        assert!(text_of(&shell, &result).ends_with("kept\n"));
        // The next command has lost nothing.
        let next = ended(&shell.run("echo next").await.unwrap()).await;
        assert_eq!((next.lost, &*text_of(&shell, &next)), (0, "next\n"));
        shells.shut_down().await.unwrap();
    });
}

#[test]
fn control_clients_of_earlier_owners_are_ended() {
    test(async {
        let home = Home::new();
        let shells = home.open().await;
        let shell = home.shell(&shells, "a").await;
        run(&shell, "kept=yes").await;
        // Like the control client of a killed owner that tmux has not detached.
        let mut client = Command::new("tmux")
            .arg("-S")
            .arg(home.root().join("tmux"))
            .arg("-f")
            .arg(home.root().join("tmux.conf"))
            .args(["-C", "attach-session", "-t", "keeper"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let process = ProcessId::of(client.id()).unwrap();
        within("the client to be attached", async {
            use std::io::{BufRead as _, BufReader};
            let output = BufReader::new(client.stdout.take().unwrap());
            let attached = tokio::task::spawn_blocking(|| {
                output.lines().map_while(Result::ok).any(|line| line.contains("%session-changed"))
            });
            assert!(attached.await.unwrap());
        })
        .await;
        drop((shell, shells));
        let shells = home.open().await;
        within("the end of the former client", process.ended()).await.unwrap();
        client.wait().unwrap();
        let shell = shells.get(&id("a")).expect("the shell is found");
        let job = shell.run("echo $kept").await.unwrap();
        until_printed(&shell, ended(&job).await.output.start, "yes\r\n").await;
        shells.shut_down().await.unwrap();
    });
}
