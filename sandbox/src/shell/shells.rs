//! All shells under one state directory: opening, creating, finding again, sweeping, ending.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::SystemTime,
};

use rustix::process::Signal;
use tokio::{
    sync::{mpsc, watch},
    time::Instant,
};

use super::{
    config::{Config, SessionSpec},
    confine,
    history::History,
    index::IndexReader,
    keeper,
    launch::{Launcher, Place, SecretPipe},
    ledger::{Entry, SessionDir, SessionId, write_private},
    marker::Seq,
    messages::Control,
    process::{self, ProcessId},
    root,
    session::{Channels, Session},
    state::{Phase, Status},
    task::{Current, Task},
    tmux::{self, ControlClient, Tmux},
    watch::Watcher,
};
use crate::{
    Error, Result,
    isolation::{self, Policy},
};

const TMUX_CONF: &[u8] = include_bytes!("tmux.conf");
const INIT_BASH: &[u8] = include_bytes!("init.bash");
/// Requests that may wait for a session's task.
const QUEUE: usize = 64;

/// The owner of all sessions under a state directory. Dropping it leaves the sessions running, for
/// the next owner to find; [`Shells::shut_down`] ends them.
#[derive(Debug)]
pub struct Shells {
    config: Config,
    tmux: Tmux,
    client: ControlClient,
    watcher: Arc<Watcher>,
    sessions: Mutex<BTreeMap<SessionId, Session>>,
    /// Keeps the keeper quiet, for as long.
    _alive: File,
    /// Keeps other owners out until we are gone, however that happens.
    _lock: File,
}

impl Shells {
    /// Takes possession of the state directory: starts the tmux server or finds the running one,
    /// takes over the sessions that an earlier owner has left, and removes what is left of dead
    /// ones. Nothing is touched that this directory's ledger does not name.
    pub async fn open(config: Config) -> Result<Self> {
        isolation::require(config.require).map_err(|error| Error::Invalid(error.to_string()))?;
        let config = root::prepare(config)?;
        let lock = root::lock(&config).await?;
        write_private(&config.root.join("tmux.conf"), TMUX_CONF)
            .and_then(|()| write_private(&config.init_file(), INIT_BASH))
            .map_err(Error::io("writing the start-up files"))?;
        let alive = keeper::own(&config.root).map_err(Error::io("making the keeper's pipe"))?;
        let (tmux, client) = tmux::start(&config).await?;
        let watcher = Watcher::start().map_err(Error::io("starting to watch files"))?;
        let shells = Self {
            config,
            tmux,
            client,
            watcher: Arc::new(watcher),
            sessions: Mutex::default(),
            _alive: alive,
            _lock: lock,
        };
        shells.find_sessions().await?;
        Ok(shells)
    }

    /// Ends what the state directory holds, if its owner has been gone for longer than the lease.
    /// The keeper calls this when the lease is over.
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

    /// Starts a session and waits for its first prompt.
    pub async fn create(&self, spec: SessionSpec) -> Result<Session> {
        self.create_confined(spec, &self.config.policy).await
    }

