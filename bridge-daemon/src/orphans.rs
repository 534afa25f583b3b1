//! Programs that we start end with us, even when we are killed.

use std::io;

use nix::sys::signal::Signal;
use tokio::process::Command;

/// Makes the kernel send the program SIGTERM when we are gone. Only Linux can; elsewhere a killed
/// daemon leaves its programs behind.
#[allow(unsafe_code)]
pub fn end_with_us(command: &mut Command) {
    let parent = nix::unistd::getpid();
    // SAFETY: only async-signal-safe system calls are made, and nothing is allocated.
    #[cfg(target_os = "linux")]
    unsafe {
        command.pre_exec(move || {
            nix::sys::prctl::set_pdeathsig(Signal::SIGTERM)?;
            // We may have died before the call above.
            match nix::unistd::getppid() == parent {
                true => Ok(()),
                false => Err(io::Error::from_raw_os_error(nix::libc::ESRCH)),
            }
        });
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (command, parent, Signal::SIGTERM, io::ErrorKind::Other);
}
