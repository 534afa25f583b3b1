//! Does what the owner decides.

use std::{collections::VecDeque, os::unix::ffi::OsStrExt as _, path::Path};

use rustix::process::Signal;
use tokio::sync::watch;
use tracing::warn;

use super::{Driver, Later, tidy::tidy, typist::in_hexadecimal};
use crate::{
    Error, Result,
    input::{self, Key},
    job::JobWatch,
    launch::{Launcher, Place},
    ledger::{Entry, ShellDir},
    marker::{Kind, Seq},
    owner::{AfterLedger, CallId, Effect, Event, Held, OwnKeys, PaneSight, Reply, Text, TextState},
    state::JobStatus,
    tmux::Tmux,
};

/// Texts that are longer than this are written on another thread.
const SHORT_TEXT: usize = 64 << 10;
/// The key that runs the command that lies ready. The builtin binds it.
const RUN_KEY: &[u8] = b"\x1e";
/// The same with keys that bash has from birth, for the case that ours is bound to something else. The space before
/// the clearing is for an empty line, on which bash would ring the bell.
const CALL_KEYS: &[u8] = b"\x05 \x15 __sb\n";
/// The key on which the builtin tells again how its last command has ended.
const RECOVER_KEY: &[u8] = b"\x1b[7717~";
/// The key on which the builtin writes down the environment.
const EXPORTS_KEY: &[u8] = b"\x1b[7718~";

/// Entries that wait for the one before them to be written: the last must be the last.
#[derive(Default)]
pub(super) struct LedgerQueue {
    is_writing: bool,
    waiting: VecDeque<(Entry, AfterLedger)>,
}

