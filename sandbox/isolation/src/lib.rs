//! Confines commands: where they may write, what they may not read, which sockets they may use, how much they may
//! consume.
//!
//! A [`Policy`] says what a command may do. A [`Level`] says who enforces it:
//!
//! - `none`: nobody, except for resource limits, which always apply.
//! - `landlock`: Linux, for the command and everything it starts, without root and without a container. Writing is
//!   possible only below the given directories and to the few devices that every shell needs. Reading is possible
//!   except below the given directories and of other devices. Sockets are restricted as the policy says. A filter
//!   on system calls blocks Unix sockets, because services behind them (a tmux server, a container engine, the user's
//!   session bus) could act outside these limits on behalf of the command, and whatever else reaches processes
//!   outside. Root loses its privileges.
//!
//! **How it is applied.** A small launcher process calls [`enter`] and then executes the command that it returns.
//! This is not done between `fork` and `exec` of a larger program, because building the rules allocates memory, which
//! is not safe there. The launcher gets the policy as arguments ([`Policy::to_arguments`],
//! [`Policy::from_arguments`]); they contain no secrets. Landlock applies to the calling thread and what it starts,
//! so the launcher must execute the command from the same thread.
//!
//! **Failing closed.** [`enter`] returns a command only if the whole policy is in force. [`probe`] reports what works
//! on this machine, and why not, by actually trying it.
//!
//! **What it does not do.** [`walls`] lists what holds on this machine and what does not. The hostile program in
//! `tests/ways_out` tries all of it. Programs that gain privileges when executed (`sudo`), that use `io_uring`, shared
//! memory with a name or namespaces of their own, or that are built for another architecture do not work inside; nor
//! do programs that need a Unix socket (another tmux, an agent for keys), unless the policy allows Unix sockets.
//!
//! Bubblewrap or containers could be further implementations of [`Isolation`]: they would return another command than
//! the one they were given.

mod arguments;
mod confinement;
mod limits;
mod private_places;
mod walls;

#[cfg(target_os = "linux")]
mod capabilities;
#[cfg(target_os = "linux")]
mod landlock;
#[cfg(target_os = "linux")]
mod reading;
#[cfg(target_os = "linux")]
mod sockets;
#[cfg(target_os = "linux")]
mod syscalls;

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
pub use private_places::private_places;
pub use walls::{Wall, walls};

/// The mechanism that enforces a policy. The order matters: a later level enforces more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// No mechanism: only resource limits apply.
    #[default]
    None,
    /// Linux, with Landlock.
    Landlock,
}

/// The limits that Linux enforces on a command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    /// The level that enforces it.
    pub level: Level,
    /// Directories below which it may write, or files. They must exist.
    pub writable: Vec<PathBuf>,
    /// Directories below which it may not read files. They may be missing, but must not be below writable ones, where
    /// this would have no effect.
    pub unreadable: Vec<PathBuf>,
    /// Files and directories that it may read although they are below unreadable ones.
    pub readable: Vec<PathBuf>,
    /// The sockets of the internet that it may use.
    pub network: Network,
    /// Whether it may use Unix sockets. It is all or none, because the filter cannot distinguish them.
    pub unix_sockets: bool,
    /// The resource limits of each process.
    pub limits: Limits,
}

/// The internet sockets that a command may use. If they are restricted, only plain TCP and UDP exist.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Network {
    /// TCP and UDP without restriction.
    #[default]
    Unrestricted,
    /// Only these sockets; with empty lists and without UDP, no network at all.
    Only {
        /// Remote TCP ports it may connect to.
        connect: Vec<u16>,
        /// Local TCP ports it may listen on.
        listen: Vec<u16>,
        /// Whether it may use UDP, which has no list of ports: Linux cannot restrict them.
        udp: bool,
    },
}

/// The abilities of a level on this machine. Each member says whether the level can restrict it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Features {
    /// The places where a command may write.
    pub files: bool,
    /// The TCP ports that a command may use.
    pub tcp: bool,
    /// Signals to processes outside, and connections to abstract Unix sockets outside.
    pub signals: bool,
    /// Access to services behind Unix sockets.
    pub unix_sockets: bool,
}

