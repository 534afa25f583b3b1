//! Facts about processes, read from `/proc`, and waiting for their end without polling.
//!
//! A process is named by its number *and* its start time, because numbers are used again: nothing
//! is ever signalled whose start time differs from what was written down.

mod readiness;

use std::{
    fs,
    io::{self, Read as _},
    os::fd::OwnedFd,
    path::PathBuf,
    time::Duration,
};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde::{Deserialize, Serialize};
use tokio::{io::unix::AsyncFd, time};

pub use readiness::readable;

/// The variable that marks every process that comes from a shell of ours.
pub const MARK_VARIABLE: &str = "SANDBOX_SHELL";

/// How often we look for more members among those who are being stopped; two or three are enough as a rule.
const STOP_ROUNDS: u32 = 20;

/// How often we look whether all members of a shell have ended.
const END_ROUNDS: u32 = 5;
/// How long a process may take to end that was killed: one may wait for a disk.
const KILL_LIMIT: Duration = Duration::from_secs(10);

/// A process, safe against reuse of its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ProcessId {
    /// The process number.
    pub pid: u32,
    /// When it started, in clock ticks since the machine did.
    pub start_time: u64,
}

/// The parts of `/proc/PID/stat` that we use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    /// Its state, a letter: `R` for running, `S` for sleeping, `Z` for a zombie, and so on.
    pub state: u8,
    parent: i32,
    /// Its process group.
    pub group: i32,
    /// Its session, in the sense of Linux.
    pub session: i32,
    /// The device number of its terminal.
    pub terminal: i32,
    /// The group in the foreground of its terminal.
    pub foreground: i32,
    /// When it started, in clock ticks since the machine did.
    pub start_time: u64,
}

impl Stat {
    /// Reads the entry of the process that has this number now.
    pub fn of(pid: u32) -> Option<Self> {
        // The kernel hands it out whole, and it has about fifty numbers.
        let mut text = [0; 2048];
        let length = fs::File::open(format!("/proc/{pid}/stat")).ok()?.read(&mut text).ok()?;
        Self::parse(&text[..length])
    }

    fn parse(text: &[u8]) -> Option<Self> {
        // The name in parentheses may contain anything, so the fields start after the last one.
        let rest = &text[memchr::memrchr(b')', text)? + 2..];
        let fields: Vec<&str> = std::str::from_utf8(rest).ok()?.split_ascii_whitespace().collect();
        let signed = |index: usize| fields.get(index)?.parse::<i32>().ok();
        Some(Self {
            state: *fields.first()?.as_bytes().first()?,
            parent: signed(1)?,
            group: signed(2)?,
            session: signed(3)?,
            terminal: signed(4)?,
            foreground: signed(5)?,
            start_time: fields.get(19)?.parse().ok()?,
        })
    }

    /// Whether its parent is this process.
    pub fn is_child_of(&self, parent: ProcessId) -> bool {
        i64::from(self.parent) == i64::from(parent.pid)
    }

    fn is_gone(&self) -> bool {
        matches!(self.state, b'Z' | b'X')
    }
}

impl ProcessId {
    /// The process that has this number now.
    pub fn of(pid: u32) -> Option<Self> {
        Stat::of(pid).map(|stat| Self { pid, start_time: stat.start_time })
    }

    /// Whether it is there; a zombie is not.
    pub fn is_alive(&self) -> bool {
        self.stat().is_some_and(|stat| !stat.is_gone())
    }

    /// Its entry in `/proc`; `None` if it is gone.
    pub fn stat(&self) -> Option<Stat> {
        Stat::of(self.pid).filter(|stat| stat.start_time == self.start_time)
    }

