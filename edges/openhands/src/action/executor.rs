//! Carries actions out.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    sync::{Arc, PoisonError, RwLock},
    time::{Duration, SystemTime},
};

use tokio::sync::Mutex;

use super::{
    Action, ActionError, CallOff, Observation, OutputSink, Page, Request, Run, RunIn,
    RunObservation, Screenshot,
    conversation::{Conversation, Patience},
    ipython::{Ipython, KernelSettings},
    text_files,
};
use sandbox_cells::Environment;
use sandbox_files::{
    self as files, Editor, Parents, Removal, Workspace, WorkspacePath, WriteOptions,
};
use sandbox_pages::{Browser, Shown, Source};
use sandbox_shells::{Shell, ShellId, ShellSpec, Size, Wait};

/// The size of the terminals: wide, so that programs do not fold their lines.
const SIZE: Size = Size { columns: 1000, rows: 200 };
/// How long a web page may take if nobody says otherwise.
const PAGE_LIMIT: Duration = Duration::from_secs(30);
/// Where pictures of web pages are kept, in the initial directory.
const PICTURES: &str = ".browser_screenshots";

/// Where and how actions are carried out.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The name of the main shell. If it is there already, left by a server that was killed, it is
    /// used as it is.
    pub main: ShellId,
    /// The program that reads commands.
    pub bash: PathBuf,
    /// The initial directory, which must exist.
    pub cwd: PathBuf,
    /// Variables to add to the environment of the shells.
    pub environment: Vec<(OsString, OsString)>,
    /// A command that is silent for so long is no longer waited for, unless it blocks.
    pub quiet: Duration,
    /// The files that may be touched. What commands touch is not decided here.
    pub workspace: Workspace,
    /// How cells are run, if they are.
    pub kernel: Option<KernelSettings>,
    /// What shows web pages, if anything does.
    pub browser: Option<Browser>,
}

/// Where an executor gets its shells from.
pub trait ShellSource: Send + Sync + 'static {
    /// The session of this name, or a new one that is like this.
    fn session(&self, spec: ShellSpec) -> impl Future<Output = Result<Shell, ActionError>> + Send;
}

/// How an action is watched while it is under way.
#[derive(Debug, Clone, Copy)]
pub struct Watch<'a> {
    /// Takes what it prints as it comes.
    pub output: Option<&'a OutputSink>,
    /// Calls it off.
    pub call_off: &'a CallOff,
}

/// Carries the actions of one agent out on the shells and files of this machine. Actions may come at
/// the same time.
#[derive(Debug)]
pub struct Executor<S> {
    settings: Settings,
    shells: Arc<S>,
    /// With the main shell, since it was first needed.
    conversation: Mutex<Option<Conversation>>,
    /// The main session again, for those who do not want to wait for its command.
    main: RwLock<Option<Shell>>,
    editor: Arc<Editor>,
    ipython: Ipython,
}

impl<S: ShellSource> Executor<S> {
    /// Starts nothing yet. `main` is the main shell if it is there already; `editor` remembers what can
    /// be taken back.
    pub fn new(
        settings: Settings,
        shells: Arc<S>,
        main: Option<Shell>,
        editor: Arc<Editor>,
    ) -> Self {
        let conversation = main.clone().map(|main| Conversation::new(main, settings.bash.clone()));
        Self {
            conversation: Mutex::new(conversation),
            main: RwLock::new(main),
            shells,
            editor,
            ipython: Ipython::new(settings.kernel.clone()),
            settings,
        }
    }

    /// Starts the main shell before anybody needs it, and waits for its first prompt.
    pub async fn start_shell(&self) -> Result<(), ActionError> {
        self.conversation_in(&mut *self.conversation.lock().await).await?;
        Ok(())
    }

    /// The same for the kernel, if there shall be one.
    pub async fn start_kernel(&self) {
        if self.settings.kernel.is_some() {
            self.ipython.warm_up(&self.current_directory(), self.exports()).await;
        }
    }

    /// The initial directory.
    pub fn initial_directory(&self) -> &Path {
        &self.settings.cwd
    }

