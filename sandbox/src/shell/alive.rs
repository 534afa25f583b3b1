//! The end of a process as something to wait for.

use std::{io, os::fd::OwnedFd};

use tokio::io::unix::AsyncFd;

use super::process::ProcessId;

/// The end of a process as something to wait for, again and again.
pub(super) struct Alive {
    pub(super) process: Option<ProcessId>,
    fd: io::Result<Option<AsyncFd<OwnedFd>>>,
}

impl Alive {
    pub(super) fn of(process: ProcessId) -> Self {
        Self { process: Some(process), fd: process.open() }
    }

    pub(super) fn of_some(process: Option<ProcessId>) -> Self {
        process.map_or(Self { process: None, fd: Ok(None) }, Self::of)
    }

    pub(super) async fn ended(&self) {
        match (&self.process, &self.fd) {
            (Some(_), Ok(None)) => {}
            (Some(_), Ok(Some(fd))) => drop(fd.readable().await),
            (None, _) | (_, Err(_)) => std::future::pending().await,
        }
    }
}
