//! Carries out actions.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, SystemTime},
};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use bridge_protocol::ErrorKind as WireKind;
use bridge_protocol::methods::shell::ShellName;
use bridge_protocol::methods::{Empty, MethodType, file, page, shell};
use tokio::sync::Mutex;

use super::{
    Action, ActionError, Cancellation, Grammar, Observation, OutputSink, Page, Request, Run, RunIn,
    RunObservation, Screenshot,
    agent_shell::create_params,
    cells,
    command_tracker::CommandTracker,
    error::reason,
    files::Files,
    parsed_run::{WaitLimits, milliseconds},
};
use crate::tools::{Listener, Tools};

/// The directory for screenshots of web pages, in the initial directory.
const PICTURES: &str = ".browser_screenshots";

/// The settings of an executor.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The name of the main shell. An existing shell of this name is used.
    pub main: ShellName,
    /// Decides whether a text is one command.
    pub grammar: Grammar,
    /// How long a command may print nothing before the wait for it ends. Does not apply to blocking
    /// commands.
    pub quiet: Duration,
    /// Whether web pages are shown.
    pub pages: bool,
}

/// How a caller follows an action.
#[derive(Debug, Clone, Copy)]
pub struct Watch<'a> {
    /// Receives output as it comes.
    pub output: Option<&'a OutputSink>,
    /// Cancels the action.
    pub cancellation: &'a Arc<Cancellation>,
}

/// Carries out the actions of one agent with the tools of one runtime. Actions may overlap.
#[derive(Debug)]
pub struct Executor<T> {
    settings: Settings,
    tools: T,
    /// Locked by the running command of the main shell; other commands wait here, in order.
    tracker: Mutex<CommandTracker<T>>,
    /// Whether the main shell was closed since its last command.
    is_closed: AtomicBool,
    files: Files<T>,
}

impl<T: Tools> Executor<T> {
    /// Does not start anything.
    pub fn new(settings: Settings, tools: T) -> Self {
        let Settings { main, grammar, .. } = &settings;
        Self {
            tracker: Mutex::new(CommandTracker::new(tools.clone(), main.clone(), grammar.clone())),
            is_closed: AtomicBool::new(false),
            files: Files::new(tools.clone()),
            tools,
            settings,
        }
    }

    /// Starts the main shell in advance, and waits for its first prompt.
    pub async fn start_shell(&self) -> Result<(), ActionError> {
        self.tracker.lock().await.open().await
    }

    /// The directory in which the main shell starts.
    pub async fn initial_directory(&self) -> Result<PathBuf, ActionError> {
        self.tools.directory().await.map_err(ActionError::Call)
    }

    /// The directory of the main shell at its latest prompt, or the directory in which it would
    /// start.
    pub async fn current_directory(&self) -> Result<PathBuf, ActionError> {
        match self.main_shell().await? {
            Some(shell) => Ok(shell.cwd.into()),
            None => self.initial_directory().await,
        }
    }

    /// Carries out an action. If the future is dropped, a command or a cell goes on, and a file
    /// operation runs to its end.
    pub async fn execute(
        &self,
        request: Request,
        watch: Watch<'_>,
    ) -> Result<Observation, ActionError> {
        match request.action {
            Action::Run(run) => {
                let limit = request.timeout.filter(|limit| !limit.is_zero());
                let limits = WaitLimits { quiet: self.settings.quiet, limit };
                let observed = match &run.shell {
                    RunIn::Main => self.run_in_main(&run, limits, watch).await,
                    RunIn::Fresh { cwd } => {
                        self.run_in_fresh(&run, cwd.as_deref(), limits, watch).await
                    }
                };
                observed.map(Observation::Run)
            }
            Action::RunIpython(cell) => {
                let shell = self.settings.main.clone();
                let cell = cells::run(&self.tools, shell, cell, request.timeout, watch).await?;
                Ok(Observation::Cell(cell))
            }
            action => tokio::select! {
                done = self.act(action, request.timeout) => done,
                () = watch.cancellation.cancelled() => Err(ActionError::Cancelled),
            },
        }
    }

    /// Whether the main shell exists.
    pub async fn has_shell(&self) -> Result<bool, ActionError> {
        Ok(self.main_shell().await?.is_some())
    }

    /// Carries out an action that is neither a command nor a cell.
    async fn act(
        &self,
        action: Action,
        timeout: Option<Duration>,
    ) -> Result<Observation, ActionError> {
        match action {
            Action::Run(_) | Action::RunIpython(_) => unreachable!("execute handles them"),
            Action::Read(read) => self.files.read(&self.absolute(&read.path).await?, &read).await,
            Action::Write(write) => {
                let path = self.absolute(&write.path).await?;
                self.files.write(&path, &write).await?;
                Ok(Observation::Written { path })
            }
            Action::Edit(edit) => self.files.edit(&self.absolute(&edit.path).await?, &edit).await,
            Action::Browse { url } => Ok(Observation::Browsed(self.browse(url, timeout).await?)),
            Action::CreateDirectory { path } => {
                let make = |path| file::MakeDirectoryParams { path, parents: true };
                self.change::<file::MakeDirectory>(&path, make).await
            }
            Action::RemoveDirectory { path } => {
                self.change::<file::RemoveDirectory>(&path, |path| file::PathParams { path }).await
            }
            Action::Remove { path, recursive } => {
                let remove = |path| file::RemoveParams { path, recursive };
                self.change::<file::Remove>(&path, remove).await
            }
            Action::Close => {
                self.close().await?;
                Ok(Observation::Closed)
            }
        }
    }

