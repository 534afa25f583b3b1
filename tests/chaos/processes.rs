//! The processes of this run: which there are, and what they may use.
//!
//! Whoever is started by us, directly or not, and loses its parent becomes our child; so nothing slips
//! away unseen.

use std::collections::HashMap;
use std::fs;

use nix::sys::prctl::set_child_subreaper;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::Pid;
use rustix::process::{Resource, Rlimit, getrlimit, prlimit};

/// A process that comes from us and has not ended.
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
        // It may have ended by itself.
        let _ = kill(raw(self.pid), signal);
    }
}

pub fn adopt_orphans() {
    set_child_subreaper(true).unwrap();
}

/// Everything that comes from us. Orphans that have ended are reaped on the way, but not `children`,
/// for whose end somebody else waits.
pub fn descendants(children: &[u32]) -> Vec<Process> {
    let own = std::process::id();
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let stats: HashMap<u32, (u32, bool)> =
        pids.filter_map(|pid| Some((pid, parent_and_life(pid)?))).collect();
    let comes_from_us = |pid: u32| {
        let mut ancestors = std::iter::successors(stats.get(&pid), |(parent, _)| stats.get(parent));
        ancestors.any(|(parent, _)| *parent == own)
    };
    let mut found = Vec::new();
    for (&pid, &(parent, is_alive)) in &stats {
        if is_alive && comes_from_us(pid) {
            let arguments = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let arguments = String::from_utf8_lossy(&arguments).replace('\0', " ");
            found.push(Process { pid, parent, arguments });
        } else if parent == own && !is_alive && !children.contains(&pid) {
            let _ = waitpid(raw(pid), Some(WaitPidFlag::WNOHANG));
        }
    }
    found
}

/// Does something while a process may have only so much of a resource.
pub fn within<T>(pid: u32, resource: Resource, most: u64, act: impl FnOnce() -> T) -> T {
    let pid = rustix::process::Pid::from_raw(pid.cast_signed());
    let before = prlimit(pid, resource, Rlimit { current: Some(most), maximum: hard(resource) });
    let before = before.unwrap();
    let done = act();
    // It may have ended of it.
    let _ = prlimit(pid, resource, before);
    done
}

pub fn open_files(pid: u32) -> u64 {
    fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count() as u64
}

/// A line of `/proc/PID/status` that tells a size in KiB.
pub fn kib(pid: u32, name: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.trim_start_matches(':').trim().trim_end_matches(" kB").parse().unwrap()
}

/// Only the soft limit is lowered: not everybody may raise the other again. The programs have inherited it
/// from us.
fn hard(resource: Resource) -> Option<u64> {
    getrlimit(resource).maximum
}

fn parent_and_life(pid: u32) -> Option<(u32, bool)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = stat.get(stat.rfind(')')? + 2..)?.split(' ');
    let state = fields.next()?;
    Some((fields.next()?.parse().ok()?, !matches!(state, "Z" | "X")))
}

fn raw(pid: u32) -> Pid {
    Pid::from_raw(pid.cast_signed())
}
