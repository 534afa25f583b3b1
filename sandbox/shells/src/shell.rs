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

/// How long a shell may take to write its environment to a file.
const EXPORTS_LIMIT: Duration = Duration::from_secs(5);

/// A shell: one persistent bash, and its replacements if it dies. Clones refer to the same shell; dropping them does
/// not affect it.
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
    /// The person can only watch.
    ReadOnly,
    /// The person can type.
    Full,
}

/// The channels between the handles of a shell and its driver.
#[derive(Debug)]
pub(crate) struct Channels {
    pub(crate) controls: mpsc::Sender<Control>,
    pub(crate) status: watch::Receiver<Status>,
    pub(crate) job: watch::Receiver<Option<JobWatch>>,
    /// Whether all processes and files of the shell are gone.
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

    /// The name of the shell.
    pub fn id(&self) -> &ShellId {
        &self.0.id
    }

    /// The present status of the shell.
    pub fn status(&self) -> Status {
        self.0.status.borrow().clone()
    }

    /// The size of its terminal.
    pub fn size(&self) -> Size {
        self.0.status.borrow().size
    }

    /// The latest command, running or ended, even if an earlier owner started it.
    pub fn latest(&self) -> Option<Job> {
        let watch = self.0.job.borrow().clone();
        watch.map(|watch| Job::new(self.clone(), watch))
    }

    /// Everything that the shell has printed.
    pub fn log(&self) -> &Log {
        &self.0.log
    }

    /// Runs a text as if it were typed at the prompt: any number of lines, here-documents, definitions. It must not
    /// contain NUL, which bash cannot represent. Fails if a command is running.
    pub async fn run(&self, text: impl Into<Vec<u8>>) -> Result<Job> {
        let text = text.into();
        if let Some(place) = memchr::memchr(0, &text) {
            return Err(Error::Invalid(format!(
                "the command has a NUL byte at {place}, which bash cannot represent; remove or encode it"
            )));
        }
        let watch = self.request(|answer| Control::Run { text, answer }).await?;
        Ok(Job::new(self.clone(), watch))
    }

    /// Returns the environment that the shell gives to programs: its exported variables, except those that concern
    /// only the shell itself. The shell is asked by a key at its prompt and runs no command for it, so this fails if
    /// a command is running.
    pub async fn exports(&self) -> Result<Vec<(OsString, OsString)>> {
        const SHELL_ONLY: [&str; 5] = [MARK_VARIABLE, "_", "PWD", "OLDPWD", "SHLVL"];
        let reading = || Error::io("reading the shell's exports");
        // One at a time: two callers would read each other's answer.
        let _turn = self.0.exporting.lock().await;
        self.wait_until_started().await;
        let path = self.0.dir.exports();
        // The file is emptied even if this call is cancelled.
        let _empty_on_drop = EmptyOnDrop(&path);
        let watch = self.0.watcher.watch(&path).map_err(reading())?;
        self.request(|answer| Control::Exports { answer }).await?;
        let writing = async {
            loop {
                let grown = watch.grown();
                let exports = fs::read(&path).map_err(reading())?;
                // Each variable ends with a NUL, and so does the whole list.
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
        Ok(variables.filter(|(name, _)| !SHELL_ONLY.iter().any(|own| name == own)).collect())
    }

    /// Types bytes into the terminal, exactly as they are. Add `\r` for the Enter key.
    pub async fn type_bytes(&self, bytes: impl Into<Vec<u8>>) -> Result<()> {
        let bytes = bytes.into();
        self.request(|answer| Control::Type { bytes, answer }).await
    }

    /// Presses keys, one after the other.
    pub async fn press(&self, keys: impl Into<Vec<Key>>) -> Result<()> {
        let keys = keys.into();
        self.request(|answer| Control::Press { keys, answer }).await
    }

    /// Sends a signal to the foreground programs, or to the shell's own command if there are none.
    pub async fn signal(&self, signal: Signal) -> Result<()> {
        self.request(|answer| Control::Signal { signal, answer }).await
    }

    /// Changes the size of the terminal.
    pub async fn resize(&self, size: Size) -> Result<()> {
        self.request(|answer| Control::Resize { size, answer }).await
    }

    /// Ends the shell with all its programs, and removes its files. Closing twice is harmless.
    pub async fn close(&self) -> Result<()> {
        match self.request(|answer| Control::Close { answer }).await {
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

    /// The command line with which a person can attach to the shell, quoted for `sh`.
    pub fn attach_command(&self, access: Access) -> String {
        let arguments = self.attach_arguments(access);
        let words: Vec<_> = arguments.iter().map(|argument| argument.to_string_lossy()).collect();
        shlex::try_join(words.iter().map(|word| &**word)).expect("no argument has a NUL byte")
    }

    /// Returns when the start of the shell has succeeded or failed.
    pub(crate) async fn wait_until_started(&self) -> Phase {
        let mut status = self.0.status.clone();
        match status.wait_for(|status| status.phase != Phase::Starting).await {
            Ok(status) => status.phase.clone(),
            Err(_) => Phase::Closed,
        }
    }

    /// Returns when the shell is closed and all its processes and files are gone.
    pub(crate) async fn wait_until_gone(&self) {
        // If the driver has ended without this notice, there is nothing to wait for either.
        let _ = self.0.gone.clone().wait_for(|is_gone| *is_gone).await;
    }

    /// Whether all processes and files of the shell are gone, or no driver is left to remove them.
    pub(crate) fn is_gone(&self) -> bool {
        *self.0.gone.borrow() || self.0.controls.is_closed()
    }

    /// Returns when the driver has processed all lines that are in the index now.
    pub(crate) async fn catch_up(&self) {
        // An error means that the shell is closed; then there is nothing left to process.
        let _ = self.request(|answer| Control::CatchUp { answer }).await;
    }

    /// Sends the driver a message that needs no answer.
    pub(crate) async fn notify(&self, control: Control) {
        // An error means that the shell is closed; then the message does not matter.
        let _ = self.0.controls.send(control).await;
    }

    async fn request<T>(&self, control: impl FnOnce(Answer<T>) -> Control) -> Result<T> {
        let (answer, answered) = oneshot::channel();
        let closed = || match self.status().phase {
            Phase::Lost => Error::ServerGone,
            _ => Error::ShellClosed(self.0.id.clone()),
        };
        self.0.controls.send(control(answer)).await.map_err(|_| closed())?;
        answered.await.unwrap_or_else(|_| Err(closed()))
    }
}

/// Empties a private file when dropped.
struct EmptyOnDrop<'a>(&'a Path);

impl Drop for EmptyOnDrop<'_> {
    fn drop(&mut self) {
        if let Err(error) = private_files::overwrite(self.0, b"") {
            warn!(%error, "the file with a shell's exports could not be emptied; it is private to the user");
        }
    }
}
