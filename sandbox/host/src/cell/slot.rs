//! The slot of one kernel. The kernel is started when it is first needed, and again when it has
//! ended. Cells run one at a time, in order.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex as StdMutex};
use std::time::{Duration, Instant};

use bridge_protocol::methods::cell::{CellEnding, NewKernel, Picture, RunResult};
use bridge_protocol::{ErrorKind, WireError};
use sandbox_cells::{
    CellEnd, CellOutput, CellResult, Environment, Error, ExecuteOptions, Kernel, KernelSpec,
};
use tokio::sync::mpsc::{self, UnboundedReceiver};
use tokio::sync::{Mutex, OwnedMutexGuard, SetOnce};
use tokio::task::JoinError;

use super::CellSettings;
use super::plain_text::without_sequences;
use crate::error::{self, with_reason};
use crate::lock;

#[cfg(test)]
mod tests;

/// How long a cancelled cell may take to react to the interrupt before its caller gets an answer.
const INTERRUPT_LIMIT: Duration = Duration::from_secs(2);

/// Types of pictures that kernels send in Base64 and that most programs can show.
const BITMAPS: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// A cell to run.
#[derive(Debug)]
pub(super) struct Cell {
    pub code: String,
    /// Whether to run it in a new kernel.
    pub restart: bool,
    /// The working directory.
    pub cwd: PathBuf,
    /// The time limit, which includes the start of the kernel.
    pub limit: Duration,
}

/// How a caller follows a running cell.
#[derive(Clone, Copy, Debug)]
pub(super) struct Watch<'a> {
    /// Receives output as it comes.
    pub output: Option<&'a mpsc::Sender<String>>,
    /// Set when the caller cancels the cell.
    pub cancelled: &'a SetOnce<()>,
}

