//! The program `bridge-client`: the command line of Run Bridge.
//!
//! [`cli`] declares every flag, [`commands`] has one file per subcommand, and everything that is printed goes through
//! [`output`]. A subcommand either prints its answer and ends with 0, or returns a [`failure::Failure`], which becomes one
//! line on stderr and an exit code.

mod cli;
mod commands;
mod failure;
mod json_text;
mod output;
mod params;
mod verbs;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let cli = cli::Cli::parse();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => return failure::Failure::Start(error).report(cli.global.json),
    };
    let code = runtime.block_on(commands::run(cli, |name| std::env::var(name).ok()));
    // Do not wait for a pending read from stdin: it cannot be interrupted, and would keep the program alive.
    runtime.shutdown_background();
    code
}
