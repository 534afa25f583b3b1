//! Daemon, host, client and program are killed in turn, at a random moment under load. No other process hangs, each is
//! notified, and nothing is left behind that should not be.

use harness::{Closed, Daemon, Program, Socket, process_exists, wait_until};
use nix::sys::signal::Signal;
use serde_json::{Value, json};

/// A client that calls until the connection ends. Returns how many answers it got, and how it ended.
fn caller(daemon: &Daemon) -> std::thread::JoinHandle<(usize, Option<String>)> {
    let mut socket = daemon.client();
    std::thread::spawn(move || {
        let mut answers = 0;
        loop {
            let request = json!({"jsonrpc": "2.0", "id": answers, "method": "vscode/chat", "params": {"n": answers, "timeout": 5000}});
            if socket.send_message(tungstenite::Message::text(request.to_string())).is_err() {
                return (answers, None);
            }
            match read(&mut socket) {
                Some(answer) if answer["result"].as_str() == Some(&*answers.to_string()) => {
                    answers += 1;
                }
                Some(answer) => {
                    return (
                        answers,
                        answer["error"]["data"]["kind"].as_str().map(ToOwned::to_owned),
                    );
                }
                None => return (answers, None),
            }
        }
    })
}

fn read(socket: &mut Socket) -> Option<Value> {
    let ended = std::panic::AssertUnwindSafe(|| socket.receive());
    std::panic::catch_unwind(ended).ok()
}

/// A scripted host.
fn host_process(daemon: &Daemon) -> Program {
    let rules = json!({"rules": [{"method": "vscode/chat", "result": "${n}"}]});
    let host = Program::start(daemon.scripted_host(&rules));
    host.line();
    host
}

/// Waits until a random number of requests has been answered.
fn traffic(daemon: &Daemon) {
    let enough = rand::random_range(1..400);
    let mut client = daemon.client();
    wait_until("traffic", || {
        client.call("bridge/status", Value::Null)["counters"]["requests"].as_u64() >= Some(enough)
    });
}

#[test]
fn the_daemon_is_killed() {
    let mut daemon = Daemon::start();
    let mut host = host_process(&daemon);
    let callers: Vec<_> = (0..8).map(|_| caller(&daemon)).collect();
    traffic(&daemon);
    daemon.program.signal(Signal::SIGKILL);
    daemon.program.wait();
    for caller in callers {
        assert_eq!(caller.join().unwrap().1, None, "the end of the connection, at once");
    }
    // The host tries to reconnect for a while, and then ends.
    assert!(!host.wait().success());
    assert!(!host.stderr().is_empty(), "it says why");
    let left: Vec<_> = std::fs::read_dir(daemon.files())
        .unwrap()
        .flatten()
        .map(|entry| entry.file_name())
        .collect();
    assert_eq!(left.len(), 2, "the connection files and nothing else: {left:?}");
}

#[test]
fn the_host_is_killed() {
    let daemon = Daemon::start();
    let mut host = host_process(&daemon);
    let callers: Vec<_> = (0..8).map(|_| caller(&daemon)).collect();
    traffic(&daemon);
    host.signal(Signal::SIGKILL);
    host.wait();
    // A caller's last request was in flight, or came after the host had gone.
    for caller in callers {
        let (_, kind) = caller.join().unwrap();
        assert!(matches!(kind.as_deref(), Some("HostGone" | "HostUnavailable")), "{kind:?}");
    }
    let status = daemon.status();
    assert_eq!((&status["inFlight"], &status["runtimes"]), (&json!(0), &json!([])));
}

#[test]
fn what_a_killed_host_was_working_on_fails_at_once() {
    let daemon = Daemon::start();
    let mut host = Program::start(
        daemon.scripted_host(&json!({"rules": [{"method": "vscode/chat", "silent": true}]})),
    );
    host.line();
    let mut client = daemon.client();
    for _ in 0..50 {
        client.send_request("vscode/chat", json!({"timeout": 600_000}));
    }
    wait_until("the host to have them", || daemon.status()["inFlight"] == 50);
    host.signal(Signal::SIGKILL);
    for _ in 0..50 {
        assert_eq!(client.receive()["error"]["data"]["kind"], "HostGone", "not after ten minutes");
    }
    host.wait();
}

