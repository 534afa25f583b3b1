//! The subcommands that tmux, the keeper and kernels start: the owner's own program in another role.
//!
//! So there is no second program to install, and each program that owns shells has these subcommands among its own.

use std::{ffi::OsString, fs, io, path::PathBuf};

use clap::Subcommand;

use super::{Config, Shells, enter, keep, record};
use crate::{Error, Result};
use sandbox_isolation::confine;

/// The subcommands for other programs; they are hidden from people.
#[derive(Debug, Subcommand)]
pub enum Helper {
    /// Record the output of a pane; started by tmux
    #[command(hide = true)]
    Record {
        /// Most bytes in the log
        #[arg(long)]
        quota: u64,
        /// The shell's directory
        directory: PathBuf,
    },
    /// Apply a shell's policy and become the shell; started by tmux
    #[command(hide = true)]
    Enter {
        /// The shell's directory
        directory: PathBuf,
        /// The shell and its arguments
        #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
        command: Vec<OsString>,
    },
    /// Apply a policy and become a program; started for kernels
    #[command(hide = true)]
    Confine {
        /// The policy, `--`, and the command with its arguments
        #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
    /// End shells that have no owner after their lease; started by tmux
    #[command(hide = true)]
    Keep {
        /// The state directory
        root: PathBuf,
    },
    /// End shells whose lease is over; started by the keeper
    #[command(hide = true)]
    Sweep {
        /// The state directory
        root: PathBuf,
    },
}

impl Helper {
    /// Runs the subcommand, without an async runtime and without logging: there are many recorders, and they must be
    /// small.
    pub fn run(self) -> Result<()> {
        match self {
            Self::Record { quota, directory } => record(&directory, quota, io::stdin().lock())
                .map_err(Error::io("recording a shell")),
            Self::Enter { directory, command } => {
                match enter(&directory, command).map_err(Error::io("confining the shell"))? {}
            }
            Self::Confine { arguments } => {
                match confine(arguments).map_err(Error::io("confining"))? {}
            }
            Self::Keep { root } => keep(&root).map_err(Error::io("keeping the shells")),
            Self::Sweep { root } => {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
                let runtime = runtime.map_err(Error::io("starting the runtime for the sweep"))?;
                runtime.block_on(Shells::sweep(Config::of_this_program(root.clone())?))?;
                // Fails unless the directory is empty, which means that the lease was over and no owner has come
                // back.
                let _ = fs::remove_dir(&root);
                Ok(())
            }
        }
    }
}
