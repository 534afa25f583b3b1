//! Keeping a command away from what is none of its business.
//!
//! A [`Policy`] says what a command may do: where it may write, which TCP ports it may use, how
//! much it may consume. A [`Level`] says who enforces that:
//!
//! - `none`: nobody, except for resource limits, which always apply.
//! - `landlock`: the Linux kernel, for the command and everything it starts, without root and
//!   without a container. Reading stays free; writing is possible only below the given
//!   directories and to the few devices that every shell needs. TCP is as chosen. A filter on
//!   system calls keeps it from Unix sockets, behind which services (a tmux server, a container
//!   engine, the user's session bus) would do things for it outside of these walls.
//!
//! **How it is applied.** A small launcher process calls [`enter`] and then executes the command
//! it gets back. It is not done between `fork` and `exec` of a bigger program, since building the
//! rules allocates memory, which is not safe there. The launcher gets the policy as arguments
//! ([`Policy::to_arguments`], [`Policy::from_arguments`]); they hold no secrets. Landlock binds
//! the calling thread and what it starts, so the launcher must execute from the same thread.
//!
//! **Failing closed.** [`enter`] returns a command only if the whole policy is in force. What
//! works on this machine, and why not, is told by [`probe`], which really tries.
//!
//! **What it does not do.** It does not restrict reading or UDP, and a terminal of the same user can
//! be written to. Programs that gain rights when executed (`sudo`), that use `io_uring`, or that are
//! made for another architecture do not work inside, nor do those that need a Unix socket of
//! their own (another tmux, an agent for keys), unless the policy allows these sockets. On kernels
//! with Landlock 6 (Linux 6.12) processes outside cannot be signalled either.
//!
//! Bubblewrap or containers are further implementations of [`Isolation`]: they return another
//! command than the one they were given.

mod arguments;
mod confinement;
mod limits;

#[cfg(target_os = "linux")]
mod calls;
#[cfg(target_os = "linux")]
mod landlock;

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::str::FromStr;

pub use confinement::{Confinement, become_command, confine};
pub use limits::Limits;

/// Who enforces a policy. Ordered: a later level enforces more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Nobody.
    #[default]
    None,
    /// The Linux kernel, by Landlock.
    Landlock,
}

/// What a command may do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    /// Who enforces it.
    pub level: Level,
    /// Directories (or files) below which it may write. They must exist.
    pub writable: Vec<PathBuf>,
    /// Which TCP ports it may use.
    pub network: Network,
    /// Whether it may use Unix sockets, all of them: the kernel cannot tell them apart.
    pub unix_sockets: bool,
    /// How much it may consume.
    pub limits: Limits,
}

/// Which TCP ports a command may use. Other protocols are not governed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Network {
    /// All of them.
    #[default]
    Unrestricted,
    /// Only these; with empty lists TCP is off.
    Tcp {
        /// Remote ports it may connect to.
        connect: Vec<u16>,
        /// Local ports it may listen on.
        listen: Vec<u16>,
    },
}

/// What a level enforces on this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Features {
    /// Where a command writes.
    pub files: bool,
    /// Which TCP ports it uses.
    pub tcp: bool,
    /// That it signals nobody outside and connects to no abstract Unix socket outside.
    pub signals: bool,
    /// That it reaches no service behind a Unix socket.
    pub unix_sockets: bool,
}

/// Why a level does not work here.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unavailable {
    /// Another operating system.
    #[error("Landlock is a part of Linux: use level none on this system")]
    NotLinux,
    /// The kernel was built without it, or is older than 5.13, or a system call filter hides it.
    #[error("this kernel has no Landlock: use Linux 6.2 or later, or allow its system calls")]
    NotInKernel,
    /// The kernel has it but it was not enabled at boot.
    #[error("Landlock is disabled: add landlock to the kernel's lsm= boot parameter")]
    Disabled,
    /// Without the right to restrict truncation, files outside could be emptied.
    #[error("this kernel's Landlock cannot restrict truncation: use Linux 6.2 or later")]
    TooOld,
    /// The kernel took the rules, but a trial showed no effect or failed.
    #[error("a trial of Landlock failed: {reason}")]
    TrialFailed {
        /// What happened.
        reason: String,
    },
}

