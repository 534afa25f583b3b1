//! The kernel of an executor: started when it is first needed, and anew when it has ended.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::{
    sync::{Mutex, OwnedMutexGuard, mpsc::UnboundedReceiver},
    task::JoinError,
};

use super::{
    ActionError, Cell, CellObservation, CellOutcome, OutputPiece, OutputSink, Picture, Renewal,
    Watch, harmless::Harmless, screen,
};
use sandbox_cells::{
    CellEnd, CellOutput, CellResult, Environment, Error, ExecuteOptions, Kernel, KernelSpec,
};
use sandbox_isolation::Confinement;

#[cfg(test)]
mod tests;

/// How long a cell may take if nobody says otherwise.
const USUAL_LIMIT: Duration = Duration::from_secs(120);

/// How long a cell may take to heed an interrupt before its caller is told that it was called off.
const HEED: Duration = Duration::from_secs(2);

/// Pictures that kernels send in Base64, and that everybody can show.
const BITMAPS: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// How cells are run.
#[derive(Debug, Clone, Default)]
pub struct KernelSettings {
    /// By this Python, or by the first one that has a kernel.
    pub python: Option<PathBuf>,
    /// What they may do, if that is less than we may.
    pub confinement: Option<Confinement>,
    /// The `openhands-edge` program, if they shall find `file_editor`.
    pub editor: Option<PathBuf>,
    /// Whether a cell gets a new kernel where an earlier one does not come to its end. Otherwise it is
    /// refused, and whoever asks decides.
    pub restart_stuck: bool,
}

#[derive(Debug, Clone)]
pub(super) struct Ipython {
    settings: Option<KernelSettings>,
    /// Cells wait here for one another, in their order.
    kernel: Arc<Mutex<Slot>>,
    /// The same kernel, for those who want to end it without waiting for a cell.
    started: Arc<std::sync::Mutex<Option<Kernel>>>,
    /// How often somebody has asked for a new kernel. Cells that waited for the former one are not run.
    restarts: Arc<AtomicU64>,
}

#[derive(Debug, Default)]
struct Slot {
    kernel: Option<Kernel>,
    /// What the shell had exported when it was started, if that was known.
    exports: Option<Environment>,
    /// Whether there was a cell in it.
    is_used: bool,
}

impl Ipython {
    pub(super) fn new(settings: Option<KernelSettings>) -> Self {
        Self { settings, kernel: Arc::default(), started: Arc::default(), restarts: Arc::default() }
    }

    /// Starts the kernel before anybody needs it.
    pub(super) async fn warm_up(
        &self,
        cwd: &Path,
        exports: impl Future<Output = Option<Environment>>,
    ) {
        let mut slot = self.kernel.lock().await;
        if slot.kernel.is_none() {
            // Whoever needs it will hear why it does not start.
            let _ = self.ready(&mut slot, cwd, exports.await).await;
        }
    }

