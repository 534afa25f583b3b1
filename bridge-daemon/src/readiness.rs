//! Waits for descriptors that tokio has no type for.

use std::io;
use std::os::fd::OwnedFd;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Watches an owned descriptor, so that a task can wait until it is readable.
#[allow(unsafe_code)]
pub fn watch(descriptor: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` refers to the same open file until it is dropped.
    unsafe { AsyncFd::register_with_interest(descriptor, Interest::READABLE) }.map_err(Into::into)
}
