//! The one service over shells: finds a shell by its name or starts it, limits their number, runs
//! commands in them and streams the output.
//!
//! It serves `shell/*` of the sandbox host, the OpenHands edge through these tools, and the
//! commands of `sandbox shell`.

mod command;
mod follow;
mod output;
mod reservations;

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bridge_protocol::methods::Empty;
use bridge_protocol::methods::shell::{
    self, AttachParams, AttachResult, ResizeParams, ShellInfo, ShellName, ShellRef, ShellState,
    SignalName,
};
use bridge_protocol::text::brief;
use bridge_protocol::{ErrorKind, WireError};
use sandbox_files::{Kind, Links, Workspace, stat};
use sandbox_shells::{Access, Config, Key, Phase, Shell, ShellId, ShellSpec, Shells, Signal, Size};
use tokio::sync::RwLock;
use tokio::task::JoinSet;

use crate::error::{self, with_reason};
use crate::{lock, state};
use reservations::Reservations;

/// The largest number of shells at once. Each has several processes. Beyond it: *NoSpace*.
pub const MAX_SHELLS: usize = 64;

/// How long typing waits until a command that was just sent has begun. After that it types anyway.
const BEGIN_TIMEOUT: Duration = Duration::from_secs(2);

/// All shells of one state directory.
#[derive(Debug)]
pub struct ShellService {
    root: PathBuf,
    directory: PathBuf,
    workspace: Workspace,
    /// `None` once the service is ending. Locked for reading while a shell is looked up or started.
    shells: RwLock<Option<Shells>>,
    /// Shells that are being started. A start goes on when its caller leaves: a half-started shell
    /// would have no owner.
    starting: Mutex<JoinSet<()>>,
    /// Room for the shells that are being started.
    reservations: Reservations,
    /// A lock per shell name: callers that want a shell wait while it is being started.
    start_locks: Mutex<HashMap<ShellId, Arc<tokio::sync::Mutex<()>>>>,
}

impl ShellService {
    /// Opens the service, and adopts the shells that an earlier owner of the state directory has
    /// left. New shells start in `directory`; callers may choose another directory of `workspace`.
    pub async fn open(
        config: Config,
        directory: PathBuf,
        workspace: Workspace,
    ) -> Result<Self, sandbox_shells::Error> {
        let root = config.root.clone();
        let opened = Shells::open(config).await;
        match &opened {
            // A directory that was refused is not ours to remove.
            Ok(_) | Err(sandbox_shells::Error::UnusableRoot { .. }) => {}
            Err(_) => state::remove_unused(&root),
        }
        Ok(Self {
            root,
            directory,
            workspace,
            shells: RwLock::new(Some(opened?)),
            starting: Mutex::default(),
            reservations: Reservations::default(),
            start_locks: Mutex::default(),
        })
    }

    /// Ends all shells with their programs, and removes the state directory.
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

