//! All shells of one state directory: opening, creating, adopting, sweeping, ending.

mod adoption;
mod root;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, File},
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Instant, SystemTime},
};

use tokio::sync::{mpsc, watch};
use tracing::warn;

use crate::{Error, Result};
use crate::{
    config::{Config, ShellSpec},
    driver::{Driver, Parts},
    keeper,
    launch::confine,
    launch::{LaunchTarget, NoncePipe, PaneSetup},
    ledger::{Entry, ShellDir, ShellId},
    marker::Seq,
    messages::Control,
    output::index::IndexReader,
    output::log::Log,
    output::watch::Watcher,
    owner::{Effect, Moment, Owner},
    registry::root::PriorUse,
    shell::{Channels, Shell},
    state::Phase,
    tmux::{self, ControlClient, Tmux},
};
use process_identity::ProcessId;
use sandbox_isolation::Policy;

const TMUX_CONF: &[u8] = include_bytes!("../tmux/tmux.conf");
const INIT_BASH: &[u8] = include_bytes!("../launch/init.bash");
const BUILTIN: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/builtin.so"));
/// The most messages in the queue to a shell's driver.
const QUEUE: usize = 64;

/// The owner of all shells in a state directory. Dropping it leaves the shells running for the next owner;
/// [`Shells::shut_down`] ends them.
#[derive(Debug)]
pub struct Shells {
    config: Config,
    server: Mutex<Server>,
    /// Held while a dead tmux server is replaced.
    replacing: tokio::sync::Mutex<()>,
    watcher: Arc<Watcher>,
    shells: Mutex<BTreeMap<ShellId, Shell>>,
    /// Names of shells that died with their tmux server and have not been created again.
    lost: Mutex<BTreeSet<ShellId>>,
    /// Our end of the keeper's pipe: the keeper sleeps while it is open.
    _owner_pipe: File,
    /// The lock that keeps other owners out until this process has ended, for whatever reason.
    lock: Arc<File>,
}

#[derive(Debug)]
struct Server {
    tmux: Tmux,
    client: ControlClient,
}

impl Shells {
    /// Becomes the owner of the state directory: starts the tmux server or finds the running one, adopts the shells
    /// that an earlier owner has left, and removes what is left of dead ones. Touches nothing that the ledger of this
    /// directory does not name.
    pub async fn open(config: Config) -> Result<Self> {
        let config = root::prepare(config)?;
        confine::check(&config, &config.policy)?;
        let (lock, prior_use) = root::lock(&config).await?;
        let started = Self::start_server(&config, prior_use).await;
        if let Err(Error::TmuxMissing { .. }) = started {
            root::clear(&config);
        }
        let (owner_pipe, server) = started?;
        let watcher = Watcher::start().map_err(Error::io("starting to watch files"))?;
        let shells = Self {
            config,
            server: Mutex::new(server),
            replacing: tokio::sync::Mutex::default(),
            watcher: Arc::new(watcher),
            shells: Mutex::default(),
            lost: Mutex::default(),
            _owner_pipe: owner_pipe,
            lock: Arc::new(lock),
        };
        shells.adopt_shells().await?;
        Ok(shells)
    }

    async fn start_server(config: &Config, prior_use: PriorUse) -> Result<(File, Server)> {
        let writing = || Error::io("writing the start-up files");
        private_files::replace(&config.tmux_conf(), TMUX_CONF).map_err(writing())?;
        let owner_pipe =
            keeper::open_owner_pipe(&config.root).map_err(Error::io("making the keeper's pipe"))?;
        let starting = async {
            match prior_use {
                PriorUse::None => tmux::start_first(config),
                PriorUse::Possible => tmux::start(config).await,
            }
        };
        // The files for the shells are written while tmux starts.
        let ((tmux, client), ()) = tokio::try_join!(starting, async {
            private_files::replace(&config.init_file(), INIT_BASH)
                .and_then(|()| private_files::replace(&config.builtin(), BUILTIN))
                .map_err(writing())
        })?;
        Ok((owner_pipe, Server { tmux, client }))
    }

