//! A persistent IPython kernel: text, exceptions and pictures as data.
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
//! The kernel is the real one (`ipykernel`), and it is spoken to by the library that everybody uses
//! (`jupyter_client`), in a small Python program of ours, the helper. One task here owns the helper
//! and talks with it in JSON lines. The Python is the caller's choice: it is the one in which cells
//! run and from which they import.
//!
//! A cell that outlives its time is interrupted as by Ctrl-C; if it does not heed that either, its
//! result says so and the kernel stays busy. A kernel that dies is replaced. A kernel ends with its
//! owner: the helper ends it when the pipe from us closes, which the kernel of the operating system
//! does even if we are killed, and the kernel's process dies with the helper's.
//!
//! Not governed: a program that a cell has started in a session of its own, with an emptied
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

/// Requests that may wait for the task.
const QUEUE: usize = 64;

/// All variables of a process.
pub type Environment = Vec<(OsString, OsString)>;

/// What a new kernel should be like.
#[derive(Debug, Clone, Default)]
pub struct KernelSpec {
    /// Its Python, which must have `ipykernel`; otherwise the first that [`find_python`] finds.
    pub python: Option<PathBuf>,
    /// The directory it starts in, also after a restart.
    pub cwd: PathBuf,
    /// The environment in which cells run, if it is not ours.
    pub environment: Option<Environment>,
    /// What it may do, if that is less than we may. It is then spoken to over TCP, since it may not use
    /// Unix sockets.
    pub confinement: Option<Confinement>,
    /// Python source that every new kernel runs as a module. The names in its `__all__` are there for cells from the
    /// beginning.
    pub prelude: Option<String>,
}

impl KernelSpec {
    /// A kernel in this directory, of any Python that has one.
    pub fn in_directory(cwd: impl AsRef<Path>) -> Self {
        Self { cwd: cwd.as_ref().to_owned(), ..Self::default() }
    }

    /// Whether it may do less than we may, not only consume less.
    fn is_within_walls(&self) -> bool {
        self.confinement.as_ref().is_some_and(|confinement| confinement.policy.level > Level::None)
    }
}

/// A running kernel. Clones speak to the same one, and it ends with the last of them.
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

    /// The Python that it runs.
    pub fn python(&self) -> &Path {
        &self.python
    }

    /// Runs a cell and returns what it said. Fails if one is running. Cancelling this leaves the
    /// cell running, within its time.
    pub async fn execute(
        &self,
        code: impl Into<String>,
        options: ExecuteOptions,
    ) -> Result<CellResult> {
        let code = code.into();
        self.ask(|answer| Control::Execute { code, options, answer }).await
    }

    /// Interrupts the running cell once, as Ctrl-C does; nothing happens if there is none. A cell can take it
    /// for a reason to finish something first. One that was sent just now may not have begun, and then it
    /// does not notice.
    pub async fn interrupt(&self) -> Result<()> {
        self.ask(|answer| Control::Interrupt { answer }).await
    }

    /// Interrupts the running cell and, as long as it has not ended, again and again for some seconds, as
    /// when its time is over. This does not wait for its end.
    pub async fn end_cell(&self) -> Result<()> {
        self.ask(|answer| Control::EndCell { answer }).await
    }

    /// Replaces the kernel by a new one in the first directory, and waits until that answers. A
    /// running cell ends with [`CellEnd::Restarted`]; what is asked for meanwhile is done by the new kernel, in
    /// the order in which it was asked for. It has this environment, or the former one.
    pub async fn restart(&self, environment: Option<Environment>) -> Result<()> {
        self.ask(|answer| Control::Restart { environment, answer }).await
    }

    /// Ends the kernel and everything that cells have started. Doing it twice is harmless.
    pub async fn shut_down(&self) {
        let _ = self.ask(|answer| Control::ShutDown { answer }).await;
    }

    async fn ask<T>(&self, control: impl FnOnce(Answer<T>) -> Control) -> Result<T> {
        let (answer, answered) = oneshot::channel();
        let ended = || Error::Ended { reason: "it was shut down".into() };
        self.controls.send(control(answer)).await.map_err(|_| ended())?;
        answered.await.unwrap_or_else(|_| Err(ended()))
    }
}