/// Why a command cannot be started as the policy demands.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A weaker level was asked for than is required here. Ask for the required one.
    #[error(
        "isolation level {required} is required here, and {wanted} was asked for: ask for {required}, or require less (--require {wanted})"
    )]
    TooWeak {
        /// What was asked for.
        wanted: Level,
        /// The least that will do.
        required: Level,
    },
    /// The level does not work here. Choose another machine or, knowingly, another level.
    #[error("isolation level {level} is not available: {reason}")]
    Unavailable {
        /// The level.
        level: Level,
        /// Why.
        reason: Unavailable,
    },
    /// The policy restricts TCP but the level or this kernel cannot.
    #[error(
        "isolation level {level} cannot restrict TCP here: use landlock (--require landlock) on Linux 6.7 or later, or leave the network unrestricted"
    )]
    NoTcpControl {
        /// The level.
        level: Level,
    },
    /// A directory of the policy cannot be opened. Create it first, or take it out.
    #[error("cannot open {path} to allow writing there: {reason}")]
    Writable {
        /// The directory.
        path: PathBuf,
        /// What the system said.
        reason: String,
    },
    /// The kernel refused the rules.
    #[error("the kernel refused the isolation: {reason}")]
    Refused {
        /// What it said.
        reason: String,
    },
    /// A resource limit could not be set.
    #[error("cannot limit {resource}: {source}")]
    Limit {
        /// Which one.
        resource: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// Somebody named a level that is none.
    #[error("there is no isolation level {name:?}: use {}", Level::ALL.map(Level::name).join(" or "))]
    NoSuchLevel {
        /// What was said.
        name: String,
    },
    /// Somebody named ports that are none.
    #[error("{text:?} names no network: use all, none, or ports such as 80,443,listen:8000")]
    NoSuchNetwork {
        /// What was said.
        text: String,
    },
    /// The launcher was called with something that is no policy.
    #[error("bad launcher arguments: {reason}")]
    Arguments {
        /// What is wrong.
        reason: String,
    },
}

/// A way to enforce policies.
pub trait Isolation: fmt::Debug + Sync {
    /// Which level this is.
    fn level(&self) -> Level;

    /// Tries what works on this machine. The calling process stays as it is.
    fn probe(&self) -> Result<Features, Unavailable>;

    /// Places to or below which commands may write whatever the policy says. A machine may lack some.
    fn always_writable(&self) -> &'static [&'static str];

    /// Restricts the calling thread and returns what to execute from it: the command itself, or
    /// one that wraps it. The rules cannot be taken back.
    fn enter(&self, policy: &Policy, command: Command) -> Result<Command, Error>;
}

/// What one level can do here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Support {
    /// The level.
    pub level: Level,
    /// What it enforces, or why it does not work.
    pub works: Result<Features, Unavailable>,
}

/// Tries all levels, for reports.
pub fn probe() -> Vec<Support> {
    Level::ALL.map(|level| Support { level, works: level.isolation().probe() }).to_vec()
}

/// Fails unless the level works here.
pub fn require(level: Level) -> Result<Features, Error> {
    level.isolation().probe().map_err(|reason| Error::Unavailable { level, reason })
}

/// Puts the policy in force for the calling thread and returns what to execute from it. For the
/// launcher: the rules cannot be taken back, and if this fails nothing must be executed.
pub fn enter(policy: &Policy, command: Command) -> Result<Command, Error> {
    let command = policy.level.isolation().enter(policy, command)?;
    // Last, so that limits bind the command and not the work of getting there.
    policy.limits.apply()?;
    Ok(command)
}

impl Policy {
    /// Whether there is anything to put in force.
    pub fn is_empty(&self) -> bool {
        let Self { level, network, limits, .. } = self;
        *level == Level::None && *network == Network::Unrestricted && *limits == Limits::default()
    }

