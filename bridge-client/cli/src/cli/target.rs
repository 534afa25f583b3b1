//! Flags that choose the runtime for a subcommand.

use std::path::PathBuf;

use clap::Args;

/// Chooses a runtime. Without either flag, the only one that serves the tool is used.
#[derive(Args, Clone, Debug, Default)]
pub struct Target {
    /// Use this runtime (see `bridge-client status`)
    #[arg(long, global = true, value_name = "ID", display_order = 900)]
    pub runtime: Option<String>,
    /// Use the runtime that has this directory open
    #[arg(long = "in", global = true, value_name = "DIR", display_order = 901)]
    pub directory: Option<PathBuf>,
}
