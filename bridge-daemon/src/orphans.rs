//! Programs that we start end with us, even when we are killed.

use tokio::process::Command;

/// Makes the kernel send the program SIGTERM when we are gone. Only Linux can; elsewhere a killed
/// daemon leaves its programs behind.
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
            // We may have died before the call above.
            match getppid() == Some(parent) {
                true => Ok(()),
                false => Err(Errno::SRCH.into()),
            }
        });
    }
}

/// Does nothing: this system has no way to tie a program's life to ours.
#[cfg(not(target_os = "linux"))]
pub fn end_with_us(_: &mut Command) {}