    /// `shell/create`.
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
        let existing = if params.reuse { Existing::Use } else { Existing::Refuse };
        info(&self.start(spec, existing).await?)
    }

    /// `shell/list`.
    pub async fn list(&self) -> Result<shell::ListResult, WireError> {
        let shells = self.shells.read().await;
        let listed = shells.as_ref().map(Shells::list).unwrap_or_default();
        // A shell without info was just closed: its log is gone.
        Ok(shell::ListResult { shells: listed.iter().flat_map(info).collect() })
    }

    /// `shell/input`.
    pub async fn input(&self, params: shell::InputParams) -> Result<Empty, WireError> {
        let shell = self.begun(&params.shell).await?;
        let end = if params.enter { "\r" } else { "" };
        shell.type_bytes(params.text + end).await.map_err(error::shell)?;
        Ok(Empty {})
    }

    /// `shell/keys`.
    pub async fn keys(&self, params: shell::KeysParams) -> Result<Empty, WireError> {
        let keys: Result<Vec<Key>, _> = params.keys.iter().map(|key| key.parse()).collect();
        let keys = keys.map_err(error::shell)?;
        self.begun(&params.shell).await?.press(keys).await.map_err(error::shell)?;
        Ok(Empty {})
    }

    /// `shell/signal`.
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
        self.begun(&params.shell).await?.signal(signal).await.map_err(error::shell)?;
        Ok(Empty {})
    }

    /// `shell/resize`.
    pub async fn resize(&self, params: ResizeParams) -> Result<Empty, WireError> {
        let size = Size { columns: params.columns, rows: params.rows };
        self.shell(&params.shell)?.resize(size).await.map_err(error::shell)?;
        Ok(Empty {})
    }

    /// `shell/close`.
    pub async fn close(&self, params: ShellRef) -> Result<Empty, WireError> {
        self.shell(&params.shell)?.close().await.map_err(error::shell)?;
        Ok(Empty {})
    }

    /// `shell/attach`.
    pub async fn attach(&self, params: AttachParams) -> Result<AttachResult, WireError> {
        let shell = self.shell(&params.shell)?;
        let access = if params.read_only { Access::ReadOnly } else { Access::Full };
        let arguments = shell.attach_arguments(access).into_iter();
        let arguments = arguments.map(|word| word.to_string_lossy().into_owned()).collect();
        Ok(AttachResult { command: shell.attach_command(access), arguments })
    }

    /// The directory of a shell at its latest prompt, or the directory in which it would start.
    pub(crate) fn current_directory(&self, id: &ShellId) -> Result<PathBuf, NoShell> {
        Ok(self.get(id)?.map_or_else(|| self.directory.clone(), |shell| shell.status().cwd))
    }

    /// The shell of this name, if it exists. Does not block: the write lock is held only at the end
    /// of the service.
    pub(crate) fn get(&self, id: &ShellId) -> Result<Option<Shell>, NoShell> {
        let shells = self.shells.try_read().map_err(|_| NoShell::Ending)?;
        shells.as_ref().map(|shells| shells.get(id)).ok_or(NoShell::Ending)
    }

    /// The shell of this name, or an error.
    fn shell(&self, name: &ShellName) -> Result<Shell, WireError> {
        let id = parse(name)?;
        if let Some(shell) = self.get(&id)? {
            return Ok(shell);
        }
        if self.is_lost(&id) {
            return Err(error::server_gone());
        }
        let reason =
            format!("there is no shell {id}: start it with shell/create, or see shell/list");
        Err(with_reason(ErrorKind::NotFound, reason, "noSuchShell"))
    }

    /// The shell of this name, once a command that was just sent to it has begun. Earlier input
    /// would reach bash at its prompt instead of the command.
    async fn begun(&self, name: &ShellName) -> Result<Shell, WireError> {
        let shell = self.shell(name)?;
        if let Some(job) = shell.latest()
            && let Ok(begun) = tokio::time::timeout(BEGIN_TIMEOUT, job.started()).await
        {
            begun.map_err(error::shell)?;
        }
        Ok(shell)
    }

    /// The shell of this name. It is started if the caller asked for that, or if it is `main`.
    async fn get_or_create(
        self: &Arc<Self>,
        name: &ShellName,
        create: bool,
    ) -> Result<Shell, WireError> {
        if !create && name.0 != ShellName::MAIN {
            return self.shell(name);
        }
        let id = parse(name)?;
        // With `create`, start a fresh shell silently. Without it, report that the old one died: its directory and
        // variables are lost.
        match self.get(&id)? {
            None if !create && self.is_lost(&id) => Err(error::server_gone()),
            Some(shell) => Ok(shell),
            None => {
                let spec = ShellSpec { id, ..ShellSpec::in_directory(&self.directory) };
                Ok(self.start(spec, Existing::Use).await?)
            }
        }
    }

    /// Whether a shell died with its tmux server.
    fn is_lost(&self, id: &ShellId) -> bool {
        let shells = self.shells.try_read();
        shells.is_ok_and(|shells| shells.as_ref().is_some_and(|shells| shells.is_lost(id)))
    }

    async fn start(
        self: &Arc<Self>,
        spec: ShellSpec,
        existing: Existing,
    ) -> Result<Shell, NoShell> {
        let start_lock = self.start_lock(&spec.id).lock_owned().await;
        if existing == Existing::Use
            && let Some(shell) = self.get(&spec.id)?
        {
            return Ok(shell);
        }
        let service = Arc::clone(self);
        let (answer, answered) = tokio::sync::oneshot::channel();
        let work = async move {
            // Held until the start is over, even if the caller leaves.
            let _start_lock = start_lock;
            let shells = service.shells.read().await;
            let started = match shells.as_ref() {
                Some(shells) => service.create_within_limit(shells, spec).await,
                None => Err(NoShell::Ending),
            };
            // The shell stays even if the caller has left meanwhile.
            let _ = answer.send(started);
        };
        {
            let mut starting = lock(&self.starting);
            while starting.try_join_next().is_some() {}
            starting.spawn(work);
        }
        answered.await.unwrap_or(Err(NoShell::Ending))
    }

    async fn create_within_limit(
        &self,
        shells: &Shells,
        spec: ShellSpec,
    ) -> Result<Shell, NoShell> {
        let listed = || shells.list().iter().map(|shell| shell.id().clone()).collect();
        let room = self.reservations.reserve(&spec.id, MAX_SHELLS, listed);
        let _room = room.ok_or(NoShell::TooMany)?;
        shells.create(spec).await.map_err(NoShell::Failed)
    }

    fn start_lock(&self, id: &ShellId) -> Arc<tokio::sync::Mutex<()>> {
        let mut locks = lock(&self.start_locks);
        locks.retain(|_, held| Arc::strong_count(held) > 1);
        Arc::clone(locks.entry(id.clone()).or_default())
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

/// What to do if a shell of this name exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Existing {
    /// Use it.
    Use,
    /// Fail.
    Refuse,
}

