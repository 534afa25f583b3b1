//! Registers file descriptors with tokio, to wait until they become readable.

use std::{io, os::fd::OwnedFd};

use tokio::io::{Interest, unix::AsyncFd};

/// Registers a file descriptor with the tokio runtime, to wait until it becomes readable.
#[allow(
    unsafe_code,
    reason = "tokio asks for a promise that only ownership of the descriptor gives"
)]
pub fn register_readable(fd: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` keeps its descriptor open for its whole life and never changes it, and the `AsyncFd` takes
    // ownership of it.
    Ok(unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) }?)
}
