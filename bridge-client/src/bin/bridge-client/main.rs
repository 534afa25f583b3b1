//! The program `bridge-client`: speaks to a Run Bridge daemon from a shell.
//!
//! [`cli`] declares every flag, [`commands`] has one file per subcommand, and everything that is
//! printed goes through [`output`]. A subcommand either prints its answer and ends with 0, or
//! returns a [`failure::Failure`], which [`failure`] turns into one line on stderr and one of the
//! exit codes in its table.

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
    // A read from stdin cannot be interrupted; waiting for it would keep the program alive.
    runtime.shutdown_background();
    code
}
