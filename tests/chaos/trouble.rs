//! What goes wrong with shells, files, disk, descriptors and memory.

use std::fs::OpenOptions;
use std::path::PathBuf;

use harness::{Socket, wait_until};
use nix::sys::signal::Signal;
use rand::RngExt;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rustix::process::Resource;
use serde_json::json;

use crate::asking::{expect_tmux_again, request, use_file};
use crate::client::Client;
use crate::fault::Fault;
use crate::processes::{Process, kib, open_files, within};
use crate::shells::Loss;
use crate::world::World;

/// Memory that the daemon may still take when it gets little more.
const LITTLE_MORE: u64 = 8 << 20;

/// Files about a session and one of its shells that may be cut short. The log and its index are not among
/// them: what was cut off a recording cannot be found again.
const SHELL_FILES: [&str; 5] = ["shell.json", "expected", "pid", "start", "command"];
/// Not among them either: `builtin.so`, which living shells execute, as they do programs.
const STATE_FILES: [&str; 3] = ["owner.lock", "tmux.conf", "init.bash"];
const CONNECTION_FILES: [&str; 2] = ["chaos.json", "chaos.host.json"];

impl World {
    pub fn trouble(&mut self, fault: Fault, random: &mut StdRng) {
        let mut socket = self.observer();
        match fault {
            Fault::Run => self.shells.run(&mut socket, random),
            Fault::LeaveCommand => self.shells.leave(socket, random),
            Fault::StreamSlowly => self.shells.stream(self.observer(), &mut socket, random),
            Fault::UseFile => use_file(&mut socket, &self.workspace(), random, true),
            Fault::KillShell => {
                if let Some(name) = self.shells.choose(random) {
                    let pid = nix::unistd::Pid::from_raw(self.shells.pid(name).cast_signed());
                    nix::sys::signal::kill(pid, Signal::SIGKILL).unwrap();
                    self.shells.expect_another(&mut socket, name);
                }
            }
            Fault::KillRecorder => self.kill_recorder(&mut socket, random),
            Fault::StopRecorder => {
                if let Some(name) = self.shells.choose(random) {
                    let recorder = self.recorder(name);
                    recorder.signal(Signal::SIGSTOP);
                    self.shells.try_to_run_in(&mut socket, name, random, Loss::Nothing);
                    recorder.signal(Signal::SIGCONT);
                }
            }
            Fault::StopTmux => {
                let server = self.tmux_server();
                server.signal(Signal::SIGSTOP);
                self.shells.try_to_run(&mut socket, random, Loss::Nothing);
                server.signal(Signal::SIGCONT);
            }
            Fault::KillTmux => {
                self.tmux_server().signal(Signal::SIGKILL);
                self.shells.expect_none();
                expect_tmux_again(&mut socket);
            }
            Fault::FillDisk => {
                if self.disk.fill() {
                    self.shells.try_to_run(&mut socket, random, Loss::Counted);
                    use_file(&mut socket, &self.workspace(), random, false);
                    let extra = json!({"shell": "extra"});
                    if request(&mut socket, "shell/create", &extra).is_ok() {
                        request(&mut socket, "shell/close", &extra).unwrap();
                    }
                    self.disk.make_room();
                    self.shells.finish_all(&mut socket);
                }
            }
            Fault::FillDiskAndKillDaemon => {
                if self.disk.fill() {
                    self.kill_daemon();
                    let mut daemon = self.start_daemon_in_vain();
                    assert_eq!(daemon.wait().code(), Some(125), "{}", daemon.stderr());
                    assert!(daemon.stderr().contains("No space left"), "{}", daemon.stderr());
                    self.disk.make_room();
                    self.start_daemon();
                }
            }
            Fault::ExhaustDescriptors => self.exhaust_descriptors(&mut socket, random),
            Fault::LimitMemory => self.limit_memory(random),
            Fault::TruncateState => self.truncate_state(random),
            other => unreachable!("{other:?} is no trouble with the sandbox"),
        }
    }