    /// Ends all shells of the state directory if its owner has been gone for longer than the lease. The keeper starts
    /// this when the lease is over.
    pub async fn sweep(config: Config) -> Result<()> {
        if keeper::lease_end(&config.root).is_ok_and(|end| end > SystemTime::now()) {
            return Ok(());
        }
        match Self::open(config).await {
            Ok(shells) => shells.shut_down().await,
            Err(Error::RootInUse { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Starts a shell and waits for its first prompt. If the tmux server has died, and all its shells with it, starts
    /// a new server first.
    pub async fn create(&self, spec: ShellSpec) -> Result<Shell> {
        self.create_confined(spec, &self.config.policy).await
    }

    /// Starts a shell with its own policy instead of [`Config::policy`], and waits for its first prompt.
    pub async fn create_confined(&self, spec: ShellSpec, policy: &Policy) -> Result<Shell> {
        spec.check()?;
        confine::check(&self.config, policy)?;
        let tmux = self.tmux();
        match self.try_create(&spec, policy).await {
            // The server has just died; the second attempt starts a new one.
            Err(Error::ServerGone) => {
                tmux.closed().await;
                self.try_create(&spec, policy).await
            }
            created => created,
        }
    }

    async fn try_create(&self, spec: &ShellSpec, policy: &Policy) -> Result<Shell> {
        self.replace_dead_server().await?;
        self.wait_for_name(&spec.id).await;
        let setup = self.pane_setup(&spec.id, format!("{:032x}", rand::random::<u128>()));
        setup.dir.create().map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => Error::ShellExists(spec.id.clone()),
            _ => Error::io("making the shell's directory")(error),
        })?;
        let shell = match self.start(setup.clone(), spec, policy).await {
            Ok(shell) => shell,
            Err(error) => {
                kill_pane(&setup).await;
                remove_files(&setup);
                return Err(error);
            }
        };
        // Before waiting, so that the shell is listed even if this call is cancelled.
        lock(&self.lost).remove(&spec.id);
        lock(&self.shells).insert(spec.id.clone(), shell.clone());
        match shell.wait_until_started().await {
            Phase::Lost => Err(Error::ServerGone),
            Phase::Closed => Err(Error::ShellDidNotStart {
                shell: spec.id.clone(),
                reason: format!(
                    "it ended, or took too long (check ~/.bashrc); {}",
                    last_output(shell.log())
                ),
            }),
            _ => Ok(shell),
        }
    }

    /// Waits until a closed shell with this name is cleaned up: tmux may not have answered when it was closed.
    async fn wait_for_name(&self, id: &ShellId) {
        let former = lock(&self.shells).get(id).cloned();
        if let Some(former) = former.filter(|former| former.status().phase.is_over()) {
            former.wait_until_gone().await;
        }
    }

    /// Finds a shell by its name.
    pub fn get(&self, id: &ShellId) -> Option<Shell> {
        self.list().into_iter().find(|shell| shell.id() == id)
    }

    /// Whether a shell died with its tmux server and has not been created again.
    pub fn is_lost(&self, id: &ShellId) -> bool {
        self.list();
        lock(&self.lost).contains(id)
    }

    /// All living shells, sorted by name.
    pub fn list(&self) -> Vec<Shell> {
        let mut shells = lock(&self.shells);
        shells.retain(|id, shell| {
            let phase = shell.status().phase;
            if phase == Phase::Lost {
                lock(&self.lost).insert(id.clone());
            }
            // A shell that is being cleaned up in the background keeps its name.
            !(phase.is_over() && shell.is_gone())
        });
        let living = shells.values().filter(|shell| !shell.status().phase.is_over());
        living.cloned().collect()
    }

    /// The process of the tmux server.
    pub async fn server(&self) -> Result<ProcessId> {
        self.tmux().server().await
    }

    /// Ends all shells and the tmux server. Only the empty state directory remains.
    pub async fn shut_down(self) -> Result<()> {
        let closing =
            self.list().into_iter().map(|shell| tokio::spawn(async move { shell.close().await }));
        for task in closing.collect::<Vec<_>>() {
            match task.await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => warn!(%error, "a shell could not be closed"),
                Err(error) => warn!(%error, "a shell could not be closed"),
            }
        }
        let closing: Vec<_> = lock(&self.shells).values().cloned().collect();
        for shell in closing {
            shell.wait_until_gone().await;
        }
        let Server { tmux, client } =
            self.server.into_inner().unwrap_or_else(PoisonError::into_inner);
        client.shut_down(&tmux).await;
        root::clear(&self.config);
        Ok(())
    }

    async fn replace_dead_server(&self) -> Result<()> {
        let _turn = self.replacing.lock().await;
        if !self.tmux().is_closed() {
            return Ok(());
        }
        // The shells of the dead server are still being cleaned up, in directories that may be used again.
        let shells: Vec<_> = lock(&self.shells).values().cloned().collect();
        for shell in shells {
            shell.wait_until_gone().await;
        }
        let (tmux, client) = tmux::start(&self.config).await?;
        *lock(&self.server) = Server { tmux, client };
        Ok(())
    }

    fn tmux(&self) -> Tmux {
        lock(&self.server).tmux.clone()
    }

    fn pane_setup(&self, id: &ShellId, mark: String) -> PaneSetup {
        PaneSetup {
            config: self.config.clone(),
            tmux: self.tmux(),
            id: id.clone(),
            mark,
            dir: ShellDir::new(self.config.shells().join(id.as_str())),
            lock: Arc::downgrade(&self.lock),
        }
    }

    async fn start(&self, setup: PaneSetup, spec: &ShellSpec, policy: &Policy) -> Result<Shell> {
        const FIRST: Seq = 0;
        confine::save(&setup.config, &setup.dir, policy)?;
        setup.write_start(&spec.cwd, &spec.environment)?;
        let dir = &setup.dir;
        for file in [dir.log(), dir.index(), dir.command(), dir.exports()] {
            private_files::overwrite_beginning(&file, b"")
                .map_err(Error::io("making the files of the shell"))?;
        }
        let place = LaunchTarget::NewPane { size: spec.size };
        let (launched, server) = tokio::try_join!(setup.launch(place, FIRST), setup.tmux.server())?;
        let entry = Entry {
            id: spec.id.clone(),
            mark: setup.mark.clone(),
            pane: launched.pane,
            server,
            leader: launched.leader,
            size: spec.size,
            latest: None,
        };
        setup.dir.save(&entry).map_err(Error::io("writing the ledger"))?;
        // The shell is not running yet; searching for its process would only delay its start.
        let owner = Owner::new(entry, spec.cwd.clone(), self.config.start_limit, now(dir)?);
        let index = open_index(dir)?;
        self.spawn(setup, launched.pipe, index, (owner, Vec::new()))
    }

    fn spawn(
        &self,
        setup: PaneSetup,
        pipe: NoncePipe,
        index: IndexReader,
        (owner, effects): (Owner, Vec<Effect>),
    ) -> Result<Shell> {
        let dir = setup.dir.clone();
        let (status, status_receiver) = watch::channel(owner.status());
        let (latest, job) = watch::channel(None);
        let (gone, gone_receiver) = watch::channel(false);
        let (controls, control_receiver) = mpsc::channel::<Control>(QUEUE);
        let channels = Channels { controls, status: status_receiver, job, gone: gone_receiver };
        let id = owner.entry().id.clone();
        let shell = Shell::new(id, self.config.clone(), dir.clone(), &self.watcher, channels)?;
        let index_watch =
            self.watcher.watch(&dir.index()).map_err(Error::io("watching the index"))?;
        let log = File::open(dir.log()).map_err(Error::io("opening the log"))?;
        let parts = Parts { setup, pipe, index, index_watch, log, status, latest, gone };
        // The driver processes the existing index here, before a caller can ask.
        tokio::spawn(Driver::new(owner, effects, parts).run(control_receiver));
        Ok(shell)
    }
}

/// Asks tmux to kill the pane of a shell that is dead or was not created completely.
async fn kill_pane(setup: &PaneSetup) {
    match setup.tmux.ask(&format!("kill-session -t {}", setup.target())).await {
        // There is no such pane, or no server.
        Ok(_) | Err(Error::TmuxRefused { .. } | Error::ServerGone) => {}
        Err(error) => warn!(shell = %setup.id, %error, "the pane could not be killed"),
    }
}

fn remove_files(setup: &PaneSetup) {
    if let Err(error) = setup.dir.remove() {
        warn!(shell = %setup.id, %error, "the files of the shell could not be removed");
    }
}

fn open_index(dir: &ShellDir) -> Result<IndexReader> {
    IndexReader::open(&dir.index()).map_err(Error::io("opening the index"))
}

fn now(dir: &ShellDir) -> Result<Moment> {
    let log = fs::metadata(dir.log()).map_err(Error::io("looking at the log"))?;
    Ok(Moment { now: Instant::now(), wall: SystemTime::now(), log_end: log.len() })
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The last output of a shell, for an error message.
fn last_output(log: &Log) -> String {
    const BYTES: u64 = 1000;
    let words = log.len().and_then(|end| log.read(end.saturating_sub(BYTES)..end));
    match String::from_utf8_lossy(&words.unwrap_or_default()).trim() {
        "" => "it printed nothing".into(),
        words => format!("it printed {words:?}"),
    }
}
