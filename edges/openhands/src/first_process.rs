//! The duties of the first process of a container that has no init of its own.
//!
//! A process that outlives its parent becomes a child of the first process, and stays a zombie until it is reaped: the tmux server,
//! and whatever a closed shell leaves. The server itself knows only the children that it has started.

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

/// Whether this process is the first.
pub(crate) fn is_this() -> bool {
    process::id() == 1
}

/// Runs this program again as a child, passes on the signals that come for it, and reaps whoever ends, until the child
/// does; returns its code.
pub(crate) fn run_as_child() -> io::Result<ExitCode> {
    let child = Command::new(env::current_exe()?).args(env::args_os().skip(1)).spawn()?;
    let child = Pid::from_raw(child.id().cast_signed());
    // Only now, or the child would have them blocked, too.
    let signals = SigSet::all();
    signals.thread_block()?;
    loop {
        if let Some(code) = reap(child)? {
            return Ok(ExitCode::from(code));
        }
        match signals.wait()? {
            Signal::SIGCHLD => {}
            signal => drop(kill(child, signal)),
        }
    }
}

/// Reaps all who have ended; the code of the child, if it is among them.
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
