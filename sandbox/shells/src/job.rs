//! A command that was given to a shell: wait for it, as long as you like.

use std::{
    ops::Range,
    sync::Arc,
    time::{Duration, SystemTime},
};

use tokio::{
    sync::watch,
    time::{self, Instant},
};

use super::{
    input::{self, InputHint},
    marker::Seq,
    messages::Control,
    output::log::Subscription,
    output::watch::FileWatch,
    shell::Shell,
    state::{CommandResult, JobStatus},
};
use crate::{Error, Result};

/// A command must be quiet for so long before we look whether it waits for input.
const QUIET_BEFORE_LOOK: Duration = Duration::from_millis(200);

/// The task's side of a job, as it hands it out.
#[derive(Debug, Clone)]
pub(crate) struct JobWatch {
    pub(crate) seq: Seq,
    pub(crate) status: watch::Receiver<JobStatus>,
}

/// A running or finished command. Dropping the handle changes nothing.
#[derive(Debug, Clone)]
pub struct Job {
    shell: Shell,
    watch: JobWatch,
}

/// How long to wait for a command. Whatever ends the wait, the command goes on. A time that ends beyond
/// what clocks can tell is no limit.
#[derive(Debug, Clone, Copy, Default)]
pub struct Wait {
    /// End the wait when nothing new was printed for so long.
    pub quiet: Option<Duration>,
    /// End the wait after so long in any case.
    pub limit: Option<Duration>,
    /// What to do when the command seems to wait for input.
    pub on_input: OnInput,
}

/// What a wait does when the command seems to wait for input.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OnInput {
    /// Goes on waiting.
    #[default]
    Wait,
    /// Returns to the caller at once.
    Return,
}

/// What a wait came to.
#[derive(Debug, Clone)]
pub enum Progress {
    /// The command has ended.
    Finished(Arc<CommandResult>),
    /// It has not.
    Running(StillRunning),
}

/// A command that has outlived a wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StillRunning {
    /// Why the wait ended.
    pub why: Why,
    /// Where in the shell's log its output lies so far.
    pub output: Range<u64>,
    /// Bytes of output that could not be kept (quota, disk full): so many at least.
    pub lost: u64,
    /// Whether it seems to wait for input.
    pub input: InputHint,
}

/// Why a wait ended before the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// No new output for the time given.
    Quiet,
    /// The time is over.
    Limit,
    /// It seems to wait for input.
    Input,
}

impl Wait {
    /// Until the command ends.
    pub fn forever() -> Self {
        Self::default()
    }

    /// At most so long.
    pub fn at_most(limit: Duration) -> Self {
        Self { limit: Some(limit), ..Self::default() }
    }

    /// Until nothing new was printed for so long.
    pub fn until_quiet(quiet: Duration) -> Self {
        Self { quiet: Some(quiet), ..Self::default() }
    }

    /// Until it asks for input, at most so long.
    pub fn until_input(limit: Duration) -> Self {
        Self { limit: Some(limit), on_input: OnInput::Return, ..Self::default() }
    }

    /// How long a command must be quiet before the next look at it, if there is to be one. A program
    /// may take its time between asking and reading, so whoever wants to know looks again, each time
    /// after twice as long: that is often enough, and next to nothing.
    fn pause_before_look(&self, looks: u32) -> Option<Duration> {
        (looks == 0 || self.on_input == OnInput::Return)
            .then(|| QUIET_BEFORE_LOOK.saturating_mul(1 << looks.min(20)))
    }
}

impl Job {
    pub(crate) fn new(shell: Shell, watch: JobWatch) -> Self {
        Self { shell, watch }
    }

    /// The number of the command in its shell.
    pub fn seq(&self) -> Seq {
        self.watch.seq
    }

    /// The shell that runs it.
    pub fn shell(&self) -> &Shell {
        &self.shell
    }

    /// The result, if the command has ended.
    pub fn result(&self) -> Option<Arc<CommandResult>> {
        self.watch.status.borrow().result.clone()
    }

    /// Where in the shell's log the output lies, as far as it has been recorded. Before the
    /// command has [started](Self::started) this is not known, and the range is empty.
    pub fn output(&self) -> Result<Range<u64>> {
        let status = self.watch.status.borrow();
        if let Some(result) = &status.result {
            return Ok(result.output.clone());
        }
        let end = self.shell.log().len()?;
        Ok(status.started.map_or(end, |started| started.offset)..end)
    }

    /// Returns when the shell has begun to evaluate the command, or it has ended.
    pub async fn started(&self) -> Result<()> {
        let mut status = self.watch.status.clone();
        let past_start = |status: &JobStatus| status.started.is_some() || status.result.is_some();
        match status.wait_for(past_start).await {
            Ok(_) => Ok(()),
            Err(_) => Err(Error::ShellClosed(self.shell.id().clone())),
        }
    }

    /// Follows the output of this command from its first byte, and no further than its last.
    pub fn follow(&self) -> Result<Output> {
        Ok(Output { job: self.clone(), subscription: None })
    }

    /// The same from any offset of the shell's log on.
    pub fn follow_from(&self, offset: u64) -> Result<Output> {
        let subscription = Some(self.shell.log().subscribe(offset)?);
        Ok(Output { job: self.clone(), subscription })
    }

