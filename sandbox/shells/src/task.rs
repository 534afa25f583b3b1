//! The task that owns a session: everything that changes its state happens here.
//!
//! It sleeps until one of six things happens: a handle asks for something, the recorder has
//! written an event, the shell has ended, the recorder has ended, the tmux server is gone, or something that was
//! to be heard of the shell by now has not been.

use std::{
    ffi::OsString,
    fs,
    os::unix::ffi::OsStringExt as _,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

use tokio::{
    sync::{mpsc, watch},
    time::{self, Instant},
};

use super::{
    alive::Alive,
    ending::RECOVER_KEY,
    index::{Event, IndexReader, What},
    input,
    job::JobWatch,
    launch::{Launcher, SecretPipe},
    ledger::Entry,
    marker::{EndReport, Kind, Marker, Seq},
    messages::{Answer, Control},
    requests::{CALL_KEYS, RUN_KEY, START_LIMIT},
    state::{CommandResult, Ended, JobStatus, Phase, Started, Status},
    watch::FileWatch,
};
use sandbox_process::ProcessId;

/// How long tmux may take to notice that a shell has died, and the recorder to write its last event.
pub(super) const DEATH_LIMIT: Duration = Duration::from_secs(10);

/// How often a shell that is not heard is called again.
const CALLS: u32 = 3;

/// Everything that the task knows.
pub(crate) struct Task {
    pub(crate) launcher: Launcher,
    pub(crate) entry: Entry,
    pub(crate) pipe: SecretPipe,
    pub(crate) index: IndexReader,
    pub(crate) index_watch: FileWatch,
    pub(crate) next_seq: Seq,
    pub(crate) current: Current,
    pub(crate) idle_since: Instant,
    pub(crate) status: watch::Sender<Status>,
    pub(crate) job: watch::Sender<Option<JobWatch>>,
    pub(crate) recorder: Option<ProcessId>,
    /// Commands that came while a shell was starting.
    pub(crate) waiting: Vec<(Vec<u8>, Answer<JobWatch>)>,
    pub(crate) failed_starts: u32,
    /// Whether the recorder has said that the stream is complete.
    pub(crate) stream_closed: bool,
    /// What the shell has told of itself last, for commands of which it tells nothing.
    pub(crate) circumstances: Circumstances,
}

/// What a report tells that is not of the command alone.
#[derive(Default)]
pub(crate) struct Circumstances {
    pub(crate) python: Option<PathBuf>,
    pub(crate) user: String,
    pub(crate) host: String,
}

/// What the shell is busy with.
pub(crate) enum Current {
    /// The shell reads its start-up files.
    Starting {
        seq: Seq,
        deadline: Instant,
        /// When to look after it, if its owner was killed: what it has said may be lost.
        look_at: Option<Instant>,
        /// What its predecessor died of.
        before: Option<Unreported>,
    },
    Idle,
    Running(Running),
}

/// A command whose shell has died. It is reported when the next shell says its first word, because
/// only then everything before that word is known to be in the log.
pub(crate) struct Unreported {
    pub(crate) running: Running,
    pub(crate) exit_code: i32,
}

/// The command that is running.
pub(crate) struct Running {
    pub(crate) seq: Seq,
    pub(crate) status: watch::Sender<JobStatus>,
    pub(crate) lost: u64,
    /// Somebody has sent Ctrl-C or the signal for it: if it has not begun by now, it is not to.
    pub(crate) interrupted: bool,
    /// How often the shell was asked for its report by the key for that.
    pub(crate) asked: u32,
    /// How often the shell was called again because it was not heard.
    pub(crate) called: u32,
    /// When to look after it: until it has begun, in case the call did not reach the shell; for a shell that was
    /// asked for its report, in case none has come; and once where another owner has begun it.
    pub(crate) look_at: Option<Instant>,
}

impl Running {
    pub(super) fn has_begun(&self) -> bool {
        self.status.borrow().started.is_some()
    }

    /// For a command whose start may be among what a killed recorder has lost: then its output begins with the gap.
    pub(super) fn assume_begun(&self, log: &Path) {
        let offset = fs::metadata(log).map_or(0, |log| log.len());
        self.status.send_if_modified(|status| {
            let is_unheard = status.started.is_none();
            status.started.get_or_insert(Started { offset, at: SystemTime::now() });
            is_unheard
        });
    }
}

/// Whether the task goes on.
pub(super) enum Then {
    GoOn,
    Stop,
}

enum Wake {
    Grown,
    Control(Option<Control>),
    ShellGone,
    RecorderGone,
    ServerGone,
    Time,
}

impl Task {
    pub(crate) async fn run(mut self, mut controls: mpsc::Receiver<Control>) {
        let mut shell = Alive::of(self.entry.leader);
        let mut recorder = Alive::of_some(self.recorder);
        let watch = self.index_watch.clone();
        let tmux = self.launcher.tmux.clone();
        loop {
            let grown = watch.grown();
            self.catch_up();
            if matches!(self.current, Current::Idle) && !self.waiting.is_empty() {
                self.start_waiting().await;
            }
            if !shell.is_of(Some(self.entry.leader)) {
                shell = Alive::of(self.entry.leader);
            }
            if !recorder.is_of(self.recorder) {
                recorder = Alive::of_some(self.recorder);
            }
            let deadline = match &self.current {
                Current::Starting { deadline, look_at, .. } => Some(look_at.unwrap_or(*deadline)),
                Current::Running(running) => running.look_at,
                Current::Idle => None,
            };
            let wake = tokio::select! {
                biased;
                () = grown => Wake::Grown,
                () = shell.ended() => Wake::ShellGone,
                control = controls.recv() => Wake::Control(control),
                () = recorder.ended() => Wake::RecorderGone,
                _ = tmux.closed() => Wake::ServerGone,
                () = until(deadline) => Wake::Time,
            };
            let then = match wake {
                Wake::Grown => Then::GoOn,
                // Nobody can ask any more: the session stays for the next owner.
                Wake::Control(None) => return,
                Wake::Control(Some(Control::Close { answer })) => {
                    self.close(Ended::SessionClosed).await;
                    let _ = answer.send(Ok(()));
                    Then::Stop
                }
                Wake::Control(Some(control)) => {
                    self.handle(control).await;
                    Then::GoOn
                }
                Wake::ShellGone => self.replace_shell().await,
                Wake::RecorderGone => self.replace_recorder().await,
                Wake::ServerGone => {
                    self.close(Ended::ServerGone).await;
                    Then::Stop
                }
                Wake::Time => {
                    self.time_is_up().await;
                    Then::GoOn
                }
            };
            if let Then::Stop = then {
                return;
            }
        }
    }

    async fn time_is_up(&mut self) {
        // What has come meanwhile may be what was waited for.
        self.catch_up();
        match &mut self.current {
            Current::Starting { seq, look_at: Some(_), .. } => {
                let seq = *seq;
                self.ask_for_start(seq).await;
            }
            // The death of the shell is handled like any other.
            Current::Starting { deadline, .. } => {
                *deadline = Instant::now() + DEATH_LIMIT;
                self.entry.leader.send(rustix::process::Signal::KILL);
            }
            Current::Running(running) => {
                running.look_at = None;
                if running.has_begun() || running.interrupted {
                    self.recover().await;
                } else {
                    running.look_at = Some(Instant::now() + START_LIMIT);
                    self.call_again().await;
                }
            }
            Current::Idle => {}
        }
    }

    /// For a command that is not heard of, while its shell is at its prompt. If it has not taken the secrets, it has not
    /// begun, and does nothing without them if the first call comes late. If it has, it has begun, and only its word
    /// has not come through: a full disk holds that back, too. It is asked to say it once more, in case it is lost.
    async fn call_again(&mut self) {
        if !self.is_at_prompt() {
            return;
        }
        let Current::Running(running) = &mut self.current else { return };
        let (seq, called) = (running.seq, running.called);
        running.called += 1;
        let has_begun = !self.pipe.empty();
        if has_begun && called == 1 {
            let _ = self.type_bytes(RECOVER_KEY).await;
        }
        if has_begun {
            return;
        }
        if called == CALLS {
            return self.give_up();
        }
        let _ = self.pipe.announce(&self.launcher.dir, seq, Kind::Command);
        if called == 0 {
            let _ = self.send_keys(RUN_KEY).await;
        } else {
            // The key may have become part of something unfinished.
            self.shell().send(rustix::process::Signal::INT);
            let _ = self.type_bytes(CALL_KEYS).await;
        }
    }

    /// Takes in what the recorder has written since the last look.
    pub(super) fn catch_up(&mut self) {
        // An index that cannot be read now can be read when it grows again.
        for event in self.index.read_new().unwrap_or_default() {
            self.take(event);
        }
    }

    fn take(&mut self, event: Event) {
        match event.what {
            What::Opened { recorder } => {
                self.recorder = Some(recorder).filter(ProcessId::is_alive);
                self.stream_closed = false;
            }
            What::Closed => self.stream_closed = true,
            What::Lost { bytes } => {
                if let Current::Running(running)
                | Current::Starting { before: Some(Unreported { running, .. }), .. } =
                    &mut self.current
                {
                    running.lost += bytes;
                    let lost = running.lost;
                    running.status.send_modify(|status| status.lost = lost);
                }
            }
            What::Marker(Marker::Start { seq }) => self.take_start(seq, event.offset, event.at),
            What::Marker(Marker::End { seq, report }) => {
                self.take_end(seq, report, event.offset, event.at);
            }
        }
    }

    fn take_start(&mut self, seq: Seq, offset: u64, at: SystemTime) {
        match &mut self.current {
            Current::Running(running)
            | Current::Starting { before: Some(Unreported { running, .. }), .. }
                if running.seq == seq =>
            {
                // What was lost before was the output of others.
                running.lost = 0;
                running.look_at = None;
                let started = Started { offset, at };
                running.status.send_modify(|status| {
                    status.started = Some(started);
                    status.lost = 0;
                });
            }
            // The first shell after it, which may have died since.
            Current::Starting { before, .. } => {
                let before = before.take_if(|before| before.running.seq < seq);
                if let Some(Unreported { running, exit_code }) = before {
                    self.report_without_shell(running, exit_code, Ended::ShellExited, offset, at);
                }
            }
            _ => {}
        }
    }

    fn take_end(&mut self, seq: Seq, report: EndReport, offset: u64, at: SystemTime) {
        self.circumstances = Circumstances {
            python: report.python.clone().map(path),
            user: report.user.clone(),
            host: report.host.clone(),
        };
        match &self.current {
            Current::Starting { seq: wanted, .. } if *wanted == seq => {
                // From now on the pipe has no name: only the shell and we can reach it.
                let _ = fs::remove_file(self.launcher.dir.pipe());
                self.failed_starts = 0;
                let shell = self.launcher.shell(self.entry.leader).unwrap_or(self.entry.leader);
                self.status.send_modify(|status| status.shell = shell);
                self.set_cwd(path(report.cwd));
                self.become_idle();
            }
            Current::Running(running) if running.seq == seq => {
                let started = running.status.borrow().started;
                let result = at_prompt(seq, report, started, (offset, at), running.lost);
                let cwd = result.cwd.clone();
                running.status.send_modify(|status| status.result = Some(Arc::new(result)));
                self.set_cwd(cwd);
                self.become_idle();
            }
            // An end that was reported already, read again after a restart of ours.
            _ => {}
        }
    }

    pub(super) fn become_idle(&mut self) {
        self.current = Current::Idle;
        self.idle_since = Instant::now();
        self.status.send_modify(|status| status.phase = Phase::Idle);
    }

    /// Whether the shell is at its prompt: it edits a line, and not because a text reads one.
    pub(super) fn is_at_prompt(&self) -> bool {
        let shell = self.shell();
        input::shell_edits_line(shell) && SecretPipe::is_ready(shell, &self.launcher.dir.pipe())
    }

    pub(super) fn shell(&self) -> ProcessId {
        self.status.borrow().shell
    }

    /// One that could not be told is not known.
    fn set_cwd(&self, cwd: PathBuf) {
        if !cwd.as_os_str().is_empty() {
            self.status.send_modify(|status| status.cwd = cwd);
        }
    }
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

/// The result of a command whose shell is at its prompt again, by the shell's report and the place and time of that.
pub(super) fn at_prompt(
    seq: Seq,
    report: EndReport,
    started: Option<Started>,
    (offset, at): (u64, SystemTime),
    lost: u64,
) -> CommandResult {
    CommandResult {
        seq,
        exit_code: report.exit_code,
        ended: Ended::AtPrompt,
        cwd: path(report.cwd),
        duration: started
            .and_then(|started| at.duration_since(started.at).ok())
            .unwrap_or_default(),
        background_pid: report.background_pid,
        python: report.python.map(path),
        user: report.user,
        host: report.host,
        output: started.map_or(offset, |started| started.offset)..offset,
        lost,
    }
}

pub(super) fn path(bytes: Vec<u8>) -> PathBuf {
    OsString::from_vec(bytes).into()
}