    fn kill_recorder(&mut self, socket: &mut Socket, random: &mut StdRng) {
        let Some(name) = self.shells.choose(random) else { return };
        let recorder = self.recorder(name);
        recorder.signal(Signal::SIGKILL);
        self.shells.expect_loss(name);
        if random.random_bool(0.5) {
            // At once: what is printed before there is another recorder is lost, but the command ends.
            self.shells.try_to_run_in(socket, name, random, Loss::Unknown);
        }
        wait_until("another recorder", || self.recorder(name).pid != recorder.pid);
    }

    /// Who is connected goes on, who comes has to wait.
    fn exhaust_descriptors(&mut self, socket: &mut Socket, random: &mut StdRng) {
        let daemon = self.daemon.program.pid();
        let (port, token) = (self.daemon.port(), self.daemon.text("token").to_owned());
        let room = random.random_range(0..4);
        let late = within(daemon, Resource::Nofile, open_files(daemon) + room, || {
            let late: Vec<_> = (0..3)
                .map(|_| {
                    let token = token.clone();
                    std::thread::spawn(move || Socket::connect(port, &token))
                })
                .collect();
            socket.call("bridge/ping", serde_json::Value::Null);
            self.shells.try_to_run(socket, random, Loss::Unknown);
            use_file(socket, &self.workspace(), random, false);
            late
        });
        for client in late {
            client.join().unwrap().call("bridge/ping", serde_json::Value::Null);
        }
        self.shells.finish_all(socket);
    }

    fn limit_memory(&mut self, random: &mut StdRng) {
        let daemon = self.daemon.program.pid();
        let mut clients: Vec<_> = (0..3).map(|_| Client::connect(&self.daemon)).collect();
        let most = kib(daemon, "VmData") * 1024 + LITTLE_MORE;
        let lives = within(daemon, Resource::Data, most, || {
            clients.iter_mut().all(|client| client.ask(random) && client.ask_much(random))
                && clients.iter_mut().all(Client::read)
        });
        if !lives {
            self.mourn_daemon();
            self.start_daemon();
        }
    }

    fn truncate_state(&mut self, random: &mut StdRng) {
        let state = self.state();
        let shell = self.shells.choose(random);
        let file: PathBuf = match (random.random_range(0..4), shell) {
            (0, _) => self.files().join(CONNECTION_FILES.choose(random).unwrap()),
            (1, _) | (_, None) => state.join(STATE_FILES.choose(random).unwrap()),
            (_, Some(name)) => {
                state.join("shells").join(name).join(SHELL_FILES.choose(random).unwrap())
            }
        };
        self.kill_daemon();
        if let Ok(file) = OpenOptions::new().write(true).open(&file) {
            let length = file.metadata().unwrap().len();
            file.set_len(random.random_range(0..=length)).unwrap();
        }
        self.start_daemon();
        if let Some(name) = shell {
            self.shells.expect_at_least_no_trace(&mut self.daemon.client(), name);
        }
    }

    /// The recorder of a shell, when it has begun.
    fn recorder(&self, name: &str) -> Process {
        let directory = self.state().join("shells").join(name);
        self.find("a recorder that has begun", |process| {
            let is_ours = process.mentions(" record ")
                && process.arguments.trim_end().ends_with(directory.to_str().unwrap());
            let index = std::fs::read_to_string(directory.join("index")).unwrap_or_default();
            let pid = process.pid.to_string();
            let names = |line: &str| line.starts_with("O ") && line.split(' ').nth(3) == Some(&pid);
            is_ours && index.lines().any(names)
        })
    }

    /// The server was started by the client, and has the same arguments; but it is nobody's child.
    fn tmux_server(&self) -> Process {
        self.find("the tmux server", |process| {
            self.is_tmux(process) && process.parent == std::process::id()
        })
    }

    fn is_tmux(&self, process: &Process) -> bool {
        process.mentions("tmux -S") && process.mentions(self.state().to_str().unwrap())
    }

    fn find(&self, what: &str, is_it: impl Fn(&Process) -> bool) -> Process {
        let mut found = None;
        wait_until(what, || {
            found = self.processes().into_iter().find(&is_it);
            found.is_some()
        });
        found.unwrap()
    }
}
