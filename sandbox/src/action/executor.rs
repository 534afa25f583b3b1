//! Carries actions out.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};

use tokio::sync::{Mutex, RwLock as AsyncRwLock, mpsc};

use super::{
    Action, ActionError, BrowserSettings, Edit, Observation, Page, Read, ReadAs, Request, Run,
    RunIn, RunObservation, browse,
    conversation::{Conversation, Patience},
    ipython::{Ipython, KernelSettings},
    text_files,
};
use crate::{
    files::{self, Editor, Parents, Removal, Workspace, WorkspacePath},
    shell::{Config, Session, SessionId, SessionSpec, Shells, Size, Wait},
};

/// Takes the output of a command as it comes.
pub type OutputSink = mpsc::Sender<String>;

/// The size of the terminals: wide, so that programs do not fold their lines.
const SIZE: Size = Size { columns: 1000, rows: 200 };

/// Where and how actions are carried out.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Of the shells.
    pub shells: Config,
    /// The name of the main shell. If it is there already, left by a server that was killed, it is
    /// used as it is.
    pub main: SessionId,
    /// The initial directory, which must exist.
    pub cwd: PathBuf,
    /// Variables to add to the environment of the shells.
    pub environment: Vec<(OsString, OsString)>,
    /// A command that is silent for so long is no longer waited for, unless it blocks.
    pub quiet: Duration,
    /// The files that may be touched. What commands touch is not decided here.
    pub workspace: Workspace,
    /// Whether and how cells are run.
    pub kernel: KernelSettings,
    /// Whether and how web pages are shown.
    pub browser: BrowserSettings,
}

/// Carries actions out on the shells and files of this machine. Actions may come at the same time.
#[derive(Debug)]
pub struct Executor {
    settings: Settings,
    /// None while they are opened anew, and after the end.
    shells: AsyncRwLock<Option<Shells>>,
    conversation: Mutex<Conversation>,
    /// The main session again, for those who do not want to wait for its command.
    main: RwLock<Session>,
    editor: Arc<Editor>,
    ipython: Ipython,
}

impl Executor {
    /// Starts the main shell and waits for its first prompt.
    pub async fn start(settings: Settings) -> Result<Self, ActionError> {
        let shells = Shells::open(settings.shells.clone()).await?;
        let session = match shells.get(&settings.main) {
            Some(session) => session,
            None => shells.create(spec(&settings, settings.main.clone(), &settings.cwd)).await?,
        };
        Ok(Self {
            shells: AsyncRwLock::new(Some(shells)),
            conversation: Mutex::new(Conversation::new(
                session.clone(),
                settings.shells.bash.clone(),
            )),
            main: RwLock::new(session),
            editor: Arc::default(),
            ipython: Ipython::new(settings.kernel.clone()),
            settings,
        })
    }

    /// Starts what takes long before anybody needs it.
    pub async fn warm_up(&self) {
        if let KernelSettings::Python(_) = self.settings.kernel {
            self.ipython.warm_up(&self.current_directory()).await;
        }
    }

    /// The initial directory.
    pub fn initial_directory(&self) -> &Path {
        &self.settings.cwd
    }

