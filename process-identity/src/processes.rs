//! Searches all processes, and waits for the end of several.

use std::{fs, time::Duration};

use tokio::time;

use crate::{ProcessId, Stat};

/// Returns every process, zombies included, with its entry in `/proc`.
pub fn all() -> impl Iterator<Item = (ProcessId, Stat)> {
    let entries = fs::read_dir("/proc").into_iter().flatten();
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    pids.filter_map(|pid| {
        let stat = Stat::of(pid)?;
        Some((ProcessId { pid, start_time: stat.start_time }, stat))
    })
}

/// Returns every living process that has this word among its arguments.
pub fn with_argument(word: &[u8]) -> Vec<ProcessId> {
    living(|process, _| process.has_argument(word))
}

/// Returns the living children of a process.
pub fn children(parent: ProcessId) -> Vec<ProcessId> {
    living(|_, stat| stat.is_child_of(parent))
}

/// Returns the living processes of a process group on a terminal.
pub fn group_members(group: i32, terminal: i32) -> Vec<ProcessId> {
    living(|_, stat| stat.group == group && stat.terminal == terminal)
}

fn living(belongs: impl Fn(ProcessId, &Stat) -> bool) -> Vec<ProcessId> {
    let found = all().filter(|(process, stat)| !stat.has_ended() && belongs(*process, stat));
    found.map(|(process, _)| process).collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_is_found_until_it_has_ended() {
        let us = ProcessId::of(std::process::id()).unwrap();
        let mut child = crate::tests::started("found_test", ("A", "b"));
        let process = ProcessId::of(child.id()).unwrap();
        let found = || [children(us), with_argument(b"found_test")].map(|it| it.contains(&process));
        assert_eq!(found(), [true, true]);
        let stat = process.stat().unwrap();
        assert!(group_members(stat.group, stat.terminal).contains(&process));
        child.kill().unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let left = runtime.block_on(wait_for_all(&[process], Duration::from_secs(20)));
        assert_eq!(left, [], "a zombie counts as ended");
        assert_eq!(found(), [false, false]);
        assert!(all().any(|(it, stat)| it == process && stat.has_ended()), "not reaped yet");
        child.wait().unwrap();
    }
}