    /// The environment of a kernel is what was exported in the shell before its first cell, if the shell was at
    /// its prompt then. If the future is dropped, a cell that runs goes on, and the next one waits for it. A
    /// cell that asks for a new kernel is the first one there: those that waited for the former kernel are
    /// refused.
    pub(super) async fn run<E: Future<Output = Option<Environment>>>(
        &self,
        cell: Cell,
        cwd: PathBuf,
        exports: impl Fn() -> E,
        timeout: Option<Duration>,
        watch: Watch<'_>,
    ) -> Result<CellObservation, ActionError> {
        let limit = timeout.unwrap_or(USUAL_LIMIT);
        let began = Instant::now();
        let restarts = self.restarts.load(Ordering::SeqCst);
        let this = self.clone();
        // In a task of its own, so that a kernel that is on its way arrives, whoever still waits for it.
        let begin = tokio::spawn(async move {
            match cell.restart {
                true => this.restart().await,
                false => Ok((Arc::clone(&this.kernel).lock_owned().await, restarts)),
            }
        });
        let preparing = Preparing { began, limit, watch };
        let begun = preparing.wait_for(begin).await?;
        let (mut slot, restarts) = begun.map_err(unexpected)??;
        let mut renewal = cell.restart.then_some(Renewal::AsAsked);
        let (kernel, result) = loop {
            self.check_not_restarted(restarts)?;
            let exports = match slot.is_used {
                true => None,
                false => preparing.wait_for(exports()).await?,
            };
            let (this, directory) = (self.clone(), cwd.clone());
            let ready = tokio::spawn(async move {
                let kernel = this.ready(&mut slot, &directory, exports).await?;
                Ok::<_, ActionError>((slot, kernel))
            });
            let (ready_slot, kernel) = preparing.wait_for(ready).await?.map_err(unexpected)??;
            self.check_not_restarted(restarts)?;
            let options = ExecuteOptions {
                cwd: Some(cwd.clone()),
                timeout: Some(limit.saturating_sub(began.elapsed())),
                subscriber: None,
            };
            match attempt(&kernel, ready_slot, cell.code.clone(), options, watch).await? {
                // Cells come one by one, so it is an earlier one, which did not heed its end.
                (Err(Error::Busy { .. }), returned)
                    if self.restarts_stuck() && renewal.is_none() =>
                {
                    slot = returned;
                    preparing.wait_for(kernel.restart(None)).await??;
                    slot.is_used = false;
                    renewal = Some(Renewal::WasStuck);
                }
                (Err(error), _) => return Err(error.into()),
                (Ok(result), _) => break (kernel, result),
            }
        };
        let pictures = result.images().filter(|(media_type, _)| BITMAPS.contains(media_type));
        Ok(CellObservation {
            text: screen::without_sequences(&result.text()),
            left_out: result.left_out(),
            pictures: pictures.map(picture).collect(),
            outcome: match result.ended {
                CellEnd::Finished => CellOutcome::Finished,
                CellEnd::Raised => CellOutcome::Raised,
                CellEnd::TimedOut | CellEnd::Stuck => CellOutcome::TimedOut(limit),
                CellEnd::KernelDied | CellEnd::Restarted => CellOutcome::KernelDied,
            },
            renewal,
            cwd,
            python: kernel.python().to_owned(),
        })
    }

    /// Replaces the kernel, if there is one, also under a cell that is running, which lets go of it then.
    async fn restart(&self) -> Result<(OwnedMutexGuard<Slot>, u64), ActionError> {
        let replace = async {
            let restarts = self.restarts.fetch_add(1, Ordering::SeqCst) + 1;
            let kernel = self.started().clone();
            let restarted = match &kernel {
                Some(kernel) => kernel.restart(None).await,
                None => Ok(()),
            };
            (restarts, restarted)
        };
        // The place in the row first: who comes after the restart also runs after it.
        let turn = Arc::clone(&self.kernel).lock_owned();
        let (mut slot, (restarts, restarted)) = tokio::join!(biased; turn, replace);
        match restarted {
            Ok(()) => slot.is_used = false,
            // There is none any more, and there will be another.
            Err(Error::Ended { .. }) => *slot = Slot::default(),
            Err(error) => return Err(error.into()),
        }
        Ok((slot, restarts))
    }

    /// Fails if somebody has asked for a new kernel since there were so many restarts.
    fn check_not_restarted(&self, restarts: u64) -> Result<(), ActionError> {
        if self.restarts.load(Ordering::SeqCst) == restarts {
            return Ok(());
        }
        Err(ActionError::Gone(
            "the kernel was restarted while this cell waited for it, so the cell was not run; run it again if it \
             fits a new kernel"
                .into(),
        ))
    }

    fn restarts_stuck(&self) -> bool {
        self.settings.as_ref().is_some_and(|settings| settings.restart_stuck)
    }

    /// Whether there is a kernel, or one on its way.
    pub(super) fn is_started(&self) -> bool {
        self.kernel.try_lock().map_or(true, |slot| slot.kernel.is_some())
    }

    fn started(&self) -> MutexGuard<'_, Option<Kernel>> {
        self.started.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the kernel, and with it a cell that is running.
    pub(super) async fn shut_down(&self) {
        // Nobody shall find a kernel that is on its way out; a running cell lets go of it by itself.
        let slot = self.kernel.try_lock();
        let kernel = self.started().take();
        if let Some(kernel) = kernel {
            kernel.shut_down().await;
        }
        if let Ok(mut slot) = slot {
            *slot = Slot::default();
        }
    }

