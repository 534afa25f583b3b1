//! The command line of the `openhands-edge` program.

use std::{io, process::ExitCode};

use clap::{Parser, Subcommand};
use openhands_edge::action::GrammarJob;
use openhands_edge::action_server;
use sandbox_host::work;
use sandbox_shells::Helper;
use sandbox_worker::Assignment;

use crate::host::{HostArguments, host};
use crate::key::{self, KeyArguments};
use crate::serve::{ServeArguments, serve};

/// Actions and observations of OpenHands.
#[derive(Debug, Parser)]
#[command(version)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve actions over HTTP in place of OpenHands' action execution server
    Serve(Box<ServeArguments>),
    /// Print the key that a running server has drawn, for the header X-Session-API-Key
    Key(KeyArguments),
    /// Serve actions at a broker, with the tools of its runtimes; started by the daemon
    Host(HostArguments),
    /// Edit files as lines of JSON on stdin say; started by kernels
    #[command(hide = true)]
    Edit,
    /// Do one job under limits of time and memory; started by this program
    #[command(hide = true)]
    Work(Assignment),
    #[command(flatten)]
    Helper(Helper),
}

pub(crate) fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    match arguments.command {
        Command::Serve(arguments) => return serve(*arguments),
        Command::Key(arguments) => return key::print(&arguments),
        Command::Host(arguments) => return host(arguments),
        Command::Edit => {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(action_server::edit_lines(io::stdin().lock(), io::stdout().lock()))?;
        }
        Command::Work(assignment) => match assignment.carry_out::<GrammarJob>() {
            Some(done) => done?,
            None => work(&assignment)?,
        },
        Command::Helper(helper) => helper.run()?,
    }
    Ok(ExitCode::SUCCESS)
}
