//! Waiting for the end of a process.

use std::{io, os::fd::OwnedFd};

use tokio::io::unix::AsyncFd;
use tracing::warn;

use process_identity::ProcessId;

/// The end of a process, which can be awaited repeatedly.
pub(super) struct ProcessEnd {
    process: Option<ProcessId>,
    fd: io::Result<Option<AsyncFd<OwnedFd>>>,
}

impl ProcessEnd {
    fn of(process: ProcessId) -> Self {
        Self { process: Some(process), fd: process.open_pidfd() }
    }

    pub(super) fn of_some(process: Option<ProcessId>) -> Self {
        process.map_or(Self { process: None, fd: Ok(None) }, Self::of)
    }

    /// Watches this process from now on. Retries if its pidfd could not be opened before.
    pub(super) fn follow(&mut self, process: Option<ProcessId>) {
        if self.process != process || self.fd.is_err() {
            *self = Self::of_some(process);
            if let Err(error) = &self.fd {
                warn!(?process, %error, "cannot watch a process yet; retrying with the next event");
            }
        }
    }

    /// Returns when the process has ended; never if there is none.
    pub(super) async fn ended(&self) -> ProcessId {
        match (self.process, &self.fd) {
            (Some(process), Ok(None)) => process,
            (Some(process), Ok(Some(fd))) => {
                // An error means that the tokio runtime is shutting down.
                drop(fd.readable().await);
                process
            }
            (None, _) | (_, Err(_)) => std::future::pending().await,
        }
    }
}
