//! Errors of kernels, and what the caller can do about them.

use std::{io, path::PathBuf};

use sandbox_isolation as isolation;

/// The result of every fallible call on kernels.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A failure of the kernel or of its surroundings. An exception in a cell is not an error but a
/// result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No Python has the modules that a kernel needs. Install them, or choose a Python that has
    /// them.
    #[error(
        "no Python with an IPython kernel (tried {tried}); install it with `{install} -m pip install ipykernel`, \
         or name a Python that has it (--kernel-python)"
    )]
    Missing {
        /// The Pythons that were tried.
        tried: String,
        /// The Python to install the modules for.
        install: String,
    },
    /// The Python that the caller chose cannot run a kernel. No other Python is used instead.
    #[error("{} cannot run cells, because {reason}, or name another Python (--kernel-python)", python.display())]
    Unusable {
        /// The Python.
        python: PathBuf,
        /// The problem and its remedy.
        reason: String,
    },
    /// The modules are installed, but the kernel did not start.
    #[error(
        "the IPython kernel of {python} did not start ({reason}); reinstall it with `{python} -m pip install \
         --upgrade --force-reinstall ipykernel`, or name another Python (--kernel-python)",
        python = python.display()
    )]
    DidNotStart {
        /// The Python of the kernel.
        python: PathBuf,
        /// The end of its standard error.
        reason: String,
    },
    /// A cell is running. Wait for it, interrupt it or restart the kernel.
    #[error(
        "cell {cell} is still running; wait for it, interrupt it, or restart the kernel if it ignores interrupts"
    )]
    Busy {
        /// The running cell.
        cell: u64,
    },
    /// The kernel cannot change to the directory, so the cell was not run. Create it or choose
    /// another.
    #[error("the kernel cannot change to {}, so the cell was not run: {reason}", directory.display())]
    Directory {
        /// The directory.
        directory: PathBuf,
        /// Python's error.
        reason: String,
    },
    /// The kernel has ended and could not be started again. Start another one.
    #[error("the kernel has ended ({reason}); start another")]
    Ended {
        /// The end of its standard error.
        reason: String,
    },
    /// The policy cannot be enforced here, so nothing was started.
    #[error("the kernel cannot be confined as requested: {0}")]
    Confinement(#[source] isolation::Error),
    /// A confined kernel may not use Unix sockets, so it needs TCP on loopback, but the policy
    /// restricts TCP.
    #[error(
        "cells need TCP on loopback, which the chosen --network does not allow: run Python as a command \
         instead, or choose --network all"
    )]
    NeedsTcp,
    /// The operating system refused something; the text says what was attempted.
    #[error("{what}: {source}")]
    Io {
        /// The attempt that failed, in words.
        what: &'static str,
        /// The error of the system.
        #[source]
        source: io::Error,
    },
}

impl Error {
    /// For `map_err`: says what was attempted when the system refused.
    pub(super) fn io(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { what, source }
    }
}
