//! Shells: found by name, started when needed, typed into, closed.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use bridge_protocol::methods::Empty;
use bridge_protocol::methods::shell::{
    self, AttachParams, AttachResult, ResizeParams, ShellInfo, ShellName, ShellRef, ShellState,
    SignalName,
};
use bridge_protocol::text::brief;
use bridge_protocol::{ErrorKind, WireError};
use openhands_edge::action::{ActionError, ShellSource};
use sandbox_files::{Kind, Links, Workspace, stat};
use sandbox_shells::{Access, Config, Key, Phase, Shell, ShellId, ShellSpec, Shells, Signal, Size};
use tokio::sync::RwLock;
use tokio::task::JoinSet;

use super::error::{self, with_reason};
use super::state;

/// Shells that there may be at once. Each is a handful of processes.
pub(super) const SHELLS: usize = 64;

/// All shells of the sandbox.
pub(super) struct ShellService {
    root: PathBuf,
    directory: PathBuf,
    workspace: Workspace,
    bash: PathBuf,
    /// None once we are shutting down. Held for reading while a shell is looked up or started.
    shells: RwLock<Option<Shells>>,
    /// Shells that are being started. They go on when whoever asked leaves: half a shell would be in
    /// nobody's care.
    starting: Mutex<JoinSet<()>>,
    /// Who wants a shell that another is just starting waits here, by its name.
    turns: Mutex<HashMap<ShellId, Arc<tokio::sync::Mutex<()>>>>,
}

impl ShellService {
    pub async fn open(
        config: Config,
        directory: PathBuf,
        workspace: Workspace,
    ) -> anyhow::Result<Self> {
        let bash = config.bash.clone();
        let root = config.root.clone();
        let opened = Shells::open(config).await;
        if opened.is_err() {
            state::remove_unused(&root);
        }
        let shells = opened?;
        Ok(Self {
            root,
            directory,
            workspace,
            bash,
            shells: RwLock::new(Some(shells)),
            starting: Mutex::default(),
            turns: Mutex::default(),
        })
    }

    pub async fn shut_down(&self) {
        let mut starting = std::mem::take(&mut *lock(&self.starting));
        starting.shutdown().await;
        if let Some(shells) = self.shells.write().await.take() {
            if let Err(error) = shells.shut_down().await {
                tracing::error!(%error, "the shells did not end cleanly");
            }
            state::remove_unused(&self.root);
        }
    }

    pub async fn create(
        self: &Arc<Self>,
        params: shell::CreateParams,
    ) -> Result<ShellInfo, WireError> {
        let default = Size::default();
        let id = match params.shell {
            Some(name) => parse(&name)?,
            None => ShellId::fresh(),
        };
        let spec = ShellSpec {
            id,
            cwd: match params.cwd {
                Some(cwd) => self.directory_at(&cwd)?,
                None => self.directory.clone(),
            },
            environment: params.environment.into_iter().map(into_os_strings).collect(),
            size: Size {
                columns: params.columns.unwrap_or(default.columns),
                rows: params.rows.unwrap_or(default.rows),
            },
        };
        let turn = self.turn(&spec.id);
        let _turn = turn.lock().await;
        info(&self.start(spec).await?)
    }

    pub async fn list(&self) -> Result<shell::ListResult, WireError> {
        let shells = self.shells.read().await;
        let sessions = shells.as_ref().map(Shells::list).unwrap_or_default();
        // One that has just been closed has lost its log.
        Ok(shell::ListResult { shells: sessions.iter().flat_map(info).collect() })
    }

    pub async fn input(&self, params: shell::InputParams) -> Result<Empty, WireError> {
        let session = self.session(&params.shell).await?;
        let end = if params.enter { "\r" } else { "" };
        session.type_bytes(params.text + end).await.map_err(error::shell)?;
        Ok(Empty {})
    }

    pub async fn keys(&self, params: shell::KeysParams) -> Result<Empty, WireError> {
        let keys: Result<Vec<Key>, _> = params.keys.iter().map(|key| key.parse()).collect();
        let keys = keys.map_err(error::shell)?;
        self.session(&params.shell).await?.press(keys).await.map_err(error::shell)?;
        Ok(Empty {})
    }

