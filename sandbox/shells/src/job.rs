//! The handle of a command, with which callers wait for it.

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

/// How long a command must be quiet before the wait checks whether it is waiting for input.
const QUIET_BEFORE_CHECK: Duration = Duration::from_millis(200);

/// What the driver publishes about a command.
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

/// How long to wait for a command. Whatever ends the wait, the command continues. A time beyond the range of the
/// clock is no limit.
#[derive(Debug, Clone, Copy, Default)]
pub struct Wait {
    /// End the wait when nothing was printed for this long.
    pub quiet: Option<Duration>,
    /// End the wait after this time in any case.
    pub limit: Option<Duration>,
    /// What to do when the command seems to wait for input.
    pub on_input: OnInput,
}

/// What a wait does when the command seems to wait for input.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OnInput {
    /// Keep waiting.
    #[default]
    Wait,
    /// Return to the caller at once.
    Return,
}

/// The result of a wait.
#[derive(Debug, Clone)]
pub enum Progress {
    /// The command has ended.
    Finished(Arc<CommandResult>),
    /// The wait ended before the command.
    Running(StillRunning),
}

/// A command that is still running after a wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StillRunning {
    /// Why the wait ended.
    pub reason: WaitEnd,
    /// The range of the shell's log that holds the output so far.
    pub output: Range<u64>,
    /// Bytes of output that could not be recorded (quota, full disk): at least this many.
    pub lost: u64,
    /// Whether the command seems to wait for input.
    pub input: InputHint,
}

/// Why a wait ended before the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitEnd {
    /// No output for the given time.
    Quiet,
    /// The time limit has passed.
    Limit,
    /// The command seems to wait for input.
    Input,
}

impl Wait {
    /// Waits until the command ends.
    pub fn forever() -> Self {
        Self::default()
    }

    /// Waits at most this long.
    pub fn at_most(limit: Duration) -> Self {
        Self { limit: Some(limit), ..Self::default() }
    }

    /// Waits until nothing was printed for this long.
    pub fn until_quiet(quiet: Duration) -> Self {
        Self { quiet: Some(quiet), ..Self::default() }
    }

    /// Waits until the command seems to wait for input, at most this long.
    pub fn until_input(limit: Duration) -> Self {
        Self { limit: Some(limit), on_input: OnInput::Return, ..Self::default() }
    }

