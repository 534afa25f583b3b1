//! Identifies processes, reads facts about them from `/proc`, and waits for their end without polling.
//!
//! A process is identified by its number *and* its start time, because numbers are reused: nothing is ever signalled
//! whose start time differs from the recorded one.
//!
//! Every system can say whether a process is alive. The other functions need Linux.

#[cfg(target_os = "linux")]
mod proc;
#[cfg(target_os = "linux")]
mod processes;
mod readiness;

use serde::{Deserialize, Serialize};

#[cfg(target_os = "linux")]
pub use proc::Stat;
#[cfg(target_os = "linux")]
pub use processes::{all, children, group_members, wait_for_all, with_argument};
pub use readiness::register_readable;

/// A process, identified safely although process numbers are reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ProcessId {
    /// The process number.
    pub pid: u32,
    /// When it started, in clock ticks since the start of the machine. Always 0 on systems other than Linux, which
    /// have no cheap way to read it: there the number alone identifies a process.
    pub start_time: u64,
}

#[cfg(not(target_os = "linux"))]
impl ProcessId {
    /// Identifies the process of this user that has this number now.
    pub fn of(pid: u32) -> Option<Self> {
        use rustix::process::{Pid, test_kill_process};
        let raw = i32::try_from(pid).ok().and_then(Pid::from_raw)?;
        // EPERM means a process of another user, which cannot have written a file that this user owns.
        test_kill_process(raw).ok().map(|()| Self { pid, start_time: 0 })
    }

    /// Whether the process is alive.
    pub fn is_alive(&self) -> bool {
        Self::of(self.pid) == Some(*self)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader};
    use std::process::{Child, Command, Stdio};

    use super::*;

    /// Starts a program with this argument and this variable, and waits for its first line: while a program is being
    /// executed, Linux does not show its arguments yet.
    pub(crate) fn started(argument: &str, (name, value): (&str, &str)) -> Child {
        let mut command = Command::new("sh");
        command.args(["-c", "echo started; read -r _", argument]).env(name, value);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "started\n");
        child
    }

    #[test]
    fn a_process_that_has_ended_is_not_alive_even_before_it_is_reaped() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let process = ProcessId::of(child.id()).unwrap();
        assert!(process.is_alive());
        #[cfg(target_os = "linux")]
        for start_time in [0, process.start_time + 1] {
            let other = ProcessId { start_time, ..process };
            assert!(!other.is_alive(), "another process with the same number");
        }
        drop(child.stdin.take());
        #[cfg(target_os = "linux")]
        {
            use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
            let unreaped = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            waitid(WaitId::Pid(Pid::from_child(&child)), unreaped).unwrap();
            assert!(!process.is_alive(), "it has ended, but has not been reaped");
        }
        child.wait().unwrap();
        assert!(!process.is_alive());
        for pid in [0, u32::MAX] {
            assert!(!ProcessId { pid, start_time: 0 }.is_alive(), "{pid}");
        }
    }
}
