//! Output is recorded completely, whoever watches, up to the quota.

#![allow(clippy::unwrap_used, reason = "this is test code, also outside of test functions")]

use std::{fs, path::PathBuf, process::Command, time::Duration};

use sandbox_shells::{Access, Colours, Config, Progress, Wait, render};
use sandbox_test_support::{
    FLOOD, Home, Owner, check_flood, ended, finish, hash, id, raw, recorders, run, test, text_of,
    until_changed, until_printed, within,
};

/// The peak memory of a process, in KiB.
fn peak(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_ascii_whitespace().nth(1).unwrap().parse().unwrap()
}

/// A person in a terminal of their own, simulated by a second tmux server.
struct Person {
    socket: PathBuf,
}

impl Person {
    fn start(home: &Home) -> Self {
        Self { socket: home.work().join("outer") }
    }

    fn tmux(&self, arguments: &[&str]) {
        let mut command = Command::new("tmux");
        command.arg("-S").arg(&self.socket).args(["-f", "/dev/null"]).args(arguments);
        let output = command.env_remove("TMUX").output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?}");
    }

    /// Runs a command that attaches to a shell, in a tmux session of its own.
    fn attach(&self, name: &str, command: &str) {
        self.tmux(&["new-session", "-d", "-x", "200", "-y", "50", "-s", name, command]);
    }
}

impl Drop for Person {
    fn drop(&mut self) {
        // Fails if the server has ended already.
        let _ = Command::new("tmux").arg("-S").arg(&self.socket).arg("kill-server").output();
    }
}

/// A command that ends when this many clients are attached to the shell `a`.
fn until_attached(home: &Home, clients: usize) -> String {
    let list = format!("tmux -S {}/tmux list-clients -t =s-a | wc -l", home.root().display());
    format!("until [ $({list}) = {clients} ]; do sleep 0.02; done")
}

#[test]
fn a_flood_is_recorded_completely_with_a_stopped_reader_and_a_person_watching() {
    const MOST: u64 = 48 << 10;
    let home = Home::new();
    let command = format!("echo ready; {}; echo go; {FLOOD}", until_attached(&home, 1));
    // This owner passes the output on to the test, which stops reading at once.
    let mut owner = Owner::run(&home, &command);
    owner.until_printed("ready\r\n");
    let person = Person::start(&home);
    let socket = home.root().join("tmux");
    person.attach("watch", &format!("tmux -S {} attach-session -r -t =s-a", socket.display()));
    owner.until_printed("go\r\n");
    let recorder = recorders(&home)[0];
    let mut ask = Command::new("tmux");
    ask.arg("-S").arg(&socket).args(["display-message", "-p", "#{pid}"]).env_remove("TMUX");
    let server = String::from_utf8(ask.output().unwrap().stdout).unwrap().trim().parse().unwrap();

    let index = home.root().join("shells/a/index");
    let has_ended = || fs::read_to_string(&index).unwrap().contains(" E;1;");
    test(async { until_changed(&index, "the end of the flood", has_ended).await });
    for (name, pid) in [("tmux", server), ("the recorder", recorder), ("the owner", owner.pid())] {
        let peak = peak(pid);
        assert!(peak < MOST, "{name} held {peak} KiB");
        eprintln!("{name} held {peak} KiB");
    }
    // A reader that continues misses nothing.
    let read = owner.read_to_end();
    assert!(read.len() > 100_000_000);
    let sum = home.work().join("sum");
    test(async { until_changed(&home.work(), "the sum", || sum.exists()).await });
    let sum = fs::read_to_string(sum).unwrap();
    assert_eq!(sum.split(' ').next(), Some(&*hash(&read[..])), "the reader got every byte");
    drop(person);
    test(async {
        let shells = home.open().await;
        let shell = shells.get(&id("a")).unwrap();
        let result = ended(&shell.latest().unwrap()).await;
        assert_eq!((result.exit_code, result.lost), (0, 0));
        let before = result.output.end - read.len() as u64;
        check_flood(&shell, before..result.output.end).await;
        shells.shut_down().await.unwrap();
    });
}