    /// How long a command must be quiet before the next check for input, if there is one. A program may pause between
    /// its question and its read, so a wait for input checks again, each time after twice as long: often enough, and
    /// almost free.
    fn pause_before_check(&self, checks: u32) -> Option<Duration> {
        (checks == 0 || self.on_input == OnInput::Return)
            .then(|| QUIET_BEFORE_CHECK.saturating_mul(1 << checks.min(20)))
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

    /// The range of the shell's log that holds the output recorded so far. Before the command has
    /// [started](Self::started) the start is not known, and the range is empty.
    pub fn output(&self) -> Result<Range<u64>> {
        let status = self.watch.status.borrow();
        if let Some(result) = &status.result {
            return Ok(result.output.clone());
        }
        let end = self.shell.log().len()?;
        Ok(status.started.map_or(end, |started| started.offset)..end)
    }

    /// Returns when the shell has begun to evaluate the command, or the command has ended.
    pub async fn started(&self) -> Result<()> {
        let mut status = self.watch.status.clone();
        let past_start = |status: &JobStatus| status.started.is_some() || status.result.is_some();
        match status.wait_for(past_start).await {
            Ok(_) => Ok(()),
            Err(_) => Err(Error::ShellClosed(self.shell.id().clone())),
        }
    }

    /// Follows the output of this command from its first byte to its last.
    pub fn follow(&self) -> Result<Output> {
        Ok(Output { job: self.clone(), subscription: None })
    }

    /// Follows the output of this command from any offset of the shell's log to its last byte.
    pub fn follow_from(&self, offset: u64) -> Result<Output> {
        let subscription = Some(self.shell.log().subscribe(offset)?);
        Ok(Output { job: self.clone(), subscription })
    }

    /// Waits for the end of the command within the given limits. Cancelling is harmless.
    pub async fn wait(&self, wait: Wait) -> Result<Progress> {
        let mut status = self.watch.status.clone();
        let deadline = wait.limit.and_then(|limit| Instant::now().checked_add(limit));
        let mut quiet = Quiet::start(self)?;
        // Created only after the first check, so that the output of a short command does not wake this task.
        let mut watch = None;
        // Checks since the latest output.
        let mut checks = 0;
        loop {
            if let Some(result) = &status.borrow_and_update().result {
                return Ok(Progress::Finished(Arc::clone(result)));
            }
            if checks > 0 && watch.is_none() {
                watch = Some(self.shell.log().watch()?);
            }
            let grown = watch.as_ref().map(FileWatch::grown);
            if quiet.has_new_output(self)? {
                checks = 0;
            }
            let quiet_end = wait.quiet.and_then(|limit| quiet.since.checked_add(limit));
            let check_at = wait.pause_before_check(checks).map(|pause| quiet.since + pause);
            let next = [deadline, quiet_end, check_at].into_iter().flatten().min();
            tokio::select! {
                changed = status.changed() => match changed {
                    Ok(()) => continue,
                    Err(_) => return Err(Error::ShellClosed(self.shell.id().clone())),
                },
                // New output matters only after a check, because it calls for another one. So even a flood of output
                // wakes this task only a few times per second.
                () = wait_for(grown), if checks > 0 => continue,
                () = sleep_until(next) => {}
            }
            if quiet.has_new_output(self)? {
                checks = 0;
            }
            let now = Instant::now();
            let reached = |instant: Option<Instant>| instant.is_some_and(|instant| instant <= now);
            if reached(wait.pause_before_check(checks).map(|pause| quiet.since + pause)) {
                checks += 1;
                self.report_if_idle().await;
                // Before the command has begun, the shell itself reads keys: those that run the command.
                let has_begun = status.borrow().started.is_some();
                if wait.on_input == OnInput::Return && has_begun && self.hint() != InputHint::None {
                    return self.still_running(WaitEnd::Input).await;
                }
            }
            if reached(wait.quiet.and_then(|limit| quiet.since.checked_add(limit))) {
                return self.still_running(WaitEnd::Quiet).await;
            }
            if reached(deadline) {
                return self.still_running(WaitEnd::Limit).await;
            }
        }
    }

    async fn report_if_idle(&self) {
        let process = self.shell.status().shell;
        if input::shell_edits_line(process) || input::shell_reads_plain_lines(process) {
            self.shell.notify(Control::LooksIdle).await;
        }
    }

    fn hint(&self) -> InputHint {
        input::input_hint(self.shell.status().shell)
    }

    async fn still_running(&self, reason: WaitEnd) -> Result<Progress> {
        self.report_if_idle().await;
        let (lost, input) = (self.watch.status.borrow().lost, self.hint());
        Ok(Progress::Running(StillRunning { reason, output: self.output()?, lost, input }))
    }
}

/// The output of one command, as it is recorded.
#[derive(Debug)]
pub struct Output {
    job: Job,
    /// Created when the start of the output is known.
    subscription: Option<Subscription>,
}

impl Output {
    /// Returns the number of bytes read; 0 when the command has ended and all output was read. Cancelling loses
    /// nothing.
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
            // The recorder writes the end marker to the index before any later byte to the log. So once the driver
            // has processed the index, it is known which bytes up to `recorded` belong to this command.
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

/// Tracks how long nothing was printed, counted from the start of the wait at the earliest.
struct Quiet {
    since: Instant,
    /// Length and modification time of the log. Only the time changes when output beyond the quota is dropped.
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

async fn wait_for(event: Option<impl Future<Output = ()>>) {
    match event {
        Some(event) => event.await,
        None => std::future::pending().await,
    }
}

/// Sleeps until this time; for ever if there is none.
pub(crate) async fn sleep_until(instant: Option<Instant>) {
    match instant {
        Some(instant) => time::sleep_until(instant).await,
        None => std::future::pending().await,
    }
}
