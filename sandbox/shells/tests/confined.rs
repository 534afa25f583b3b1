//! Confined shells: what Linux denies them, and what still works.

#![allow(clippy::unwrap_used, reason = "this is test code, also outside of test functions")]

use std::{fs, net::TcpListener, path::PathBuf};

use sandbox_isolation::{self as isolation, Level, Limits, Network, Policy};
use sandbox_shells::{Config, Ended, Error, Key, Shell, Shells};
use sandbox_test_support::{Home, ended, finish, landlock_works, run, test, until_printed, within};

/// A directory for temporary files, and one that confined shells must not write to.
fn places(home: &Home) -> (PathBuf, PathBuf) {
    let places = ["temporary", "outside"].map(|name| home.root().parent().unwrap().join(name));
    for place in &places {
        fs::create_dir_all(place).unwrap();
    }
    let [temporary, outside] = places;
    fs::write(outside.join("file"), "kept").unwrap();
    (temporary, outside)
}

fn policy(home: &Home) -> Policy {
    Policy::for_workspace(Level::Landlock, &home.work(), &places(home).0)
}

async fn confined(home: &Home, shells: &Shells, name: &str, policy: &Policy) -> Shell {
    let mut spec = home.spec(name);
    spec.environment.push(("TMPDIR".into(), places(home).0.into()));
    spec.environment.push(("OUTSIDE".into(), places(home).1.into()));
    spec.environment.push(("ROOT".into(), home.root().into()));
    within("creating a shell", shells.create_confined(spec, policy)).await.unwrap()
}

/// Runs a test with a confined shell `a`, if Linux can confine it.
fn with_confined_shell(body: impl AsyncFnOnce(&Home, Shells, Shell)) {
    if landlock_works() {
        test(async {
            let home = Home::new();
            let shells = home.open().await;
            let shell = confined(&home, &shells, "a", &policy(&home)).await;
            body(&home, shells, shell).await;
        });
    }
}

fn is_root() -> bool {
    rustix::process::getuid().is_root()
}

async fn refused(shell: &Shell, text: &str) {
    assert_ne!(finish(shell, text).await.exit_code, 0, "{text}");
}

async fn allowed(shell: &Shell, text: &str) {
    assert_eq!(finish(shell, text).await.exit_code, 0, "{text}");
}

#[test]
fn a_confined_shell_writes_only_where_it_may() {
    with_confined_shell(async |home, shells, shell| {
        let free = home.shell(&shells, "free").await;
        for text in [
            "echo x >a && mkdir d && mv a d/b && rm -r d",
            "echo x >\"$TMPDIR/a\" && rm \"$TMPDIR/a\"",
            "f=$(mktemp) && echo x >\"$f\" && rm \"$f\"",
            "cat \"$OUTSIDE/file\" >/dev/null && echo x >/dev/tty",
            // bash keeps here-documents of this size in a temporary file.
            "wc -c <<E\n$(head -c 100000 /dev/zero | tr '\\0' x)\nE",
            "python3 -c 'import pty, os; os.close(pty.openpty()[1])'",
            "[ \"$(cat <(echo through a pipe))\" = 'through a pipe' ]",
        ] {
            allowed(&shell, text).await;
        }
        let attacks = [
            "echo x >\"$OUTSIDE/new\"",
            "echo x >>\"$OUTSIDE/file\"",
            "truncate -s 0 \"$OUTSIDE/file\"",
            "rm \"$OUTSIDE/file\"",
            "ln -s \"$OUTSIDE\" door; echo x >door/file",
            "setsid -w sh -c 'echo x >\"$OUTSIDE/new\"'",
            // Files of the sandbox itself.
            "echo x >>\"$ROOT/shells/a/log\"",
            "echo x >>\"$ROOT/shells/a/index\"",
            "echo x >|\"$ROOT/shells/a/expected\"",
            "echo x >|\"$ROOT/shells/a/policy\"",
            "rm \"$ROOT/shells/a/shell.json\"",
            "mv \"$ROOT/shells/a\" \"$ROOT/shells/b\"",
            "echo x >\"$ROOT/alive\"",
            "rm \"$ROOT/run-bridge.lock\"",
            "touch \"$ROOT/shells/free/new\"",
        ];
        for text in attacks {
            refused(&shell, text).await;
        }
        assert_eq!(fs::read(places(home).1.join("file")).unwrap(), b"kept");
        assert!(!places(home).1.join("new").exists());
        // The policy caused the denial: an unconfined shell may do such things.
        let text = format!("echo x >{0}/new && rm {0}/new", places(home).1.display());
        allowed(&free, &text).await;
        shells.shut_down().await.unwrap();
    });
}