    /// A descriptor that becomes readable when the process ends; `None` if it is gone already.
    pub fn open(&self) -> io::Result<Option<AsyncFd<OwnedFd>>> {
        let Some(pid) = raw(self.pid) else { return Ok(None) };
        let fd = match pidfd_open(pid, PidfdFlags::NONBLOCK) {
            Ok(fd) => fd,
            Err(rustix::io::Errno::SRCH) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        // The number may have been used again before we opened it; afterwards it cannot be.
        if self.stat().is_none() {
            return Ok(None);
        }
        readable(fd).map(Some)
    }

    /// Sends a signal to exactly this process; harmless if it has ended.
    pub fn send(&self, signal: Signal) {
        let Some(pid) = raw(self.pid) else { return };
        if let Ok(fd) = pidfd_open(pid, PidfdFlags::empty())
            && self.stat().is_some()
        {
            // It has ended meanwhile, or is another user's by now; neither can be helped.
            let _ = pidfd_send_signal(fd, signal);
        }
    }

    /// Returns when the process has ended.
    pub async fn ended(&self) -> io::Result<()> {
        if let Some(fd) = self.open()? {
            fd.readable().await?.retain_ready();
        }
        Ok(())
    }
}

/// Waits for all of them to end, at most so long; returns those that remain.
pub async fn all_ended(processes: &[ProcessId], limit: Duration) -> Vec<ProcessId> {
    let deadline = time::Instant::now() + limit;
    for process in processes {
        // Whether it has ended is looked at below.
        let _ = time::timeout_at(deadline, process.ended()).await;
    }
    processes.iter().filter(|process| process.is_alive()).copied().collect()
}

/// Every living process that belongs to a shell: it is in the kernel session of the leader, or carries
/// the shell's mark in its environment (a daemon that has left the kernel session still does), or comes
/// from one that belongs, as far as its ancestors are there to tell. The shell keeps them together: it takes
/// the place of parents that have ended (`builtin.c`). What is lost is a process that has left the kernel
/// session *and* cleared its environment *and* outlived its ancestors up to the shell, after which the shell
/// itself has ended. Those who were known to belong are not lost.
#[derive(Debug)]
pub struct Members<'a> {
    leader: ProcessId,
    mark: &'a str,
    known: Vec<ProcessId>,
}

impl<'a> Members<'a> {
    /// Looks for the members of the shell with this leader and this mark.
    pub fn of(leader: ProcessId, mark: &'a str) -> Self {
        let mut members = Self { leader, mark, known: Vec::new() };
        members.known = members.found();
        members
    }

    fn found(&self) -> Vec<ProcessId> {
        let stats = all_pids().filter_map(|pid| Some((pid, Stat::of(pid)?)));
        let (mut members, mut others): (Vec<_>, Vec<_>) = stats.partition(|(pid, stat)| {
            let in_session = i64::from(stat.session) == i64::from(self.leader.pid)
                && stat.start_time >= self.leader.start_time;
            let process = ProcessId { pid: *pid, start_time: stat.start_time };
            in_session || self.known.contains(&process) || has_mark(*pid, self.mark)
        });
        let mut seen = 0;
        while let Some((parent, stat)) = members.get(seen) {
            let parent = ProcessId { pid: *parent, start_time: stat.start_time };
            members.extend(others.extract_if(.., |(_, stat)| stat.is_child_of(parent)));
            seen += 1;
        }
        let living = members.into_iter().filter(|(_, stat)| !stat.is_gone());
        living.map(|(pid, stat)| ProcessId { pid, start_time: stat.start_time }).collect()
    }

    /// Sends a signal to all of them.
    pub fn signal(&self, signal: Signal) {
        for process in &self.known {
            process.send(signal);
        }
    }

    /// Waits for all of them to end, at most so long, and kills those that remain.
    pub async fn end(mut self, grace: Duration) {
        let mut limit = grace;
        // New processes may appear while old ones are being ended, so we look again.
        for _ in 0..END_ROUNDS {
            self.known = all_ended(&self.known, limit).await;
            self.stop();
            for process in &self.known {
                process.send(Signal::KILL);
            }
            all_ended(&self.known, KILL_LIMIT).await;
            self.known.clear();
            self.known = self.found();
            if self.known.is_empty() {
                break;
            }
            limit = Duration::ZERO;
        }
    }

