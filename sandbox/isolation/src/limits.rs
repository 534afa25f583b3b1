//! Resource limits.

use rustix::process::{Resource, Rlimit, getrlimit, getuid, setrlimit};

use super::Error;

/// Resource limits of a command. They apply to each process separately, except for the number of processes, which
/// counts all processes of the user and cannot be set for root.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// CPU time in seconds. At the limit the process gets `SIGXCPU`, and a second later `SIGKILL`.
    pub cpu_seconds: Option<u64>,
    /// Address space in bytes. At the limit, allocations fail.
    pub memory_bytes: Option<u64>,
    /// Number of processes of this user. At the limit, `fork` fails.
    pub processes: Option<u64>,
    /// Size in bytes of each file it writes. At the limit the process gets `SIGXFSZ`.
    pub file_bytes: Option<u64>,
}

impl Limits {
    /// Fails if Linux would not enforce one of the limits for the user of this process.
    pub(super) fn check(&self) -> Result<(), Error> {
        match self.processes {
            Some(_) if getuid().is_root() => Err(Error::RootIsNotLimited),
            _ => Ok(()),
        }
    }

    /// Sets the limits for the calling process and everything it becomes or starts. An existing stricter limit stays.
    pub(super) fn apply(&self) -> Result<(), Error> {
        self.check()?;
        // One more second lets the process print a message before it is killed.
        set("CPU time", Resource::Cpu, self.cpu_seconds, 1)?;
        set("memory", Resource::As, self.memory_bytes, 0)?;
        set("processes", Resource::Nproc, self.processes, 0)?;
        set("file size", Resource::Fsize, self.file_bytes, 0)
    }
}

fn set(
    name: &'static str,
    resource: Resource,
    wanted: Option<u64>,
    grace: u64,
) -> Result<(), Error> {
    let Some(wanted) = wanted else { return Ok(()) };
    let now = getrlimit(resource);
    let soft = at_most(now.current, wanted);
    let hard = at_most(now.maximum, wanted.saturating_add(grace));
    setrlimit(resource, Rlimit { current: Some(soft), maximum: Some(hard) })
        .map_err(|error| Error::Limit { resource: name, source: error.into() })
}

fn at_most(present: Option<u64>, wanted: u64) -> u64 {
    present.map_or(wanted, |present| present.min(wanted))
}
