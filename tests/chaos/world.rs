use std::fmt;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;

use harness::{
    Daemon, Program, Socket, binary, command, run_directory, wait_until, wait_until_complete,
};
use nix::sys::signal::Signal;
use rand::rngs::StdRng;
use rand::seq::IndexedMutRandom;
use serde_json::json;
use tempfile::TempDir;

use crate::client::Client;
use crate::disk::{Disk, Mounting};
use crate::fault::Fault;
use crate::processes::{self, Process};
use crate::shell_model::Shells;

const CLIENTS: usize = 6;
const HOSTS: usize = 3;

/// Most memory that the daemon may use at rest.
const REST_KIB: u64 = 200 * 1024;

/// The beginnings of the command lines of the daemon's children.
const CHILDREN: [&str; 2] = ["/sandbox host --id=", "/openhands-edge host --"];

/// All processes and connections of a run.
pub struct World {
    pub daemon: Daemon,
    pub shells: Shells,
    pub totals: Totals,
    clients: Vec<Client>,
    hosts: Vec<Host>,
    idle_connections: Vec<TcpStream>,
    frozen: Vec<Program>,
    pub disk: Disk,
    directory: TempDir,
}

struct Host {
    program: Program,
    stopped: bool,
}

/// Counts of a run.
#[derive(Default)]
pub struct Totals {
    answered: usize,
    failed: usize,
    pub daemons: usize,
    hosts: usize,
    commands: usize,
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { answered, failed, daemons, hosts, commands } = self;
        write!(
            f,
            "{answered} answers, {failed} typed errors, {commands} commands, {daemons} daemon(s), \
             {hosts} host(s)"
        )
    }
}

impl World {
    pub fn new(mounting: &Mounting) -> Self {
        let directory = run_directory();
        let disk = Disk::new(directory.path(), mounting);
        std::fs::create_dir(directory.path().join(WORKSPACE)).unwrap();
        let mut world = Self {
            daemon: Daemon::start_by(|command| configure(command, directory.path())),
            shells: Shells::default(),
            totals: Totals { daemons: 1, ..Totals::default() },
            clients: Vec::new(),
            hosts: Vec::new(),
            idle_connections: Vec::new(),
            frozen: Vec::new(),
            disk,
            directory,
        };
        world.start_host();
        world
    }

    pub fn apply(&mut self, fault: Fault, random: &mut StdRng) {
        match fault {
            Fault::SendRequests => self.with_client(random, Client::send_requests),
            Fault::SendAndCancel => {
                self.with_client(random, |client, random| {
                    client.send_requests(random) && client.cancel(random)
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
                    client.send_requests(random);
                    client.half_close();
                    // Its answers are not checked, only that other clients are not affected.
                    false
                });
            }
            Fault::OpenIdleConnections => {
                let address = ("127.0.0.1", self.daemon.port());
                let new = (0..10).map(|_| TcpStream::connect(address).unwrap());
                self.idle_connections.extend(new);
            }
            Fault::SendGarbage => self.with_client(random, |client, _| client.send_garbage()),
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
                self.with_client(random, Client::send_small_request);
                self.daemon.program.signal(Signal::SIGCONT);
            }
            Fault::KillDaemon => {
                self.kill_daemon();
                self.start_daemon();
            }
            Fault::FreezeClient => self.freeze_client(),
            Fault::VanishClient => Client::connect(&self.daemon).vanish(random),
            Fault::TruncateFile => {
                std::fs::write(self.files().join("truncated.json"), r#"{"addr":"ws://127.0"#)
                    .unwrap();
            }
            other => self.apply_to_sandbox(other, random),
        }
        assert!(!self.daemon.program.has_ended(), "the daemon has ended");
    }

    /// Checks the invariants that must hold after each step.
    pub fn check(&mut self) {
        self.shells.check(&mut self.daemon.client());
    }

    /// Waits for the end of all requests and commands, and checks that no state and no process is left over.
    pub fn come_to_rest(&mut self) {
        self.idle_connections.clear();
        self.frozen.clear();
        for host in &mut self.hosts {
            if std::mem::take(&mut host.stopped) {
                host.program.signal(Signal::SIGCONT);
            }
        }
        let mut clients = std::mem::take(&mut self.clients);
        clients.retain_mut(|client| {
            let is_open = client.read();
            self.totals.answered += std::mem::take(&mut client.answered);
            self.totals.failed += std::mem::take(&mut client.failed);
            is_open
        });
        self.clients = clients;
        let mut observer = self.daemon.client();
        self.shells.finish_all(&mut observer);
        self.shells.check(&mut observer);
        self.shells.close_long_logs(&mut observer);
        self.totals.commands += std::mem::take(&mut self.shells.commands);
        wait_until("the daemon to be idle", || {
            let status = observer.call("bridge/status", serde_json::Value::Null);
            // Ours, the observer, and the connection by which the OpenHands edge calls tools.
            let expected = self.clients.len() + 2;
            (&status["inFlight"], &status["queuedBytes"], &status["clients"])
                == (&json!(0), &json!(0), &json!(expected))
        });
        let resident = processes::kib(self.daemon.program.pid(), "VmRSS");
        assert!(resident < REST_KIB, "the daemon does not release its memory: {resident} KiB");
        self.check_processes();
    }