    /// The directory of the main shell at its latest prompt.
    pub fn current_directory(&self) -> PathBuf {
        self.main().map_or_else(|| self.settings.cwd.clone(), |main| main.status().cwd)
    }

    /// The files that may be touched.
    pub fn workspace(&self) -> &Workspace {
        &self.settings.workspace
    }

    /// Carries an action out. If the future is dropped, a command goes on, and what was begun with a
    /// file is finished.
    pub async fn execute(
        &self,
        request: Request,
        watch: Watch<'_>,
    ) -> Result<Observation, ActionError> {
        match request.action {
            Action::Run(run) => {
                let limit = request.timeout.filter(|limit| !limit.is_zero());
                let patience = Patience { quiet: self.settings.quiet, limit };
                let observed = match &run.shell {
                    RunIn::Main => self.run_in_main(&run, patience, watch).await,
                    RunIn::Fresh { cwd } => {
                        let cwd = cwd.as_deref().unwrap_or(&self.settings.cwd);
                        let cwd = self.current_directory().join(cwd);
                        self.run_in_fresh(&run, &cwd, patience, watch).await
                    }
                };
                observed.map(Observation::Run)
            }
            Action::RunIpython(cell) => {
                let cwd = self.current_directory();
                let exports = || self.exports();
                let cell = self.ipython.run(cell, cwd, exports, request.timeout, watch).await?;
                Ok(Observation::Cell(cell))
            }
            action => tokio::select! {
                done = self.act(action, request.timeout) => done,
                () = watch.call_off.called_off() => Err(ActionError::Cancelled),
            },
        }
    }

    /// Whether it has a shell or a kernel.
    pub fn has_processes(&self) -> bool {
        let has_shell = self.main().is_some_and(|main| !main.status().phase.is_over());
        has_shell || self.ipython.is_started()
    }

    /// Ends the kernel. Shells are their source's to end.
    pub async fn end_kernel(&self) {
        self.ipython.shut_down().await;
    }

    /// Carries out what is neither a command nor a cell.
    async fn act(
        &self,
        action: Action,
        timeout: Option<Duration>,
    ) -> Result<Observation, ActionError> {
        match action {
            Action::Run(_) | Action::RunIpython(_) => unreachable!("they were carried out"),
            Action::Read(read) => {
                let place = self.place(&read.path)?;
                blocking(move || text_files::read(&place, &read)).await
            }
            Action::Write(write) => {
                let place = self.place(&write.path)?;
                let path = place.absolute();
                blocking(move || text_files::write(&place, &write)).await?;
                Ok(Observation::Written { path })
            }
            Action::Edit(edit) => {
                let (place, editor) = (self.place(&edit.path)?, Arc::clone(&self.editor));
                blocking(move || text_files::edit(&place, &editor, &edit)).await
            }
            Action::Browse { url } => Ok(Observation::Browsed(self.browse(url, timeout).await?)),
            Action::CreateDirectory { path } => {
                self.change(&path, |place| files::create_directory(place, Parents::Create)).await
            }
            Action::RemoveDirectory { path } => self.change(&path, files::remove_directory).await,
            Action::Remove { path, recursive } => {
                let removal = if recursive { Removal::Recursive } else { Removal::File };
                self.change(&path, move |place| files::remove(place, removal)).await
            }
            Action::Close => {
                // A command that is being waited for must not hold this up.
                if let Some(main) = self.main() {
                    main.close().await?;
                }
                self.end_kernel().await;
                Ok(Observation::Closed)
            }
        }
    }

    /// What the main shell has exported, unless it is busy.
    async fn exports(&self) -> Option<Environment> {
        let conversation = self.conversation.try_lock().ok()?;
        conversation.as_ref()?.session().exports().await.ok()
    }

    async fn run_in_main(
        &self,
        run: &Run,
        patience: Patience,
        watch: Watch<'_>,
    ) -> Result<RunObservation, ActionError> {
        // First come, first served: the lock is fair.
        let mut conversation = tokio::select! {
            conversation = self.conversation.lock() => conversation,
            () = watch.call_off.called_off() => return Err(ActionError::Cancelled),
        };
        self.conversation_in(&mut conversation).await?.run(run, patience, watch).await
    }

