//! Owns all processes and files of a measurement, and cleans them up.
//!
//! A child process, the worker, does the measuring. This process, its owner, outlives it: however the worker
//! ends (normally, by an error, by Ctrl-C, by `timeout`), the owner kills all of its descendants and removes
//! all of its files. Servers such as tmux and editors detach from the process that started them. They still
//! cannot escape: the owner is a subreaper, so Linux makes orphans its children.

use std::process::{Command, ExitCode};

use anyhow::{Context, Result};
use nix::errno::Errno;
use nix::sys::prctl::{set_child_subreaper, set_pdeathsig};
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use process_identity::ProcessId;
use tempfile::TempDir;

/// Variable for the worker's directory in memory. A process that has it set is the worker.
const MEMORY: &str = "BRIDGE_BENCH_MEMORY";

/// Does the work in a worker process, and cleans up after it.
pub fn owned(work: impl FnOnce() -> Result<()>) -> Result<ExitCode> {
    if std::env::var_os(MEMORY).is_none() {
        return run_worker();
    }
    set_pdeathsig(Signal::SIGKILL)?;
    // The owner blocks the signals that it waits for, and the worker inherits that. Undo it: a tmux server
    // with SIGTERM blocked would not end.
    awaited().thread_unblock()?;
    work().map(|()| ExitCode::SUCCESS)
}

/// A temporary directory in memory, for measurements that the varying speed of a disk would disturb.
pub fn directory_in_memory() -> Result<TempDir> {
    Ok(match std::env::var_os(MEMORY) {
        Some(place) => tempfile::tempdir_in(place)?,
        None => tempfile::tempdir()?,
    })
}

/// Runs this program again as the worker, with the same arguments, and then ends all of its descendants.
fn run_worker() -> Result<ExitCode> {
    let directory = short_directory("/tmp")?;
    // Without /dev/shm, use the disk.
    let memory = short_directory("/dev/shm").or_else(|_| short_directory("/tmp"))?;
    let signals = awaited();
    signals.thread_block()?;
    set_child_subreaper(true)?;
    let worker = Command::new(std::env::current_exe()?)
        .args(std::env::args_os().skip(1))
        .env("TMPDIR", directory.path())
        .env(MEMORY, memory.path())
        .spawn()
        .context("cannot start ourselves")?;
    let code = wait(&signals, Pid::from_raw(worker.id().cast_signed()));
    end_children()?;
    code
}

/// A temporary directory with a short path: it contains sockets, whose paths have a length limit.
fn short_directory(place: &str) -> std::io::Result<TempDir> {
    tempfile::Builder::new().prefix("rb").tempdir_in(place)
}

fn awaited() -> SigSet {
    [Signal::SIGCHLD, Signal::SIGHUP, Signal::SIGINT, Signal::SIGTERM].into_iter().collect()
}

/// Waits until the worker has ended or this process gets a signal to end. Returns the exit code for either
/// case.
fn wait(signals: &SigSet, worker: Pid) -> Result<ExitCode> {
    loop {
        match signals.wait()? {
            Signal::SIGCHLD => {
                while let Some((child, code)) = ended_child(Some(WaitPidFlag::WNOHANG))? {
                    if child == worker {
                        return Ok(ExitCode::from(code));
                    }
                }
            }
            signal => return Ok(ExitCode::from(by_signal(signal))),
        }
    }
}

/// Kills children until there are none. Processes that lose their parent by that become children of this
/// process, and are killed next.
fn end_children() -> Result<()> {
    loop {
        for child in children()? {
            // The child may have ended by itself in the meantime.
            let _ = kill(child, Signal::SIGKILL);
        }
        if ended_child(None)?.is_none() {
            return Ok(());
        }
    }
}

/// Reaps a child that has ended, and returns its pid and exit code.
fn ended_child(flag: Option<WaitPidFlag>) -> Result<Option<(Pid, u8)>> {
    match waitpid(None, flag) {
        Ok(WaitStatus::Exited(child, code)) => Ok(Some((child, u8::try_from(code)?))),
        Ok(WaitStatus::Signaled(child, signal, _)) => Ok(Some((child, by_signal(signal)))),
        Ok(_) | Err(Errno::ECHILD) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The exit code that shells report for a death by signal.
fn by_signal(signal: Signal) -> u8 {
    128 + signal as u8
}

/// All children, also those that have ended and wait to be reaped.
fn children() -> Result<Vec<Pid>> {
    let us = ProcessId::of(std::process::id()).context("/proc does not show this process")?;
    let ours = process_identity::all().filter(|(_, stat)| stat.is_child_of(us));
    Ok(ours.map(|(process, _)| Pid::from_raw(process.pid.cast_signed())).collect())
}
