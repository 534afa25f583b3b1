//! What can go wrong with a kernel, and what the caller can do about it.

use std::{io, path::PathBuf};

use sandbox_isolation as isolation;

/// The result of every fallible call on kernels.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A failure of the kernel or of its surroundings. An exception in a cell is none: it is a result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No Python has what a kernel needs. Install it, or name a Python that has it.
    #[error(
        "no Python with an IPython kernel (tried {tried}); install it with `{install} -m pip install ipykernel`, \
         or name a Python that has it (--kernel-python)"
    )]
    Missing {
        /// The programs that were looked at.
        tried: String,
        /// The one to install it for.
        install: String,
    },
    /// The Python that was named cannot run a kernel, and no other takes its place.
    #[error("{} cannot run cells, because {reason}, or name another Python (--kernel-python)", python.display())]
    Unusable {
        /// The Python.
        python: PathBuf,
        /// What is wrong with it, and what to do.
        reason: String,
    },
    /// A kernel should be there but has not come up.
    #[error(
        "the IPython kernel of {python} did not start ({reason}); renew it with `{python} -m pip install \
         --upgrade --force-reinstall ipykernel`, or name another Python (--kernel-python)",
        python = python.display()
    )]
    DidNotStart {
        /// Its Python.
        python: PathBuf,
        /// Its last words.
        reason: String,
    },
    /// A cell is running. Wait for it, interrupt it or restart the kernel.
    #[error(
        "cell {cell} is still running; wait for it, interrupt it, or restart the kernel if it does not heed that"
    )]
    Busy {
        /// The running cell.
        cell: u64,
    },
    /// The kernel cannot go to the directory, so the cell was not run. Create it or name another.
    #[error("the kernel cannot change to {}, so the cell was not run: {reason}", directory.display())]
    Directory {
        /// The directory.
        directory: PathBuf,
        /// Python's words.
        reason: String,
    },
    /// The kernel has ended and could not be started again. Start another one.
    #[error("the kernel has ended ({reason}); start another")]
    Ended {
        /// Its last words.
        reason: String,
    },
    /// The policy cannot be put in force here, so nothing was started.
    #[error("the kernel cannot be confined as demanded: {0}")]
    Confinement(#[source] isolation::Error),
    /// Without Unix sockets a kernel is spoken to over TCP on loopback, and the policy restricts TCP.
    #[error(
        "cells need TCP within this machine, which the network that was chosen (--network) does not allow: run \
         Python as a command instead, or choose all of the network"
    )]
    NeedsTcp,
    /// The operating system refused something; the text says what was attempted.
    #[error("{what}: {source}")]
    Io {
        /// What was attempted.
        what: &'static str,
        /// The system's answer.
        #[source]
        source: io::Error,
    },
}

impl Error {
    /// For `map_err`: names what was attempted when the system refused.
    pub(super) fn io(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { what, source }
    }
}