#[test]
fn a_confined_shell_cannot_reach_tmux_or_signal_processes_outside() {
    with_confined_shell(async |home, shells, shell| {
        let free = home.shell(&shells, "free").await;
        let list = format!("tmux -S {}/tmux list-sessions", home.root().display());
        allowed(&free, &list).await;
        refused(&shell, &list).await;
        let socket = "python3 -c 'import socket; socket.socket(socket.AF_UNIX)'";
        refused(&shell, socket).await;
        allowed(&shell, &socket.replace("AF_UNIX", "AF_INET")).await;
        allowed(&shell, &socket.replace("socket(socket.AF_UNIX)", "socketpair()")).await;
        if isolation::require(Level::Landlock).unwrap().signals {
            for process in [std::process::id(), shells.server().await.unwrap().pid] {
                let signal = format!("kill -0 {process}");
                allowed(&free, &signal).await;
                refused(&shell, &signal).await;
            }
        }
        // If the policy allows Unix sockets, it allows all of them.
        let policy = Policy { unix_sockets: true, ..policy(home) };
        let social = confined(home, &shells, "social", &policy).await;
        allowed(&social, socket).await;
        shells.shut_down().await.unwrap();
    });
}

#[test]
fn everything_else_works_as_in_an_unconfined_shell() {
    with_confined_shell(async |home, shells, shell| {
        assert_eq!(run(&shell, "cd /usr; echo $PWD; (exit 3)").await, (3, "/usr\n".into()));
        let job = shell.run("bash -c 'echo up; exec sleep 100'").await.unwrap();
        until_printed(&shell, 0, "up").await;
        shell.press(vec![Key::interrupt()]).await.unwrap();
        assert_eq!(ended(&job).await.exit_code, 130);
        let result = finish(&shell, "sleep 50 &").await;
        assert!(result.background_pid.is_some());
        allowed(&shell, "kill %1").await;
        let job = shell.run("read -r -p 'name? ' x; echo \"<$x>\"").await.unwrap();
        until_printed(&shell, 0, "name? ").await;
        shell.type_bytes("bob\r").await.unwrap();
        assert_eq!(ended(&job).await.exit_code, 0);

        // A replacement of the shell has the same policy, and so has one that the next owner starts.
        let escape = "echo x >\"$OUTSIDE/new\"";
        assert_eq!(finish(&shell, "exit 4").await.ended, Ended::ShellExited);
        refused(&shell, escape).await;
        drop((shell, shells));
        let shells = home.open().await;
        let shell = shells.get(&sandbox_test_support::id("a")).unwrap();
        refused(&shell, escape).await;
        assert_eq!(finish(&shell, "exit 4").await.ended, Ended::ShellExited);
        refused(&shell, escape).await;
        assert_eq!(run(&shell, "pwd").await, (0, "/usr\n".into()));
        shells.shut_down().await.unwrap();
    });
}

#[test]
fn the_network_of_a_shell_is_as_chosen() {
    if !landlock_works() || !isolation::require(Level::Landlock).unwrap().tcp {
        return;
    }
    test(async {
        let home = Home::new();
        let shells = home.open().await;
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let connect = format!("exec 3<>/dev/tcp/127.0.0.1/{port} && exec 3<&-");
        let cases = [
            ("open", Network::Unrestricted, 0),
            ("chosen", Network::Only { connect: vec![port], listen: vec![], udp: false }, 0),
            ("off", Network::Only { connect: vec![], listen: vec![], udp: false }, 1),
        ];
        for (name, network, code) in cases {
            let policy = Policy { network, ..policy(&home) };
            let shell = confined(&home, &shells, name, &policy).await;
            assert_eq!(finish(&shell, connect.as_str()).await.exit_code, code, "{name}");
        }
        shells.shut_down().await.unwrap();
    });
}

#[test]
fn limits_apply_to_a_shell_and_not_to_its_recorder() {
    test(async {
        const MIB: u64 = 1 << 20;
        let home = Home::new();
        let shells = home.open().await;
        let limits = Limits {
            cpu_seconds: Some(2),
            memory_bytes: Some(256 * MIB),
            // Refused for root.
            processes: (!is_root()).then_some(4321),
            file_bytes: Some(MIB),
        };
        let policy = Policy { limits, ..Policy::default() };
        let shell = confined(&home, &shells, "a", &policy).await;
        // In a separate program, because the CPU time of the shell itself accumulates over commands.
        let spin = "bash -c 'while :; do :; done'";
        assert_eq!(finish(&shell, spin).await.exit_code, 128 + 24, "SIGXCPU");
        assert_ne!(finish(&shell, "head -c 2000000 /dev/zero >big").await.exit_code, 0);
        assert_eq!(fs::metadata(home.work().join("big")).unwrap().len(), MIB);
        let grow = "bash -c 'x=$(head -c 400000000 /dev/zero | tr \"\\0\" x)'";
        assert_ne!(finish(&shell, grow).await.exit_code, 0);
        if !is_root() {
            assert_eq!(run(&shell, "ulimit -Hu").await, (0, "4321\n".into()));
        }
        // The limit on file sizes does not apply to the log, which another process writes.
        let result = finish(&shell, "head -c 3000000 /dev/zero | tr '\\0' x").await;
        assert_eq!((result.exit_code, result.lost), (0, 0));
        assert_eq!(result.output.end - result.output.start, 3_000_000);
        shells.shut_down().await.unwrap();
    });
}

