//! Finds and ends every process that belongs to a shell or a kernel.

use std::time::Duration;

use process_identity::{ProcessId, all, wait_for_all};
use rustix::process::Signal;

/// The environment variable that marks every process started by one of our shells.
pub const MARK_VARIABLE: &str = "SANDBOX_SHELL";

/// The most rounds of stopping members and searching for new ones; usually two or three are enough.
const STOP_ROUNDS: u32 = 20;

/// The most rounds of killing members and searching for new ones.
const END_ROUNDS: u32 = 5;
/// How long a killed process may take to end: it may be waiting for a disk.
const KILL_LIMIT: Duration = Duration::from_secs(10);

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
        let mark = entry(self.mark);
        let (mut members, mut others): (Vec<_>, Vec<_>) = all().partition(|(process, stat)| {
            let in_session = i64::from(stat.session) == i64::from(self.leader.pid)
                && stat.start_time >= self.leader.start_time;
            in_session || self.known.contains(process) || process.has_variable(&mark)
        });
        let mut seen = 0;
        while let Some(&(parent, _)) = members.get(seen) {
            members.extend(others.extract_if(.., |(_, stat)| stat.is_child_of(parent)));
            seen += 1;
        }
        let living = members.into_iter().filter(|(_, stat)| !stat.has_ended());
        living.map(|(process, _)| process).collect()
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
    let mark = entry(mark);
    let found = all().filter(|(process, stat)| !stat.has_ended() && process.has_variable(&mark));
    found.map(|(process, _)| process).collect()
}

/// The mark as it stands in the environment.
fn entry(mark: &str) -> Vec<u8> {
    format!("{MARK_VARIABLE}={mark}").into_bytes()
}
