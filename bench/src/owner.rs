//! Owns everything that a measurement starts and writes.
//!
//! The work is done by a child, and we outlive it: however it ends (by itself, by a failure, by Ctrl-C, by
//! `timeout`), all processes behind it are ended and all of its files are removed. Servers leave those who
//! started them, as tmux and editors do, but not us: orphans become our children, because we are what Linux
//! calls a subreaper.

use std::process::{Command, ExitCode};

use anyhow::{Context, Result};
use nix::errno::Errno;
use nix::sys::prctl::{set_child_subreaper, set_pdeathsig};
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use tempfile::TempDir;

/// Names the worker's directory in memory, and by that tells the worker what it is.
const MEMORY: &str = "BRIDGE_BENCH_MEMORY";

/// Does the work in a process that we own.
pub fn owned(work: impl FnOnce() -> Result<()>) -> Result<ExitCode> {
    if std::env::var_os(MEMORY).is_none() {
        return run_worker();
    }
    set_pdeathsig(Signal::SIGKILL)?;
    // What our owner waits for, it has blocked, and we have that from it. A tmux that cannot be terminated
    // does not end.
    awaited().thread_unblock()?;
    work().map(|()| ExitCode::SUCCESS)
}

/// A directory for what must not touch a disk, because disks have moods.
pub fn directory_in_memory() -> Result<TempDir> {
    Ok(match std::env::var_os(MEMORY) {
        Some(place) => tempfile::tempdir_in(place)?,
        None => tempfile::tempdir()?,
    })
}

/// Runs this program once more with the same arguments, and ends whatever that has started.
fn run_worker() -> Result<ExitCode> {
    let directory = short_directory("/tmp")?;
    // Where there is no memory to write to, a disk must do.
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

/// Its path is short, because it holds sockets.
fn short_directory(place: &str) -> std::io::Result<TempDir> {
    tempfile::Builder::new().prefix("rb").tempdir_in(place)
}

fn awaited() -> SigSet {
    [Signal::SIGCHLD, Signal::SIGHUP, Signal::SIGINT, Signal::SIGTERM].into_iter().collect()
}

/// Waits until the worker has ended or we are told to end, and returns the exit code for either.
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

/// Kills our children until there are none. Whoever loses its parent by that is our child next.
fn end_children() -> Result<()> {
    loop {
        for child in children()? {
            let _ = kill(child, Signal::SIGKILL);
        }
        if ended_child(None)?.is_none() {
            return Ok(());
        }
    }
}

/// A child that has ended, and its exit code.
fn ended_child(flag: Option<WaitPidFlag>) -> Result<Option<(Pid, u8)>> {
    match waitpid(None, flag) {
        Ok(WaitStatus::Exited(child, code)) => Ok(Some((child, u8::try_from(code)?))),
        Ok(WaitStatus::Signaled(child, signal, _)) => Ok(Some((child, by_signal(signal)))),
        Ok(_) | Err(Errno::ECHILD) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// As shells tell it.
fn by_signal(signal: Signal) -> u8 {
    128 + signal as u8
}

fn children() -> Result<Vec<Pid>> {
    let us = std::process::id().to_string();
    let entries = std::fs::read_dir("/proc")?.flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let ours = pids.filter(|pid| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // The name before it may hold anything.
        stat.rsplit(')').next().and_then(|rest| rest.split(' ').nth(2)) == Some(us.as_str())
    });
    Ok(ours.map(Pid::from_raw).collect())
}