/// Why a shell could not be found or started.
#[derive(Debug)]
pub(crate) enum NoShell {
    /// There are already [`MAX_SHELLS`] shells.
    TooMany,
    /// The service is ending.
    Ending,
    /// The shell did not start.
    Failed(sandbox_shells::Error),
}

impl From<NoShell> for WireError {
    fn from(why: NoShell) -> Self {
        match why {
            NoShell::TooMany => {
                let reason = format!("there are {MAX_SHELLS} shells already: close some first");
                with_reason(ErrorKind::NoSpace, reason, "tooManyShells")
            }
            NoShell::Ending => ErrorKind::ShuttingDown.error("the sandbox is ending"),
            NoShell::Failed(error) => error::shell(error),
        }
    }
}

fn info(shell: &Shell) -> Result<ShellInfo, WireError> {
    let status = shell.status();
    let (state, command) = match status.phase {
        Phase::Starting => (ShellState::Starting, None),
        Phase::Idle => (ShellState::Idle, None),
        Phase::Running(seq) => (ShellState::Running, Some(seq)),
        Phase::Closed | Phase::Lost => (ShellState::Closed, None),
    };
    Ok(ShellInfo {
        shell: ShellName(shell.id().to_string()),
        state,
        command,
        cwd: status.cwd.to_string_lossy().into_owned(),
        pid: status.shell.pid,
        columns: status.size.columns,
        rows: status.size.rows,
        restarts: status.restarts,
        log_end: shell.log().len().map_err(error::shell)?,
    })
}

/// Checks the name of a shell.
pub(crate) fn parse(name: &ShellName) -> Result<ShellId, WireError> {
    name.0.parse().map_err(|_| {
        let reason = format!(
            "{:?} is not a valid shell name: use 1 to 64 characters of A-Z a-z 0-9 _ -",
            brief(&name.0)
        );
        with_reason(ErrorKind::InvalidParams, reason, "invalid")
    })
}

fn into_os_strings((name, value): (String, String)) -> (OsString, OsString) {
    (name.into(), value.into())
}
