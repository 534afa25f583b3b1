//! The driver of a shell's owner: reads clocks, files and processes, tells the owner what has happened, and does what
//! the owner decides.
//!
//! It never waits inside its loop. Questions to tmux, the ledger and long texts go on in tasks of their own, and come
//! back as events. Short files in the private directory (nonces, digests, a text of a few kilobytes) and the kernel's
//! tables are read and written in place: a change of threads would cost a command more than the work itself.

mod alive;
mod callers;
mod looks;
mod perform;
mod tidy;
mod typist;

use std::{
    collections::VecDeque,
    fs::File,
    time::{Instant, SystemTime},
};

use tokio::{
    sync::{mpsc, watch},
    task::JoinSet,
    time,
};
use tracing::{debug, warn};

use crate::{
    Error, Result,
    driver::alive::Alive,
    job::JobWatch,
    launch::{Launched, Launcher, SecretPipe},
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
use typist::Typist;

/// Everything that one shell's owner needs to act.
pub(crate) struct Driver {
    owner: Owner,
    launcher: Launcher,
    pipe: SecretPipe,
    shell: ProcessId,
    index: IndexReader,
    index_watch: FileWatch,
    log: File,
    status: watch::Sender<Status>,
    latest: watch::Sender<Option<JobWatch>>,
    /// The latest command.
    job: Option<(Seq, watch::Sender<JobStatus>)>,
    callers: Callers,
    typist: Typist,
    ledger: LedgerQueue,
    /// Work in the background; it ends with us.
    tasks: JoinSet<()>,
    later: mpsc::UnboundedSender<Later>,
    answers: mpsc::UnboundedReceiver<Later>,
    is_finished: bool,
    /// Told when nothing is left of the shell.
    gone: watch::Sender<bool>,
}

/// What a driver is made of.
pub(crate) struct Parts {
    pub(crate) launcher: Launcher,
    pub(crate) pipe: SecretPipe,
    pub(crate) index: IndexReader,
    pub(crate) index_watch: FileWatch,
    pub(crate) log: File,
    pub(crate) status: watch::Sender<Status>,
    pub(crate) latest: watch::Sender<Option<JobWatch>>,
    pub(crate) gone: watch::Sender<bool>,
}

/// What comes back from the background.
pub(super) enum Later {
    Event(Event),
    /// A shell was launched, with a pipe of its own.
    Launched {
        seq: Seq,
        result: Result<Launched>,
    },
    LedgerWritten(Event),
}

enum Wake {
    IndexGrown,
    LeaderEnded(ProcessId),
    Later(Later),
    Control(Option<Control>),
    RecorderEnded(ProcessId),
    ServerGone,
    Typed(Result<()>),
    TimePassed,
}

impl Driver {
    /// Does what the owner wants to be done first, so that it is known before anybody can ask.
    pub(crate) fn new(owner: Owner, effects: Vec<Effect>, parts: Parts) -> Self {
        let Parts { launcher, pipe, index, index_watch, log, status, latest, gone } = parts;
        let (later, answers) = mpsc::unbounded_channel();
        let shell = owner.status().shell;
        let tmux = launcher.tmux.clone();
        let mut driver = Self {
            owner,
            launcher,
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
            tasks: JoinSet::new(),
            later,
            answers,
            is_finished: false,
            gone,
        };
        driver.perform_all(effects);
        driver.catch_up();
        driver
    }

    /// Runs until nothing is left of the shell, or nobody can ask for anything any more. Then the shell stays for the
    /// next owner.
    pub(crate) async fn run(mut self, mut controls: mpsc::Receiver<Control>) {
        let (mut leader, mut recorder) = (Alive::of_some(None), Alive::of_some(None));
        let watch = self.index_watch.clone();
        let tmux = self.launcher.tmux.clone();
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
                Some(later) = self.answers.recv() => Wake::Later(later),
                control = controls.recv(), if has_handles => Wake::Control(control),
                ended = recorder.ended() => Wake::RecorderEnded(ended),
                _ = tmux.closed(), if self.owner.needs_server() => Wake::ServerGone,
                typed = self.typist.typed() => Wake::Typed(typed),
                () = until(deadline) => Wake::TimePassed,
            };
            // What the recorder has written by now may be what is waited for.
            if !matches!(wake, Wake::IndexGrown | Wake::Control(Some(Control::Run { .. }))) {
                self.catch_up();
            }
            match wake {
                Wake::IndexGrown => {}
                Wake::LeaderEnded(leader) => self.handle(Event::LeaderEnded(leader)),
                Wake::Later(later) => self.came_back(later),
                Wake::Control(Some(control)) => self.control(control),
                Wake::Control(None) if self.owner.needs_server() => {
                    let shell = &self.owner.entry().id;
                    debug!(%shell, "nobody can ask any more; the shell stays for the next owner");
                    return;
                }
                // The end of the shell goes on without anybody who waits for it.
                Wake::Control(None) => has_handles = false,
                Wake::RecorderEnded(recorder) => self.handle(Event::RecorderEnded(recorder)),
                Wake::ServerGone => self.handle(Event::ServerGone),
                Wake::Typed(result) => self.typed(result),
                Wake::TimePassed => self.handle(Event::TimePassed),
            }
        }
        self.gone.send_replace(true);
    }

    /// Tells the owner of an event, does what it decides, and tells it how that went as far as that is known at once.
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
                warn!(shell = %self.owner.entry().id, %error, "the log's length is not known");
                0
            }
        };
        Moment { now: Instant::now(), wall: SystemTime::now(), log_end }
    }

    /// Takes in what the recorder has written since the last look.
    fn catch_up(&mut self) {
        match self.index.read_new() {
            Ok(lines) => {
                for line in lines {
                    self.handle(Event::Recorded(line));
                }
            }
            // An index that cannot be read now can be read when it grows again.
            Err(error) => {
                warn!(shell = %self.owner.entry().id, %error, "the index cannot be read");
            }
        }
    }

    fn came_back(&mut self, later: Later) {
        match later {
            Later::Event(event) => self.handle(event),
            Later::LedgerWritten(event) => {
                self.write_next_ledger();
                self.handle(event);
            }
            Later::Launched { seq, result } => {
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
            Control::CatchUp { answer } => callers::tell(answer, Ok(())),
            Control::LooksIdle => self.handle(Event::LooksIdle),
            control => {
                let (call, request) = self.callers.take_in(control);
                self.handle(Event::Asked { call, request });
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

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => time::sleep_until(deadline.into()).await,
        None => std::future::pending().await,
    }
}
