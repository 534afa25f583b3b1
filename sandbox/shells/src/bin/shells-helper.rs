//! The program for this crate's tests: a second owner, which can be killed, and the helper of the shells.

use std::{
    env,
    io::{self, Write as _},
    path::PathBuf,
    process::ExitCode,
};

use clap::{Parser, Subcommand};
use sandbox_shells::{Config, Helper, Progress, ShellId, ShellSpec, Shells, Wait};

#[derive(Debug, Parser)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Runs a command and shows its output as it comes.
    Run {
        /// The state directory.
        root: PathBuf,
        /// The shell; it is created in the current directory if it does not exist.
        shell: ShellId,
        /// The text to run.
        command: String,
    },
    /// Lists the shells.
    List {
        /// The state directory.
        root: PathBuf,
    },
    #[command(flatten)]
    Helper(Helper),
}

fn main() -> anyhow::Result<ExitCode> {
    match Arguments::parse().command {
        Command::Helper(helper) => helper.run()?,
        Command::Run { root, shell, command } => return block_on(run(root, shell, command)),
        Command::List { root } => block_on(list(root))?,
    }
    Ok(ExitCode::SUCCESS)
}

fn block_on<T>(future: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(future)
}

async fn run(root: PathBuf, id: ShellId, command: String) -> anyhow::Result<ExitCode> {
    let shells = Shells::open(Config::of_this_program(root)?).await?;
    let shell = match shells.get(&id) {
        Some(shell) => shell,
        None => {
            let spec = ShellSpec { id, ..ShellSpec::in_directory(env::current_dir()?) };
            shells.create(spec).await?
        }
    };
    let job = shell.run(command).await?;
    let mut output = job.follow()?;
    let mut buffer = vec![0; 64 * 1024];
    let mut out = io::stdout();
    loop {
        match output.next(&mut buffer).await? {
            0 => break,
            read => out.write_all(&buffer[..read])?,
        }
        out.flush()?;
    }
    match job.wait(Wait::forever()).await? {
        Progress::Finished(result) => {
            Ok(ExitCode::from(u8::try_from(result.exit_code).unwrap_or(125)))
        }
        Progress::Running(running) => anyhow::bail!("the wait has ended early: {running:?}"),
    }
}

async fn list(root: PathBuf) -> anyhow::Result<()> {
    let shells = Shells::open(Config::of_this_program(root)?).await?;
    for shell in shells.list() {
        writeln!(io::stdout(), "{}", shell.id())?;
    }
    Ok(())
}
