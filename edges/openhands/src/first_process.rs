//! The duties of process 1 in a container that has no init program.
//!
//! A process that outlives its parent becomes a child of process 1, and stays a zombie until
//! process 1 reaps it. The tmux server and programs of a closed shell are such processes. The
//! server itself reaps only the children that it has started.

use std::{
    env, io,
    process::{self, Command, ExitCode},
};

use nix::{
    errno::Errno,
    sys::{
        signal::{SigSet, Signal, kill},
        wait::{WaitPidFlag, WaitStatus, waitpid},
    },
    unistd::Pid,
};

/// Whether this process is process 1.
pub(crate) fn is_first_process() -> bool {
    process::id() == 1
}

/// Runs this program again as a child, forwards signals to it, and reaps all ended processes.
/// Returns the child's exit code when it has ended.
pub(crate) fn run_as_child() -> io::Result<ExitCode> {
    let child = Command::new(env::current_exe()?).args(env::args_os().skip(1)).spawn()?;
    let child = Pid::from_raw(child.id().cast_signed());
    // After the start, because the child would inherit the blocked signals.
    let signals = SigSet::all();
    signals.thread_block()?;
    loop {
        if let Some(code) = reap(child)? {
            return Ok(ExitCode::from(code));
        }
        match signals.wait()? {
            Signal::SIGCHLD => {}
            // Fails only if the child has just ended; the next `reap` sees that.
            signal => drop(kill(child, signal)),
        }
    }
}

/// Reaps all ended processes. Returns the exit code of the child if it is among them.
fn reap(child: Pid) -> io::Result<Option<u8>> {
    loop {
        let code = match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::Exited(pid, code)) if pid == child => code,
            Ok(WaitStatus::Signaled(pid, signal, _)) if pid == child => 128 + signal as i32,
            Ok(WaitStatus::StillAlive) => return Ok(None),
            Ok(_) | Err(Errno::EINTR) => continue,
            Err(error) => return Err(error.into()),
        };
        return Ok(Some(u8::try_from(code).unwrap_or(u8::MAX)));
    }
}