/// Why a level does not work on this machine.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unavailable {
    /// The operating system is not Linux.
    #[error("Landlock is a part of Linux: use level none on this system")]
    NotLinux,
    /// Linux was built without it, or is older than 5.13, or a system call filter hides it.
    #[error("this Linux has no Landlock: use Linux 6.2 or later, or allow its system calls")]
    NotInKernel,
    /// Linux has it, but it was not enabled at boot.
    #[error("Landlock is disabled: add landlock to the boot parameter lsm= of Linux")]
    Disabled,
    /// This version of Landlock cannot restrict truncation, so files outside could be emptied.
    #[error("this Linux has a Landlock that cannot restrict truncation: use Linux 6.2 or later")]
    TooOld,
    /// Linux accepted the rules, but a trial showed no effect or failed.
    #[error("a trial of Landlock failed: {reason}")]
    TrialFailed {
        /// The unexpected result or the error of the trial.
        reason: String,
    },
}

/// Why a command cannot be started under the policy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The policy has a weaker level than is required. Use the required one.
    #[error(
        "isolation level {required} is required here, and {wanted} was asked for: ask for {required}, or require less (--require {wanted})"
    )]
    TooWeak {
        /// The level of the policy.
        wanted: Level,
        /// The required level.
        required: Level,
    },
    /// The level does not work on this machine. Choose another machine or, knowingly, another level.
    #[error("isolation level {level} is not available: {reason}")]
    Unavailable {
        /// The level.
        level: Level,
        /// Why it is not available.
        reason: Unavailable,
    },
    /// The policy restricts TCP, but the level or this version of Linux cannot.
    #[error(
        "isolation level {level} cannot restrict TCP here: use landlock (--require landlock) on Linux 6.7 or later, or leave the network unrestricted"
    )]
    NoTcpControl {
        /// The level that cannot restrict TCP.
        level: Level,
    },
    /// A directory of the policy cannot be opened. Create it, or remove it from the policy.
    #[error("cannot open {path} to allow writing there: {reason}")]
    Writable {
        /// The directory.
        path: PathBuf,
        /// The error of the operating system.
        reason: String,
    },
    /// The privileges of root cannot be dropped.
    #[error("cannot drop the privileges of this process: {source}; start as an ordinary user")]
    Privileges {
        /// The error of Linux.
        source: io::Error,
    },
    /// Linux does not limit the number of processes of root.
    #[error(
        "Linux does not limit the number of processes of root: start as an ordinary user, or leave out --limit-processes"
    )]
    RootIsNotLimited,
    /// Linux rejected the rules.
    #[error("Linux rejected the isolation rules: {reason}")]
    Refused {
        /// The error of Linux or of the library.
        reason: String,
    },
    /// A resource limit could not be set.
    #[error("cannot limit {resource}: {source}")]
    Limit {
        /// The resource.
        resource: &'static str,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The name is not an isolation level.
    #[error("there is no isolation level {name:?}: use {}", Level::ALL.map(Level::name).join(" or "))]
    NoSuchLevel {
        /// The given name.
        name: String,
    },
    /// The text does not describe a network.
    #[error("{text:?} is not a network: use all, none, or ports such as 80,443,listen:8000,udp")]
    NoSuchNetwork {
        /// The given text.
        text: String,
    },
    /// The launcher's arguments are not a policy.
    #[error("bad launcher arguments: {reason}")]
    Arguments {
        /// The mistake in the arguments.
        reason: String,
    },
}

/// A way to enforce policies.
pub trait Isolation: fmt::Debug + Sync {
    /// The level that this implements.
    fn level(&self) -> Level;

    /// Tries what works on this machine. The calling process is not restricted.
    fn probe(&self) -> Result<Features, Unavailable>;

    /// Restricts the calling thread and returns the command to execute from it: the given one, or one that wraps it.
    /// The restriction cannot be undone.
    fn enter(&self, policy: &Policy, command: Command) -> Result<Command, Error>;
}

/// A level, and whether it works on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Support {
    /// The level.
    pub level: Level,
    /// The features that the level can enforce, or the reason why it does not work.
    pub works: Result<Features, Unavailable>,
}

/// Tries all levels, for a report.
pub fn probe() -> Vec<Support> {
    Level::ALL.map(|level| Support { level, works: level.isolation().probe() }).to_vec()
}

/// Fails unless the level works on this machine.
pub fn require(level: Level) -> Result<Features, Error> {
    level.isolation().probe().map_err(|reason| Error::Unavailable { level, reason })
}

