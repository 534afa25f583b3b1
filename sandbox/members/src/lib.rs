//! Everything that comes from a shell or a kernel: finding its processes and ending them.

use std::time::Duration;

use process_identity::{ProcessId, all, all_ended};
use rustix::process::Signal;

/// The variable that marks every process that comes from a shell of ours.
pub const MARK_VARIABLE: &str = "SANDBOX_SHELL";

/// How often we look for more members among those who are being stopped; two or three are enough as a rule.
const STOP_ROUNDS: u32 = 20;

/// How often we look whether all members of a shell have ended.
const END_ROUNDS: u32 = 5;
/// How long a process may take to end that was killed: one may wait for a disk.
const KILL_LIMIT: Duration = Duration::from_secs(10);

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
    let mark = entry(mark);
    let found = all().filter(|(process, stat)| !stat.has_ended() && process.has_variable(&mark));
    found.map(|(process, _)| process).collect()
}

/// The mark as it stands in the environment.
fn entry(mark: &str) -> Vec<u8> {
    format!("{MARK_VARIABLE}={mark}").into_bytes()
}