#[test]
fn every_byte_value_is_recorded_unchanged() {
    test(async {
        let home = Home::new();
        let shells = home.open().await;
        let shell = home.shell(&shells, "a").await;
        let every = (0..=255u8).collect::<Vec<_>>();
        fs::write(home.work().join("bytes"), &every).unwrap();
        let result = finish(&shell, "stty -opost; cat bytes; stty opost").await;
        assert_eq!(raw(&shell, &result), every);
        // Single escape characters, incomplete sequences and an unfinished imitation of a marker.
        let odd = b"\x1b\x1b]\x1b]77\x1b]7717;E;9;\x1b]7717;";
        fs::write(home.work().join("odd"), odd).unwrap();
        let result = finish(&shell, "cat odd; (exit 8)").await;
        assert_eq!((raw(&shell, &result).as_slice(), result.exit_code), (&odd[..], 8));
        shells.shut_down().await.unwrap();
    });
}

#[test]
fn long_output_is_shown_by_its_ends_and_read_by_offset() {
    test(async {
        let home = Home::new();
        let shells = home.open().await;
        let shell = home.shell(&shells, "a").await;
        let result = finish(&shell, "seq 1 50000").await;
        let view = shell.log().view(result.output.clone(), 1000).unwrap();
        let text = String::from_utf8(view.with_note()).unwrap();
        assert!(text.starts_with("1\r\n2\r\n") && text.ends_with("50000\r\n"), "{text}");
        let note = format!("offsets {} to {} of the log", view.omitted.start, view.omitted.end);
        assert!(text.contains(&note), "{text}");
        let middle = shell.log().read(view.omitted.clone()).unwrap();
        let whole = [view.head, middle, view.tail].concat();
        assert_eq!(whole, raw(&shell, &result));

        let result = finish(&shell, "printf 'a\\rb\\n\\e[1;32mgreen\\e[0m\\n'; seq 3").await;
        let output = raw(&shell, &result);
        assert_eq!(render(&output, shell.size(), Colours::Strip), "b\ngreen\n1\n2\n3");
        assert!(render(&output, shell.size(), Colours::Keep).contains("\x1b[0;1;32mgreen\x1b[0m"));
        shells.shut_down().await.unwrap();
    });
}

#[test]
fn beyond_the_quota_output_is_counted_and_commands_still_end() {
    test(async {
        let home = Home::new();
        let shells = home.open_with(Config { log_quota: 100_000, ..home.config() }).await;
        let shell = home.shell(&shells, "a").await;
        let result = finish(&shell, "head -c 300000 /dev/zero | tr '\\0' x; (exit 3)").await;
        assert_eq!(result.exit_code, 3);
        let kept = result.output.end - result.output.start;
        assert_eq!(kept + result.lost, 300_000);
        assert_eq!(shell.log().len().unwrap(), 100_000);
        assert_eq!(finish(&shell, "echo more; (exit 4)").await.exit_code, 4);
        // Dropped output still counts as output: the command is not silent.
        let job = shell.run("for i in {1..50}; do echo $i; sleep 0.05; done").await.unwrap();
        let progress = job.wait(Wait::until_quiet(Duration::from_secs(1))).await.unwrap();
        assert!(matches!(progress, Progress::Finished(_)), "{progress:?}");
        shells.shut_down().await.unwrap();
    });
}

#[test]
fn the_output_of_a_command_can_be_followed_to_its_last_byte() {
    test(async {
        let home = Home::new();
        let shells = home.open().await;
        let shell = home.shell(&shells, "a").await;
        for _ in 0..20 {
            let job = shell.run("echo one; sleep 0.01; echo two").await.unwrap();
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
        let shell = home.shell(&shells, "a").await;
        let person = Person::start(&home);
        let from = shell.log().len().unwrap();
        person.attach("full", &shell.attach_command(Access::Full));
        person.attach("watch", &shell.attach_command(Access::ReadOnly));
        // A client that has attached gets a redrawn screen; after that, its keys get through.
        let both = format!("{}; echo both", until_attached(&home, 2));
        assert_eq!(run(&shell, both).await, (0, "both\n".into()));
        person.tmux(&["send-keys", "-t", "watch", "echo not by me", "Enter"]);
        person.tmux(&["send-keys", "-t", "full", "echo typed by a person", "Enter"]);
        let seen = until_printed(&shell, from, "\rtyped by a person").await;
        assert!(!seen.contains("not by me"), "{seen}");
        let result = finish(&shell, "echo mine").await;
        assert_eq!(text_of(&shell, &result), "mine\n");
        drop(person);
        within("shutting down", shells.shut_down()).await.unwrap();
    });
}