#[test]
fn clients_are_killed_under_load() {
    let daemon = Daemon::start();
    let _host = host_process(&daemon);
    // Relays that pipeline requests: each is killed while it writes many of them.
    let mut clients: Vec<_> =
        (0..6).map(|_| Program::start(daemon.run_command("bridge-client").arg("stdio"))).collect();
    for client in &mut clients {
        let request = |n: u32| {
            json!({"jsonrpc": "2.0", "id": n, "method": "vscode/chat", "params": {"n": n}})
                .to_string()
                + "\n"
        };
        client.write((0..300).map(request).collect::<String>());
    }
    traffic(&daemon);
    for client in &mut clients {
        client.signal(Signal::SIGKILL);
        client.wait();
    }
    wait_until("the books to be even", || {
        let status = daemon.status();
        status["inFlight"] == 0 && status["queuedBytes"] == 0 && status["clients"] == 1
    });
    assert_eq!(daemon.client().call("vscode/chat", json!({"n": "alive"})), "alive");
}

#[test]
fn when_clients_are_killed_the_host_is_told() {
    let daemon = Daemon::start();
    let mut host = daemon.host("h");
    let mut clients: Vec<_> = (0..8)
        .map(|_| {
            let mut command = daemon.run_command("bridge-client");
            Program::start(command.args(["call", "vscode/chat", "message=x"]))
        })
        .collect();
    let mut waiting: Vec<_> = (0..8).map(|_| host.request()["id"].clone()).collect();
    for client in &mut clients {
        client.signal(Signal::SIGKILL);
        client.wait();
    }
    while !waiting.is_empty() {
        let cancel = host.receive();
        assert_eq!(cancel["method"], "$/cancelRequest");
        waiting.retain(|id| *id != cancel["params"]["id"]);
    }
    wait_until("the books to be even", || daemon.status()["inFlight"] == 0);
}

#[test]
fn the_program_of_a_run_is_killed() {
    let directory = harness::run_directory();
    let mut command = harness::command(harness::binary("bridge-daemon"));
    let script = format!(
        "echo $$; exec {} call vscode/chat message=x",
        harness::binary("bridge-client").display()
    );
    command.args(["run", "--host", "editor", "--session", "s", "--", "bash", "-c", &script]);
    let mut run = Program::start(command.env("XDG_RUNTIME_DIR", directory.path()));
    let child: u32 = run.line().parse().unwrap();
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(child.cast_signed()), Signal::SIGKILL)
        .unwrap();
    assert_eq!(run.wait().code(), Some(137));
    assert!(!process_exists(child));
    assert_eq!(std::fs::read_dir(directory.path().join("run-bridge")).unwrap().count(), 0);
}

#[test]
fn a_stopped_host_makes_its_callers_time_out_and_nobody_else_wait() {
    let daemon = Daemon::start();
    let mut host = host_process(&daemon);
    host.signal(Signal::SIGSTOP);
    let mut client = daemon.client();
    client.send_request("vscode/chat", json!({"timeout": 300}));
    client.call("bridge/ping", Value::Null);
    assert_eq!(client.receive()["error"]["data"]["kind"], "Timeout");
    host.signal(Signal::SIGCONT);
    client.send_request("vscode/chat", json!({"n": 5, "timeout": 10_000}));
    let answer = client.receive();
    assert_eq!(answer["result"], "5", "it lives on: {answer}");
    host.signal(Signal::SIGTERM);
    host.wait();
}

#[test]
fn when_the_daemon_ends_hosts_hear_it_too() {
    let mut daemon = Daemon::start();
    let mut host = daemon.host("h");
    daemon.program.close_stdin();
    assert_eq!(host.closed(), Closed(Some(1001)));
}
