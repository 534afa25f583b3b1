//! Facts about processes, read from `/proc`, and waiting for their end without polling.
//!
//! A process is identified by its number *and* its start time, because numbers are reused: nothing is ever signalled
//! whose start time differs from the recorded one.

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

pub use readiness::register_readable;

/// The environment variable that marks every process started by one of our shells.
pub const MARK_VARIABLE: &str = "SANDBOX_SHELL";

/// The most rounds of stopping members and searching for new ones; usually two or three are enough.
const STOP_ROUNDS: u32 = 20;

/// The most rounds of killing members and searching for new ones.
const END_ROUNDS: u32 = 5;
/// How long a killed process may take to end: it may be waiting for a disk.
const KILL_LIMIT: Duration = Duration::from_secs(10);

/// A process, identified safely although process numbers are reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ProcessId {
    /// The process number.
    pub pid: u32,
    /// When it started, in clock ticks since the start of the machine.
    pub start_time: u64,
}

/// The fields of `/proc/PID/stat` that we use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    /// Its state, a letter: `R` for running, `S` for sleeping, `Z` for a zombie, and so on.
    pub state: u8,
    parent: i32,
    /// Its process group.
    pub group: i32,
    /// Its process session.
    pub session: i32,
    /// The device number of its terminal.
    pub terminal: i32,
    /// The foreground process group of its terminal.
    pub foreground: i32,
    /// When it started, in clock ticks since the start of the machine.
    pub start_time: u64,
}

impl Stat {
    /// Reads the entry of the process that has this number now.
    pub fn of(pid: u32) -> Option<Self> {
        // Linux returns it in one read, and it has about fifty numbers.
        let mut text = [0; 2048];
        let length = fs::File::open(format!("/proc/{pid}/stat")).ok()?.read(&mut text).ok()?;
        Self::parse(&text[..length])
    }

    fn parse(text: &[u8]) -> Option<Self> {
        // The name in parentheses may contain any character, so the fields start after the last parenthesis.
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

    /// Whether this entry belongs to a child of `parent`.
    pub fn is_child_of(&self, parent: ProcessId) -> bool {
        i64::from(self.parent) == i64::from(parent.pid)
    }

    fn is_gone(&self) -> bool {
        matches!(self.state, b'Z' | b'X')
    }
}

impl ProcessId {
    /// Identifies the process that has this number now.
    pub fn of(pid: u32) -> Option<Self> {
        Stat::of(pid).map(|stat| Self { pid, start_time: stat.start_time })
    }

    /// Whether the process is alive; a zombie is not.
    pub fn is_alive(&self) -> bool {
        self.stat().is_some_and(|stat| !stat.is_gone())
    }

    /// Its entry in `/proc`; `None` if the process is gone.
    pub fn stat(&self) -> Option<Stat> {
        Stat::of(self.pid).filter(|stat| stat.start_time == self.start_time)
    }

