//! The handle of a shell.

use std::{
    ffi::OsString, fs, io, os::unix::ffi::OsStringExt as _, path::Path, sync::Arc, time::Duration,
};

use tokio::{
    sync::{Mutex, mpsc, oneshot, watch},
    time,
};
use tracing::warn;

use super::{
    config::Config,
    input::{Key, Signal},
    job::{Job, JobWatch},
    ledger::{ShellDir, ShellId, Size},
    messages::{Answer, Control},
    output::log::Log,
    output::watch::Watcher,
    state::{Phase, Status},
};
use crate::{Error, Result};
use sandbox_members::MARK_VARIABLE;

/// How long a shell may take to write down its environment.
const EXPORTS_LIMIT: Duration = Duration::from_secs(5);

/// A shell: one persistent bash, and its successors if it dies. Clones speak to the same one; dropping them leaves it alone.
#[derive(Debug, Clone)]
pub struct Shell(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    id: ShellId,
    config: Config,
    dir: ShellDir,
    log: Log,
    watcher: Arc<Watcher>,
    exporting: Mutex<()>,
    controls: mpsc::Sender<Control>,
    status: watch::Receiver<Status>,
    job: watch::Receiver<Option<JobWatch>>,
    gone: watch::Receiver<bool>,
}

/// Whether a person who attaches may type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Watches only.
    ReadOnly,
    /// Types along.
    Full,
}

/// The channels through which a shell's task is seen.
#[derive(Debug)]
pub(crate) struct Channels {
    pub(crate) controls: mpsc::Sender<Control>,
    pub(crate) status: watch::Receiver<Status>,
    pub(crate) job: watch::Receiver<Option<JobWatch>>,
    /// Whether nothing is left of the shell.
    pub(crate) gone: watch::Receiver<bool>,
}

impl Shell {
    pub(crate) fn new(
        id: ShellId,
        config: Config,
        dir: ShellDir,
        watcher: &Arc<Watcher>,
        channels: Channels,
    ) -> Result<Self> {
        let Channels { controls, status, job, gone } = channels;
        let (log, watcher) = (Log::open(dir.log(), watcher)?, Arc::clone(watcher));
        let exporting = Mutex::default();
        let shared =
            Shared { id, config, dir, log, watcher, exporting, controls, status, job, gone };
        Ok(Self(Arc::new(shared)))
    }

    /// Its name.
    pub fn id(&self) -> &ShellId {
        &self.0.id
    }

    /// What it is doing now.
    pub fn status(&self) -> Status {
        self.0.status.borrow().clone()
    }

    /// The size of its terminal.
    pub fn size(&self) -> Size {
        self.0.status.borrow().size
    }

    /// The latest command, running or ended; also one that an earlier owner started.
    pub fn latest(&self) -> Option<Job> {
        let watch = self.0.job.borrow().clone();
        watch.map(|watch| Job::new(self.clone(), watch))
    }

    /// Everything that the shell has printed.
    pub fn log(&self) -> &Log {
        &self.0.log
    }

    /// Runs a text as if it were typed at the prompt: any number of lines, heredocs, definitions.
    /// It may not contain NUL, which bash cannot represent. Fails if a command is running.
    pub async fn run(&self, text: impl Into<Vec<u8>>) -> Result<Job> {
        let text = text.into();
        if let Some(place) = memchr::memchr(0, &text) {
            return Err(Error::Invalid(format!(
                "the command has a NUL byte at {place}; bash cannot take it, remove or encode it"
            )));
        }
        let watch = self.ask(|answer| Control::Run { text, answer }).await?;
        Ok(Job::new(self.clone(), watch))
    }

    /// The environment that the shell gives to programs, as it is now: what was exported in it, without
    /// what belongs to the shell alone. The shell is asked by a key, at its prompt, and runs nothing for that; so
    /// this fails if a command is running.
    pub async fn exports(&self) -> Result<Vec<(OsString, OsString)>> {
        const ITS_OWN: [&str; 5] = [MARK_VARIABLE, "_", "PWD", "OLDPWD", "SHLVL"];
        let reading = || Error::io("reading the shell's exports");
        // Two who ask at once would take each other's answer.
        let _turn = self.0.exporting.lock().await;
        self.wait_until_started().await;
        let path = self.0.dir.exports();
        // Also if nobody waits for the answer any more.
        let _emptied = Emptied(&path);
        let watch = self.0.watcher.watch(&path).map_err(reading())?;
        self.ask(|answer| Control::Exports { answer }).await?;
        let writing = async {
            loop {
                let grown = watch.grown();
                let exports = fs::read(&path).map_err(reading())?;
                // Each variable has a NUL at its end, and so has the whole.
                if exports.ends_with(b"\0\0") || exports == b"\0" {
                    return Ok(exports);
                }
                grown.await;
            }
        };
        let exports = time::timeout(EXPORTS_LIMIT, writing).await.unwrap_or_else(|_| {
            let problem = "the shell does not answer at its prompt; interrupt it, or try again";
            Err(reading()(io::Error::new(io::ErrorKind::TimedOut, problem)))
        })?;
        let variables = exports.split(|&byte| byte == 0).filter_map(|variable| {
            let equals = memchr::memchr(b'=', variable)?;
            let (name, value) = (variable[..equals].to_vec(), variable[equals + 1..].to_vec());
            Some((OsString::from_vec(name), OsString::from_vec(value)))
        });
        Ok(variables.filter(|(name, _)| !ITS_OWN.iter().any(|own| name == own)).collect())
    }