    /// The kernel, which is started if there is none, and again if the shell has exported something else since.
    async fn ready(
        &self,
        slot: &mut Slot,
        cwd: &Path,
        exports: Option<Environment>,
    ) -> Result<Kernel, ActionError> {
        if let Some(kernel) = slot.kernel.clone() {
            if exports.is_none() || exports == slot.exports {
                return Ok(kernel);
            }
            match kernel.restart(exports.clone()).await {
                Ok(()) => {
                    slot.exports = exports;
                    return Ok(kernel);
                }
                // There is none any more, and there will be another.
                Err(Error::Ended { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let Some(KernelSettings { python, confinement, editor, .. }) = self.settings.clone() else {
            return Err(ActionError::Unavailable("this server runs no cells".into()));
        };
        let environment = exports.clone();
        let spec = KernelSpec { python, cwd: cwd.to_owned(), environment, confinement, editor };
        let kernel = Kernel::start(spec).await?;
        *self.started() = Some(kernel.clone());
        *slot = Slot { kernel: Some(kernel.clone()), exports, is_used: false };
        Ok(kernel)
    }
}

/// What comes before a cell: it counts towards the cell's time, and can be called off like the cell.
struct Preparing<'a> {
    began: Instant,
    limit: Duration,
    watch: Watch<'a>,
}

impl Preparing<'_> {
    async fn wait_for<T>(&self, step: impl Future<Output = T>) -> Result<T, ActionError> {
        tokio::select! {
            done = step => Ok(done),
            () = tokio::time::sleep(self.limit.saturating_sub(self.began.elapsed())) => {
                Err(ActionError::TimedOut(self.limit))
            }
            () = self.watch.call_off.called_off() => Err(ActionError::Cancelled),
        }
    }
}

/// Runs a cell; the outer error is that of being called off. The slot is held until the cell has ended, whoever
/// still waits for it.
async fn attempt(
    kernel: &Kernel,
    mut slot: OwnedMutexGuard<Slot>,
    code: String,
    options: ExecuteOptions,
    watch: Watch<'_>,
) -> Result<(Result<CellResult, Error>, OwnedMutexGuard<Slot>), ActionError> {
    let (subscriber, outputs) = tokio::sync::mpsc::unbounded_channel();
    let subscriber = watch.output.is_some().then_some(subscriber);
    slot.is_used = true;
    let executing = tokio::spawn({
        let kernel = kernel.clone();
        async move {
            let result = kernel.execute(code, ExecuteOptions { subscriber, ..options }).await;
            match &result {
                Ok(CellResult { ended: CellEnd::KernelDied | CellEnd::Restarted, .. }) => {
                    slot.is_used = false;
                }
                Err(Error::Ended { .. }) => *slot = Slot::default(),
                _ => {}
            }
            (result, slot)
        }
    });
    let stop = executing.abort_handle();
    let running = async {
        let pass_on = pass_on(outputs, watch.output);
        tokio::join!(executing, pass_on).0
    };
    tokio::pin!(running);
    tokio::select! {
        ended = &mut running => ended.map_err(unexpected),
        () = watch.call_off.called_off() => {
            kernel.end_cell().await?;
            // So that the next cell finds the kernel free, or is told at once that it is not.
            if tokio::time::timeout(HEED, running).await.is_err() {
                stop.abort();
            }
            Err(ActionError::Cancelled)
        }
    }
}

fn picture((media_type, content): (&str, &str)) -> Picture {
    Picture { media_type: media_type.to_owned(), base64: content.replace('\n', "") }
}

fn unexpected(error: JoinError) -> ActionError {
    ActionError::Internal(format!("the cell was lost: {error}"))
}

async fn pass_on(mut outputs: UnboundedReceiver<CellOutput>, sink: Option<&OutputSink>) {
    let mut harmless = Harmless::default();
    while let (Some(piece), Some(sink)) = (outputs.recv().await, sink) {
        let text = harmless.pass(&piece.text());
        let _ = sink.send(OutputPiece { text, place: None }).await;
    }
}

impl From<Error> for ActionError {
    fn from(error: Error) -> Self {
        let text = error.to_string();
        match error {
            Error::Missing { .. }
            | Error::Unusable { .. }
            | Error::DidNotStart { .. }
            | Error::Confinement(_)
            | Error::NeedsTcp => Self::Unavailable(text),
            Error::Busy { .. } => {
                Self::Refused(format!("{text}: `run_ipython` with `restart` = `true` does that"))
            }
            Error::Directory { .. } => Self::Invalid(text),
            Error::Ended { .. } => Self::Gone(text),
            _ => Self::Internal(text),
        }
    }
}
