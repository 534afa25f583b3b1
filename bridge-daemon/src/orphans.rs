//! Programs that the daemon starts end with it, even when it is killed.

use tokio::process::Command;

/// Makes Linux send the program SIGTERM when the daemon dies. On other systems, a killed daemon leaves its programs
/// behind.
#[cfg(target_os = "linux")]
#[allow(unsafe_code)]
pub fn end_with_us(command: &mut Command) {
    use rustix::io::Errno;
    use rustix::process::{Signal, getpid, getppid, set_parent_process_death_signal};

    let parent = getpid();
    // SAFETY: only async-signal-safe system calls are made, and nothing is allocated.
    unsafe {
        command.pre_exec(move || {
            set_parent_process_death_signal(Some(Signal::TERM))?;
            // The daemon may have died before the call above.
            match getppid() == Some(parent) {
                true => Ok(()),
                false => Err(Errno::SRCH.into()),
            }
        });
    }
}

/// Does nothing: this system cannot end a program when its parent dies.
#[cfg(not(target_os = "linux"))]
pub fn end_with_us(_: &mut Command) {}
