//! Tests of what other users of the machine can do to a server that was started without any flag.

use std::{
    fs,
    io::{Read as _, Write as _},
    net::TcpStream,
    os::unix::process::CommandExt as _,
    process::Command,
    time::Duration,
};

use rustix::process::{Pid, Resource, Rlimit, prlimit};

use crate::server::{LIMIT, Server};

/// Runs a command at the port `$1` without a key, and prints the answer. Needs only bash.
const BREAK_IN: &str = r#"
    body='{"action":{"action":"run","args":{"command":"touch broken-in"}}}'
    exec 3<>"/dev/tcp/127.0.0.1/$1"
    printf 'POST /execute_action HTTP/1.1\r\nHost: 127.0.0.1:%s\r\nConnection: close\r\n' "$1" >&3
    printf 'Content-Type: application/json\r\nContent-Length: %s\r\n\r\n%s' "${#body}" "$body" >&3
    cat <&3"#;

fn port(server: &Server) -> &str {
    server.address().rsplit_once(':').unwrap().1
}

#[test]
fn other_users_cannot_run_commands_on_a_server_that_was_given_no_key() {
    let server = Server::start();
    assert_eq!(server.output("echo in"), "in");
    let mut bash = Command::new("bash");
    bash.args(["-c", BREAK_IN, "bash", port(&server)]);
    let is_root = rustix::process::geteuid().is_root();
    if is_root {
        bash.uid(65534).gid(65534);
    } else {
        eprintln!(
            "skipped in part: only root can play another user, so this user does without the key"
        );
    }
    let answer = String::from_utf8(bash.output().unwrap().stdout).unwrap();
    assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
    assert_eq!(server.output("ls"), "", "no command of the stranger was run");

    // The key is in a private file, and this user finds it.
    let home = server.work().parent().unwrap().to_owned();
    let name = format!("openhands-{}.key", server.address());
    let file = home.join(".local/state/run-bridge").join(name);
    assert_eq!(fs::read_to_string(&file).unwrap(), server.key);
    // It is in no log: its stderr is no terminal.
    assert!(!server.printed.contains(&server.key));
    let mut ask = Command::new(env!("CARGO_BIN_EXE_openhands-edge"));
    ask.args(["key", port(&server)]).env("HOME", &home);
    ask.env_remove("XDG_RUNTIME_DIR").env_remove("XDG_STATE_HOME");
    let told = ask.output().unwrap();
    assert_eq!(String::from_utf8(told.stdout).unwrap().trim_end(), server.key);
    if is_root {
        let mut read = Command::new("cat");
        assert!(!read.arg(&file).uid(65534).gid(65534).output().unwrap().status.success());
    }
    drop(server);
    assert!(!file.exists());
}

#[test]
fn idle_strangers_do_not_use_up_the_descriptors() {
    let server = Server::start();
    assert_eq!(server.output("echo before"), "before");
    // Fewer than the strangers want, and more than the server needs.
    let pid = Pid::from_raw(server.pid().cast_signed());
    let used = fs::read_dir(format!("/proc/{}/fd", server.pid())).unwrap().count() as u64;
    let limit = Some(used + 100);
    prlimit(pid, Resource::Nofile, Rlimit { current: limit, maximum: limit }).unwrap();
    let stranger = |head: &str| {
        let mut stranger = TcpStream::connect(server.address()).unwrap();
        stranger.set_read_timeout(Some(LIMIT)).unwrap();
        // Fails if the server has closed the connection already.
        let _ = stranger.write_all(head.as_bytes());
        stranger
    };
    // Strangers that say nothing, that never finish, and that have been answered.
    let heads =
        ["", "GET /alive HTTP/1.1\r\nX: ", "GET /alive HTTP/1.1\r\nHost: localhost\r\n\r\n"];
    let mut strangers: Vec<_> = (0..300).map(|number| stranger(heads[number % 3])).collect();
    assert_eq!(server.output("echo still served"), "still served");
    // Every one of them is closed by the server.
    for stranger in &mut strangers {
        let mut answer = Vec::new();
        match stranger.read_to_end(&mut answer) {
            Ok(_) => {}
            Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset, "{error}"),
        }
    }
    assert_eq!(server.output("echo after"), "after");
}

#[test]
fn a_head_that_does_not_come_or_is_too_long_is_given_up() {
    let server = Server::start();
    for (head, status) in
        [("POST / HTTP/1.1\r\n".to_owned(), "408"), (format!("GET /{}", "x".repeat(9000)), "431")]
    {
        let mut client = TcpStream::connect(server.address()).unwrap();
        client.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        client.write_all(head.as_bytes()).unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{answer}");
        assert!(answer.contains(r#"{"detail":""#), "{answer}");
    }
}
