//! Is the process that wrote a file still there?

use nix::sys::signal::kill;
use nix::unistd::Pid;

/// When the process started, in clock ticks since boot: with its pid a name that is never reused
/// while the machine runs. `None` if there is no such process, or it is dead and only waits to be
/// reaped.
#[cfg(target_os = "linux")]
pub fn process_start(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field, the program's name, may hold spaces and brackets.
    let mut fields = stat.get(stat.rfind(')')? + 2..)?.split(' ');
    let state = fields.next()?;
    let start = fields.nth(18)?;
    (!matches!(state, "Z" | "X")).then(|| start.parse().ok())?
}

/// Other systems have no cheap way to ask; there the pid alone must do.
#[cfg(not(target_os = "linux"))]
pub fn process_start(pid: u32) -> Option<u64> {
    exists(pid).then_some(0)
}

/// Whether this very process, not a later one with the same pid, is alive.
pub fn is_alive(pid: u32, start: u64) -> bool {
    exists(pid) && process_start(pid) == Some(start)
}

fn exists(pid: u32) -> bool {
    let Ok(pid) = i32::try_from(pid) else { return false };
    // EPERM would mean somebody else's process: not the writer of a file that we own.
    pid > 0 && kill(Pid::from_raw(pid), None).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_alive_until_it_ends_even_if_nobody_reaps_it() {
        let mut child = std::process::Command::new("cat")
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let start = process_start(child.id()).unwrap();
        assert!(is_alive(child.id(), start));
        #[cfg(target_os = "linux")]
        assert!(!is_alive(child.id(), start + 1));
        drop(child.stdin.take());
        // The end of its output is the event: cat has closed it by exiting.
        std::io::copy(child.stdout.as_mut().unwrap(), &mut std::io::sink()).unwrap();
        let pid = child.id();
        child.wait().unwrap();
        assert!(!is_alive(pid, start));
        assert!(!is_alive(0, 0));
        assert!(!is_alive(u32::MAX, 0));
    }
}
