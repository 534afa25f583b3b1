//! The limit of open file descriptors. The daemon raises its own, and restores the former one in programs that it
//! starts.

use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::process::Command;

/// File descriptors that are not for connections: listeners, files, the child's pipes.
const RESERVED: u64 = 64;
/// The limit to assume where the system names none.
const USUAL: u64 = 1024;

/// The limit under which the daemon was started.
#[derive(Clone, Debug)]
pub struct DescriptorLimit(Rlimit);

impl DescriptorLimit {
    /// Reads the present limit. To be called before it is raised.
    pub fn inherited() -> Self {
        Self(getrlimit(Resource::Nofile))
    }

    /// Raises the daemon's own limit, and returns how many connections there may be: at most `wanted`, and never so
    /// many that no descriptors are left for other uses.
    pub fn raise_for(&self, wanted: usize) -> usize {
        let Rlimit { current, maximum } = self.0;
        let raised = match setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }) {
            Ok(()) => maximum,
            Err(_) => current,
        };
        let room = raised.unwrap_or(USUAL).saturating_sub(RESERVED);
        wanted.min(usize::try_from(room).unwrap_or(usize::MAX).max(1))
    }

    /// Lets a program start with the limit that the daemon was started under.
    #[allow(unsafe_code)]
    pub fn restore_in(&self, command: &mut Command) {
        let limit = self.0;
        // SAFETY: one async-signal-safe system call is made, and nothing is allocated.
        unsafe {
            command.pre_exec(move || setrlimit(Resource::Nofile, limit).map_err(io::Error::from));
        }
    }
}