impl Driver {
    /// Does one thing. What is known about it at once is returned; the rest comes back later.
    pub(super) fn perform(&mut self, effect: Effect) -> Option<Event> {
        match effect {
            Effect::Look { seq, look } => return Some(Event::Seen { seq, sight: self.look(look) }),
            Effect::FindShell => return Some(self.find_shell()),
            Effect::WriteText { seq, call, text } => return self.write_text(seq, call, text),
            Effect::WriteNonces { seq, kind } => {
                let result = self.pipe.announce(&self.launcher.dir, seq, kind);
                return Some(Event::NoncesWritten { seq, result });
            }
            Effect::TakeNoncesBack { seq, why } => {
                let held = if self.pipe.empty() { Held::Nonces } else { Held::Nothing };
                return Some(Event::NoncesTakenBack { seq, held, why });
            }
            Effect::RenewEndNonce => {
                if let Err(error) = self.pipe.announce_end_again(&self.launcher.dir) {
                    self.trace_error("the shell gets no other nonce", &error);
                }
            }
            Effect::CallWithNothing { seq } => self.call_with_nothing(seq),
            Effect::WriteLedger { entry, after } => {
                self.ledger.waiting.push_back((*entry, after));
                if !self.ledger.is_writing {
                    self.write_next_ledger();
                }
            }
            Effect::LaunchShell { seq, cwd, is_recorded } => {
                let (launcher, later) = (self.launcher.clone(), self.later.clone());
                let pane = self.owner.entry().pane.clone();
                self.tasks.spawn(async move {
                    let result = relaunch(&launcher, &pane, &cwd, seq, is_recorded).await;
                    // The receiver is the driver, which has gone if this fails.
                    let _ = later.send(Later::Launched { seq, result });
                });
            }
            Effect::OrderRecorder => {
                let question = self.launcher.pipe_command(&self.owner.entry().pane);
                self.ask(question, |answer| Event::RecorderOrdered(answer.map(drop)));
            }
            Effect::AskPane => {
                let pane = &self.owner.entry().pane;
                let format = "#{pane_dead} #{pane_dead_status} #{pane_dead_signal}";
                let question = format!("display-message -p -t {pane} '{format}'");
                self.ask(question, |answer| Event::PaneSeen(answer.map(|it| pane_sight(&it))));
            }
            Effect::NudgeServer => self.owner.entry().server.send(Signal::CHILD),
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
                let (target, columns, rows) = (self.launcher.target(), size.columns, size.rows);
                let question = format!("resize-window -t {target} -x {columns} -y {rows}");
                self.ask(question, move |answer| Event::Resized {
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
            Effect::Tidy { recorder } => {
                let (launcher, entry) = (self.launcher.clone(), self.owner.entry().clone());
                self.tasks.spawn(tidy(launcher, entry, recorder, self.later.clone()));
            }
            Effect::Finish => self.is_finished = true,
        }
        None
    }

    fn find_shell(&mut self) -> Event {
        // From now on the pipe has no name: only the shell and we can reach it.
        if let Err(error) = std::fs::remove_file(self.launcher.dir.pipe()) {
            warn!(shell = %self.owner.entry().id, %error, "the pipe keeps its name");
        }
        let leader = self.owner.entry().leader;
        self.shell = self.launcher.shell(leader).unwrap_or(leader);
        Event::ShellFound(self.shell)
    }

    /// Writes a text where the shell takes it from. One that nobody waits for is not run.
    fn write_text(&mut self, seq: Seq, call: CallId, text: Text) -> Option<Event> {
        if !self.callers.is_waiting(call) {
            self.callers.forget(call);
            return Some(Event::TextWritten { seq, result: Ok(TextState::Abandoned) });
        }
        let write = move |dir: &ShellDir, text: Text| {
            let written = write_text(dir, text.0);
            Event::TextWritten { seq, result: written.map(|()| TextState::Wanted) }
        };
        if text.0.len() <= SHORT_TEXT {
            return Some(write(&self.launcher.dir, text));
        }
        let (dir, lock) = (self.launcher.dir.clone(), self.launcher.lock.upgrade());
        let later = self.later.clone();
        self.tasks.spawn_blocking(move || {
            // The next owner waits for a text that was begun to be written. There may be one already.
            let Some(_lock) = lock else { return };
            // The receiver is the driver, which has gone if this fails.
            let _ = later.send(Later::Event(write(&dir, text)));
        });
        None
    }

    fn call_with_nothing(&mut self, seq: Seq) {
        let dir = &self.launcher.dir;
        let written = dir.write_command(Vec::new()).map_err(Error::io("emptying the command"));
        match written.and_then(|()| self.pipe.announce_again(dir, seq, Kind::StartUp)) {
            Ok(()) => self.press(OwnKeys::Call),
            Err(error) => self.trace_error("a starting shell could not be called", &error),
        }
    }

    pub(super) fn write_next_ledger(&mut self) {
        let Some((entry, after)) = self.ledger.waiting.pop_front() else {
            self.ledger.is_writing = false;
            return;
        };
        self.ledger.is_writing = true;
        let (dir, lock) = (self.launcher.dir.clone(), self.launcher.lock.upgrade());
        let later = self.later.clone();
        self.tasks.spawn_blocking(move || {
            // The next owner waits for an entry that was begun to be written. There may be one already.
            let Some(_lock) = lock else { return };
            let result = dir.save(&entry).map_err(Error::io("writing the ledger"));
            // The receiver is the driver, which has gone if this fails.
            let _ = later.send(Later::LedgerWritten(Event::LedgerWritten { after, result }));
        });
    }

    /// Asks tmux in the background.
    fn ask(
        &mut self,
        question: String,
        event: impl FnOnce(Result<String>) -> Event + Send + 'static,
    ) {
        let (tmux, later) = (self.launcher.tmux.clone(), self.later.clone());
        self.tasks.spawn(async move {
            let answer = ask(&tmux, &question).await;
            // The receiver is the driver, which has gone if this fails.
            let _ = later.send(Later::Event(event(answer)));
        });
    }

    fn press(&mut self, keys: OwnKeys) {
        let bytes = match keys {
            OwnKeys::Run => RUN_KEY,
            OwnKeys::Call => CALL_KEYS,
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
        // A shell that has lost its terminal has nothing in the foreground.
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
        let emptied = private_files::overwrite(&self.launcher.dir.exports(), b"");
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

async fn ask(tmux: &Tmux, question: &str) -> Result<String> {
    tmux.ask(question).await
}

/// Starts a shell in the pane of a dead one.
async fn relaunch(
    launcher: &Launcher,
    pane: &str,
    cwd: &Path,
    seq: Seq,
    is_recorded: bool,
) -> Result<crate::launch::Launched> {
    let mut cwd = cwd.to_owned();
    while !cwd.is_dir() && cwd.pop() {}
    launcher.rewrite_start(&cwd)?;
    launcher.launch(Place::Again { pane, is_recorded }, seq).await
}

/// When bash meets that in a text that it evaluates, it takes the terminal for the rest of the text. In a file that it
/// reads, bash ignores it.
fn write_text(dir: &ShellDir, mut text: Vec<u8>) -> Result<()> {
    let writing = || Error::io("writing the command");
    if turns_line_editing_off(&text) {
        private_files::overwrite(&dir.script(), &text).map_err(writing())?;
        let script = dir.script();
        let script = shlex::bytes::try_quote(script.as_os_str().as_bytes());
        text = [b"\\. ", &*script.expect("no path has a NUL byte")].concat();
    }
    dir.write_command(text).map_err(writing())
}

fn pane_sight(answer: &str) -> PaneSight {
    let mut words = answer.split(' ').map(|word| word.parse::<i32>().ok());
    let mut next = || words.next().flatten();
    let (dead, status, signal) = (next(), next(), next());
    match (dead, signal.map(|signal| 128 + signal).or(status)) {
        (Some(1), Some(code)) => PaneSight::Dead(code),
        (Some(1), None) => PaneSight::Dying,
        _ => PaneSight::Alive,
    }
}

/// Whether a text may contain `set +o emacs`, `shopt -uo vi` or the like. A text that only looks like it is run all
/// the same; it merely does not show the numbers of its background jobs.
fn turns_line_editing_off(text: &[u8]) -> bool {
    let has = |word: &[u8]| memchr::memmem::find(text, word).is_some();
    // Cheap, for the texts that do not.
    if !has(b"+o") && !has(b"shopt") {
        return false;
    }
    let between = |byte: &u8| byte.is_ascii_whitespace() || b";&|(){}'\"\\".contains(byte);
    let words: Vec<_> = text.split(between).filter(|word| !word.is_empty()).collect();
    let is_mode = |word: &[u8]| matches!(word, b"emacs" | b"vi");
    let is_off = |word: &[u8]| word.starts_with(b"+") && word.ends_with(b"o");
    words.windows(2).any(|pair| is_off(pair[0]) && is_mode(pair[1]))
        || words.contains(&&b"shopt"[..]) && words.iter().any(|word| is_mode(word))
}
