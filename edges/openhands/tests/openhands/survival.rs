//! Tests of crashes, lost connections and missing resources.

use std::{
    collections::BTreeSet, fs, io::Write as _, net::TcpStream, process::Command, sync::Barrier,
};

use serde_json::{Value, json};

use crate::server::{
    Options, Server, content, exit_code, may_be_first_process, metadata, signal, until,
    until_exists,
};

/// Starts a command that waits for the file `go`, and waits until it has begun.
fn start_waiting(server: &Server) {
    let command = "rm -f go; mkfifo go; echo begun; read x < go; echo end";
    let mut observation = server.action_within("run", json!({ "command": command }), Some(1.0));
    while !content(&observation).contains("begun") {
        observation = server.action_within("run", json!({"command": ""}), Some(1.0));
    }
}

#[test]
fn a_hundred_clients_get_their_own_answers() {
    const CLIENTS: usize = 100;
    let server = Server::start();
    server.output("true");
    let together = Barrier::new(CLIENTS);
    let answers = std::thread::scope(|scope| {
        let (server, together) = (&server, &together);
        let client = |number: usize| {
            move || {
                together.wait();
                let file = server.path(&format!("file{number}"));
                server.action("write", json!({"path": file, "content": number.to_string()}));
                let text = content(&server.action("read", json!({ "path": file }))).to_owned();
                (server.output(&format!("echo run {number}")), text)
            }
        };
        let threads = (0..CLIENTS).map(|number| scope.spawn(client(number))).collect::<Vec<_>>();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
    });
    for (number, answer) in answers.iter().enumerate() {
        assert_eq!(*answer, (format!("run {number}"), format!("{number}\n")));
    }
    assert_eq!(answers.iter().collect::<BTreeSet<_>>().len(), CLIENTS);
}

/// Kills a process at the end of the test, even after a panic.
struct Killed(u32);

impl Drop for Killed {
    fn drop(&mut self) {
        // Best effort: the process may have ended.
        let _ = Command::new("kill").args(["-9", &self.0.to_string()]).output();
    }
}

#[test]
fn the_first_process_of_a_container_leaves_no_zombies() {
    if !may_be_first_process() {
        eprintln!("skipped: only root can make a process the first of its own system");
        return;
    }
    let options = Options { first_process: true, ..Options::default() };
    let mut server = Server::start_with(&options);
    let of = |parent: u32| -> Vec<(u32, String)> {
        let ps =
            Command::new("ps").args(["-o", "pid=,stat=", "--ppid", &parent.to_string()]).output();
        let ps = String::from_utf8(ps.unwrap().stdout).unwrap();
        let lines = ps.lines().filter_map(|line| line.trim().split_once(' '));
        lines.map(|(pid, state)| (pid.parse().unwrap(), state.trim().to_owned())).collect()
    };
    let (first, _) = of(server.pid())[0];
    let _killed = Killed(first);
    assert_eq!(server.output("echo in"), "in");
    // Processes that the shell's parent leaves behind become children of process 1.
    server.run("kill -9 $PPID; sleep 1000");
    let is_reaped = || of(first).iter().all(|(_, state)| !state.starts_with('Z'));
    until("all are reaped", is_reaped);
    assert_eq!(server.output("echo still in"), "still in");
    signal(first, "TERM");
    assert_eq!(server.wait(), Some(0));
}

#[test]
fn a_killed_server_leaves_its_command_running() {
    let mut server = Server::start();
    server.output("cd / && X=1 && cd -");
    start_waiting(&server);
    server.kill();
    fs::write(server.path("go"), "x\n").unwrap();
    server.launch(&Options::default());
    let observation = server.settle(server.run(""));
    assert_eq!((content(&observation), exit_code(&observation)), ("begun\nend", 0));
    assert_eq!(server.output("echo $X"), "1", "it is the same shell");
}

#[test]
fn a_command_that_runs_across_a_restart_is_still_waited_for() {
    let mut server = Server::start();
    start_waiting(&server);
    server.kill();
    server.launch(&Options::default());
    let refused = server.run("echo new");
    assert!(metadata(&refused, "suffix").contains("is NOT executed"), "{refused}");
    fs::write(server.path("go"), "x\n").unwrap();
    let rest = server.settle(server.run(""));
    assert_eq!(format!("{}\n{}", content(&refused), content(&rest)), "begun\nend");
}