    pub async fn signal(&self, params: shell::SignalParams) -> Result<Empty, WireError> {
        let signal = match params.signal {
            SignalName::Int => Signal::Interrupt,
            SignalName::Term => Signal::Terminate,
            SignalName::Kill => Signal::Kill,
            SignalName::Quit => Signal::Quit,
            SignalName::Hup => Signal::HangUp,
            SignalName::Cont => Signal::Continue,
            SignalName::Stop => Signal::Stop,
            SignalName::Usr1 => Signal::User1,
            SignalName::Usr2 => Signal::User2,
        };
        self.session(&params.shell).await?.signal(signal).await.map_err(error::shell)?;
        Ok(Empty {})
    }

    pub async fn resize(&self, params: ResizeParams) -> Result<Empty, WireError> {
        let size = Size { columns: params.columns, rows: params.rows };
        self.session(&params.shell).await?.resize(size).await.map_err(error::shell)?;
        Ok(Empty {})
    }

    pub async fn close(&self, params: ShellRef) -> Result<Empty, WireError> {
        self.session(&params.shell).await?.close().await.map_err(error::shell)?;
        Ok(Empty {})
    }

    pub async fn attach(&self, params: AttachParams) -> Result<AttachResult, WireError> {
        let session = self.session(&params.shell).await?;
        let access = if params.read_only { Access::ReadOnly } else { Access::Full };
        let arguments = session.attach_arguments(access).into_iter();
        let arguments = arguments.map(|word| word.to_string_lossy().into_owned()).collect();
        Ok(AttachResult { command: session.attach_command(access), arguments })
    }

    /// A shell by its name.
    pub async fn session(&self, name: &ShellName) -> Result<Shell, WireError> {
        let id = parse(name)?;
        if let Some(session) = self.get(&id)? {
            return Ok(session);
        }
        if self.is_lost(&id) {
            return Err(error::server_gone());
        }
        let reason =
            format!("there is no shell {id}: start it with shell/create, or see shell/list");
        Err(with_reason(ErrorKind::NotFound, reason, "noSuchShell"))
    }

    /// The same, but a shell that may be created is.
    pub async fn session_for(
        self: &Arc<Self>,
        name: &ShellName,
        create: bool,
    ) -> Result<Shell, WireError> {
        if !create && name.0 != ShellName::MAIN {
            return self.session(name).await;
        }
        let id = parse(name)?;
        // Who asks for a new shell expects nothing of an old one; who does not is to know that it
        // is gone, with its directory and its variables.
        match self.get(&id)? {
            None if !create && self.is_lost(&id) => Err(error::server_gone()),
            Some(session) => Ok(session),
            None => {
                let spec = ShellSpec { id, ..ShellSpec::in_directory(&self.directory) };
                Ok(self.get_or_start(spec).await?)
            }
        }
    }

    /// A shell, if it is there. Nothing is awaited: only the end of the sandbox holds the lock.
    pub fn get(&self, id: &ShellId) -> Result<Option<Shell>, NoShell> {
        let shells = self.shells.try_read().map_err(|_| NoShell::Ending)?;
        shells.as_ref().map(|shells| shells.get(id)).ok_or(NoShell::Ending)
    }

    /// Whether a shell went down with its tmux server.
    fn is_lost(&self, id: &ShellId) -> bool {
        let shells = self.shells.try_read();
        shells.is_ok_and(|shells| shells.as_ref().is_some_and(|shells| shells.is_lost(id)))
    }

    /// The program that is the shell.
    pub fn bash(&self) -> PathBuf {
        self.bash.clone()
    }

    async fn get_or_start(self: &Arc<Self>, spec: ShellSpec) -> Result<Shell, NoShell> {
        let turn = self.turn(&spec.id);
        let _turn = turn.lock().await;
        match self.get(&spec.id)? {
            Some(session) => Ok(session),
            None => self.start(spec).await,
        }
    }

