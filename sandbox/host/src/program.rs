//! The command line of the program `sandbox`.

mod doctor;
mod host;
mod logging;
mod shell;

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use clap::{Parser, Subcommand};
use sandbox_host::work;
use sandbox_pages::{Browser, CHROMIUM, Page, Source};
use sandbox_shells::Helper;
use sandbox_worker::{Assignment, Worker};

/// Shells, files, cells and web pages for agents.
#[derive(Debug, Parser)]
#[command(version)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve the tools of a workspace to a bridge daemon
    #[command(after_help = host::HELP)]
    Host(Box<host::HostArguments>),
    /// Work with shells that stay when this program ends
    #[command(after_help = shell::HELP)]
    Shell(Box<shell::ShellCommand>),
    /// Print the text and the links of a web page
    Browse {
        /// Time limit in seconds
        #[arg(long, default_value = "30", value_name = "SECONDS", value_parser = seconds)]
        limit: Duration,
        /// The Chromium that renders the page; without it, the page is fetched without running
        /// scripts
        #[arg(long, value_name = "PROGRAM", default_value = CHROMIUM)]
        browser_program: PathBuf,
        /// The address
        url: String,
    },
    /// Show which features for sandboxes this machine has
    Doctor,
    /// Do one job under limits of time and memory; started by this program
    #[command(hide = true)]
    Work(Assignment),
    #[command(flatten)]
    Helper(Helper),
}

pub(crate) fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    match arguments.command {
        // There are many recorders, so they get no tokio runtime and no log.
        Command::Helper(helper) => {
            helper.run()?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Host(arguments) => {
            let _log = logging::start(&arguments.log);
            block_on(host::run(*arguments))
        }
        Command::Shell(command) => block_on(shell::run(*command)),
        Command::Browse { limit, browser_program: chromium, url } => {
            let worker = Worker::of_this_program()?;
            block_on(browse(Browser { chromium, worker }, url, limit))
        }
        Command::Doctor => doctor::run(),
        Command::Work(assignment) => {
            work(&assignment)?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn seconds(text: &str) -> Result<Duration, String> {
    let number = text.parse().ok().and_then(|number| Duration::try_from_secs_f64(number).ok());
    number.ok_or_else(|| "not a number of seconds, 0 or more".to_owned())
}

fn block_on<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let done = runtime.block_on(work);
    // A file operation on a slow disk may still be running; it must not delay the end of the
    // program.
    runtime.shutdown_background();
    done
}

async fn browse(browser: Browser, url: String, limit: Duration) -> anyhow::Result<ExitCode> {
    ensure!(
        url.starts_with("http://") || url.starts_with("https://"),
        "{url} is not a web address: it must begin with http:// or https://"
    );
    let shown = browser.render(Source::Web(url), limit).await.context("showing the page")?;
    let Page { text, error, .. } = shown;
    if let Some(error) = error {
        bail!("the page cannot be shown: {error}");
    }
    writeln!(io::stdout(), "{text}")?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn a_host_has_exactly_one_connection() {
        let check = |flags: &[&str]| {
            let common = ["sandbox", "host", "--workspace", "/w", "--session", "s"];
            Arguments::try_parse_from(common.iter().chain(flags)).is_ok()
        };
        assert!(check(&["--connection-fd", "3"]));
        assert!(check(&["--connect", "unix:/s", "--token-file", "/t"]));
        assert!(!check(&[]));
        assert!(!check(&["--connect", "unix:/s"]));
        assert!(!check(&["--connection-fd", "3", "--connect", "unix:/s", "--token-file", "/t"]));
        assert!(!check(&["--connection-fd", "3", "--token-file", "/t"]));
    }
}
