//! What the caller decides about all shells, and about each.

use std::{
    env,
    ffi::OsString,
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
    time::Duration,
};

use super::ledger::{ShellId, Size};
use crate::{Error, Result};
use sandbox_isolation::{Confinement, Level, Policy};

/// The state directory for shells of this user, where nobody names another: below `XDG_RUNTIME_DIR`, or
/// below the directory for temporary files.
pub fn default_root() -> PathBuf {
    let runtime = env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    runtime.map_or_else(
        || env::temp_dir().join(format!("sandbox-{}", rustix::process::getuid().as_raw())),
        |runtime| runtime.join("sandbox"),
    )
}

/// Settings of all shells under one state directory.
#[derive(Debug, Clone)]
pub struct Config {
    /// The state directory; one owner at a time. Its path must be short enough for a socket.
    pub root: PathBuf,
    /// The `sandbox` program, which tmux starts as recorder.
    pub program: PathBuf,
    /// The tmux program.
    pub tmux: PathBuf,
    /// The shell: a bash of version 5.1 or later, which can load builtins.
    pub bash: PathBuf,
    /// How long shells live on after their owner has gone, before they end by themselves.
    pub lease: Duration,
    /// Bytes of output that the log of a shell may hold. What comes later is counted, not kept.
    pub log_quota: u64,
    /// How long a shell may take to its first prompt, start-up files included.
    pub start_limit: Duration,
    /// How long the programs of a closing shell get to end after the hang-up signal, before they
    /// are killed.
    pub grace: Duration,
    /// What shells may do, unless [`Shells::create_confined`](super::Shells::create_confined) is
    /// told otherwise. No directory in which they may write may contain `root`.
    pub policy: Policy,
    /// The least that every new shell must be confined by. Where it is not to be had, nothing
    /// starts.
    pub require: Level,
}

impl Config {
    /// The usual settings for this state directory and this `sandbox` program.
    pub fn new(root: impl Into<PathBuf>, program: impl Into<PathBuf>) -> Self {
        Self {
            root: root.into(),
            program: program.into(),
            tmux: "tmux".into(),
            bash: "bash".into(),
            lease: Duration::from_secs(3600),
            log_quota: 4 << 30,
            start_limit: Duration::from_secs(60),
            grace: Duration::from_secs(1),
            policy: Policy::default(),
            require: Level::None,
        }
    }

    /// The usual settings, where the program that calls this takes the [`Helper`](super::Helper)
    /// commands itself.
    pub fn of_this_program(root: impl Into<PathBuf>) -> Result<Self> {
        let program = env::current_exe().map_err(Error::io("finding this program"))?;
        Ok(Self::new(root, program))
    }

    /// How other programs are confined as the shells are; none if these are free.
    pub fn confinement(&self) -> Option<Confinement> {
        let (launcher, policy) = (self.program.clone(), self.policy.clone());
        (!policy.is_empty()).then_some(Confinement { launcher, policy })
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.root.join("tmux")
    }

    pub(crate) fn lock(&self) -> PathBuf {
        self.root.join("owner.lock")
    }

    pub(crate) fn tmux_conf(&self) -> PathBuf {
        self.root.join("tmux.conf")
    }

    pub(crate) fn environment(&self) -> PathBuf {
        self.root.join("environment")
    }

    pub(crate) fn shells(&self) -> PathBuf {
        self.root.join("shells")
    }

    pub(crate) fn init_file(&self) -> PathBuf {
        self.root.join("init.bash")
    }
}

/// What a new shell should be like.
#[derive(Debug, Clone)]
pub struct ShellSpec {
    /// Its name.
    pub id: ShellId,
    /// Its working directory, which must exist.
    pub cwd: PathBuf,
    /// Variables to add to, or replace in, the environment that the shells inherit from the owner.
    pub environment: Vec<(OsString, OsString)>,
    /// The size of its terminal.
    pub size: Size,
}

impl ShellSpec {
    /// A shell with a fresh name in this directory.
    pub fn in_directory(cwd: impl AsRef<Path>) -> Self {
        Self { cwd: cwd.as_ref().to_owned(), ..Self::default() }
    }

    /// Whether a shell can be made of it.
    pub(crate) fn check(&self) -> Result<()> {
        if !self.cwd.is_dir() || !self.cwd.is_absolute() {
            return Err(Error::Invalid(format!(
                "{} is no directory with an absolute path; name one that exists",
                self.cwd.display()
            )));
        }
        self.size.check()?;
        for (name, value) in &self.environment {
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
}

impl Default for ShellSpec {
    fn default() -> Self {
        Self {
            id: ShellId::fresh(),
            cwd: "/".into(),
            environment: Vec::new(),
            size: Size::default(),
        }
    }
}
