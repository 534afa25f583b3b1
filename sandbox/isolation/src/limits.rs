//! How much a command may consume.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::Error;

/// Resource limits of a command. They hold for each process on its own, except for the number of
/// processes, which counts all processes of the user (and does not bind root).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Seconds of processor time. Then the process gets `SIGXCPU`, and a second later `SIGKILL`.
    pub cpu_seconds: Option<u64>,
    /// Bytes of address space. Then allocations fail.
    pub memory_bytes: Option<u64>,
    /// Processes of this user. Then `fork` fails.
    pub processes: Option<u64>,
    /// Bytes of any file it writes. Then the process gets `SIGXFSZ`.
    pub file_bytes: Option<u64>,
}

impl Limits {
    /// Sets them for the calling process and whatever it becomes or starts. A limit that is
    /// already stricter stays.
    pub(super) fn apply(&self) -> Result<(), Error> {
        // The grace of a second lets the process say something before it dies.
        set("processor time", Resource::Cpu, self.cpu_seconds, 1)?;
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
