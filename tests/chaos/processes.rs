//! The processes of this run and their resource limits.
//!
//! This process is a subreaper: a descendant that loses its parent becomes its child. So no process escapes
//! the checks.

use std::collections::HashMap;
use std::fs;

use nix::sys::prctl::set_child_subreaper;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::Pid;
use rustix::process::{Resource, Rlimit, getrlimit, prlimit};

/// A descendant of this process that has not ended.
#[derive(Clone, Debug)]
pub struct Process {
    pub pid: u32,
    pub parent: u32,
    pub arguments: String,
}

impl Process {
    pub fn mentions(&self, text: &str) -> bool {
        self.arguments.contains(text)
    }

    pub fn signal(&self, signal: Signal) {
        // The process may have ended by itself.
        let _ = kill(raw(self.pid), signal);
    }
}

pub fn adopt_orphans() {
    set_child_subreaper(true).unwrap();
}

/// All living descendants of this process. Reaps orphans that have ended, but not `children`, because other
/// code waits for their end.
pub fn descendants(children: &[u32]) -> Vec<Process> {
    let own = std::process::id();
    let stats: HashMap<u32, (u32, bool)> = process_identity::all()
        .map(|(process, stat)| (process.pid, (stat.parent.cast_unsigned(), !stat.has_ended())))
        .collect();
    let is_descendant = |pid: u32| {
        let mut ancestors = std::iter::successors(stats.get(&pid), |(parent, _)| stats.get(parent));
        ancestors.any(|(parent, _)| *parent == own)
    };
    let mut found = Vec::new();
    for (&pid, &(parent, is_alive)) in &stats {
        if is_alive && is_descendant(pid) {
            let arguments = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let arguments = String::from_utf8_lossy(&arguments).replace('\0', " ");
            found.push(Process { pid, parent, arguments });
        } else if parent == own && !is_alive && !children.contains(&pid) {
            let _ = waitpid(raw(pid), Some(WaitPidFlag::WNOHANG));
        }
    }
    found
}

/// Lowers a resource limit of a process while `act` runs.
pub fn within<T>(pid: u32, resource: Resource, most: u64, act: impl FnOnce() -> T) -> T {
    let pid = rustix::process::Pid::from_raw(pid.cast_signed());
    let before = prlimit(pid, resource, Rlimit { current: Some(most), maximum: hard(resource) });
    let before = before.unwrap();
    let done = act();
    // The process may have ended because of the limit.
    let _ = prlimit(pid, resource, before);
    done
}

pub fn open_files(pid: u32) -> u64 {
    fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count() as u64
}

/// A size in KiB from `/proc/PID/status`.
pub fn kib(pid: u32, name: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.trim_start_matches(':').trim().trim_end_matches(" kB").parse().unwrap()
}

/// The present hard limit, which stays unchanged, because raising it again needs a privilege. The programs have
/// inherited it from this process.
fn hard(resource: Resource) -> Option<u64> {
    getrlimit(resource).maximum
}

fn raw(pid: u32) -> Pid {
    Pid::from_raw(pid.cast_signed())
}
