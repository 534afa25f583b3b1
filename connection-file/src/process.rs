//! Whether the process that wrote a file is still alive.

/// The start time of a process, in clock ticks since boot. Pid and start time together identify a
/// process until the machine restarts. `None` if there is no such process, or if it is a zombie (dead,
/// but not yet reaped by its parent).
#[cfg(target_os = "linux")]
pub fn process_start(pid: u32) -> Option<u64> {
    start_in(&std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

#[cfg(target_os = "linux")]
fn start_in(stat: &str) -> Option<u64> {
    // The second field, the program's name in parentheses, may itself contain spaces and parentheses.
    let mut fields = stat.rsplit_once(") ")?.1.split(' ');
    let state = fields.next()?;
    let start = fields.nth(18)?;
    (!matches!(state, "Z" | "X")).then(|| start.parse().ok())?
}

/// Always 0 for a living process. Systems other than Linux have no cheap way to read the start time, so
/// there the pid alone identifies a process. `None` if there is no such process of this user.
#[cfg(not(target_os = "linux"))]
pub fn process_start(pid: u32) -> Option<u64> {
    use rustix::process::{Pid, test_kill_process};
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw)?;
    // EPERM means a process of another user, which cannot have written a file that this user owns.
    test_kill_process(pid).ok().map(|()| 0)
}

/// Whether the process with this pid and this start time is alive. A later process that got the same
/// pid does not count.
pub fn is_alive(pid: u32, start: u64) -> bool {
    process_start(pid) == Some(start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn the_start_time_is_found_after_any_program_name_and_is_none_for_zombies() {
        let stat = |name: &str, state: char| {
            format!("7 ({name}) {state} 1 7 7 0 -1 4 0 0 0 0 0 0 0 0 20 0 1 0 1234 99 9")
        };
        for name in ["cat", "a b", "x) S (y", ") Z 1"] {
            assert_eq!(start_in(&stat(name, 'S')), Some(1234), "{name}");
        }
        for state in ['Z', 'X'] {
            assert_eq!(start_in(&stat("cat", state)), None, "{state}");
        }
    }

    #[test]
    fn a_process_that_has_ended_is_not_alive_even_before_it_is_reaped() {
        let mut child =
            std::process::Command::new("cat").stdin(std::process::Stdio::piped()).spawn().unwrap();
        let pid = child.id();
        let start = process_start(pid).unwrap();
        assert!(is_alive(pid, start));
        #[cfg(target_os = "linux")]
        assert!(
            !is_alive(pid, 0) && !is_alive(pid, start + 1),
            "another process with the same pid"
        );
        drop(child.stdin.take());
        #[cfg(target_os = "linux")]
        {
            use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
            let unreaped = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            waitid(WaitId::Pid(Pid::from_child(&child)), unreaped).unwrap();
            assert!(!is_alive(pid, start), "it has ended, but has not been reaped");
        }
        child.wait().unwrap();
        assert!(!is_alive(pid, start));
        assert!(!is_alive(0, 0));
        assert!(!is_alive(u32::MAX, 0));
    }
}
