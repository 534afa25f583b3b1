//! The program `bridge-daemon`: parses its arguments, starts logging, runs, and turns errors into exit codes.

use std::process::ExitCode;

use bridge_daemon::config::{Cli, Command, LogLevel};
use bridge_daemon::{logging, run, serve};
use clap::Parser;

fn main() -> ExitCode {
    let cli = Cli::parse();
    started(cli).unwrap_or_else(|error| {
        eprintln!("bridge-daemon: {error:#}");
        ExitCode::from(run::CANNOT_START)
    })
}

fn started(cli: Cli) -> anyhow::Result<ExitCode> {
    match cli.command {
        Command::Run(args) => {
            let _log = logging::start(&args.bridge, LogLevel::Error)?;
            block_on(run::run(args))
        }
        Command::Serve(args) => {
            let _log = logging::start(&args.bridge, LogLevel::Info)?;
            block_on(serve::serve(args))
        }
    }
}

fn block_on(work: impl Future<Output = anyhow::Result<ExitCode>>) -> anyhow::Result<ExitCode> {
    keep_memory_private();
    // One thread: the broker is a value behind a lock, and one thread was measured to be faster than two.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let code = runtime.block_on(work);
    // Do not wait for a write to a blocked terminal.
    runtime.shutdown_background();
    code
}

/// Forbids core dumps and reading by other processes, because the daemon's memory holds the tokens. The program of a run
/// does not inherit this.
fn keep_memory_private() {
    #[cfg(target_os = "linux")]
    if let Err(error) =
        rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable)
    {
        tracing::warn!(%error, "cannot protect the daemon's memory: other processes of this user can read it");
    }
}
