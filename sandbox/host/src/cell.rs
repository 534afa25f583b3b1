//! Serves `cell/*`: Python code in kernels, one for each shell.
//!
//! A kernel starts with the first cell, in the directory of the shell and with the variables that
//! the shell has exported. The shell need not exist: then the kernel starts in the workspace with
//! the environment of this process. It ends when the shell is closed.

mod plain_text;
mod slot;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bridge_protocol::methods::Empty;
use bridge_protocol::methods::cell::{CellProgress, RunParams, RunResult};
use bridge_protocol::methods::shell::{ShellName, ShellRef};
use bridge_protocol::{ErrorKind, WireError};
use sandbox_cells::Environment;
use sandbox_isolation::Confinement;
use sandbox_shells::{Error, ShellId};
use tokio::sync::{SetOnce, mpsc};
use tokio::task::AbortHandle;

use crate::error::{invalid, with_reason};
use crate::shell::parse;
use crate::{Caller, MAX_SHELLS, ShellService, lock};
use slot::{Cell, KernelSlot, Watch};

/// The default time limit of a cell.
const DEFAULT_LIMIT: Duration = Duration::from_secs(120);
/// Capacity of the queue of output pieces.
const PIECES: usize = 16;

/// How cells are run.
#[derive(Clone, Debug, Default)]
pub struct CellSettings {
    /// The Python that runs them. By default the first on the `PATH` that has a kernel.
    pub python: Option<PathBuf>,
    /// The policy of kernels, if they are restricted.
    pub confinement: Option<Confinement>,
    /// Python source whose `__all__` every cell sees; see [`sandbox_cells::KernelSpec::prelude`].
    pub prelude: Option<String>,
    /// Whether a cell gets a new kernel if an earlier cell does not end. Otherwise it is refused,
    /// and the caller decides.
    pub restart_stuck: bool,
}

/// The kernels of a sandbox.
#[derive(Debug)]
pub(crate) struct CellService {
    settings: Option<CellSettings>,
    shells: Arc<ShellService>,
    kernels: Mutex<HashMap<ShellId, Arc<KernelSlot>>>,
}

impl CellService {
    pub fn new(settings: Option<CellSettings>, shells: Arc<ShellService>) -> Self {
        Self { settings, shells, kernels: Mutex::default() }
    }

    /// `cell/run`. When the future is dropped, the cell goes on. If its caller has cancelled it, it
    /// is interrupted.
    pub async fn run(&self, params: RunParams, caller: &Caller) -> Result<RunResult, WireError> {
        let limit = match params.limit_ms {
            None => DEFAULT_LIMIT,
            Some(ms) => Duration::try_from_secs_f64(ms / 1000.0)
                .map_err(|_| invalid("limitMs must be a number of milliseconds, 0 or more"))?,
        };
        let id = parse(&params.shell)?;
        let cwd = self.shells.current_directory(&id)?;
        let slot = self.slot(&id)?;
        let cell = Cell { code: params.code, restart: params.restart, cwd, limit };
        let (sink, mut pieces) = mpsc::channel(PIECES);
        let output = params.stream.then_some(sink);
        let (shells, cancelled) = (Arc::clone(&self.shells), Arc::new(SetOnce::new()));
        let task = tokio::spawn({
            let cancelled = Arc::clone(&cancelled);
            async move {
                let watch = Watch { output: output.as_ref(), cancelled: &cancelled };
                slot.run(cell, || exports(&shells, &id), watch).await
            }
        });
        let _abandoned = AbandonedCell { task: task.abort_handle(), cancelled, caller };
        while let Some(text) = pieces.recv().await {
            caller.progress(&CellProgress { text }).await?;
        }
        let ran = task.await.map_err(|error| {
            ErrorKind::InternalError.error(format!("the task of this cell failed: {error}"))
        })?;
        Ok(ran?)
    }

    /// `cell/restart`.
    pub async fn restart(&self, params: ShellRef) -> Result<Empty, WireError> {
        let slot = lock(&self.kernels).get(&parse(&params.shell)?).cloned();
        if let Some(slot) = slot {
            slot.replace().await?;
        }
        Ok(Empty {})
    }

    /// Starts the kernel of a shell before its first cell. A failure is reported to the first cell.
    pub async fn warm_up(&self, shell: &ShellName) -> Result<(), WireError> {
        let id = parse(shell)?;
        if self.settings.is_some() {
            let cwd = self.shells.current_directory(&id)?;
            self.slot(&id)?.warm_up(&cwd, exports(&self.shells, &id)).await;
        }
        Ok(())
    }

    /// Ends the kernel of a shell. Returns whether there was one.
    pub async fn end(&self, shell: &ShellName) -> bool {
        let Ok(id) = parse(shell) else { return false };
        let slot = lock(&self.kernels).remove(&id);
        match slot {
            Some(slot) => slot.end().await,
            None => false,
        }
    }

    /// Ends all kernels.
    pub async fn shut_down(&self) {
        let kernels = std::mem::take(&mut *lock(&self.kernels));
        for slot in kernels.into_values() {
            slot.end().await;
        }
    }

    /// The slot of a shell's kernel.
    fn slot(&self, id: &ShellId) -> Result<Arc<KernelSlot>, WireError> {
        let mut kernels = lock(&self.kernels);
        if let Some(slot) = kernels.get(id) {
            return Ok(Arc::clone(slot));
        }
        if kernels.len() >= MAX_SHELLS {
            kernels.retain(|_, slot| Arc::strong_count(slot) > 1 || slot.is_started());
        }
        if kernels.len() >= MAX_SHELLS {
            let reason =
                format!("there are {MAX_SHELLS} kernels already: close the shells of some");
            return Err(with_reason(ErrorKind::NoSpace, reason, "tooManyShells"));
        }
        let slot = Arc::new(KernelSlot::new(self.settings.clone()));
        kernels.insert(id.clone(), Arc::clone(&slot));
        Ok(slot)
    }
}

/// The variables that the shell has exported; `None` if it is busy, does not exist, or fails to
/// report them.
async fn exports(shells: &ShellService, id: &ShellId) -> Option<Environment> {
    // While the service ends, no shell exists for a cell.
    let shell = shells.get(id).ok().flatten()?;
    match shell.exports().await {
        Ok(exports) => Some(exports),
        Err(Error::Busy { .. } | Error::OccupiedByHand(_) | Error::ShellClosed(_)) => None,
        Err(error) => {
            tracing::warn!(shell = %id, %error, "the kernel does not get the shell's variables");
            None
        }
    }
}

/// Decides on drop what happens to a cell whose caller no longer waits. Does nothing if the cell
/// has ended.
struct AbandonedCell<'a> {
    task: AbortHandle,
    cancelled: Arc<SetOnce<()>>,
    caller: &'a Caller,
}

impl Drop for AbandonedCell<'_> {
    fn drop(&mut self) {
        match self.caller.has_cancelled() {
            // Setting it a second time is harmless.
            true => drop(self.cancelled.set(())),
            false => self.task.abort(),
        }
    }
}