    /// Stops them, so that none of them starts another that would be nobody's when its parent is killed.
    fn stop(&mut self) {
        // Each round finds what was started before the one before it took effect.
        for _ in 0..STOP_ROUNDS {
            for process in &self.known {
                process.send(Signal::STOP);
            }
            let found = self.found();
            let is_all = found.iter().all(|process| self.known.contains(process));
            self.known = found;
            if is_all {
                break;
            }
        }
    }
}

/// Every living process that carries a mark in its environment.
pub fn marked(mark: &str) -> Vec<ProcessId> {
    living(|pid, _| has_mark(pid, mark))
}

/// Every living process that has this word among its arguments.
pub fn started_with(word: &[u8]) -> Vec<ProcessId> {
    living(|pid, _| {
        fs::read(format!("/proc/{pid}/cmdline"))
            .is_ok_and(|arguments| arguments.split(|&byte| byte == 0).any(|it| it == word))
    })
}

/// The living children of a process.
pub fn children(parent: ProcessId) -> Vec<ProcessId> {
    living(|_, stat| stat.is_child_of(parent))
}

fn living(belongs: impl Fn(u32, &Stat) -> bool) -> Vec<ProcessId> {
    let stats = all_pids().filter_map(|pid| Some((pid, Stat::of(pid)?)));
    stats
        .filter(|(pid, stat)| !stat.is_gone() && belongs(*pid, stat))
        .map(|(pid, stat)| ProcessId { pid, start_time: stat.start_time })
        .collect()
}

fn has_mark(pid: u32, mark: &str) -> bool {
    let wanted = format!("{MARK_VARIABLE}={mark}").into_bytes();
    fs::read(format!("/proc/{pid}/environ"))
        .is_ok_and(|environment| environment.split(|&byte| byte == 0).any(|entry| entry == wanted))
}

/// The living processes of a process group on a terminal.
pub fn group_members(group: i32, terminal: i32) -> Vec<u32> {
    all_pids()
        .filter(|&pid| {
            Stat::of(pid).is_some_and(|stat| {
                stat.group == group && stat.terminal == terminal && !stat.is_gone()
            })
        })
        .collect()
}

/// The path of a process's controlling terminal, from its device number.
pub fn terminal_path(stat: &Stat) -> Option<PathBuf> {
    let device = u32::try_from(stat.terminal).ok()?;
    let major = (device >> 8) & 0xfff;
    let minor = (device & 0xff) | ((device >> 12) & 0xfff00);
    // Pseudo-terminals have the majors 136 to 143, 256 numbers each.
    (136..144).contains(&major).then(|| format!("/dev/pts/{}", (major - 136) * 256 + minor).into())
}

fn all_pids() -> impl Iterator<Item = u32> {
    fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
}

fn raw(pid: u32) -> Option<Pid> {
    i32::try_from(pid).ok().and_then(Pid::from_raw)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_does_not_confuse_the_fields() {
        let line = b"42 (a) b) c) S 1 42 40 34817 43 4194304 1 2 3 4 5 6 7 8 20 0 1 0 999 0 0\n";
        let stat = Stat::parse(line).unwrap();
        assert_eq!((stat.group, stat.session, stat.foreground), (42, 40, 43));
        assert_eq!(stat.start_time, 999);
        assert_eq!(terminal_path(&stat), Some("/dev/pts/1".into()));
    }

    #[test]
    fn a_process_with_another_start_time_is_somebody_else() {
        let me = ProcessId::of(std::process::id()).unwrap();
        assert!(me.is_alive());
        assert!(!ProcessId { start_time: me.start_time + 1, ..me }.is_alive());
    }
}