/// Applies the policy to the calling thread and returns the command to execute from it. For the launcher: the
/// restriction cannot be undone, and if this fails, nothing must be executed.
pub fn enter(policy: &Policy, command: Command) -> Result<Command, Error> {
    let command = policy.level.isolation().enter(policy, command)?;
    // Last, so that the limits apply to the command and not to the work above.
    policy.limits.apply()?;
    #[cfg(target_os = "linux")]
    if policy.limits != Limits::default() {
        // With this privilege, root could raise its limits. A confined program has none anyway.
        capabilities::drop_for_ever(rustix::thread::CapabilitySet::SYS_RESOURCE)
            .map_err(|error| Error::Privileges { source: error.into() })?;
    }
    Ok(command)
}

impl Policy {
    /// Whether the policy restricts nothing.
    pub fn is_empty(&self) -> bool {
        let Self { level, network, limits, .. } = self;
        *level == Level::None && *network == Network::Unrestricted && *limits == Limits::default()
    }

    /// Fails unless the policy can be applied on this machine and has at least this level. It is tried as far as
    /// possible without restricting the calling process.
    pub fn check(&self, required: Level) -> Result<(), Error> {
        self.limits.check()?;
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

    /// A policy that allows writing only below the workspace and the directory for temporary files, enforced by the
    /// given level; everything else is unrestricted.
    pub fn for_workspace(level: Level, workspace: &Path, temporary: &Path) -> Self {
        let writable = vec![workspace.to_path_buf(), temporary.to_path_buf()];
        Self { level, writable, ..Self::default() }
    }
}

impl Level {
    /// All levels, from the weakest to the strongest.
    pub const ALL: [Self; 2] = [Self::None, Self::Landlock];

    /// The implementation of this level.
    pub fn isolation(self) -> &'static dyn Isolation {
        match self {
            Self::None => &Unconfined,
            #[cfg(target_os = "linux")]
            Self::Landlock => &landlock::Landlock,
            #[cfg(not(target_os = "linux"))]
            Self::Landlock => &NoLandlock,
        }
    }

    /// The name of this level in arguments and messages.
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

    /// Parses `all`, `none`, or TCP ports separated by commas; those to listen on as `listen:PORT`. The word `udp`
    /// among them allows UDP.
    fn from_str(text: &str) -> Result<Self, Error> {
        let (mut connect, mut listen, mut udp) = (Vec::new(), Vec::new(), false);
        match text {
            "all" => return Ok(Self::Unrestricted),
            "none" => return Ok(Self::Only { connect, listen, udp }),
            _ => {}
        }
        for word in text.split(',') {
            if word == "udp" {
                udp = true;
                continue;
            }
            let (port, ports) = match word.strip_prefix("listen:") {
                Some(port) => (port, &mut listen),
                None => (word, &mut connect),
            };
            let port = port.parse();
            ports.push(port.map_err(|_| Error::NoSuchNetwork { text: text.to_owned() })?);
        }
        Ok(Self::Only { connect, listen, udp })
    }
}

/// The level that enforces nothing. It still rejects a policy that needs more.
#[derive(Debug)]
struct Unconfined;

impl Isolation for Unconfined {
    fn level(&self) -> Level {
        Level::None
    }

    fn probe(&self) -> Result<Features, Unavailable> {
        Ok(Features { files: false, tcp: false, signals: false, unix_sockets: false })
    }

    fn enter(&self, policy: &Policy, command: Command) -> Result<Command, Error> {
        match policy.network {
            Network::Unrestricted => Ok(command),
            Network::Only { .. } => Err(Error::NoTcpControl { level: self.level() }),
        }
    }
}

/// Landlock on systems that do not have it.
#[cfg(not(target_os = "linux"))]
#[derive(Debug)]
struct NoLandlock;

#[cfg(not(target_os = "linux"))]
impl Isolation for NoLandlock {
    fn level(&self) -> Level {
        Level::Landlock
    }

    fn probe(&self) -> Result<Features, Unavailable> {
        Err(Unavailable::NotLinux)
    }

    fn enter(&self, _: &Policy, _: Command) -> Result<Command, Error> {
        Err(Error::Unavailable { level: self.level(), reason: Unavailable::NotLinux })
    }
}