    /// Ends the main shell with its kernel. Does not wait for a running command.
    async fn close(&self) -> Result<(), ActionError> {
        let params = shell::ShellRef { shell: self.settings.main.clone() };
        let closed = self.tools.call::<shell::Close>(&params, Listener::default()).await;
        self.is_closed.store(true, Ordering::SeqCst);
        match closed.map_err(ActionError::of_shell) {
            Ok(_) | Err(ActionError::NoShell(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    async fn run_in_main(
        &self,
        run: &Run,
        limits: WaitLimits,
        watch: Watch<'_>,
    ) -> Result<RunObservation, ActionError> {
        // The lock is fair: first come, first served.
        let mut tracker = tokio::select! {
            tracker = self.tracker.lock() => tracker,
            () = watch.cancellation.cancelled() => return Err(ActionError::Cancelled),
        };
        if self.is_closed.swap(false, Ordering::SeqCst) {
            tracker.reset();
        }
        tracker.run(run, limits, watch).await
    }

    async fn run_in_fresh(
        &self,
        run: &Run,
        cwd: Option<&Path>,
        limits: WaitLimits,
        watch: Watch<'_>,
    ) -> Result<RunObservation, ActionError> {
        let cwd = match cwd {
            Some(cwd) => Some(self.absolute(cwd).await?.to_string_lossy().into_owned()),
            None => None,
        };
        let params = shell::CreateParams { cwd, ..create_params() };
        let created = self.tools.call::<shell::Create>(&params, Listener::default()).await;
        let shell = created.map_err(ActionError::of_shell)?.shell;
        let _closing = CloseLater { tools: self.tools.clone(), shell: shell.clone() };
        let (tools, grammar) = (self.tools.clone(), self.settings.grammar.clone());
        CommandTracker::with_new(tools, shell, grammar).run(run, limits, watch).await
    }

    async fn change<M: MethodType<Result = Empty>>(
        &self,
        path: &Path,
        params: impl FnOnce(String) -> M::Params,
    ) -> Result<Observation, ActionError>
    where
        M::Params: Send + Sync,
    {
        let path = self.absolute(path).await?;
        let params = params(path.to_string_lossy().into_owned());
        self.files.call::<M>(&params).await?;
        Ok(Observation::Done { path })
    }

    /// The path as an absolute one. Relative paths begin in the directory of the main shell.
    async fn absolute(&self, path: &Path) -> Result<PathBuf, ActionError> {
        if path.is_absolute() {
            return Ok(path.to_owned());
        }
        Ok(self.current_directory().await?.join(path))
    }

    /// The main shell, if it exists.
    async fn main_shell(&self) -> Result<Option<shell::ShellInfo>, ActionError> {
        let listed = self.tools.call::<shell::List>(&Empty {}, Listener::default()).await;
        let mut shells = listed.map_err(ActionError::of_shell)?.shells.into_iter();
        Ok(shells.find(|shell| {
            shell.shell == self.settings.main && shell.state != shell::ShellState::Closed
        }))
    }

    async fn browse(&self, url: String, timeout: Option<Duration>) -> Result<Page, ActionError> {
        if !self.settings.pages {
            let reason = "web pages are not available here: fetch them with a command such as curl";
            return Err(ActionError::Unavailable(reason.into()));
        }
        let url = if url.starts_with("http://") || url.starts_with("https://") {
            url
        } else {
            let path =
                self.absolute(Path::new(url.strip_prefix("file://").unwrap_or(&url))).await?;
            path.to_string_lossy().into_owned()
        };
        let params = page::BrowseParams { url, limit_ms: timeout.map(milliseconds) };
        let shown = self.tools.call::<page::Browse>(&params, Listener::default()).await;
        let page::BrowseResult { url, text, png_base64, error } = shown.map_err(|error| {
            let text = error.message().to_owned();
            match (reason(&error).as_deref(), WireKind::from_code(error.code())) {
                (Some("unavailable"), _) | (None, Some(WireKind::MethodNotFound)) => {
                    ActionError::Unavailable(text)
                }
                (Some("system"), _) => ActionError::Internal(text),
                _ => ActionError::of_file(error),
            }
        })?;
        let screenshot = match png_base64 {
            Some(base64) => Some(self.save_picture(base64).await?),
            None => None,
        };
        Ok(Page { url, text, screenshot, error })
    }

    /// Saves a screenshot in the initial directory, if possible.
    async fn save_picture(&self, base64: String) -> Result<Screenshot, ActionError> {
        let png = BASE64_STANDARD.decode(&base64).map_err(|error| {
            ActionError::Internal(format!("the screenshot cannot be decoded: {error}"))
        })?;
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let name = format!("{PICTURES}/screenshot_{}.png", now.as_millis());
        let path = self.initial_directory().await?.join(name);
        let is_saved = self.files.save_picture(&path, base64).await;
        Ok(Screenshot { png, path: is_saved.then_some(path) })
    }
}

/// Closes a shell that was made for one command when that command has ended, even if nobody waits
/// for the command any more.
struct CloseLater<T: Tools> {
    tools: T,
    shell: ShellName,
}

impl<T: Tools> Drop for CloseLater<T> {
    fn drop(&mut self) {
        let (tools, shell) = (self.tools.clone(), self.shell.clone());
        tokio::spawn(async move {
            let wait = shell::WaitParams { shell: shell.clone(), ..Default::default() };
            // An error means that there is no command or no shell: then there is nothing to wait
            // for.
            let _ = tools.call::<shell::Wait>(&wait, Listener::default()).await;
            let close = shell::ShellRef { shell };
            if let Err(error) = tools.call::<shell::Close>(&close, Listener::default()).await {
                tracing::debug!(shell = %close.shell, %error, "cannot close the shell of one command");
            }
        });
    }
}
