//! A persistent IPython kernel: text, exceptions and pictures as values.
//!
//! # Usage
//!
//! ```no_run
//! # async fn example() -> sandbox_cells::Result<()> {
//! use sandbox_cells::{ExecuteOptions, Kernel, KernelSpec};
//!
//! let kernel = Kernel::start(KernelSpec::in_directory("/tmp")).await?;
//! kernel.execute("x = 6", ExecuteOptions::default()).await?;
//! let result = kernel.execute("x * 7", ExecuteOptions::default()).await?;
//! assert_eq!(result.text(), "42");
//! kernel.shut_down().await;
//! # Ok(())
//! # }
//! ```
//!
//! # Theory of operation
//!
//! The kernel is the standard one (`ipykernel`). The standard client library (`jupyter_client`)
//! talks to it, in a small Python program of ours, the helper. One task in this process owns the
//! helper and exchanges JSON lines with it. The caller chooses the Python: cells run in it and
//! import its modules.
//!
//! A cell that exceeds its timeout is interrupted as by Ctrl-C. If it ignores that, its result says
//! so and the kernel stays busy. A kernel that dies is replaced. A kernel ends with its owner: the
//! helper ends it when the pipe from the owner closes, which Linux does even if the owner is
//! killed, and the kernel's process dies with the helper's.
//!
//! Not covered: a program that a cell has started in a process session of its own, with an emptied
//! environment, outlives the kernel.

mod cell;
mod error;
mod helper;
mod outputs;
mod python;
mod task;

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

use tokio::sync::{mpsc, oneshot};

pub use cell::{CellEnd, CellOutput, CellResult, ExecuteOptions};
pub use error::{Error, Result};
pub use python::find_python;

use helper::Helper;
use sandbox_isolation::{Confinement, Level, Network};
use task::{Answer, Control, Task};

/// Capacity of the queue of requests to the task.
const QUEUE: usize = 64;

/// All environment variables of a process.
pub type Environment = Vec<(OsString, OsString)>;

/// How to start a kernel.
#[derive(Debug, Clone, Default)]
pub struct KernelSpec {
    /// The Python, which must have `ipykernel`. Without it, the first that [`find_python`] finds.
    pub python: Option<PathBuf>,
    /// The directory in which it starts, also after a restart.
    pub cwd: PathBuf,
    /// The environment of cells; the environment of this process by default.
    pub environment: Option<Environment>,
    /// The policy of the kernel, if it is restricted. It then communicates over TCP, since it may
    /// not use Unix sockets.
    pub confinement: Option<Confinement>,
    /// Python source that every new kernel runs as a module. Cells see the names in its `__all__`.
    pub prelude: Option<String>,
}

impl KernelSpec {
    /// A kernel in this directory, with the first suitable Python.
    pub fn in_directory(cwd: impl AsRef<Path>) -> Self {
        Self { cwd: cwd.as_ref().to_owned(), ..Self::default() }
    }

    /// Whether Landlock and seccomp restrict the kernel, not only resource limits.
    fn is_restricted(&self) -> bool {
        self.confinement.as_ref().is_some_and(|confinement| confinement.policy.level > Level::None)
    }
}

/// A handle of a running kernel. The kernel ends with the last clone of its handle.
#[derive(Debug, Clone)]
pub struct Kernel {
    controls: mpsc::Sender<Control>,
    python: PathBuf,
}

impl Kernel {
    /// Starts a kernel and waits until it answers.
    pub async fn start(spec: KernelSpec) -> Result<Self> {
        if let Some(Confinement { policy, .. }) = &spec.confinement {
            policy.check(policy.level).map_err(Error::Confinement)?;
            if policy.network != Network::Unrestricted {
                return Err(Error::NeedsTcp);
            }
        }
        let python = match &spec.python {
            Some(python) => {
                python::check(python, spec.confinement.as_ref()).await?;
                python.clone()
            }
            None => find_python(None, spec.confinement.as_ref()).await?,
        };
        let (controls, receiver) = mpsc::channel(QUEUE);
        tokio::spawn(Task::new(Helper::start(&python, &spec)?).run(receiver));
        let kernel = Self { controls, python };
        match kernel.ask(|answer| Control::Ready { answer }).await {
            Ok(()) => Ok(kernel),
            Err(Error::Ended { reason }) => {
                Err(Error::DidNotStart { python: kernel.python, reason })
            }
            Err(error) => Err(error),
        }
    }

    /// The Python of the kernel.
    pub fn python(&self) -> &Path {
        &self.python
    }

    /// Runs a cell and returns its result. Fails with [`Error::Busy`] if another cell is running.
    /// Cancelling this call leaves the cell running until it ends or its timeout passes.
    pub async fn execute(
        &self,
        code: impl Into<String>,
        options: ExecuteOptions,
    ) -> Result<CellResult> {
        let code = code.into();
        self.ask(|answer| Control::Execute { code, options, answer }).await
    }

    /// Interrupts the running cell once, as Ctrl-C does; without a running cell nothing happens.
    /// The cell may catch the interrupt and finish something first. A cell that was sent just now
    /// may not have begun; the interrupt is then lost.
    pub async fn interrupt(&self) -> Result<()> {
        self.ask(|answer| Control::Interrupt { answer }).await
    }

    /// Interrupts the running cell, and repeats it for some seconds while the cell has not ended,
    /// as a timeout does. Does not wait for the end of the cell.
    pub async fn end_cell(&self) -> Result<()> {
        self.ask(|answer| Control::EndCell { answer }).await
    }

    /// Replaces the kernel by a new one in the first directory, and waits until the new one
    /// answers. A running cell ends with [`CellEnd::Restarted`]. Requests that come meanwhile are
    /// done by the new kernel, in order. The new kernel has the given environment, or the former
    /// one.
    pub async fn restart(&self, environment: Option<Environment>) -> Result<()> {
        self.ask(|answer| Control::Restart { environment, answer }).await
    }

    /// Ends the kernel and everything that cells have started. A second call does nothing.
    pub async fn shut_down(&self) {
        // The only error is that the kernel has already ended.
        let _ = self.ask(|answer| Control::ShutDown { answer }).await;
    }

    async fn ask<T>(&self, control: impl FnOnce(Answer<T>) -> Control) -> Result<T> {
        let (answer, answered) = oneshot::channel();
        let ended = || Error::Ended { reason: "it was shut down".into() };
        self.controls.send(control(answer)).await.map_err(|_| ended())?;
        answered.await.unwrap_or_else(|_| Err(ended()))
    }
}
