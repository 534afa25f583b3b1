//! Output: every byte of it, whoever watches, up to the quota.

#![allow(clippy::unwrap_used, reason = "this is test code, also outside of test functions")]

mod support;

use std::{fs, process::Command, time::Duration};

use sandbox::shell::{Access, Colours, Config, render};
use support::{FLOOD, Home, check_flood, finish, raw, run, test, text_of, until_printed, within};

fn resident_kib(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_ascii_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn a_flood_is_recorded_whole_with_a_stopped_subscriber_and_a_person_watching() {
    test(async {
        let home = Home::new();
        let shells = home.open().await;
        let session = home.session(&shells, "a").await;
        // This subscriber never reads.
        let stopped = session.log().subscribe(0).unwrap();
        // A person in a terminal of their own: a second tmux server plays the terminal.
        let outer = home.work().join("outer");
        let attach = session.attach_command(Access::ReadOnly);
        let status = Command::new("tmux")
            .arg("-S")
            .arg(&outer)
            .args(["-f", "/dev/null", "new-session", "-d", "-x", "200", "-y", "50", &attach])
            .env_remove("TMUX")
            .status();
        assert!(status.unwrap().success());

        let result = finish(&session, FLOOD).await;
        assert_eq!((result.exit_code, result.lost), (0, 0));
        check_flood(&session, &result).await;
        let server = resident_kib(shells.server().pid);
        let owner = resident_kib(std::process::id());
        assert!(server < 64 << 10, "tmux holds {server} KiB");
        assert!(owner < 64 << 10, "we hold {owner} KiB");
        drop(stopped);
        let _ = Command::new("tmux").arg("-S").arg(&outer).arg("kill-server").status();
        shells.shut_down().await.unwrap();
    });
}

#[test]
fn bytes_are_bytes() {
    test(async {
        let home = Home::new();
        let shells = home.open().await;
        let session = home.session(&shells, "a").await;
        let every = (0..=255u8).collect::<Vec<_>>();
        fs::write(home.work().join("bytes"), &every).unwrap();
        let result = finish(&session, "stty -opost; cat bytes; stty opost").await;
        assert_eq!(raw(&session, &result), every);
        // Lone escape characters, half sequences and an unfinished imitation of a marker.
        let odd = b"\x1b\x1b]\x1b]77\x1b]7717;E;9;\x1b]7717;";
        fs::write(home.work().join("odd"), odd).unwrap();
        let result = finish(&session, "cat odd; (exit 8)").await;
        assert_eq!((raw(&session, &result).as_slice(), result.exit_code), (&odd[..], 8));
        shells.shut_down().await.unwrap();
    });
}

#[test]
fn long_output_is_shown_by_its_ends_and_read_by_offset() {
    test(async {
        let home = Home::new();
        let shells = home.open().await;
        let session = home.session(&shells, "a").await;
        let result = finish(&session, "seq 1 50000").await;
        let view = session.log().view(result.output.clone(), 1000).unwrap();
        let text = String::from_utf8(view.with_note()).unwrap();
        assert!(text.starts_with("1\r\n2\r\n") && text.ends_with("50000\r\n"), "{text}");
        let note = format!("offsets {} to {} of the log", view.omitted.start, view.omitted.end);
        assert!(text.contains(&note), "{text}");
        let middle = session.log().read(view.omitted.clone()).unwrap();
        let whole = [view.head, middle, view.tail].concat();
        assert_eq!(whole, raw(&session, &result));

        let result = finish(&session, "printf 'a\\rb\\n\\e[1;32mgreen\\e[0m\\n'; seq 3").await;
        let output = raw(&session, &result);
        assert_eq!(render(&output, session.size(), Colours::Strip), "b\ngreen\n1\n2\n3");
        assert!(
            render(&output, session.size(), Colours::Keep).contains("\x1b[0;1;32mgreen\x1b[0m")
        );
        shells.shut_down().await.unwrap();
    });
}

#[test]
fn beyond_the_quota_output_is_counted_and_commands_still_end() {
    test(async {
        let home = Home::new();
        let shells = home.open_with(Config { log_quota: 100_000, ..home.config() }).await;
        let session = home.session(&shells, "a").await;
        let result = finish(&session, "head -c 300000 /dev/zero | tr '\\0' x; (exit 3)").await;
        assert_eq!(result.exit_code, 3);
        let kept = result.output.end - result.output.start;
        assert_eq!(kept + result.lost, 300_000);
        assert_eq!(session.log().len().unwrap(), 100_000);
        assert_eq!(finish(&session, "echo more; (exit 4)").await.exit_code, 4);
        shells.shut_down().await.unwrap();
    });
}

#[test]
fn the_output_of_a_command_can_be_followed_to_its_last_byte() {
    test(async {
        let home = Home::new();
        let shells = home.open().await;
        let session = home.session(&shells, "a").await;
        for _ in 0..20 {
            let job = session.run("echo one; sleep 0.01; echo two").await.unwrap();
            job.started().await.unwrap();
            let mut output = job.follow().unwrap();
            let (mut seen, mut buffer) = (Vec::new(), [0; 64]);
            loop {
                match within("the output", output.next(&mut buffer)).await.unwrap() {
                    0 => break,
                    read => seen.extend_from_slice(&buffer[..read]),
                }
            }
            assert_eq!(seen, b"one\r\ntwo\r\n");
        }
        shells.shut_down().await.unwrap();
    });
}

#[test]
fn a_person_can_attach_and_type_or_only_watch() {
    test(async {
        let home = Home::new();
        let shells = home.open().await;
        let session = home.session(&shells, "a").await;
        let outer = home.work().join("outer");
        let tmux = |arguments: &[&str]| {
            let mut command = Command::new("tmux");
            command
                .arg("-S")
                .arg(&outer)
                .args(["-f", "/dev/null"])
                .args(arguments)
                .env_remove("TMUX");
            assert!(command.output().unwrap().status.success(), "{arguments:?}");
        };
        let from = session.log().len().unwrap();
        tmux(&["new-session", "-d", "-s", "full", &session.attach_command(Access::Full)]);
        tmux(&["new-session", "-d", "-s", "watch", &session.attach_command(Access::ReadOnly)]);
        // Whoever has attached sees a redrawn screen; then the keys go through.
        let clients =
            format!("tmux -S {}/tmux list-clients -t =s-a | wc -l", home.root().display());
        let both = format!("until [ $({clients}) = 2 ]; do sleep 0.02; done; echo both");
        assert_eq!(run(&session, both).await, (0, "both\n".into()));
        tmux(&["send-keys", "-t", "watch", "echo not by me", "Enter"]);
        tmux(&["send-keys", "-t", "full", "echo typed by a person", "Enter"]);
        let seen = until_printed(&session, from, "\rtyped by a person").await;
        assert!(!seen.contains("not by me"), "{seen}");
        let result = finish(&session, "echo mine").await;
        assert_eq!(text_of(&session, &result), "mine\n");
        tmux(&["kill-server"]);
        tokio::time::timeout(Duration::from_secs(20), shells.shut_down()).await.unwrap().unwrap();
    });
}
