use std::fmt;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;

use harness::{
    Daemon, Program, Socket, binary, command, run_directory, wait_until, wait_until_none,
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
use crate::shells::Shells;

const CLIENTS: usize = 6;
const HOSTS: usize = 3;

/// Memory that the daemon may still hold when everything is at rest.
const REST_KIB: u64 = 200 * 1024;

/// Everybody involved.
pub struct World {
    pub daemon: Daemon,
    pub shells: Shells,
    pub totals: Totals,
    clients: Vec<Client>,
    hosts: Vec<Host>,
    lurkers: Vec<TcpStream>,
    frozen: Vec<Program>,
    pub disk: Disk,
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
    pub daemons: usize,
    hosts: usize,
    commands: usize,
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { answered, failed, daemons, hosts, commands } = self;
        write!(
            f,
            "{answered} answers, {failed} clear errors, {commands} commands, {daemons} daemon(s), \
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
            lurkers: Vec::new(),
            frozen: Vec::new(),
            disk,
            directory,
        };
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
            other => self.trouble(other, random),
        }
        assert!(!self.daemon.program.has_ended(), "the daemon is gone");
    }

    /// What must hold after each step.
    pub fn check(&mut self) {
        self.shells.check(&mut self.daemon.client());
    }

    /// Lets everybody finish, and checks that nothing is left over.
    pub fn come_to_rest(&mut self) {
        self.lurkers.clear();
        self.frozen.clear();
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
        self.shells.finish_all(&mut observer);
        self.shells.check(&mut observer);
        self.shells.close_the_longest(&mut observer);
        self.totals.commands += std::mem::take(&mut self.shells.commands);
        wait_until("the daemon to have nothing left to do", || {
            let status = observer.call("bridge/status", serde_json::Value::Null);
            let expected = self.clients.len() + 1;
            (&status["inFlight"], &status["queuedBytes"], &status["clients"])
                == (&json!(0), &json!(0), &json!(expected))
        });
        let resident = processes::kib(self.daemon.program.pid(), "VmRSS");
        assert!(resident < REST_KIB, "the daemon keeps its memory");
        self.nobody_else_is_there();
    }

    /// Besides the daemon and the hosts there may be tmux (server, client and keeper) and, for each shell,
    /// the shell, its leader and its recorder.
    fn nobody_else_is_there(&self) {
        let expected = 1 + self.hosts.len() + 3 + 3 * self.shells.count();
        let root = self.state();
        let root = root.to_str().unwrap();
        let hosts: Vec<_> = self.hosts.iter().map(|host| host.program.pid()).collect();
        let is_ours = |process: &Process| {
            let is_program =
                process.pid == self.daemon.program.pid() || hosts.contains(&process.pid);
            is_program || process.mentions(root)
        };
        wait_until_none(|| {
            let there = self.processes();
            let is_right = there.len() == expected && there.iter().all(is_ours);
            (!is_right).then(|| format!("{expected} processes that belong here: {there:#?}"))
        });
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
        wait_until("the end of every process", || processes::descendants(&[]).is_empty());
        let left: Vec<_> =
            std::fs::read_dir(self.files()).unwrap().map(|e| e.unwrap().file_name()).collect();
        // What is not ours, or was cut short, is not ours to remove.
        assert!(left.iter().all(|name| name == "truncated.json"), "left over: {left:?}");
        std::mem::take(&mut self.totals)
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

    /// SIGKILL. Its connections end, its shells do not.
    pub fn kill_daemon(&mut self) {
        self.daemon.program.signal(Signal::SIGKILL);
        self.mourn_daemon();
    }

    /// The daemon has ended, or is about to.
    pub fn mourn_daemon(&mut self) {
        self.daemon.program.wait();
        self.clients.clear();
        for host in self.hosts.drain(..) {
            host.program.signal(Signal::SIGKILL);
        }
    }

    /// A new daemon takes the place of one that is gone, and sweeps away what that has left.
    pub fn start_daemon(&mut self) {
        let directory = self.directory.path();
        self.daemon = Daemon::start_by(|command| configure(command, directory));
        self.totals.daemons += 1;
        self.start_host();
    }

    /// One that is not expected to come up.
    pub fn start_daemon_in_vain(&self) -> Program {
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

    pub fn files(&self) -> PathBuf {
        self.directory.path().join("run-bridge")
    }

    pub fn workspace(&self) -> PathBuf {
        self.directory.path().join(WORKSPACE)
    }

    /// Where the shells lie.
    pub fn state(&self) -> PathBuf {
        let entries = std::fs::read_dir(self.files()).unwrap().flatten();
        let found = entries.map(|entry| entry.path()).find(|path| path.join("owner.lock").exists());
        found.expect("a state directory beside the connection files")
    }

    /// Everybody who is there.
    pub fn processes(&self) -> Vec<Process> {
        processes::descendants(&self.children())
    }

    /// A connection that nothing else is done with.
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
            // Nothing may be left of a run that failed, either.
            for process in self.processes() {
                process.signal(Signal::SIGKILL);
            }
        }
    }
}

const WORKSPACE: &str = "workspace";

/// Start-up files of whoever runs this have no say: the home directory is an empty one.
fn configure(daemon: &mut Command, directory: &Path) {
    daemon.env("XDG_RUNTIME_DIR", directory).env("HOME", directory);
    daemon
        .args(["--session", "chaos", "--host-wait", "1", "--sandbox"])
        .arg(directory.join(WORKSPACE));
}