    /// Types bytes into the terminal, exactly as they are. Add `\r` for the Enter key.
    pub async fn type_bytes(&self, bytes: impl Into<Vec<u8>>) -> Result<()> {
        let bytes = bytes.into();
        self.ask(|answer| Control::Type { bytes, answer }).await
    }

    /// Presses keys, one after the other.
    pub async fn press(&self, keys: impl Into<Vec<Key>>) -> Result<()> {
        let keys = keys.into();
        self.ask(|answer| Control::Press { keys, answer }).await
    }

    /// Signals the programs in the foreground, or the shell's own command if there are none.
    pub async fn signal(&self, signal: Signal) -> Result<()> {
        self.ask(|answer| Control::Signal { signal, answer }).await
    }

    /// Changes the size of the terminal.
    pub async fn resize(&self, size: Size) -> Result<()> {
        self.ask(|answer| Control::Resize { size, answer }).await
    }

    /// Ends the shell with all its programs and removes its files. Closing twice is harmless.
    pub async fn close(&self) -> Result<()> {
        match self.ask(|answer| Control::Close { answer }).await {
            Err(Error::ShellClosed(_) | Error::ServerGone) => Ok(()),
            result => result,
        }
    }

    /// The program and arguments with which a person can attach to the shell.
    pub fn attach_arguments(&self, access: Access) -> Vec<OsString> {
        let config = &self.0.config;
        let mut arguments = vec![config.tmux.clone().into_os_string(), "-S".into()];
        arguments.push(config.socket().into_os_string());
        arguments.push("attach-session".into());
        if access == Access::ReadOnly {
            arguments.push("-r".into());
        }
        arguments.extend(["-t".into(), format!("=s-{}", self.0.id).into()]);
        arguments
    }

    /// The same as a line for a shell.
    pub fn attach_command(&self, access: Access) -> String {
        let arguments = self.attach_arguments(access);
        let words: Vec<_> = arguments.iter().map(|argument| argument.to_string_lossy()).collect();
        shlex::try_join(words.iter().map(|word| &**word)).expect("no argument has a NUL byte")
    }

    /// Returns when the shell is past its start, one way or the other.
    pub(crate) async fn wait_until_started(&self) -> Phase {
        let mut status = self.0.status.clone();
        match status.wait_for(|status| status.phase != Phase::Starting).await {
            Ok(status) => status.phase.clone(),
            Err(_) => Phase::Closed,
        }
    }

    /// Returns when the shell is over and nothing of it is left.
    pub(crate) async fn wait_until_gone(&self) {
        // A driver that is gone without a word leaves nothing to wait for either.
        let _ = self.0.gone.clone().wait_for(|is_gone| *is_gone).await;
    }

    /// Whether nothing of the shell is left, and nothing of it is being ended.
    pub(crate) fn is_gone(&self) -> bool {
        *self.0.gone.borrow() || self.0.controls.is_closed()
    }

    /// Returns when the task has taken in everything that is in the index by now.
    pub(crate) async fn catch_up(&self) {
        // A shell that is over has taken in everything.
        let _ = self.ask(|answer| Control::CatchUp { answer }).await;
    }

    /// Tells the task something that needs no answer.
    pub(crate) async fn tell(&self, control: Control) {
        // A shell that is over needs to be told nothing.
        let _ = self.0.controls.send(control).await;
    }

    async fn ask<T>(&self, control: impl FnOnce(Answer<T>) -> Control) -> Result<T> {
        let (answer, answered) = oneshot::channel();
        let closed = || match self.status().phase {
            Phase::Lost => Error::ServerGone,
            _ => Error::ShellClosed(self.0.id.clone()),
        };
        self.0.controls.send(control(answer)).await.map_err(|_| closed())?;
        answered.await.unwrap_or_else(|_| Err(closed()))
    }
}

/// A private file that is to be empty afterwards.
struct Emptied<'a>(&'a Path);

impl Drop for Emptied<'_> {
    fn drop(&mut self) {
        if let Err(error) = private_files::overwrite(self.0, b"") {
            warn!(%error, "exports of a shell stay in a private file");
        }
    }
}
