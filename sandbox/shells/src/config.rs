//! The settings of all shells, and of each.

use std::{
    env,
    ffi::OsString,
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
    time::Duration,
};

use super::launch::confine::with_private_places;
use super::ledger::{ShellId, Size};
use crate::{Error, Result};
use sandbox_isolation::{Confinement, Level, Policy};

/// The name of the file that the living owner locks. It also marks a directory as a state directory of ours.
pub(crate) const LOCK: &str = "run-bridge.lock";

/// The file in a state directory that the living owner locks.
pub(crate) fn lock_file(root: &Path) -> PathBuf {
    root.join(LOCK)
}

/// The settings of all shells in one state directory.
#[derive(Debug, Clone)]
pub struct Config {
    /// The state directory, which has one owner at a time. Its path must be short enough for a Unix socket.
    pub root: PathBuf,
    /// The `sandbox` program, which tmux starts as recorder and keeper.
    pub program: PathBuf,
    /// The tmux program.
    pub tmux: PathBuf,
    /// The shell: a bash of version 5.1 or later, which can load builtins.
    pub bash: PathBuf,
    /// How long shells live on after their owner has ended.
    pub lease: Duration,
    /// The most bytes of output in the log of a shell. Output beyond it is counted, not recorded.
    pub log_quota: u64,
    /// How long a shell may take to reach its first prompt, including its start-up files. Then it is killed.
    pub start_limit: Duration,
    /// How long the programs of a closing shell have to end after SIGHUP before they are killed.
    pub grace: Duration,
    /// The policy of shells, unless [`Shells::create_confined`](super::Shells::create_confined) gets another. No
    /// directory that it makes writable may contain `root`.
    pub policy: Policy,
    /// The lowest isolation level for new shells. If it is not available, nothing starts.
    pub require: Level,
}

impl Config {
    /// The default settings for this state directory and this `sandbox` program.
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

    /// The default settings for a program that handles the [`Helper`](super::Helper) subcommands itself.
    pub fn of_this_program(root: impl Into<PathBuf>) -> Result<Self> {
        let program = env::current_exe().map_err(Error::io("finding this program"))?;
        Ok(Self::new(root, program))
    }

    /// How to confine other programs by the policy of the shells; `None` if the policy restricts nothing.
    pub fn confinement(&self) -> Option<Confinement> {
        let (launcher, policy) = (self.program.clone(), with_private_places(self, &self.policy));
        (!policy.is_empty()).then_some(Confinement { launcher, policy })
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.root.join("tmux")
    }

    pub(crate) fn lock(&self) -> PathBuf {
        lock_file(&self.root)
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

    /// The builtin in C that shells load.
    pub(crate) fn builtin(&self) -> PathBuf {
        self.root.join("builtin.so")
    }
}

/// The settings of a new shell.
#[derive(Debug, Clone)]
pub struct ShellSpec {
    /// The name of the shell.
    pub id: ShellId,
    /// Its first working directory, which must exist.
    pub cwd: PathBuf,
    /// Variables that are added to the environment inherited from the owner, or replace variables in it.
    pub environment: Vec<(OsString, OsString)>,
    /// The size of its terminal.
    pub size: Size,
}

impl ShellSpec {
    /// A shell with a random name in this directory.
    pub fn in_directory(cwd: impl AsRef<Path>) -> Self {
        Self { cwd: cwd.as_ref().to_owned(), ..Self::default() }
    }

    /// Checks that a shell can be started with these settings.
    pub(crate) fn check(&self) -> Result<()> {
        if !self.cwd.is_dir() || !self.cwd.is_absolute() {
            return Err(Error::Invalid(format!(
                "{} is not an existing directory with an absolute path; name one that exists",
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
                    "the variable {} cannot be passed to a shell; use letters, digits and `_` for its name, \
                     and no NUL in its value",
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
