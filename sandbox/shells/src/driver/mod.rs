//! The driver of a shell's owner: reads clocks, files and process states, passes events to the owner, and carries out
//! its effects.
//!
//! It never blocks its loop. Requests to tmux, the ledger and long texts run in tasks of their own and come back as
//! events. Short files in the private directory (nonces, digests, a text of a few kilobytes) and `/proc` are read and
//! written in place: switching threads would cost a command more than the work itself.

mod callers;
mod cleanup;
mod inspect;
mod perform;
mod process_end;
mod text;
mod typist;

use std::{
    collections::VecDeque,
    fs::File,
    time::{Instant, SystemTime},
};

use tokio::{
    sync::{mpsc, watch},
    task::JoinSet,
};
use tracing::{debug, warn};

use crate::{
    Error, Result,
    driver::process_end::ProcessEnd,
    job::{JobWatch, sleep_until},
    launch::{Launched, NoncePipe, PaneSetup},
    marker::Seq,
    messages::Control,
    output::index::IndexReader,
    output::watch::FileWatch,
    owner::{Effect, Event, Moment, Owner},
    state::{JobStatus, Status},
};
use callers::Callers;
use perform::LedgerQueue;
use process_identity::ProcessId;
use text::TextQueue;
use typist::Typist;

/// Carries out the decisions of one shell's owner.
pub(crate) struct Driver {
    owner: Owner,
    setup: PaneSetup,
    pipe: NoncePipe,
    shell: ProcessId,
    index: IndexReader,
    index_watch: FileWatch,
    log: File,
    status: watch::Sender<Status>,
    latest: watch::Sender<Option<JobWatch>>,
    /// The latest command and its published status.
    job: Option<(Seq, watch::Sender<JobStatus>)>,
    callers: Callers,
    typist: Typist,
    ledger: LedgerQueue,
    texts: TextQueue,
    /// Background tasks; they end with the driver.
    tasks: JoinSet<()>,
    background: mpsc::UnboundedSender<BackgroundResult>,
    background_results: mpsc::UnboundedReceiver<BackgroundResult>,
    is_finished: bool,
    /// Set to true when all processes and files of the shell are gone.
    gone: watch::Sender<bool>,
}

/// What a driver needs besides the owner.
pub(crate) struct Parts {
    pub(crate) setup: PaneSetup,
    pub(crate) pipe: NoncePipe,
    pub(crate) index: IndexReader,
    pub(crate) index_watch: FileWatch,
    pub(crate) log: File,
    pub(crate) status: watch::Sender<Status>,
    pub(crate) latest: watch::Sender<Option<JobWatch>>,
    pub(crate) gone: watch::Sender<bool>,
}

/// The result of a background task.
pub(super) enum BackgroundResult {
    Event(Event),
    /// A shell was launched, with a pipe of its own.
    Launched {
        seq: Seq,
        result: Result<Launched>,
    },
    LedgerWritten(Event),
    TextWritten(Event),
}

enum Wake {
    IndexGrown,
    LeaderEnded(ProcessId),
    Background(BackgroundResult),
    Control(Option<Control>),
    RecorderEnded(ProcessId),
    ServerGone,
    Typed(Result<()>),
    TimePassed,
}

impl Driver {
    /// Creates the driver, and carries out the first effects, so that their results are known before a caller can
    /// ask.
    pub(crate) fn new(owner: Owner, effects: Vec<Effect>, parts: Parts) -> Self {
        let Parts { setup, pipe, index, index_watch, log, status, latest, gone } = parts;
        let (background, background_results) = mpsc::unbounded_channel();
        let shell = owner.status().shell;
        let tmux = setup.tmux.clone();
        let mut driver = Self {
            owner,
            setup,
            pipe,
            shell,
            index,
            index_watch,
            log,
            status,
            latest,
            job: None,
            callers: Callers::default(),
            typist: Typist::new(tmux),
            ledger: LedgerQueue::default(),
            texts: TextQueue::default(),
            tasks: JoinSet::new(),
            background,
            background_results,
            is_finished: false,
            gone,
        };
        driver.perform_all(effects);
        driver.catch_up();
        driver
    }