    /// Fails unless the policy can be put in force here, and is at least of this level. It is tried
    /// as far as that is possible without changing the calling process.
    pub fn check(&self, required: Level) -> Result<(), Error> {
        if self.level < required {
            return Err(Error::TooWeak { wanted: self.level, required });
        }
        let features = require(self.level)?;
        if self.network != Network::Unrestricted && !features.tcp {
            return Err(Error::NoTcpControl { level: self.level });
        }
        if self.level == Level::None {
            return Ok(());
        }
        for path in &self.writable {
            let reason = match path.metadata() {
                Ok(_) => continue,
                Err(error) => error.to_string(),
            };
            return Err(Error::Writable { path: path.clone(), reason });
        }
        Ok(())
    }

    /// Writing only below the workspace and the directory for temporary files, enforced by the
    /// given level; everything else unrestricted.
    pub fn for_workspace(level: Level, workspace: &Path, temporary: &Path) -> Self {
        let writable = vec![workspace.to_path_buf(), temporary.to_path_buf()];
        Self { level, writable, ..Self::default() }
    }
}

impl Level {
    /// From the weakest to the strongest.
    pub const ALL: [Self; 2] = [Self::None, Self::Landlock];

    /// What enforces it.
    pub fn isolation(self) -> &'static dyn Isolation {
        match self {
            Self::None => &Unconfined,
            #[cfg(target_os = "linux")]
            Self::Landlock => &landlock::Landlock,
            #[cfg(not(target_os = "linux"))]
            Self::Landlock => &Missing,
        }
    }

    /// The name that people write.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Landlock => "landlock",
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Level {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let found = Self::ALL.into_iter().find(|level| level.name() == text);
        found.ok_or_else(|| Error::NoSuchLevel { name: text.to_owned() })
    }
}

impl FromStr for Network {
    type Err = Error;

    /// `all`, `none`, or ports with commas between them, those to listen on as `listen:PORT`.
    fn from_str(text: &str) -> Result<Self, Error> {
        let (mut connect, mut listen) = (Vec::new(), Vec::new());
        match text {
            "all" => return Ok(Self::Unrestricted),
            "none" => return Ok(Self::Tcp { connect, listen }),
            _ => {}
        }
        for word in text.split(',') {
            let (port, ports) = match word.strip_prefix("listen:") {
                Some(port) => (port, &mut listen),
                None => (word, &mut connect),
            };
            let port = port.parse();
            ports.push(port.map_err(|_| Error::NoSuchNetwork { text: text.to_owned() })?);
        }
        Ok(Self::Tcp { connect, listen })
    }
}

/// The level that enforces nothing. It still refuses a policy that needs more.
#[derive(Debug)]
struct Unconfined;

impl Isolation for Unconfined {
    fn level(&self) -> Level {
        Level::None
    }

    fn probe(&self) -> Result<Features, Unavailable> {
        Ok(Features { files: false, tcp: false, signals: false, unix_sockets: false })
    }

    /// That is to say everything.
    fn always_writable(&self) -> &'static [&'static str] {
        &["/"]
    }

    fn enter(&self, policy: &Policy, command: Command) -> Result<Command, Error> {
        match policy.network {
            Network::Unrestricted => Ok(command),
            Network::Tcp { .. } => Err(Error::NoTcpControl { level: self.level() }),
        }
    }
}

/// Landlock where there is none.
#[cfg(not(target_os = "linux"))]
#[derive(Debug)]
struct Missing;

#[cfg(not(target_os = "linux"))]
impl Isolation for Missing {
    fn level(&self) -> Level {
        Level::Landlock
    }

    fn probe(&self) -> Result<Features, Unavailable> {
        Err(Unavailable::NotLinux)
    }

    fn always_writable(&self) -> &'static [&'static str] {
        &[]
    }

    fn enter(&self, _: &Policy, _: Command) -> Result<Command, Error> {
        Err(Error::Unavailable { level: self.level(), reason: Unavailable::NotLinux })
    }
}
