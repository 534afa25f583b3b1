//! However a measurement ends, it leaves no process and no file behind. Run `cargo build` first.

#![allow(clippy::unwrap_used, reason = "this is test code, also outside of test functions")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use process_identity::Stat;

const TIMEOUT: Duration = Duration::from_secs(120);

#[test]
fn an_interrupted_measurement_leaves_nothing_behind() {
    let soak = Soak::start();
    soak.signal_owner(Signal::SIGINT);
    soak.leaves_nothing(130);
}

#[test]
fn a_terminated_measurement_leaves_nothing_behind() {
    let soak = Soak::start();
    soak.signal_owner(Signal::SIGTERM);
    soak.leaves_nothing(143);
}

#[test]
fn a_measurement_that_crashes_leaves_nothing_behind() {
    let soak = Soak::start();
    kill(soak.worker, Signal::SIGKILL).unwrap();
    soak.leaves_nothing(137);
}

/// A long-running measurement with a daemon, a tmux server and shells.
struct Soak {
    owner: Owner,
    worker: Pid,
    /// All descendants by pid, with their arguments, because pids are reused.
    processes: BTreeMap<u32, String>,
    directories: Vec<PathBuf>,
}

impl Soak {
    /// Starts the measurement, and returns when its shells run.
    fn start() -> Self {
        let program = Path::new(env!("CARGO_BIN_EXE_bridge-bench"));
        let mut command = Command::new(program);
        command.args(["soak", "--minutes", "60", "--daemon"]);
        command.arg(program.with_file_name("bridge-daemon"));
        command.stdin(Stdio::null()).stderr(Stdio::null());
        let mut owner = Owner(command.spawn().unwrap());
        let begun = Instant::now();
        loop {
            let processes = descendants(owner.0.id());
            let has = |arguments: &str, wanted: &str| {
                arguments.split('\0').any(|argument| argument == wanted)
            };
            let runs = |name| processes.values().any(|arguments| has(arguments, name));
            if runs("tmux") && runs("bash") {
                let is_worker = |pid: u32, arguments: &str| {
                    parent(pid) == Some(owner.0.id()) && has(arguments, "soak")
                };
                let mut all = processes.iter();
                let (&worker, _) =
                    all.find(|(pid, arguments)| is_worker(**pid, arguments)).unwrap();
                let environment = fs::read(format!("/proc/{worker}/environ")).unwrap();
                let directories = ["TMPDIR", "BRIDGE_BENCH_MEMORY"].map(|name| {
                    let variables =
                        environment.split(|&byte| byte == 0).map(String::from_utf8_lossy);
                    let mut values = variables.filter_map(|variable| {
                        variable.strip_prefix(&format!("{name}=")).map(PathBuf::from)
                    });
                    values.next().expect(name)
                });
                assert!(directories.iter().all(|directory| directory.is_dir()));
                let worker = Pid::from_raw(worker.cast_signed());
                return Self { owner, worker, processes, directories: directories.to_vec() };
            }
            assert!(owner.0.try_wait().unwrap().is_none(), "the soak ended; is the daemon built?");
            assert!(begun.elapsed() < TIMEOUT, "no shell runs: {processes:?}");
            sleep(Duration::from_millis(20));
        }
    }

    fn signal_owner(&self, signal: Signal) {
        self.owner.signal(signal);
    }

    fn leaves_nothing(mut self, code: i32) {
        assert_eq!(self.owner.0.wait().unwrap().code(), Some(code));
        let left: Vec<_> = self
            .processes
            .iter()
            .filter(|(pid, arguments)| !arguments.is_empty() && command_line(**pid) == **arguments)
            .collect();
        assert!(left.is_empty(), "still there: {left:?}");
        for directory in &self.directories {
            assert!(!directory.exists(), "still there: {}", directory.display());
        }
    }
}

/// The measurement's process. Dropping it ends the process, also when the test fails.
struct Owner(Child);

impl Owner {
    fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.0.id().cast_signed()), signal).unwrap();
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        if let Ok(None) = self.0.try_wait() {
            self.signal(Signal::SIGTERM);
            let _ = self.0.wait();
        }
    }
}

/// All descendants of a process, with their arguments.
fn descendants(ancestor: u32) -> BTreeMap<u32, String> {
    let parents: BTreeMap<_, _> = process_identity::all()
        .map(|(process, stat)| (process.pid, stat.parent.cast_unsigned()))
        .collect();
    let is_below = |pid: u32| {
        let mut line = std::iter::successors(Some(pid), |pid| parents.get(pid).copied());
        line.any(|above| above == ancestor)
    };
    let below = parents.keys().filter(|&&pid| pid != ancestor && is_below(pid));
    below.map(|&pid| (pid, command_line(pid))).collect()
}

/// The arguments of a process, each followed by a zero byte. Empty if the process has ended.
fn command_line(pid: u32) -> String {
    let arguments = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&arguments).into_owned()
}

fn parent(pid: u32) -> Option<u32> {
    Stat::of(pid).map(|stat| stat.parent.cast_unsigned())
}