    /// Checks that there are no other processes than the daemon, its two children (sandbox host and OpenHands
    /// edge), the hosts, tmux (server, client and keeper) and, for each shell, the shell, its leader and its
    /// recorder.
    fn check_processes(&self) {
        let expected = 1 + CHILDREN.len() + self.hosts.len() + 3 + 3 * self.shells.count();
        let root = self.state();
        let root = root.to_str().unwrap();
        let hosts: Vec<_> = self.hosts.iter().map(|host| host.program.pid()).collect();
        let is_ours = |process: &Process| {
            let is_program =
                process.pid == self.daemon.program.pid() || hosts.contains(&process.pid);
            let is_child = CHILDREN.iter().any(|child| process.mentions(child));
            is_program || is_child || process.mentions(root)
        };
        wait_until_complete(|| {
            let there = self.processes();
            let is_right = there.len() == expected && there.iter().all(is_ours);
            (!is_right).then(|| format!("the {expected} expected processes, not {there:#?}"))
        });
    }

    /// Ends the daemon by SIGTERM, and checks that no process and no file is left.
    pub fn end(mut self) -> Totals {
        self.come_to_rest();
        self.clients.clear();
        self.daemon.program.signal(Signal::SIGTERM);
        assert!(self.daemon.program.wait().success(), "the daemon failed at its end");
        for mut host in self.hosts.drain(..) {
            host.program.wait();
        }
        wait_until("the end of every process", || processes::descendants(&[]).is_empty());
        let left: Vec<_> =
            std::fs::read_dir(self.files()).unwrap().map(|e| e.unwrap().file_name()).collect();
        // The daemon must not remove a file that it did not write.
        assert!(left.iter().all(|name| name == "truncated.json"), "left over: {left:?}");
        std::mem::take(&mut self.totals)
    }

    /// Lets a random client act, and removes it if its connection has ended.
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

    /// Kills the daemon by SIGKILL. Its connections end, but its shells live on.
    pub fn kill_daemon(&mut self) {
        self.daemon.program.signal(Signal::SIGKILL);
        self.await_daemon_end();
    }

    /// Waits for the end of a daemon that was killed, and drops its clients and hosts.
    pub fn await_daemon_end(&mut self) {
        self.daemon.program.wait();
        self.clients.clear();
        for host in self.hosts.drain(..) {
            host.program.signal(Signal::SIGKILL);
        }
    }

    /// Starts a new daemon after the end of the old one. It adopts the shells and sweeps the old files.
    pub fn start_daemon(&mut self) {
        let directory = self.directory.path();
        self.daemon = Daemon::start_by(|command| configure(command, directory));
        self.totals.daemons += 1;
        self.start_host();
    }

    /// Starts a daemon that is expected to fail.
    pub fn start_failing_daemon(&self) -> Program {
        let mut daemon = command(binary("bridge-daemon"));
        daemon.arg("serve");
        configure(&mut daemon, self.directory.path());
        Program::start(daemon)
    }

    fn freeze_client(&mut self) {
        let mut client = self.daemon.run_command("bridge-client");
        let mut client = Program::start(client.arg("stdio"));
        let request = json!({"jsonrpc": "2.0", "id": 1, "method": "bridge/ping"});
        client.write(format!("{request}\n"));
        client.line();
        let request = json!({"jsonrpc": "2.0", "id": 2, "method": "vscode/chat",
            "params": {"message": "x".repeat(1000)}});
        client.write(format!("{request}\n"));
        client.signal(Signal::SIGSTOP);
        self.frozen.push(client);
    }

    fn start_host(&mut self) {
        let rules = self.directory.path().join("rules.json");
        // Each host has an id of its own, so that none replaces another.
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

    pub fn files(&self) -> PathBuf {
        self.directory.path().join("run-bridge")
    }

    pub fn workspace(&self) -> PathBuf {
        self.directory.path().join(WORKSPACE)
    }

    /// The state directory of the sandbox, which contains the shells' files.
    pub fn state(&self) -> PathBuf {
        let entries = std::fs::read_dir(self.files()).unwrap().flatten();
        let found =
            entries.map(|entry| entry.path()).find(|path| path.join("run-bridge.lock").exists());
        found.expect("a state directory beside the connection files")
    }

    /// All living processes of the run.
    pub fn processes(&self) -> Vec<Process> {
        processes::descendants(&self.children())
    }

    /// A new connection for checks only.
    pub fn observer(&self) -> Socket {
        self.daemon.client()
    }

    fn children(&self) -> Vec<u32> {
        let programs = self.hosts.iter().map(|host| &host.program).chain(&self.frozen);
        programs.chain([&self.daemon.program]).map(Program::pid).collect()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // A failed run must not leave processes behind, either.
            for process in self.processes() {
                process.signal(Signal::SIGKILL);
            }
        }
    }
}

const WORKSPACE: &str = "workspace";

/// Sets the daemon's directories and flags. The home directory is empty, so that start-up files of the person
/// who runs the test have no effect.
fn configure(daemon: &mut Command, directory: &Path) {
    daemon.env("XDG_RUNTIME_DIR", directory).env("HOME", directory);
    daemon
        .args(["--session", "chaos", "--host-wait", "1", "--sandbox"])
        .arg(directory.join(WORKSPACE));
}
