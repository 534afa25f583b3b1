//! Is the process that wrote a file still there?

/// When the process started, in clock ticks since boot: with its pid a name that is never reused
/// while the machine runs. `None` if there is no such process, or it is dead and only waits to be
/// reaped.
#[cfg(target_os = "linux")]
pub fn process_start(pid: u32) -> Option<u64> {
    start_in(&std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

#[cfg(target_os = "linux")]
fn start_in(stat: &str) -> Option<u64> {
    // The second field, the program's name, may hold spaces and brackets.
    let mut fields = stat.rsplit_once(") ")?.1.split(' ');
    let state = fields.next()?;
    let start = fields.nth(18)?;
    (!matches!(state, "Z" | "X")).then(|| start.parse().ok())?
}

/// Other systems have no cheap way to ask; there the pid alone must do.
#[cfg(not(target_os = "linux"))]
pub fn process_start(pid: u32) -> Option<u64> {
    use rustix::process::{Pid, test_kill_process};
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw)?;
    // EPERM would mean somebody else's process: not the writer of a file that we own.
    test_kill_process(pid).ok().map(|()| 0)
}

/// Whether this very process, not a later one with the same pid, is alive.
pub fn is_alive(pid: u32, start: u64) -> bool {
    process_start(pid) == Some(start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn the_start_is_read_behind_any_name_and_not_for_the_dead() {
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
    fn a_process_is_alive_until_it_ends_even_if_nobody_reaps_it() {
        let mut child =
            std::process::Command::new("cat").stdin(std::process::Stdio::piped()).spawn().unwrap();
        let pid = child.id();
        let start = process_start(pid).unwrap();
        assert!(is_alive(pid, start));
        #[cfg(target_os = "linux")]
        assert!(!is_alive(pid, 0) && !is_alive(pid, start + 1), "another with the same pid");
        drop(child.stdin.take());
        #[cfg(target_os = "linux")]
        {
            use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
            let unreaped = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            waitid(WaitId::Pid(Pid::from_child(&child)), unreaped).unwrap();
            assert!(!is_alive(pid, start), "it has ended, and only waits to be reaped");
        }
        child.wait().unwrap();
        assert!(!is_alive(pid, start));
        assert!(!is_alive(0, 0));
        assert!(!is_alive(u32::MAX, 0));
    }
}