    /// Runs until the shell is cleaned up, or until all handles are dropped. In that case the shell is left for the
    /// next owner.
    pub(crate) async fn run(mut self, mut controls: mpsc::Receiver<Control>) {
        let (mut leader, mut recorder) = (ProcessEnd::of_some(None), ProcessEnd::of_some(None));
        let watch = self.index_watch.clone();
        let tmux = self.setup.tmux.clone();
        let mut has_handles = true;
        while !self.is_finished {
            let grown = watch.grown();
            self.catch_up();
            if self.is_finished {
                break;
            }
            leader.follow(self.owner.watched_leader());
            recorder.follow(self.owner.watched_recorder());
            let deadline = self.owner.next_deadline();
            let wake = tokio::select! {
                biased;
                () = grown => Wake::IndexGrown,
                ended = leader.ended() => Wake::LeaderEnded(ended),
                Some(result) = self.background_results.recv() => Wake::Background(result),
                control = controls.recv(), if has_handles => Wake::Control(control),
                ended = recorder.ended() => Wake::RecorderEnded(ended),
                _ = tmux.closed(), if self.owner.needs_server() => Wake::ServerGone,
                typed = self.typist.typed() => Wake::Typed(typed),
                () = sleep_until(deadline.map(Into::into)) => Wake::TimePassed,
            };
            // The recorder may have written the awaited line in the meantime.
            if !matches!(wake, Wake::IndexGrown | Wake::Control(Some(Control::Run { .. }))) {
                self.catch_up();
            }
            match wake {
                Wake::IndexGrown => {}
                Wake::LeaderEnded(leader) => self.handle(Event::LeaderEnded(leader)),
                Wake::Background(result) => self.background_done(result),
                Wake::Control(Some(control)) => self.control(control),
                Wake::Control(None) if self.owner.needs_server() => {
                    let shell = &self.owner.entry().id;
                    debug!(%shell, "all handles were dropped; leaving the shell for the next owner");
                    return;
                }
                // The cleanup continues although no handle is left.
                Wake::Control(None) => has_handles = false,
                Wake::RecorderEnded(recorder) => self.handle(Event::RecorderEnded(recorder)),
                Wake::ServerGone => self.handle(Event::ServerGone),
                Wake::Typed(result) => self.typed(result),
                Wake::TimePassed => self.handle(Event::TimePassed),
            }
        }
        self.gone.send_replace(true);
    }

    /// Passes an event to the owner, carries out the effects, and passes on the events that these cause at once.
    fn handle(&mut self, event: Event) {
        let mut events = VecDeque::from([event]);
        while let Some(event) = events.pop_front() {
            let moment = self.moment(&event);
            for effect in self.owner.handle(event, moment) {
                events.extend(self.perform(effect));
            }
        }
    }

    fn perform_all(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            if let Some(event) = self.perform(effect) {
                self.handle(event);
            }
        }
    }

    fn moment(&self, event: &Event) -> Moment {
        let metadata = event.needs_log_end().then(|| self.log.metadata());
        let log_end = match metadata {
            None => 0,
            Some(Ok(metadata)) => metadata.len(),
            Some(Err(error)) => {
                warn!(shell = %self.owner.entry().id, %error, "cannot read the length of the log");
                0
            }
        };
        Moment { now: Instant::now(), wall: SystemTime::now(), log_end }
    }

    /// Passes the new lines of the index to the owner.
    fn catch_up(&mut self) {
        match self.index.read_new() {
            Ok(lines) => {
                for line in lines {
                    self.handle(Event::Recorded(line));
                }
            }
            // It is read again when the index grows.
            Err(error) => {
                warn!(shell = %self.owner.entry().id, %error, "cannot read the index");
            }
        }
    }

    fn background_done(&mut self, result: BackgroundResult) {
        match result {
            BackgroundResult::Event(event) => self.handle(event),
            BackgroundResult::LedgerWritten(event) => {
                self.write_next_ledger();
                self.handle(event);
            }
            BackgroundResult::TextWritten(event) => self.text_written(event),
            BackgroundResult::Launched { seq, result } => {
                let result = result.map(|Launched { leader, pipe, .. }| {
                    (self.pipe, self.shell) = (pipe, leader);
                    leader
                });
                self.handle(Event::Launched { seq, result });
            }
        }
    }

    fn control(&mut self, control: Control) {
        match control {
            Control::CatchUp { answer } => callers::send_answer(answer, Ok(())),
            Control::LooksIdle => self.handle(Event::LooksIdle),
            control => {
                let (call, request) = self.callers.register(control);
                self.handle(Event::Requested { call, request });
            }
        }
    }

    fn typed(&mut self, result: Result<()>) {
        let Some(call) = self.typist.finish() else {
            if let Err(error) = result {
                warn!(shell = %self.owner.entry().id, %error, "keys could not be pressed");
            }
            return;
        };
        self.callers.answer(call, result.map(|()| None));
    }

    fn trace_error(&self, what: &str, error: &Error) {
        warn!(shell = %self.owner.entry().id, %error, "{what}");
    }
}
