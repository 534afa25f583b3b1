//! Faults of shells, files, disk, descriptors and memory.

use std::fs::OpenOptions;
use std::path::PathBuf;

use harness::{Socket, wait_until};
use nix::sys::signal::Signal;
use rand::RngExt;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rustix::process::Resource;
use serde_json::json;

use crate::client::Client;
use crate::fault::Fault;
use crate::processes::{Process, kib, open_files, within};
use crate::sandbox_calls::{expect_new_tmux, request, use_file};
use crate::shell_model::Loss;
use crate::world::World;

/// Bytes that the daemon may allocate beyond its present memory under [`Fault::LimitMemory`].
const MORE_MEMORY: u64 = 8 << 20;

/// Files of a shell that may be truncated. The log and its index are not in the list: a lost part of a
/// recording cannot be restored.
const SHELL_FILES: [&str; 5] = ["shell.json", "expected", "pid", "start", "command"];
/// Files of all shells that may be truncated. `builtin.so` is not in the list: living shells execute it, like a
/// program.
const STATE_FILES: [&str; 3] = ["run-bridge.lock", "tmux.conf", "init.bash"];
const CONNECTION_FILES: [&str; 2] = ["chaos.json", "chaos.host.json"];

impl World {
    pub fn apply_to_sandbox(&mut self, fault: Fault, random: &mut StdRng) {
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
                    self.shells.expect_replacement(&mut socket, name);
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
                expect_new_tmux(&mut socket);
            }
            Fault::FillDisk => {
                if self.disk.fill() {
                    self.shells.try_to_run(&mut socket, random, Loss::Counted);
                    use_file(&mut socket, &self.workspace(), random, false);
                    let extra = json!({"shell": "extra"});
                    if request(&mut socket, "shell/create", &extra).is_ok() {
                        request(&mut socket, "shell/close", &extra).unwrap();
                    }
                    self.disk.free();
                    self.shells.finish_all(&mut socket);
                }
            }
            Fault::FillDiskAndKillDaemon => {
                if self.disk.fill() {
                    self.kill_daemon();
                    let mut daemon = self.start_failing_daemon();
                    assert_eq!(daemon.wait().code(), Some(125), "{}", daemon.stderr());
                    assert!(daemon.stderr().contains("No space left"), "{}", daemon.stderr());
                    self.disk.free();
                    self.start_daemon();
                }
            }
            Fault::ExhaustDescriptors => self.exhaust_descriptors(&mut socket, random),
            Fault::LimitMemory => self.limit_memory(random),
            Fault::TruncateState => self.truncate_state(random),
            other => unreachable!("{other:?} is no fault of the sandbox"),
        }
    }

    fn kill_recorder(&mut self, socket: &mut Socket, random: &mut StdRng) {
        let Some(name) = self.shells.choose(random) else { return };
        let recorder = self.recorder(name);
        recorder.signal(Signal::SIGKILL);
        self.shells.expect_loss(name);
        if random.random_bool(0.5) {
            // Run a command at once: output before the next recorder starts is lost, but the command ends.
            self.shells.try_to_run_in(socket, name, random, Loss::Unknown);
        }
        wait_until("a new recorder", || self.recorder(name).pid != recorder.pid);
    }

    /// Takes all free file descriptors of the daemon. Existing connections keep working; new ones wait.
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
        let most = kib(daemon, "VmData") * 1024 + MORE_MEMORY;
        let lives = within(daemon, Resource::Data, most, || {
            clients
                .iter_mut()
                .all(|client| client.send_requests(random) && client.send_large_request(random))
                && clients.iter_mut().all(Client::read)
        });
        if !lives {
            self.await_daemon_end();
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
            self.shells.expect_shell_or_its_end(&mut self.daemon.client(), name);
        }
    }

    /// Waits until the recorder of a shell has begun to record, and returns its process.
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

    /// The tmux server. It was started by the tmux client and has the same arguments, but as an orphan it is
    /// our child.
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
