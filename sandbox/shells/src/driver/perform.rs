//! Carries out the owner's effects.

use std::{collections::VecDeque, path::Path};

use rustix::process::Signal;
use tokio::sync::watch;
use tracing::{debug, warn};

use super::{BackgroundResult, Driver, cleanup::clean_up, typist::in_hexadecimal};
use crate::{
    Error, Result,
    input::{self, Key},
    job::JobWatch,
    launch::{LaunchTarget, PaneSetup},
    ledger::Entry,
    marker::{Kind, Seq},
    owner::{AfterLedger, CallId, Effect, Event, OwnKeys, PaneStatus, PipeContent, Reply},
    state::JobStatus,
};

/// The key that runs the command in the file. The builtin binds it.
const RUN_KEY: &[u8] = b"\x1e";
/// Runs the command in the file by typing the builtin's name, with keys that bash binds by default: for the case that
/// RUN_KEY is bound to something else. The space before the clearing key is for an empty line, on which bash would
/// ring the bell.
const TYPE_RUN_KEYS: &[u8] = b"\x05 \x15 __sb\n";
/// The key on which the builtin reports the end of its last command again.
const RECOVER_KEY: &[u8] = b"\x1b[7717~";
/// The key on which the builtin writes its environment to the file `exports`.
const EXPORTS_KEY: &[u8] = b"\x1b[7718~";

/// Ledger entries that wait until the previous one is written: they must reach the disk in order.
#[derive(Default)]
pub(super) struct LedgerQueue {
    is_writing: bool,
    waiting: VecDeque<(Entry, AfterLedger)>,
}

impl Driver {
    /// Carries out one effect. Returns the resulting event if it is known at once; otherwise it comes from the
    /// background.
    pub(super) fn perform(&mut self, effect: Effect) -> Option<Event> {
        match effect {
            Effect::Inspect { seq, inspection } => {
                return Some(Event::Inspected { seq, finding: self.inspect(inspection) });
            }
            Effect::FindShell => return Some(self.find_shell()),
            Effect::WriteText { seq, call, text } => return self.write_text(seq, call, text),
            Effect::WriteNonces { seq, kind } => {
                let result = self.pipe.write_nonces(&self.setup.dir, seq, kind);
                return Some(Event::NoncesWritten { seq, result });
            }
            Effect::TakeNoncesBack { seq, why } => {
                let found = if self.pipe.take_nonces_back() {
                    PipeContent::Nonces
                } else {
                    PipeContent::Nothing
                };
                return Some(Event::NoncesTakenBack { seq, found, why });
            }
            Effect::RenewEndNonce => {
                if let Err(error) = self.pipe.write_end_nonce_again(&self.setup.dir) {
                    self.trace_error("the end nonce could not be renewed", &error);
                }
            }
            Effect::ProbeStartingShell { seq } => self.probe_starting_shell(seq),
            Effect::WriteLedger { entry, after } => {
                self.ledger.waiting.push_back((*entry, after));
                if !self.ledger.is_writing {
                    self.write_next_ledger();
                }
            }
            Effect::LaunchShell { seq, cwd, is_recorded } => {
                let (setup, background) = (self.setup.clone(), self.background.clone());
                let pane = self.owner.entry().pane.clone();
                self.tasks.spawn(async move {
                    let result = relaunch(&setup, &pane, &cwd, seq, is_recorded).await;
                    // Fails only if the driver has ended; then nobody needs the event.
                    let _ = background.send(BackgroundResult::Launched { seq, result });
                });
            }
            Effect::StartRecorder => {
                let command = self.setup.pipe_command(&self.owner.entry().pane);
                self.ask_tmux(command, |answer| Event::RecorderStarted(answer.map(drop)));
            }
            Effect::QueryPane => {
                let pane = &self.owner.entry().pane;
                let format = "#{pane_dead} #{pane_dead_status} #{pane_dead_signal}";
                let command = format!("display-message -p -t {pane} '{format}'");
                self.ask_tmux(command, |answer| {
                    Event::PaneQueried(answer.map(|it| parse_pane_status(&it)))
                });
            }
            Effect::SendServerSigchld => self.owner.entry().server.send(Signal::CHILD),
            Effect::Press(keys) => self.press(keys),
            Effect::Type { call, bytes } => {
                self.typist.type_for(call, &self.owner.entry().pane, &bytes.0);
            }
            Effect::PressFor { call, keys } => {
                let names = keys.iter().map(Key::tmux_name).collect::<Vec<_>>().join(" ");
                self.typist.press_for(call, &self.owner.entry().pane, &names);
            }
            Effect::Signal { call, signal } => {
                let result = self.signal(signal);
                self.callers.answer(call, result.map(|()| None));
            }
            Effect::Export { call } => self.export(call),
            Effect::Resize { call, size } => {
                let (target, columns, rows) = (self.setup.target(), size.columns, size.rows);
                let command = format!("resize-window -t {target} -x {columns} -y {rows}");
                self.ask_tmux(command, move |answer| Event::Resized {
                    call,
                    size,
                    result: answer.map(drop),
                });
            }
            Effect::InterruptShell => self.shell.send(Signal::INT),
            Effect::KillLeader => self.owner.entry().leader.send(Signal::KILL),
            Effect::Publish => drop(self.status.send_replace(self.owner.status())),
            Effect::PublishJob { seq, status } => self.publish_job(seq, status),
            Effect::Answer { call, reply } => self.answer(call, reply),
            Effect::CleanUp { recorder } => {
                let (setup, entry) = (self.setup.clone(), self.owner.entry().clone());
                self.tasks.spawn(clean_up(setup, entry, recorder, self.background.clone()));
            }
            Effect::Finish => self.is_finished = true,
        }
        None
    }