    /// The directory of the main shell at its latest prompt.
    pub fn current_directory(&self) -> PathBuf {
        self.main().status().cwd
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
        output: Option<&OutputSink>,
    ) -> Result<Observation, ActionError> {
        match request.action {
            Action::Run(run) => {
                let limit = request.timeout.filter(|limit| !limit.is_zero());
                let patience = Patience { quiet: self.settings.quiet, limit };
                let observed = match &run.shell {
                    RunIn::Main => self.run_in_main(&run, patience, output).await,
                    RunIn::Fresh { cwd } => {
                        let cwd = cwd.as_deref().unwrap_or(&self.settings.cwd);
                        self.run_in_fresh(&run, cwd, patience, output).await
                    }
                };
                observed.map(Observation::Run)
            }
            Action::RunIpython { code } => {
                let cwd = self.current_directory();
                let cell = self.ipython.run(code, cwd, request.timeout, output).await?;
                Ok(Observation::Cell(cell))
            }
            Action::Read(Read { path, form }) => {
                let place = match form {
                    ReadAs::Slice { .. } => self.place(&path)?,
                    ReadAs::View { .. } => self.absolute_place(&path)?,
                };
                let shown = match form {
                    ReadAs::Slice { .. } => place.absolute(),
                    ReadAs::View { .. } => path,
                };
                let content = blocking(move || text_files::read(&place, form)).await?;
                Ok(Observation::Read { path: shown, content })
            }
            Action::Write(write) => {
                let place = self.place(&write.path)?;
                let path = place.absolute();
                blocking(move || text_files::write(&place, &write)).await?;
                Ok(Observation::Written { path })
            }
            Action::Edit(edit) => self.edit(edit).await,
            Action::Browse { url } => {
                let is_web = url.starts_with("http://") || url.starts_with("https://");
                let page = match &self.settings.browser {
                    BrowserSettings::None => {
                        return Err(ActionError::Unavailable("this server shows no pages".into()));
                    }
                    browser if is_web => {
                        browse::browse(browser, &url, &self.settings.cwd, request.timeout).await?
                    }
                    _ => self.browse_file(&url).await?,
                };
                Ok(Observation::Browsed(page))
            }
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
                self.main().close().await?;
                Ok(Observation::Closed)
            }
        }
    }

    /// Ends all shells. Actions that come later are refused.
    pub async fn shut_down(&self) {
        self.ipython.shut_down().await;
        if let Some(shells) = self.shells.write().await.take() {
            let _ = shells.shut_down().await;
        }
    }

    async fn run_in_main(
        &self,
        run: &Run,
        patience: Patience,
        output: Option<&OutputSink>,
    ) -> Result<RunObservation, ActionError> {
        // First come, first served: the lock is fair.
        let mut conversation = self.conversation.lock().await;
        if conversation.session().status().phase.is_over() {
            let session = self.new_session(&self.settings.main, &self.settings.cwd).await?;
            *self.main.write().unwrap_or_else(PoisonError::into_inner) = session.clone();
            *conversation = Conversation::new(session, self.settings.shells.bash.clone());
        }
        conversation.run(run, patience, output).await
    }

    async fn run_in_fresh(
        &self,
        run: &Run,
        cwd: &Path,
        patience: Patience,
        output: Option<&OutputSink>,
    ) -> Result<RunObservation, ActionError> {
        let session = self.new_session(&SessionId::fresh(), cwd).await?;
        let _closing = CloseLater(session.clone());
        Conversation::new(session, self.settings.shells.bash.clone())
            .run(run, patience, output)
            .await
    }

    async fn new_session(&self, id: &SessionId, cwd: &Path) -> Result<Session, ActionError> {
        let shells = self.shells.read().await;
        let ended = || ActionError::Unavailable("the server is ending; start it again".into());
        let shells = shells.as_ref().ok_or_else(ended)?;
        Ok(shells.create(spec(&self.settings, id.clone(), cwd)).await?)
    }

    async fn edit(&self, edit: Edit) -> Result<Observation, ActionError> {
        let place = self.absolute_place(&edit.path)?;
        let editor = Arc::clone(&self.editor);
        let edited = blocking(move || text_files::edit(&place, &editor, &edit)).await?;
        Ok(Observation::Edited(edited))
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

    /// A file as a page. It is not given to a browser, which would go wherever the page leads.
    async fn browse_file(&self, url: &str) -> Result<Page, ActionError> {
        let place = self.place(Path::new(url.strip_prefix("file://").unwrap_or(url)))?;
        let url = format!("file://{}", place.absolute().display());
        blocking(move || Ok(browse::file_page(url, &files::read_bytes(&place, files::READ_BYTES)?)))
            .await
    }

    fn absolute_place(&self, path: &Path) -> Result<WorkspacePath, ActionError> {
        if path.is_absolute() {
            return Ok(self.settings.workspace.path(path)?);
        }
        let mut hint = "It must be absolute and start with `/`.".to_owned();
        let likely = self.settings.cwd.join(path);
        if likely.exists() {
            hint.push_str(&format!(" Did you mean {}?", likely.display()));
        }
        Err(ActionError::Argument { name: "path", value: path.display().to_string(), hint })
    }

    fn main(&self) -> Session {
        self.main.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Closes a session that was made for one command when that command has ended, even if nobody waits
/// for it any longer.
struct CloseLater(Session);

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

fn spec(settings: &Settings, id: SessionId, cwd: &Path) -> SessionSpec {
    let environment = settings.environment.clone();
    SessionSpec { id, cwd: cwd.to_owned(), environment, size: SIZE }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ActionError> + Send + 'static,
) -> Result<T, ActionError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| {
        Err(ActionError::Internal(format!("a file operation failed: {error}")))
    })
}
