//! The end of a process as something to wait for.

use std::{io, os::fd::OwnedFd};

use tokio::io::unix::AsyncFd;
use tracing::warn;

use process_identity::ProcessId;

/// The end of a process as something to wait for, again and again.
pub(super) struct Alive {
    process: Option<ProcessId>,
    fd: io::Result<Option<AsyncFd<OwnedFd>>>,
}

impl Alive {
    fn of(process: ProcessId) -> Self {
        Self { process: Some(process), fd: process.open_pidfd() }
    }

    pub(super) fn of_some(process: Option<ProcessId>) -> Self {
        process.map_or(Self { process: None, fd: Ok(None) }, Self::of)
    }

    /// Watches this process from now on. A descriptor that was not to be had is asked for again.
    pub(super) fn follow(&mut self, process: Option<ProcessId>) {
        if self.process != process || self.fd.is_err() {
            *self = Self::of_some(process);
            if let Err(error) = &self.fd {
                warn!(?process, %error, "the end of a process cannot be awaited yet");
            }
        }
    }

    /// Returns when the process has ended; never if there is none.
    pub(super) async fn ended(&self) -> ProcessId {
        match (self.process, &self.fd) {
            (Some(process), Ok(None)) => process,
            (Some(process), Ok(Some(fd))) => {
                // An error means that the runtime ends.
                drop(fd.readable().await);
                process
            }
            (None, _) | (_, Err(_)) => std::future::pending().await,
        }
    }
}