    /// Waits for the end of the command, within the limits given. Cancelling it is harmless.
    pub async fn wait(&self, wait: Wait) -> Result<Progress> {
        let mut status = self.watch.status.clone();
        let deadline = wait.limit.and_then(|limit| Instant::now().checked_add(limit));
        let mut quiet = Quiet::start(self)?;
        // Made only after a look, so that a command that ends soon does not wake us by its output.
        let mut watch = None;
        // Since the latest output.
        let mut looks = 0;
        loop {
            if let Some(result) = &status.borrow_and_update().result {
                return Ok(Progress::Finished(Arc::clone(result)));
            }
            if looks > 0 && watch.is_none() {
                watch = Some(self.shell.log().watch()?);
            }
            let grown = watch.as_ref().map(FileWatch::grown);
            if quiet.has_new_output(self)? {
                looks = 0;
            }
            let quiet_end = wait.quiet.and_then(|limit| quiet.since.checked_add(limit));
            let look_at = wait.pause_before_look(looks).map(|pause| quiet.since + pause);
            let next = [deadline, quiet_end, look_at].into_iter().flatten().min();
            tokio::select! {
                changed = status.changed() => match changed {
                    Ok(()) => continue,
                    Err(_) => return Err(Error::ShellClosed(self.shell.id().clone())),
                },
                // Output matters only after a look, as the reason for another: a flood of it wakes
                // us a few times in a second and no more.
                () = when(grown), if looks > 0 => continue,
                () = sleep_until(next) => {}
            }
            if quiet.has_new_output(self)? {
                looks = 0;
            }
            let now = Instant::now();
            let reached = |instant: Option<Instant>| instant.is_some_and(|instant| instant <= now);
            if reached(wait.pause_before_look(looks).map(|pause| quiet.since + pause)) {
                looks += 1;
                self.tell_if_idle().await;
                // Before it has begun, it is the shell that reads keys: those of the call.
                let has_begun = status.borrow().started.is_some();
                if wait.on_input == OnInput::Return && has_begun && self.hint() != InputHint::None {
                    return self.still_running(Why::Input).await;
                }
            }
            if reached(wait.quiet.and_then(|limit| quiet.since.checked_add(limit))) {
                return self.still_running(Why::Quiet).await;
            }
            if reached(deadline) {
                return self.still_running(Why::Limit).await;
            }
        }
    }

    async fn tell_if_idle(&self) {
        let process = self.shell.status().shell;
        if input::shell_edits_line(process) || input::shell_reads_plain_lines(process) {
            self.shell.tell(Control::LooksIdle).await;
        }
    }

    fn hint(&self) -> InputHint {
        input::look(self.shell.status().shell)
    }

    async fn still_running(&self, why: Why) -> Result<Progress> {
        self.tell_if_idle().await;
        let (lost, input) = (self.watch.status.borrow().lost, self.hint());
        Ok(Progress::Running(StillRunning { why, output: self.output()?, lost, input }))
    }
}

/// The output of one command, as it comes.
#[derive(Debug)]
pub struct Output {
    job: Job,
    /// Made when it is known where the output begins.
    subscription: Option<Subscription>,
}

impl Output {
    /// The next bytes; 0 when the command has ended and all was read. Cancelling loses nothing.
    pub async fn next(&mut self, buffer: &mut [u8]) -> Result<usize> {
        let subscription = match &mut self.subscription {
            Some(subscription) => subscription,
            none => {
                self.job.started().await?;
                let start = self.job.output()?.start;
                none.insert(self.job.shell.log().subscribe(start)?)
            }
        };
        let mut status = self.job.watch.status.clone();
        loop {
            let recorded = self.job.shell.log().len()?;
            // The end marker is in the index before any later byte is in the log: whatever the task
            // knows after this is enough to judge the bytes up to `recorded`.
            self.job.shell.catch_up().await;
            let result = status.borrow_and_update().result.clone();
            let end = result.as_ref().map_or(recorded, |result| result.output.end);
            let left = end.saturating_sub(subscription.offset());
            let wanted = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            if wanted > 0 {
                return subscription.next(&mut buffer[..wanted]).await;
            }
            if result.is_some() {
                return Ok(0);
            }
            tokio::select! {
                grown = subscription.grown() => grown?,
                _ = status.changed() => {}
            }
        }
    }
}

/// Since when nothing was printed, at least since the wait began.
struct Quiet {
    since: Instant,
    /// Length and time of the log. The time alone changes when output is dropped, beyond the quota.
    log: (u64, SystemTime),
}

impl Quiet {
    fn start(job: &Job) -> Result<Self> {
        Ok(Self { since: Instant::now(), log: job.shell.log().growth()? })
    }

    fn has_new_output(&mut self, job: &Job) -> Result<bool> {
        let log = job.shell.log().growth()?;
        if log == self.log {
            return Ok(false);
        }
        self.log = log;
        let age = SystemTime::now().duration_since(log.1).unwrap_or_default();
        let written = Instant::now().checked_sub(age).unwrap_or(self.since);
        self.since = written.max(self.since);
        Ok(true)
    }
}

async fn when(event: Option<impl Future<Output = ()>>) {
    match event {
        Some(event) => event.await,
        None => std::future::pending().await,
    }
}

async fn sleep_until(instant: Option<Instant>) {
    match instant {
        Some(instant) => time::sleep_until(instant).await,
        None => std::future::pending().await,
    }
}