    /// The same with another policy than the usual one.
    pub async fn create_confined(&self, spec: SessionSpec, policy: &Policy) -> Result<Session> {
        check(&spec)?;
        confine::check(&self.config, policy)?;
        let launcher = self.launcher(&spec.id, format!("{:032x}", rand::random::<u128>()));
        launcher.dir.create().map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => Error::SessionExists(spec.id.clone()),
            _ => Error::io("making the session's directory")(error),
        })?;
        let session = match self.start(launcher.clone(), &spec, policy).await {
            Ok(session) => session,
            Err(error) => {
                let _ = self.tmux.ask(&format!("kill-session -t {}", launcher.target())).await;
                let _ = launcher.dir.remove();
                return Err(error);
            }
        };
        // Opened now, because the files of a shell that does not start are removed.
        let log = File::open(launcher.dir.log());
        match session.wait_until_started().await {
            Phase::Closed => Err(Error::ShellDidNotStart {
                session: spec.id,
                reason: format!("it ended, or took too long; {}", last_words(log)),
            }),
            _ => {
                self.lock_sessions().insert(spec.id, session.clone());
                Ok(session)
            }
        }
    }

    /// Fails unless new sessions can be confined by the usual policy, and could not tear it down. For
    /// owners that want to know early.
    pub fn check_policy(&self) -> Result<()> {
        confine::check(&self.config, &self.config.policy)
    }

    /// A session by its name.
    pub fn get(&self, id: &SessionId) -> Option<Session> {
        self.list().into_iter().find(|session| session.id() == id)
    }

    /// All living sessions, by name.
    pub fn list(&self) -> Vec<Session> {
        let mut sessions = self.lock_sessions();
        sessions.retain(|_, session| session.status().phase != Phase::Closed);
        sessions.values().cloned().collect()
    }

    /// The tmux server.
    pub fn server(&self) -> ProcessId {
        self.client.server
    }

    /// Ends all sessions and the server; nothing remains but the empty state directory.
    pub async fn shut_down(self) -> Result<()> {
        let closing = self
            .list()
            .into_iter()
            .map(|session| tokio::spawn(async move { session.close().await }));
        for task in closing.collect::<Vec<_>>() {
            let _ = task.await;
        }
        self.client.shut_down(&self.tmux).await;
        for name in ["tmux", "tmux.conf", "init.bash", "alive", "client", "owner.lock"] {
            let _ = fs::remove_file(self.config.root.join(name));
        }
        let _ = fs::remove_dir(self.config.sessions());
        Ok(())
    }

    fn launcher(&self, id: &SessionId, mark: String) -> Launcher {
        Launcher {
            config: self.config.clone(),
            tmux: self.tmux.clone(),
            id: id.clone(),
            mark,
            dir: SessionDir::new(self.config.sessions().join(id.as_str())),
        }
    }

    async fn start(
        &self,
        launcher: Launcher,
        spec: &SessionSpec,
        policy: &Policy,
    ) -> Result<Session> {
        const FIRST: Seq = 0;
        confine::save(&launcher.dir, policy)?;
        launcher.write_start(&spec.cwd, &spec.environment)?;
        for file in [launcher.dir.log(), launcher.dir.index()] {
            write_private(&file, b"").map_err(Error::io("making the log"))?;
        }
        let launched = launcher.launch(Place::NewSession { size: spec.size }, FIRST).await?;
        let entry = Entry {
            id: spec.id.clone(),
            mark: launcher.mark.clone(),
            pane: launched.pane,
            server: self.client.server,
            leader: launched.leader,
            size: spec.size,
        };
        launcher.dir.save(&entry).map_err(Error::io("writing the ledger"))?;
        let deadline = Instant::now() + self.config.start_limit;
        let history = History {
            cwd: spec.cwd.clone(),
            next_seq: FIRST + 1,
            current: Current::Starting { seq: FIRST, deadline, before: None },
            job: None,
        };
        self.spawn(launcher, entry, launched.pipe, history)
    }

    /// Takes over what earlier owners have left.
    async fn find_sessions(&self) -> Result<()> {
        let entries =
            fs::read_dir(self.config.sessions()).map_err(Error::io("reading the ledger"))?;
        for directory in entries {
            let path = directory.map_err(Error::io("reading the ledger"))?.path();
            let Some(id) = path.file_name().and_then(|name| name.to_str()?.parse().ok()) else {
                continue;
            };
            match self.adopt(&id).await {
                Ok(session) => drop(self.lock_sessions().insert(id, session)),
                Err(_) => self.clear_away(&id).await,
            }
        }
        Ok(())
    }

    async fn adopt(&self, id: &SessionId) -> Result<Session> {
        let mut launcher = self.launcher(id, String::new());
        let mut entry = launcher.dir.load().map_err(Error::io("reading the ledger"))?;
        if entry.server != self.client.server {
            return Err(Error::ServerGone);
        }
        // The former owner may have been killed while it replaced the shell.
        let pid =
            self.tmux.ask(&format!("display-message -p -t {} '#{{pane_pid}}'", entry.pane)).await?;
        if let Some(leader) = pid.parse().ok().and_then(ProcessId::of) {
            entry.leader = leader;
        }
        launcher.mark.clone_from(&entry.mark);
        let history = History::read(&launcher, self.config.start_limit)?;
        let pipe = match launcher.dir.shell().filter(ProcessId::is_alive) {
            Some(shell) => SecretPipe::find(shell, &launcher.dir.pipe()),
            // A dead shell has no pipe; its successor will get one.
            None => SecretPipe::none(),
        };
        let pipe = pipe.map_err(Error::io("finding the shell's secret pipe"))?;
        self.spawn(launcher, entry, pipe, history)
    }

    /// Removes a session that cannot be taken over: half made, or of a server that has died.
    async fn clear_away(&self, id: &SessionId) {
        let launcher = self.launcher(id, String::new());
        let _ = self.tmux.ask(&format!("kill-session -t {}", launcher.target())).await;
        if let Ok(entry) = launcher.dir.load() {
            let members = process::members(entry.leader, &entry.mark);
            for process in process::all_ended(&members, self.config.grace).await {
                process.send(Signal::KILL);
            }
        }
        let _ = launcher.dir.remove();
    }

    fn spawn(
        &self,
        launcher: Launcher,
        entry: Entry,
        pipe: SecretPipe,
        history: History,
    ) -> Result<Session> {
        let History { cwd, next_seq, current, job } = history;
        let index = launcher.dir.index();
        let phase = match &current {
            Current::Starting { .. } => Phase::Starting,
            Current::Idle => Phase::Idle,
            Current::Running(running) => Phase::Running(running.seq),
        };
        let shell = launcher.dir.shell().unwrap_or(entry.leader);
        let status = Status { phase, cwd, shell, size: entry.size, restarts: 0 };
        let (status, status_receiver) = watch::channel(status);
        let (job, job_receiver) = watch::channel(job);
        let (controls, control_receiver) = mpsc::channel::<Control>(QUEUE);
        let channels = Channels { controls, status: status_receiver, job: job_receiver };
        let id = entry.id.clone();
        let session = Session::new(id, self.config.clone(), &launcher.dir, &self.watcher, channels);
        let mut task = Task {
            index: IndexReader::open(&index).map_err(Error::io("opening the event index"))?,
            index_watch: self.watcher.watch(&index).map_err(Error::io("watching the index"))?,
            launcher,
            entry,
            pipe,
            next_seq,
            current,
            status,
            job,
            recorder: None,
            waiting: Vec::new(),
            failed_starts: 0,
            stream_closed: false,
        };
        // What is in the index already is known before anybody can ask.
        task.catch_up();
        tokio::spawn(task.run(control_receiver));
        Ok(session)
    }

    fn lock_sessions(&self) -> MutexGuard<'_, BTreeMap<SessionId, Session>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a shell has said last, for an explanation.