    async fn start(self: &Arc<Self>, spec: ShellSpec) -> Result<Shell, NoShell> {
        let service = Arc::clone(self);
        let (answer, answered) = tokio::sync::oneshot::channel();
        let work = async move {
            let shells = service.shells.read().await;
            let started = match shells.as_ref() {
                Some(shells) if shells.list().len() < SHELLS => {
                    shells.create(spec).await.map_err(NoShell::Failed)
                }
                Some(_) => Err(NoShell::TooMany),
                None => Err(NoShell::Ending),
            };
            let _ = answer.send(started);
        };
        {
            let mut starting = lock(&self.starting);
            while starting.try_join_next().is_some() {}
            starting.spawn(work);
        }
        answered.await.unwrap_or(Err(NoShell::Ending))
    }

    fn turn(&self, id: &ShellId) -> Arc<tokio::sync::Mutex<()>> {
        let mut turns = lock(&self.turns);
        turns.retain(|_, turn| Arc::strong_count(turn) > 1);
        Arc::clone(turns.entry(id.clone()).or_default())
    }

    fn directory_at(&self, path: &str) -> Result<PathBuf, WireError> {
        let path = self.workspace.path(path).map_err(error::file)?;
        match stat(&path, Links::Follow).map_err(error::file)?.kind {
            Kind::Directory => Ok(path.absolute()),
            kind => {
                let reason = format!("cwd is a {kind}: name a directory of the workspace");
                Err(with_reason(ErrorKind::InvalidParams, reason, "notDirectory"))
            }
        }
    }
}

/// Why there is no shell.
#[derive(Debug)]
pub(super) enum NoShell {
    TooMany,
    Ending,
    Failed(sandbox_shells::Error),
}

impl NoShell {
    fn too_many() -> String {
        format!("there are {SHELLS} shells already: close some first")
    }
}

impl From<NoShell> for WireError {
    fn from(why: NoShell) -> Self {
        match why {
            NoShell::TooMany => {
                with_reason(ErrorKind::NoSpace, NoShell::too_many(), "tooManyShells")
            }
            NoShell::Ending => ErrorKind::ShuttingDown.error("the sandbox is ending"),
            NoShell::Failed(error) => error::shell(error),
        }
    }
}

impl From<NoShell> for ActionError {
    fn from(why: NoShell) -> Self {
        match why {
            NoShell::TooMany => Self::Refused(NoShell::too_many()),
            NoShell::Ending => Self::Gone("the sandbox is ending".into()),
            NoShell::Failed(error) => error.into(),
        }
    }
}

/// The shells for agents.
pub(super) struct AgentShells(pub Arc<ShellService>);

impl ShellSource for AgentShells {
    async fn session(&self, spec: ShellSpec) -> Result<Shell, ActionError> {
        Ok(self.0.get_or_start(spec).await?)
    }
}

fn info(session: &Shell) -> Result<ShellInfo, WireError> {
    let status = session.status();
    let (state, command) = match status.phase {
        Phase::Starting => (ShellState::Starting, None),
        Phase::Idle => (ShellState::Idle, None),
        Phase::Running(seq) => (ShellState::Running, Some(seq)),
        Phase::Closed | Phase::Lost => (ShellState::Closed, None),
    };
    Ok(ShellInfo {
        shell: ShellName(session.id().to_string()),
        state,
        command,
        cwd: status.cwd.to_string_lossy().into_owned(),
        pid: status.shell.pid,
        columns: status.size.columns,
        rows: status.size.rows,
        restarts: status.restarts,
        log_end: session.log().len().map_err(error::shell)?,
    })
}

pub(super) fn parse(name: &ShellName) -> Result<ShellId, WireError> {
    name.0.parse().map_err(|_| {
        let reason =
            format!("{:?} is no name of a shell: use 1 to 64 of A-Z a-z 0-9 _ -", brief(&name.0));
        with_reason(ErrorKind::InvalidParams, reason, "invalid")
    })
}

fn into_os_strings((name, value): (String, String)) -> (OsString, OsString) {
    (name.into(), value.into())
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