    fn find_shell(&mut self) -> Event {
        // Unlink the pipe: from now on only the shell and the owner can reach it.
        if let Err(error) = std::fs::remove_file(self.setup.dir.pipe()) {
            warn!(shell = %self.owner.entry().id, %error, "the nonce pipe could not be unlinked");
        }
        let leader = self.owner.entry().leader;
        self.shell = self.setup.shell(leader).unwrap_or(leader);
        Event::ShellFound(self.shell)
    }

    fn probe_starting_shell(&mut self, seq: Seq) {
        if self.texts.is_writing() {
            // The shell would evaluate that text. The owner probes again a little later.
            debug!(shell = %self.owner.entry().id, "no probe: an earlier text is being written");
            return;
        }
        let dir = &self.setup.dir;
        let written = dir.write_command(Vec::new()).map_err(Error::io("emptying the command"));
        match written.and_then(|()| self.pipe.replace_nonces(dir, seq, Kind::StartUp)) {
            Ok(()) => self.press(OwnKeys::TypeRun),
            Err(error) => self.trace_error("the starting shell could not be probed", &error),
        }
    }

    pub(super) fn write_next_ledger(&mut self) {
        let Some((entry, after)) = self.ledger.waiting.pop_front() else {
            self.ledger.is_writing = false;
            return;
        };
        self.ledger.is_writing = true;
        let (dir, lock) = (self.setup.dir.clone(), self.setup.lock.upgrade());
        let background = self.background.clone();
        self.tasks.spawn_blocking(move || {
            // While this task holds the lock, the next owner waits until the entry is written. If the lock is gone,
            // the next owner may be active already.
            let Some(_lock) = lock else { return };
            let result = dir.save(&entry).map_err(Error::io("writing the ledger"));
            // Fails only if the driver has ended; then nobody needs the event.
            let _ = background
                .send(BackgroundResult::LedgerWritten(Event::LedgerWritten { after, result }));
        });
    }

    /// Sends a command to tmux in the background, and passes on the answer as an event.
    fn ask_tmux(
        &mut self,
        command: String,
        event: impl FnOnce(Result<String>) -> Event + Send + 'static,
    ) {
        let (tmux, background) = (self.setup.tmux.clone(), self.background.clone());
        self.tasks.spawn(async move {
            let answer = tmux.ask(&command).await;
            // Fails only if the driver has ended; then nobody needs the event.
            let _ = background.send(BackgroundResult::Event(event(answer)));
        });
    }

    fn press(&mut self, keys: OwnKeys) {
        let bytes = match keys {
            OwnKeys::Run => RUN_KEY,
            OwnKeys::TypeRun => TYPE_RUN_KEYS,
            OwnKeys::Recover => RECOVER_KEY,
        };
        let pane = &self.owner.entry().pane;
        if let Err(error) = self.typist.press(pane, &in_hexadecimal(bytes)) {
            self.trace_error("a key could not be pressed", &error);
        }
    }

    fn signal(&self, signal: input::Signal) -> Result<()> {
        let id = || self.owner.entry().id.clone();
        let stat = self.shell.stat().ok_or_else(|| Error::ShellClosed(id()))?;
        // A shell that has lost its terminal has no foreground group.
        let foreground = Some(stat.foreground).filter(|&group| group > 0);
        let Some(group) = foreground.and_then(rustix::process::Pid::from_raw) else {
            return Ok(());
        };
        match rustix::process::kill_process_group(group, signal.raw()) {
            Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(()),
            Err(error) => Err(Error::io("signalling the foreground")(error)),
        }
    }

    fn export(&mut self, call: CallId) {
        let emptied = private_files::overwrite(&self.setup.dir.exports(), b"");
        match emptied.map_err(Error::io("emptying the file for the exports")) {
            Ok(()) => self.typist.type_for(call, &self.owner.entry().pane, EXPORTS_KEY),
            Err(error) => self.callers.answer(call, Err(error)),
        }
    }

    fn publish_job(&mut self, seq: Seq, status: JobStatus) {
        match &self.job {
            Some((known, job)) if *known == seq => drop(job.send_replace(status)),
            _ => {
                let (job, receiver) = watch::channel(status);
                self.job = Some((seq, job));
                self.latest.send_replace(Some(JobWatch { seq, status: receiver }));
            }
        }
    }

    fn answer(&mut self, call: CallId, reply: Result<Reply>) {
        let reply = reply.map(|reply| match reply {
            Reply::Done => None,
            Reply::Command(_) => self.latest.borrow().clone(),
        });
        self.callers.answer(call, reply);
    }
}

/// Starts a shell in the pane of a dead one, in this directory or its nearest existing ancestor.
async fn relaunch(
    setup: &PaneSetup,
    pane: &str,
    cwd: &Path,
    seq: Seq,
    is_recorded: bool,
) -> Result<crate::launch::Launched> {
    let mut cwd = cwd.to_owned();
    while !cwd.is_dir() && cwd.pop() {}
    setup.rewrite_start(&cwd)?;
    setup.launch(LaunchTarget::DeadPane { pane, is_recorded }, seq).await
}

fn parse_pane_status(answer: &str) -> PaneStatus {
    let mut words = answer.split(' ').map(|word| word.parse::<i32>().ok());
    let mut next = || words.next().flatten();
    let (dead, status, signal) = (next(), next(), next());
    match (dead, signal.map(|signal| 128 + signal).or(status)) {
        (Some(1), Some(code)) => PaneStatus::Dead(code),
        (Some(1), None) => PaneStatus::Dying,
        _ => PaneStatus::Alive,
    }
}