/// Why a cell did not run, or why its result is not awaited.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    #[error("this sandbox does not run cells")]
    NoCells,
    #[error(
        "the kernel was restarted while this cell waited for it, so the cell was not run: run it again if it \
         suits a new kernel"
    )]
    Restarted,
    #[error("the kernel was not ready within {:?} s, so the cell was not run: allow more time", .0.as_secs_f64())]
    TimedOut(Duration),
    #[error("the cell was cancelled")]
    Cancelled,
    #[error("the task of the cell failed: {0}")]
    Lost(#[from] JoinError),
    #[error(transparent)]
    Kernel(#[from] Error),
}

impl From<Failure> for WireError {
    fn from(failure: Failure) -> Self {
        let message = failure.to_string();
        match failure {
            Failure::NoCells => with_reason(ErrorKind::NotAllowed, message, "unavailable"),
            Failure::Restarted => with_reason(ErrorKind::Conflict, message, "restarted"),
            Failure::TimedOut(_) => with_reason(ErrorKind::Timeout, message, "timedOut"),
            Failure::Cancelled => with_reason(ErrorKind::RequestCancelled, message, "cancelled"),
            Failure::Lost(_) => with_reason(ErrorKind::InternalError, message, "system"),
            Failure::Kernel(error) => error::cell(error),
        }
    }
}

/// Runs the cells of one kernel; see the [module](self). Clones share everything.
#[derive(Clone, Debug)]
pub(super) struct KernelSlot {
    settings: Option<CellSettings>,
    /// Locked by the running cell; other cells wait here, in order.
    kernel: Arc<Mutex<Slot>>,
    /// The kernel of `kernel`, for callers that end it without waiting for a cell.
    started: Arc<StdMutex<Option<Kernel>>>,
    /// How many restarts were requested. Cells that waited for a former kernel are not run.
    restarts: Arc<AtomicU64>,
}

#[derive(Debug, Default)]
struct Slot {
    kernel: Option<Kernel>,
    /// The shell's exported variables when the kernel was started, if they were known.
    exports: Option<Environment>,
    /// Whether a cell has run in it.
    is_used: bool,
}

impl KernelSlot {
    pub fn new(settings: Option<CellSettings>) -> Self {
        Self { settings, kernel: Arc::default(), started: Arc::default(), restarts: Arc::default() }
    }

    /// Starts the kernel in advance.
    pub async fn warm_up(&self, cwd: &Path, exports: impl Future<Output = Option<Environment>>) {
        let mut slot = self.kernel.lock().await;
        if slot.kernel.is_none()
            && let Err(error) = self.ready(&mut slot, cwd, exports.await).await
        {
            // The first cell tries again, and its caller gets the error.
            tracing::info!(%error, "the kernel did not start in advance");
        }
    }

    /// Runs a cell. The kernel's environment is what the shell had exported before the first cell,
    /// if the shell was at its prompt then. If the future is dropped, a running cell goes on, and
    /// the next cell waits for it. A cell that asks for a new kernel is the first one in it: cells
    /// that waited for the former kernel are refused.
    pub async fn run<E: Future<Output = Option<Environment>>>(
        &self,
        cell: Cell,
        exports: impl Fn() -> E,
        watch: Watch<'_>,
    ) -> Result<RunResult, Failure> {
        let Cell { code, restart, cwd, limit } = cell;
        let began = Instant::now();
        let restarts = self.restarts.load(Ordering::SeqCst);
        let this = self.clone();
        // In a task of its own, so that a kernel that is starting gets into the slot even if this
        // future is dropped.
        let begin = tokio::spawn(async move {
            match restart {
                true => this.restart().await,
                false => Ok((Arc::clone(&this.kernel).lock_owned().await, restarts)),
            }
        });
        let preparing = Preparing { began, limit, watch };
        let begun = preparing.wait_for(begin).await?;
        let (mut slot, restarts) = begun??;
        let mut new_kernel = restart.then_some(NewKernel::Restarted);
        let (kernel, result) = loop {
            self.check_not_restarted(restarts)?;
            let exports = match slot.is_used {
                true => None,
                false => preparing.wait_for(exports()).await?,
            };
            let (this, directory) = (self.clone(), cwd.clone());
            let ready = tokio::spawn(async move {
                let kernel = this.ready(&mut slot, &directory, exports).await?;
                Ok::<_, Failure>((slot, kernel))
            });
            let (ready_slot, kernel) = preparing.wait_for(ready).await???;
            self.check_not_restarted(restarts)?;
            let options = ExecuteOptions {
                cwd: Some(cwd.clone()),
                timeout: Some(limit.saturating_sub(began.elapsed())),
                subscriber: None,
            };
            match attempt(&kernel, ready_slot, code.clone(), options, watch).await? {
                // Cells come one by one, so the kernel is busy with an earlier cell that ignores interrupts.
                (Err(Error::Busy { .. }), returned)
                    if self.restarts_stuck() && new_kernel.is_none() =>
                {
                    slot = returned;
                    preparing.wait_for(kernel.restart(None)).await??;
                    slot.is_used = false;
                    new_kernel = Some(NewKernel::WasStuck);
                }
                (Err(error), _) => return Err(error.into()),
                (Ok(result), _) => break (kernel, result),
            }
        };
        let pictures = result.images().filter(|(media_type, _)| BITMAPS.contains(media_type));
        Ok(RunResult {
            text: without_sequences(&result.text()),
            omitted_bytes: result.omitted_bytes(),
            pictures: pictures.map(picture).collect(),
            ended: match result.ended {
                CellEnd::Finished => CellEnding::Finished,
                CellEnd::Raised => CellEnding::Raised,
                CellEnd::TimedOut | CellEnd::Stuck => CellEnding::TimedOut,
                CellEnd::KernelDied | CellEnd::Restarted => CellEnding::KernelDied,
            },
            new_kernel,
            cwd: cwd.to_string_lossy().into_owned(),
            python: kernel.python().to_string_lossy().into_owned(),
        })
    }

    /// Replaces the kernel, if there is one. A running cell ends and releases the lock.
    async fn restart(&self) -> Result<(OwnedMutexGuard<Slot>, u64), Failure> {
        let replace = async {
            let restarts = self.restarts.fetch_add(1, Ordering::SeqCst) + 1;
            let kernel = lock(&self.started).clone();
            let restarted = match &kernel {
                Some(kernel) => kernel.restart(None).await,
                None => Ok(()),
            };
            (restarts, restarted)
        };
        // Queue for the lock before the restart: cells that come after it also run after it.
        let turn = Arc::clone(&self.kernel).lock_owned();
        let (mut slot, (restarts, restarted)) = tokio::join!(biased; turn, replace);
        match restarted {
            Ok(()) => slot.is_used = false,
            // The kernel is gone; another is started.
            Err(Error::Ended { .. }) => *slot = Slot::default(),
            Err(error) => return Err(error.into()),
        }
        Ok((slot, restarts))
    }

    /// Fails if there were more restarts than `restarts`.
    fn check_not_restarted(&self, restarts: u64) -> Result<(), Failure> {
        if self.restarts.load(Ordering::SeqCst) == restarts {
            return Ok(());
        }
        Err(Failure::Restarted)
    }

    fn restarts_stuck(&self) -> bool {
        self.settings.as_ref().is_some_and(|settings| settings.restart_stuck)
    }

    /// Whether a kernel is running or starting.
    pub fn is_started(&self) -> bool {
        self.kernel.try_lock().map_or(true, |slot| slot.kernel.is_some())
    }

    /// Replaces the kernel at once, even during a cell. Waiting cells are refused. Does nothing
    /// without a kernel.
    pub async fn replace(&self) -> Result<(), Failure> {
        self.restart().await.map(drop)
    }

    /// Ends the kernel, and with it a running cell. Returns whether there was a kernel.
    pub async fn end(&self) -> bool {
        // While we hold the lock, no cell can find the ending kernel. A running cell holds the lock
        // itself and releases it.
        let slot = self.kernel.try_lock();
        let kernel = lock(&self.started).take();
        let was_there = kernel.is_some();
        if let Some(kernel) = kernel {
            kernel.shut_down().await;
        }
        if let Ok(mut slot) = slot {
            *slot = Slot::default();
        }
        was_there
    }

    /// The kernel. It is started if there is none, and restarted if the shell's exports have
    /// changed.
    async fn ready(
        &self,
        slot: &mut Slot,
        cwd: &Path,
        exports: Option<Environment>,
    ) -> Result<Kernel, Failure> {
        if let Some(kernel) = slot.kernel.clone() {
            if exports.is_none() || exports == slot.exports {
                return Ok(kernel);
            }
            match kernel.restart(exports.clone()).await {
                Ok(()) => {
                    slot.exports = exports;
                    return Ok(kernel);
                }
                // The kernel is gone; another is started.
                Err(Error::Ended { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let Some(CellSettings { python, confinement, prelude, .. }) = self.settings.clone() else {
            return Err(Failure::NoCells);
        };
        let environment = exports.clone();
        let spec = KernelSpec { python, cwd: cwd.to_owned(), environment, confinement, prelude };
        let kernel = Kernel::start(spec).await?;
        *lock(&self.started) = Some(kernel.clone());
        *slot = Slot { kernel: Some(kernel.clone()), exports, is_used: false };
        Ok(kernel)
    }
}

/// The steps before a cell: they count towards the cell's time limit and can be cancelled like the
/// cell.
struct Preparing<'a> {
    began: Instant,
    limit: Duration,
    watch: Watch<'a>,
}

impl Preparing<'_> {
    async fn wait_for<T>(&self, step: impl Future<Output = T>) -> Result<T, Failure> {
        tokio::select! {
            done = step => Ok(done),
            () = tokio::time::sleep(self.limit.saturating_sub(self.began.elapsed())) => {
                Err(Failure::TimedOut(self.limit))
            }
            () = self.watch.cancelled.wait() => Err(Failure::Cancelled),
        }
    }
}

/// Runs a cell; the outer error is a cancel. The slot stays locked until the cell has ended, even
/// if this future is dropped.
async fn attempt(
    kernel: &Kernel,
    mut slot: OwnedMutexGuard<Slot>,
    code: String,
    options: ExecuteOptions,
    watch: Watch<'_>,
) -> Result<(Result<CellResult, Error>, OwnedMutexGuard<Slot>), Failure> {
    let (subscriber, outputs) = mpsc::unbounded_channel();
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
        ended = &mut running => ended.map_err(Failure::Lost),
        () = watch.cancelled.wait() => {
            kernel.end_cell().await?;
            // Wait a little, so that the next cell finds the kernel free or is refused at once.
            if tokio::time::timeout(INTERRUPT_LIMIT, running).await.is_err() {
                stop.abort();
            }
            Err(Failure::Cancelled)
        }
    }
}

fn picture((media_type, content): (&str, &str)) -> Picture {
    Picture { media_type: media_type.to_owned(), base64: content.replace('\n', "") }
}

async fn pass_on(mut outputs: UnboundedReceiver<CellOutput>, sink: Option<&mpsc::Sender<String>>) {
    while let (Some(piece), Some(sink)) = (outputs.recv().await, sink) {
        // A receiver that is gone does not matter: the result contains everything.
        let _ = sink.send(piece.text()).await;
    }
}
