use std::fmt;
use std::net::TcpStream;
use std::path::PathBuf;

use harness::{Daemon, Program, binary, command, run_directory, wait_until};
use nix::sys::signal::Signal;
use rand::rngs::StdRng;
use rand::seq::IndexedMutRandom;
use serde_json::json;
use tempfile::TempDir;

use crate::client::Client;
use crate::fault::Fault;

const CLIENTS: usize = 6;
const HOSTS: usize = 3;

/// Memory that the daemon may still hold when everything is at rest.
const REST_KIB: u64 = 200 * 1024;

/// Everybody involved.
pub struct World {
    daemon: Daemon,
    clients: Vec<Client>,
    hosts: Vec<Host>,
    lurkers: Vec<TcpStream>,
    totals: Totals,
    directory: TempDir,
}

struct Host {
    program: Program,
    stopped: bool,
}

/// What a run amounted to.
#[derive(Default)]
pub struct Totals {
    answered: usize,
    failed: usize,
    daemons: usize,
    hosts: usize,
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { answered, failed, daemons, hosts } = self;
        write!(f, "{answered} answers, {failed} clear errors, {daemons} daemon(s), {hosts} host(s)")
    }
}

impl World {
    pub fn new() -> Self {
        let directory = run_directory();
        let daemon = start_daemon(&directory);
        let totals = Totals { daemons: 1, ..Totals::default() };
        let (clients, hosts, lurkers) = (Vec::new(), Vec::new(), Vec::new());
        let mut world = Self { daemon, clients, hosts, lurkers, totals, directory };
        world.start_host();
        world
    }

    pub fn suffer(&mut self, fault: Fault, random: &mut StdRng) {
        match fault {
            Fault::Ask => self.with_client(random, Client::ask),
            Fault::AskAndCancel => {
                self.with_client(random, |client, random| {
                    client.ask(random) && client.cancel(random)
                });
            }
            Fault::Read => self.with_client(random, |client, _| client.read()),
            Fault::NewClient if self.clients.len() < CLIENTS => {
                self.clients.push(Client::connect(&self.daemon));
            }
            Fault::NewClient => {}
            Fault::DropClient => _ = self.clients.pop(),
            Fault::HalfCloseClient => {
                self.with_client(random, |client, random| {
                    client.ask(random);
                    client.half_close();
                    // What it still gets is its own affair; nobody else may suffer from it.
                    false
                });
            }
            Fault::Lurk => {
                let address = ("127.0.0.1", self.daemon.port());
                self.lurkers.extend((0..10).map(|_| TcpStream::connect(address).unwrap()));
            }
            Fault::Babble => self.with_client(random, |client, _| client.babble()),
            Fault::StartHost if self.hosts.len() < HOSTS => self.start_host(),
            Fault::StartHost => {}
            Fault::KillHost => {
                if let Some(host) = self.hosts.pop() {
                    host.program.signal(Signal::SIGKILL);
                }
            }
            Fault::StopHost => {
                if let Some(host) = self.hosts.choose_mut(random) {
                    host.program.signal(Signal::SIGSTOP);
                    host.stopped = true;
                }
            }
            Fault::StopDaemon => {
                self.clients.push(Client::connect(&self.daemon));
                self.daemon.program.signal(Signal::SIGSTOP);
                self.with_client(random, Client::ask_little);
                self.daemon.program.signal(Signal::SIGCONT);
            }
            Fault::KillDaemon => self.kill_daemon(),
            Fault::TruncateFile => {
                std::fs::write(self.files().join("truncated.json"), r#"{"addr":"ws://127.0"#)
                    .unwrap();
            }
        }
        assert!(!self.daemon.program.has_ended(), "the daemon is gone");
    }

    /// Lets everybody finish, and checks that nothing is left over.
    pub fn come_to_rest(&mut self) {
        self.lurkers.clear();
        for host in &mut self.hosts {
            if std::mem::take(&mut host.stopped) {
                host.program.signal(Signal::SIGCONT);
            }
        }
        let mut clients = std::mem::take(&mut self.clients);
        clients.retain_mut(|client| {
            let goes_on = client.read();
            self.totals.answered += std::mem::take(&mut client.answered);
            self.totals.failed += std::mem::take(&mut client.failed);
            goes_on
        });
        self.clients = clients;
        let mut observer = self.daemon.client();
        wait_until("the daemon to have nothing left to do", || {
            let status = observer.call("bridge/status", serde_json::Value::Null);
            let expected = self.clients.len() + 1;
            (&status["inFlight"], &status["queuedBytes"], &status["clients"])
                == (&json!(0), &json!(0), &json!(expected))
        });
        assert!(resident_kib(self.daemon.program.pid()) < REST_KIB, "the daemon keeps its memory");
    }

    /// Ends the daemon as one should, and checks what is left.
    pub fn end(mut self) -> Totals {
        self.come_to_rest();
        self.clients.clear();
        self.daemon.program.signal(Signal::SIGTERM);
        assert!(self.daemon.program.wait().success(), "the daemon did not end well");
        for mut host in self.hosts.drain(..) {
            host.program.wait();
        }
        let left: Vec<_> =
            std::fs::read_dir(self.files()).unwrap().map(|e| e.unwrap().file_name()).collect();
        // What is not ours, or was cut short, is not ours to remove.
        assert!(left.iter().all(|name| name == "truncated.json"), "left over: {left:?}");
        self.totals
    }

    /// Lets one client do something; one that has lost its connection is replaced later.
    fn with_client(
        &mut self,
        random: &mut StdRng,
        act: impl FnOnce(&mut Client, &mut StdRng) -> bool,
    ) {
        if self.clients.is_empty() {
            self.clients.push(Client::connect(&self.daemon));
        }
        let index = rand::RngExt::random_range(random, 0..self.clients.len());
        if !act(&mut self.clients[index], random) {
            self.clients.remove(index);
        }
    }

    /// Its connections end; a new one takes its place and sweeps away what the old one left.
    fn kill_daemon(&mut self) {
        self.daemon.program.signal(Signal::SIGKILL);
        self.daemon.program.wait();
        self.clients.clear();
        for host in self.hosts.drain(..) {
            host.program.signal(Signal::SIGKILL);
        }
        self.daemon = start_daemon(&self.directory);
        self.totals.daemons += 1;
        self.start_host();
    }

    fn start_host(&mut self) {
        let rules = self.directory.path().join("rules.json");
        // Each has a name of its own, so that none takes another's place.
        let title = format!("host-{}", self.totals.hosts);
        let text = json!({"runtimeId": title, "title": title, "rules": [
            {"method": "vscode/chat", "progress": [{"text": "…"}], "result": {"response": "You said: ${message}"}},
            {"method": "vscode/getChatHistory", "silent": true},
        ]});
        std::fs::write(&rules, text.to_string()).unwrap();
        let mut host = command(binary("bridge-client"));
        host.env("XDG_RUNTIME_DIR", self.directory.path());
        host.args(["host", "--session", "chaos", "--rules"]).arg(&rules);
        let program = Program::start(&mut host);
        program.line();
        self.hosts.push(Host { program, stopped: false });
        self.totals.hosts += 1;
    }

    fn files(&self) -> PathBuf {
        self.directory.path().join("run-bridge")
    }
}

fn start_daemon(directory: &TempDir) -> Daemon {
    Daemon::start_by(|command| {
        command.env("XDG_RUNTIME_DIR", directory.path());
        command.args(["--session", "chaos", "--host-wait", "1"]);
    })
}

fn resident_kib(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}