    async fn run_in_fresh(
        &self,
        run: &Run,
        cwd: &Path,
        patience: Patience,
        watch: Watch<'_>,
    ) -> Result<RunObservation, ActionError> {
        let session = self.shells.session(self.spec(ShellId::fresh(), cwd)).await?;
        let _closing = CloseLater(session.clone());
        Conversation::new(session, self.settings.bash.clone()).run(run, patience, watch).await
    }

    /// The talk with the main shell, which is started if it is not there or no longer.
    async fn conversation_in<'a>(
        &self,
        slot: &'a mut Option<Conversation>,
    ) -> Result<&'a mut Conversation, ActionError> {
        let is_there = slot
            .as_ref()
            .is_some_and(|conversation| !conversation.session().status().phase.is_over());
        if !is_there {
            let spec = self.spec(self.settings.main.clone(), &self.settings.cwd);
            let session = self.shells.session(spec).await?;
            *self.main.write().unwrap_or_else(PoisonError::into_inner) = Some(session.clone());
            *slot = Some(Conversation::new(session, self.settings.bash.clone()));
        }
        Ok(slot.as_mut().expect("it is there now"))
    }

    fn spec(&self, id: ShellId, cwd: &Path) -> ShellSpec {
        let environment = self.settings.environment.clone();
        ShellSpec { id, cwd: cwd.to_owned(), environment, size: SIZE }
    }

    async fn change(
        &self,
        path: &Path,
        change: impl FnOnce(&WorkspacePath) -> Result<(), files::Error> + Send + 'static,
    ) -> Result<Observation, ActionError> {
        let place = self.place(path)?;
        let path = place.absolute();
        blocking(move || Ok(change(&place)?)).await?;
        Ok(Observation::Done { path })
    }

    /// A path that may be relative to the directory of the main shell.
    fn place(&self, path: &Path) -> Result<WorkspacePath, ActionError> {
        Ok(self.settings.workspace.path(self.current_directory().join(path))?)
    }

    async fn browse(&self, url: String, timeout: Option<Duration>) -> Result<Page, ActionError> {
        let Some(browser) = &self.settings.browser else {
            let reason = "no web pages are shown here; fetch them with a command, such as curl";
            return Err(ActionError::Unavailable(reason.into()));
        };
        let (url, source) = if url.starts_with("http://") || url.starts_with("https://") {
            (url.clone(), Source::Web(url))
        } else {
            let place = self.place(Path::new(url.strip_prefix("file://").unwrap_or(&url)))?;
            let url = format!("file://{}", place.absolute().display());
            let read = move || Ok(files::read_bytes(&place, files::READ_BYTES)?);
            (url, Source::Html(blocking(read).await?))
        };
        let Shown { text, png, error } =
            browser.show(source, timeout.unwrap_or(PAGE_LIMIT)).await?;
        let screenshot = match png {
            Some(png) => Some(self.keep_picture(png).await?),
            None => None,
        };
        Ok(Page { url, text, screenshot, error })
    }

    /// Keeps a picture in the initial directory, if that can be.
    async fn keep_picture(&self, png: Vec<u8>) -> Result<Screenshot, ActionError> {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let name = format!("{PICTURES}/screenshot_{}.png", now.as_millis());
        let place = self.settings.workspace.path(self.settings.cwd.join(name))?;
        blocking(move || {
            let kept = files::write(&place, &png, WriteOptions::default());
            Ok(Screenshot { png, path: kept.is_ok().then(|| place.absolute()) })
        })
        .await
    }

    fn main(&self) -> Option<Shell> {
        self.main.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Closes a session that was made for one command when that command has ended, even if nobody waits
/// for it any longer.
struct CloseLater(Shell);

impl Drop for CloseLater {
    fn drop(&mut self) {
        let session = self.0.clone();
        tokio::spawn(async move {
            if let Some(job) = session.latest() {
                let _ = job.wait(Wait::forever()).await;
            }
            let _ = session.close().await;
        });
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ActionError> + Send + 'static,
) -> Result<T, ActionError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| {
        Err(ActionError::Internal(format!("a file operation failed: {error}")))
    })
}
