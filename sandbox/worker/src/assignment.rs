//! The helper's side: carries out one job under limits, and ends with its caller.

use std::{io, process, thread};

use clap::Args;
use rustix::process::{Resource, Rlimit, Signal, getpgrp, getpid, kill_process_group, setrlimit};

use crate::{Job, frame};

/// The arguments of the subcommand `work`.
#[derive(Debug, Args)]
pub struct Assignment {
    /// The kind of job
    job: String,
    /// Limit for the processor time in seconds
    seconds: u64,
}

impl Assignment {
    /// Carries out the job if it is of this kind: reads the request from standard input and prints
    /// the answer. Returns `None` if it is of another kind.
    pub fn carry_out<J: Job>(&self) -> Option<io::Result<()>> {
        (self.job == J::NAME).then(|| carry_out::<J>(self.seconds))
    }

    /// The error for a job that no kind fits.
    pub fn unknown(&self) -> io::Error {
        io::Error::other(format!("there is no job {:?}", self.job))
    }
}

fn carry_out<J: Job>(seconds: u64) -> io::Result<()> {
    limit(Resource::Core, 0)?;
    limit(Resource::Cpu, seconds)?;
    if let Some(bytes) = J::MEMORY {
        limit(Resource::As, bytes)?;
    }
    let request = frame::read(io::stdin().lock())?;
    thread::Builder::new().stack_size(64 << 10).spawn(end_with_caller)?;
    frame::write(io::stdout().lock(), &J::carry_out(request))
}

/// Waits until the caller closes standard input, then ends this process and all that it has
/// started. The job may be in an endless loop, so this is a thread of its own.
fn end_with_caller() {
    // An error of the pipe means the same as its end: the caller is gone.
    let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
    if getpgrp() == getpid() {
        // Fails only if there is no such process group, but this process is its leader.
        let _ = kill_process_group(getpid(), Signal::KILL);
    }
    process::abort();
}

fn limit(resource: Resource, most: u64) -> io::Result<()> {
    let now = rustix::process::getrlimit(resource);
    let most = now.maximum.map_or(most, |maximum| maximum.min(most));
    setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })?;
    Ok(())
}