fn last_words(log: io::Result<File>) -> String {
    use std::os::unix::fs::FileExt as _;
    const BYTES: u64 = 400;
    let mut words = [0; BYTES as usize];
    let read = log.and_then(|log| {
        let start = log.metadata()?.len().saturating_sub(BYTES);
        log.read_at(&mut words, start)
    });
    match String::from_utf8_lossy(&words[..read.unwrap_or(0)]).trim() {
        "" => "it said nothing".into(),
        words => format!("it said {words:?}"),
    }
}

fn check(spec: &SessionSpec) -> Result<()> {
    use std::os::unix::ffi::OsStrExt as _;
    if !spec.cwd.is_dir() || !spec.cwd.is_absolute() {
        return Err(Error::Invalid(format!(
            "{} is no directory with an absolute path; name one that exists",
            spec.cwd.display()
        )));
    }
    if spec.size.columns < 2 || spec.size.rows < 2 {
        return Err(Error::Invalid("a terminal needs at least 2 columns and 2 rows".into()));
    }
    for (name, value) in &spec.environment {
        let bytes = name.as_bytes();
        let starts_well =
            bytes.first().is_some_and(|&byte| byte.is_ascii_alphabetic() || byte == b'_');
        let is_name = bytes.iter().all(|&byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if !starts_well || !is_name || value.as_bytes().contains(&0) {
            return Err(Error::Invalid(format!(
                "the variable {} cannot be passed to a shell; use letters, digits and `_`, and no NUL",
                name.display()
            )));
        }
    }
    Ok(())
}