#[test]
fn a_policy_that_cannot_be_enforced_starts_no_shell() {
    if !landlock_works() {
        return;
    }
    test(async {
        let home = Home::new();
        let config = Config { require: Level::Landlock, ..home.config() };
        let error = Shells::open(config.clone()).await.unwrap_err();
        assert!(error.to_string().contains("landlock is required here"), "{error}");
        assert!(error.to_string().contains("--require none"), "{error}");
        let shells = home.open_with(Config { policy: policy(&home), ..config }).await;
        let mut missing = policy(&home);
        missing.writable.push(home.work().join("missing"));
        let mut inviting = policy(&home);
        inviting.writable.push(home.root().parent().unwrap().into());
        for (policy, words) in [(missing, "missing"), (inviting, "state directory")] {
            let error = shells.create_confined(home.spec("a"), &policy).await.unwrap_err();
            assert!(
                matches!(error, Error::Invalid(_)) && error.to_string().contains(words),
                "{error}"
            );
        }
        assert!(shells.list().is_empty());
        assert_eq!(fs::read_dir(home.root().join("shells")).unwrap().count(), 0);
        shells.shut_down().await.unwrap();
    });
}

#[test]
fn a_limit_that_does_not_bind_is_refused() {
    if !is_root() {
        eprintln!("skipped: Linux limits the processes of an ordinary user");
        return;
    }
    test(async {
        let home = Home::new();
        let limits = Limits { processes: Some(10), ..Limits::default() };
        let policy = Policy { limits, ..Policy::default() };
        let error = Shells::open(Config { policy, ..home.config() }).await.unwrap_err();
        assert!(error.to_string().contains("leave out --limit-processes"), "{error}");
    });
}

/// With a connection file a confined command could act through a daemon that is not confined.
#[test]
fn a_confined_shell_reads_no_private_file() {
    with_confined_shell(async |home, shells, shell| {
        let free = home.shell(&shells, "free").await;
        let listed = finish(&shell, "ls \"$ROOT/shells\"").await;
        assert_eq!(listed.exit_code, 0, "directories can be listed");
        for file in ["tmux.conf", "run-bridge.lock", "shells/free/log"] {
            let read = format!("cat <'{}/{file}'", home.root().display());
            allowed(&free, &read).await;
            refused(&shell, &read).await;
        }
        // A daemon that starts later has its connection file in a directory that is already unreadable.
        fs::write(home.root().join("later.json"), "secret").unwrap();
        refused(&shell, "cat \"$ROOT/later.json\"").await;
        shells.shut_down().await.unwrap();
    });
}

#[test]
fn ordinary_programs_work_in_a_confined_shell() {
    with_confined_shell(async |_, shells, shell| {
        for text in [
            "git init -q r && cd r && echo x >f && git add f && chmod +x f && cd ..",
            "git -C r -c user.name=a -c user.email=a@b commit -qm x && git clone -q r s && git -C s gc -q",
            "python3 -c 'import threading as t; x = t.Thread(target=print); x.start(); x.join()'",
            "python3 -c 'import subprocess as s; s.run([\"true\"], check=True)'",
            "python3 -m venv --without-pip v && v/bin/python -c 'import ssl, sqlite3'",
            "echo 'int main(void){return 0;}' >m.c && cc m.c -o m && ./m",
            "tar cf t.tar r && mkdir t && tar xf t.tar -C t && cp -a r r2 && touch -d yesterday r2/f",
            "nice true && timeout 5 true && ls / /dev /proc ~ >/dev/null",
        ] {
            allowed(&shell, text).await;
        }
        // These are not everywhere.
        for (program, text) in [
            ("node", "node -e 'new (require(\"worker_threads\").Worker)(\"\", {eval: true})'"),
            (
                "cargo",
                "cargo new -q --vcs none c && cargo check -q --offline --manifest-path c/Cargo.toml",
            ),
        ] {
            if finish(&shell, format!("command -v {program}").as_str()).await.exit_code == 0 {
                allowed(&shell, text).await;
            } else {
                eprintln!("skipped: there is no {program}");
            }
        }
        shells.shut_down().await.unwrap();
    });
}

#[test]
fn a_confined_shell_reports_its_exports() {
    with_confined_shell(async |_, shells, shell| {
        run(&shell, "set -o vi; export SAID='by a\nconfined shell'").await;
        let before = shell.log().len().unwrap();
        let exports = shell.exports().await.unwrap();
        let said = exports.iter().find(|(name, _)| name == "SAID");
        assert_eq!(said.unwrap().1, "by a\nconfined shell");
        let (code, open) = run(&shell, "ls -l /proc/self/fd | grep -c exports").await;
        assert_eq!((code, &*open), (1, "0\n"), "no program has the file");
        let after = shell.log().read(before..shell.log().len().unwrap()).unwrap();
        assert!(!String::from_utf8_lossy(&after).contains("denied"));
        shells.shut_down().await.unwrap();
    });
}