#[test]
fn a_client_that_goes_away_does_not_stop_its_command() {
    let server = Server::start();
    let body = json!({"action": {"action": "run", "args": {
        "command": "mkfifo go; touch begun; read x < go; echo end"
    }}})
    .to_string();
    let address = server.address();
    let mut client = TcpStream::connect(address).unwrap();
    write!(
        client,
        "POST /execute_action HTTP/1.1\r\nHost: {address}\r\n{}Content-Length: {}\r\n\r\n{body}",
        server.key_line(),
        body.len()
    )
    .unwrap();
    until_exists(server.path("begun").as_ref());
    drop(client);
    let refused = server.run("echo new");
    assert!(metadata(&refused, "suffix").contains("is NOT executed"), "{refused}");
    fs::write(server.path("go"), "x\n").unwrap();
    let rest = server.settle(server.run(""));
    assert_eq!((content(&rest), exit_code(&rest)), ("end", 0));
}

#[test]
fn a_slow_start_up_file_is_waited_for() {
    let gate = tempfile::tempdir().unwrap();
    let pipe = gate.path().join("gate");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let start_up =
        Some(format!("read -r line < {}; echo noise; FROM_START_UP=$line\n", pipe.display()));
    let server = Server::start_with(&Options { start_up, ..Options::default() });
    assert_eq!(server.get("/alive").text, r#"{"status":"not initialized"}"#);
    assert_eq!(server.get("/server_info").status, 200);
    let output = std::thread::scope(|scope| {
        let first = scope.spawn(|| server.output("echo [$FROM_START_UP]"));
        fs::write(&pipe, "slow\n").unwrap();
        first.join().unwrap()
    });
    assert_eq!(output, "[slow]");
    assert_eq!(server.get("/alive").text, r#"{"status":"ok"}"#);
}

#[test]
fn the_end_comes_even_while_somebody_waits() {
    let mut server = Server::start();
    server.output("true");
    let (url, key, pid) = (server.url.clone(), server.key.clone(), server.pid());
    let begun = server.path("begun");
    let waiting = std::thread::spawn(move || {
        let body =
            json!({"action": {"action": "run", "args": {"command": "touch begun; sleep 1000"}}});
        let request = ureq::post(format!("{url}/execute_action")).header("X-Session-API-Key", key);
        let mut answer = request.send(body.to_string()).unwrap();
        let text = answer.body_mut().read_to_string().unwrap();
        serde_json::from_str::<Value>(&text).unwrap()
    });
    until_exists(begun.as_ref());
    signal(pid, "TERM");
    let observation = waiting.join().unwrap();
    assert_eq!(observation["observation"], "error", "{observation}");
    assert_eq!(observation["extras"]["error_id"], "gone");
    assert_eq!(server.wait(), Some(0));
}

#[test]
fn a_dead_tmux_server_is_replaced() {
    let server = Server::start();
    server.output("X=1");
    let socket = server.state().join("tmux");
    let kill = || Command::new("tmux").arg("-S").arg(&socket).arg("kill-server").status().unwrap();
    assert!(kill().success());
    until("the shell works again", || {
        let observation = server.run("echo back [$X]");
        observation["observation"] == "run" && content(&observation) == "back []"
    });
}

/// A small file system, which is soon full; `None` if mounting is not permitted.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    fn mount() -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let mut command = Command::new("mount");
        command.args(["-t", "tmpfs", "-o", "size=256k", "tmpfs"]).arg(directory.path());
        let mounted = command.output().is_ok_and(|output| output.status.success());
        mounted.then_some(Self(directory))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Best effort: a leftover mount does not affect other tests.
        let _ = Command::new("umount").arg("-l").arg(self.0.path()).output();
    }
}

#[test]
fn a_full_disk_is_reported_and_nothing_is_lost() {
    let Some(disk) = SmallDisk::mount() else {
        eprintln!("skipped: a small disk may not be mounted here");
        return;
    };
    let server = Server::start();
    let path = disk.0.path().join("file").display().to_string();
    server.action("write", json!({"path": path, "content": "old"}));
    let observation = server.action("write", json!({"path": path, "content": "x".repeat(1 << 20)}));
    assert_eq!(observation["observation"], "error", "{observation:.200}");
    assert!(content(&observation).contains("no space left"), "{observation:.200}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "old\n");
    let query = format!("?destination={}", disk.0.path().display());
    let reply = server.upload(&query, "big", &vec![b'x'; 1 << 20]);
    assert!(reply.status >= 400 && reply.json()["detail"].as_str().unwrap().contains("no space"));
    assert_eq!(fs::read_dir(disk.0.path()).unwrap().count(), 1, "no rest of it is left");
    assert_eq!(server.output("echo fine"), "fine");
}
