//! The command-line flags of every program that starts shells.

use std::{env, path::Path};

use clap::{Args, value_parser};
use rustix::fs::statvfs;

use super::Config;
use crate::Result;
use sandbox_isolation::{Level, Limits, Network, Policy};

/// The largest number of MiB whose bytes fit into 64 bits.
const MOST_MIB: u64 = u64::MAX >> 20;
/// The default log quota is this fraction of its file system.
const USUAL_PART: u64 = 4;

/// What commands and cells may do and consume, and how much output is recorded.
#[derive(Debug, Clone, Args)]
#[group(id = "shells")]
pub struct ShellArguments {
    /// Refuse to start anything in the sandbox below this isolation level: none or landlock. With landlock, commands
    /// and cells can write only below the workspace and the directory for temporary files, and lose the privileges of
    /// root. `sandbox doctor` shows what it keeps here
    #[arg(long, value_name = "LEVEL", default_value_t = Level::None)]
    pub require: Level,

    /// Network for commands: all, none, or the TCP ports that they may connect to and listen on, and udp, such as
    /// 80,443,listen:8000,udp. Most name lookups need udp. Anything but all needs --require landlock, and disables web
    /// pages for agents, and cells, which need TCP within this machine
    #[arg(long, value_name = "PORTS", default_value = "all")]
    pub network: Network,

    /// CPU time for each process of a command, in seconds
    #[arg(long, value_name = "SECONDS", value_parser = value_parser!(u64).range(1..))]
    pub limit_cpu: Option<u64>,

    /// Address space of each process of a command, in MiB
    #[arg(long, value_name = "MIB", value_parser = value_parser!(u64).range(1..=MOST_MIB))]
    pub limit_memory: Option<u64>,

    /// Processes of this user, including those outside the sandbox; refused for root, whom Linux does not limit
    #[arg(long, value_name = "COUNT", value_parser = value_parser!(u64).range(1..))]
    pub limit_processes: Option<u64>,

    /// Size of each file that a command writes, in MiB
    #[arg(long, value_name = "MIB", value_parser = value_parser!(u64).range(1..=MOST_MIB))]
    pub limit_file_size: Option<u64>,

    /// Recorded output of each shell, in MiB; output beyond it is lost, and counted [default: 4096, or a quarter of
    /// the file system that holds it]
    #[arg(long, value_name = "MIB", value_parser = value_parser!(u64).range(1..=MOST_MIB))]
    pub log_quota: Option<u64>,
}

impl ShellArguments {
    /// The policy for commands in this workspace.
    pub fn policy(&self, workspace: &Path) -> Policy {
        let bytes = |mebibytes: Option<u64>| mebibytes.map(|number| number << 20);
        Policy {
            network: self.network.clone(),
            limits: Limits {
                cpu_seconds: self.limit_cpu,
                memory_bytes: bytes(self.limit_memory),
                processes: self.limit_processes,
                file_bytes: bytes(self.limit_file_size),
            },
            ..Policy::for_workspace(self.require, workspace, &env::temp_dir())
        }
    }

    /// The settings of shells with the state directory `root`, for a program that handles the
    /// [`Helper`](super::Helper) subcommands itself.
    pub fn config(&self, root: &Path, policy: Policy) -> Result<Config> {
        let usual = Config::of_this_program(root)?;
        let log_quota = match self.log_quota {
            Some(mebibytes) => mebibytes << 20,
            None => usual.log_quota.min(part_of_file_system(root)),
        };
        Ok(Config { require: self.require, policy, log_quota, ..usual })
    }
}

/// How many bytes one log may fill. State directories are usually on a small file system in memory.
fn part_of_file_system(root: &Path) -> u64 {
    let sizes = root.ancestors().find_map(|path| statvfs(path).ok());
    let bytes = sizes.map(|sizes| sizes.f_blocks.saturating_mul(sizes.f_frsize));
    // Some file systems report no size.
    bytes.filter(|&bytes| bytes > 0).map_or(u64::MAX, |bytes| bytes / USUAL_PART)
}
