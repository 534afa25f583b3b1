//! What tmux, the keeper and kernels start: the owner's own program, under another command.
//!
//! So there is no second program to be found, and each program that owns shells takes these commands
//! among its own.

use std::{ffi::OsString, fs, io, path::PathBuf};

use clap::Subcommand;

use super::{Config, Shells, enter, keep, record};
use crate::{Error, Result};
use sandbox_isolation::confine;

/// The commands. They are not for people.
#[derive(Debug, Subcommand)]
pub enum Helper {
    /// Record a pane; started by tmux
    #[command(hide = true)]
    Record {
        /// Bytes that the log may hold
        #[arg(long)]
        quota: u64,
        /// The shell's directory
        directory: PathBuf,
    },
    /// Take on a shell's policy and become its shell; started by tmux
    #[command(hide = true)]
    Enter {
        /// The shell's directory
        directory: PathBuf,
        /// The shell and its arguments
        #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
        command: Vec<OsString>,
    },
    /// Take on a policy and become a command; started for kernels
    #[command(hide = true)]
    Confine {
        /// The policy, `--`, and the command with its arguments
        #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
    /// Watch over shells without an owner; started by tmux
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
    /// Does what it is for. There is no runtime and no log: recorders are many, and must be small.
    pub fn run(self) -> Result<()> {
        match self {
            Self::Record { quota, directory } => {
                record(&directory, quota, io::stdin().lock()).map_err(Error::io("recording"))
            }
            Self::Enter { directory, command } => {
                match enter(&directory, command).map_err(Error::io("confining the shell"))? {}
            }
            Self::Confine { arguments } => {
                match confine(arguments).map_err(Error::io("confining"))? {}
            }
            Self::Keep { root } => keep(&root).map_err(Error::io("keeping")),
            Self::Sweep { root } => {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
                let runtime = runtime.map_err(Error::io("starting to sweep"))?;
                runtime.block_on(Shells::sweep(Config::of_this_program(root.clone())?))?;
                // Empty only if the lease was over and no owner has come back.
                let _ = fs::remove_dir(&root);
                Ok(())
            }
        }
    }
}
