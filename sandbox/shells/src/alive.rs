//! The end of a process as something to wait for.

use std::{io, os::fd::OwnedFd};

use tokio::io::unix::AsyncFd;

use sandbox_process::ProcessId;

/// The end of a process as something to wait for, again and again.
pub(super) struct Alive {
    process: Option<ProcessId>,
    fd: io::Result<Option<AsyncFd<OwnedFd>>>,
}

impl Alive {
    pub(super) fn of(process: ProcessId) -> Self {
        Self { process: Some(process), fd: process.open() }
    }

    pub(super) fn of_some(process: Option<ProcessId>) -> Self {
        process.map_or(Self { process: None, fd: Ok(None) }, Self::of)
    }

    /// Whether it tells of this process. It does not if there was no descriptor to be had when it was made.
    pub(super) fn is_of(&self, process: Option<ProcessId>) -> bool {
        self.process == process && self.fd.is_ok()
    }

    pub(super) async fn ended(&self) {
        match (&self.process, &self.fd) {
            (Some(_), Ok(None)) => {}
            (Some(_), Ok(Some(fd))) => drop(fd.readable().await),
            (None, _) | (_, Err(_)) => std::future::pending().await,
        }
    }
}