    /// Opens a descriptor that becomes readable when the process ends; `None` if it has ended already.
    pub fn open_pidfd(&self) -> io::Result<Option<AsyncFd<OwnedFd>>> {
        let Some(pid) = raw(self.pid) else { return Ok(None) };
        let fd = match pidfd_open(pid, PidfdFlags::NONBLOCK) {
            Ok(fd) => fd,
            Err(rustix::io::Errno::SRCH) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        // The number may have been reused before it was opened; afterwards it cannot be.
        if self.stat().is_none() {
            return Ok(None);
        }
        register_readable(fd).map(Some)
    }

    /// Sends a signal to exactly this process; does nothing if it has ended.
    pub fn send(&self, signal: Signal) {
        let Some(pid) = raw(self.pid) else { return };
        if let Ok(fd) = pidfd_open(pid, PidfdFlags::empty())
            && self.stat().is_some()
        {
            // This fails if the process has ended in the meantime or now belongs to another user; nothing can be done
            // about either.
            let _ = pidfd_send_signal(fd, signal);
        }
    }

    /// Returns when the process has ended.
    pub async fn ended(&self) -> io::Result<()> {
        if let Some(fd) = self.open_pidfd()? {
            fd.readable().await?.retain_ready();
        }
        Ok(())
    }
}

/// Waits until all processes have ended, at most for this time. Returns those that are still alive.
pub async fn wait_for_all(processes: &[ProcessId], limit: Duration) -> Vec<ProcessId> {
    let deadline = time::Instant::now() + limit;
    for process in processes {
        // The result does not matter: the check below finds the processes that are alive.
        let _ = time::timeout_at(deadline, process.ended()).await;
    }
    processes.iter().filter(|process| process.is_alive()).copied().collect()
}

/// Every living process that belongs to a shell.
///
/// A process belongs to the shell if it is in the process session of the leader, or carries the shell's mark in its
/// environment (a daemon that has left the process session still does), or descends from a process that belongs, as
/// far as its ancestors are alive to show it. The shell adopts orphaned descendants (see `builtin.c`), which keeps
/// these chains complete. A process escapes only if it has left the process session *and* cleared its environment
/// *and* outlived its ancestors up to the shell, and the shell itself has ended. A process that was already found to
/// belong does not escape.
#[derive(Debug)]
pub struct Members<'a> {
    leader: ProcessId,
    mark: &'a str,
    known: Vec<ProcessId>,
}

impl<'a> Members<'a> {
    /// Finds the members of the shell with this leader and this mark.
    pub fn of(leader: ProcessId, mark: &'a str) -> Self {
        let mut members = Self { leader, mark, known: Vec::new() };
        members.known = members.find();
        members
    }

    fn find(&self) -> Vec<ProcessId> {
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

    /// Sends a signal to all members that were found.
    pub fn signal(&self, signal: Signal) {
        for process in &self.known {
            process.send(signal);
        }
    }

    /// Waits until all members have ended, at most for `grace`, and kills those that are still alive.
    pub async fn end(mut self, grace: Duration) {
        let mut limit = grace;
        // New processes may appear while old ones are being killed, so search again.
        for _ in 0..END_ROUNDS {
            self.known = wait_for_all(&self.known, limit).await;
            self.stop();
            for process in &self.known {
                process.send(Signal::KILL);
            }
            wait_for_all(&self.known, KILL_LIMIT).await;
            self.known.clear();
            self.known = self.find();
            if self.known.is_empty() {
                break;
            }
            limit = Duration::ZERO;
        }
    }

    /// Stops the members, so that none of them starts another process that would be orphaned and missed when its
    /// parent is killed.
    fn stop(&mut self) {
        // Each round finds processes that were started before the previous round took effect.
        for _ in 0..STOP_ROUNDS {
            for process in &self.known {
                process.send(Signal::STOP);
            }
            let found = self.find();
            let is_all = found.iter().all(|process| self.known.contains(process));
            self.known = found;
            if is_all {
                break;
            }
        }
    }
}

/// Returns every living process that carries this mark in its environment.
pub fn with_mark(mark: &str) -> Vec<ProcessId> {
    living(|pid, _| has_mark(pid, mark))
}

/// Returns every living process that has this word among its arguments.
pub fn with_argument(word: &[u8]) -> Vec<ProcessId> {
    living(|pid, _| {
        fs::read(format!("/proc/{pid}/cmdline"))
            .is_ok_and(|arguments| arguments.split(|&byte| byte == 0).any(|it| it == word))
    })
}

/// Returns the living children of a process.
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

/// Returns the living processes of a process group on a terminal.
pub fn group_members(group: i32, terminal: i32) -> Vec<u32> {
    all_pids()
        .filter(|&pid| {
            Stat::of(pid).is_some_and(|stat| {
                stat.group == group && stat.terminal == terminal && !stat.is_gone()
            })
        })
        .collect()
}

/// Returns the path of a process's controlling terminal, from its device number.
pub fn terminal_path(stat: &Stat) -> Option<PathBuf> {
    let device = u32::try_from(stat.terminal).ok()?;
    let major = (device >> 8) & 0xfff;
    let minor = (device & 0xff) | ((device >> 12) & 0xfff00);
    // Pseudo-terminals have the major numbers 136 to 143, with 256 terminals each.
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
