//! Hands a descriptor to tokio, to wait until it becomes readable.

use std::{io, os::fd::OwnedFd};

use tokio::io::{Interest, unix::AsyncFd};

/// Registers a descriptor of ours with the runtime.
#[allow(
    unsafe_code,
    reason = "tokio asks for a promise that only ownership of the descriptor gives"
)]
pub fn readable(fd: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` keeps its descriptor open for its whole life and never changes it, and
    // the `AsyncFd` takes it over.
    Ok(unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) }?)
}
