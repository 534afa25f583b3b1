//! The command line of `bridge-client cell`.

use std::time::Duration;

use clap::{Args, Subcommand};

use super::seconds;
use super::shell::ShellArgument;
use super::target::Target;

pub const CELL_HELP: &str = "\
Each shell has an IPython kernel of its own. It starts with the first cell, in the shell's directory
and with what the shell has exported, and keeps its variables.

Examples:
  bridge-client cell run 'import os; os.getcwd()'
  bridge-client cell run --shell analysis - < cell.py
  bridge-client cell restart";

const RUN_HELP: &str = "\
On a terminal the output appears as it comes. In a pipe it is printed at the end, as plain text.
Ctrl-C interrupts the cell. Pictures are in --json only.

Exit codes: 0 if the cell ran to its end, 1 if it raised an exception or its kernel died, 124 if it
reached --limit; those of bridge-client if it could not be run at all.";

/// `cell VERB`
#[derive(Args, Debug)]
pub struct Cell {
    #[command(flatten)]
    pub target: Target,
    #[command(subcommand)]
    pub verb: Verb,
}

#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Run Python code in a shell's IPython kernel and show what it prints
    #[command(after_help = RUN_HELP)]
    Run(Run),
    /// End the kernel of a shell, even while a cell runs. The next cell gets a new kernel
    Restart {
        #[command(flatten)]
        shell: ShellArgument,
    },
}

/// `cell run CODE`
#[derive(Args, Debug)]
pub struct Run {
    #[command(flatten)]
    pub shell: ShellArgument,
    /// Run it in a new kernel; variables are gone, and a cell that is running ends
    #[arg(long)]
    pub restart: bool,
    /// Interrupt the cell after this time [default: 120]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub limit: Option<Duration>,
    /// The code, or - to read it from stdin
    pub code: String,
}
