//! The command line of `sandbox shell`.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use bridge_protocol::methods::shell::SignalName;
use clap::{Args, Subcommand};
use sandbox_host::state;
use sandbox_shells::ShellArguments;

use crate::program::seconds;

#[derive(Debug, Args)]
pub(in crate::program) struct ShellCommand {
    /// The state directory of the shells: a new or an empty one, or one that earlier shells were in [default: `shells`
    /// in the directory of the connection files]
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
    /// How long shells live on without an owner
    #[arg(long, value_name = "SECONDS", default_value_t = 3600)]
    pub(super) lease: u64,
    /// The policy of new shells; their workspace is the current directory
    #[command(flatten)]
    pub(super) shells: ShellArguments,
    #[command(subcommand)]
    pub(super) verb: Verb,
}

impl ShellCommand {
    /// The state directory of the shells.
    pub(super) fn root(&self) -> anyhow::Result<PathBuf> {
        match &self.root {
            Some(root) => Ok(root.clone()),
            None => {
                let place = state::runtime_directory().context("choose a directory with --root")?;
                Ok(place.join("shells"))
            }
        }
    }
}

#[derive(Debug, Subcommand)]
pub(super) enum Verb {
    /// Start a shell and print its name
    Create(Create),
    /// List the shells
    #[command(visible_alias = "ls")]
    List,
    /// Run a command in a shell, show its output, and exit with its exit code
    Run(Run),
    /// Wait for the latest command of a shell, and show what it prints
    Wait(Wait),
    /// Print the output of a shell's latest command, or its log from an offset on
    Read(Read),
    /// Type a text and Enter
    Input {
        #[command(flatten)]
        shell: ShellArgument,
        /// Do not press Enter after the text
        #[arg(long)]
        no_enter: bool,
        /// The text
        text: String,
    },
    /// Press keys: C-c, C-d, UP, ENTER, TAB, ESC, F1 and so on
    Keys {
        #[command(flatten)]
        shell: ShellArgument,
        /// The keys, one after the other
        #[arg(required = true, value_name = "KEY")]
        keys: Vec<String>,
    },
    /// Send a signal to the foreground programs: INT, TERM, KILL, QUIT, HUP, CONT, STOP, USR1, USR2
    Signal {
        #[command(flatten)]
        shell: ShellArgument,
        /// The signal, with or without SIG
        #[arg(value_parser = signal_name)]
        signal: SignalName,
    },
    /// Change the size of a shell's terminal
    Resize {
        #[command(flatten)]
        shell: ShellArgument,
        /// Columns
        columns: u16,
        /// Rows
        rows: u16,
    },
    /// End a shell with all its programs, and remove its log
    Close {
        /// The shell
        #[arg(default_value = "main", value_name = "NAME")]
        shell: String,
    },
    /// Attach this terminal to a shell; detach with Ctrl-B and D. Without a terminal, print the
    /// command
    Attach {
        /// The shell
        #[arg(default_value = "main", value_name = "NAME")]
        shell: String,
        /// Watch only
        #[arg(long)]
        read_only: bool,
    },
    /// Close all shells and end the tmux server
    End,
}

#[derive(Debug, Args)]
pub(super) struct ShellArgument {
    /// The shell
    #[arg(long, value_name = "NAME", default_value = "main")]
    pub(super) shell: String,
}

#[derive(Debug, Args)]
pub(super) struct Create {
    /// The name [default: random]
    #[arg(value_name = "NAME")]
    pub(super) shell: Option<String>,
    /// The directory in which it starts [default: the current one]
    #[arg(long, value_name = "DIR")]
    pub(super) cwd: Option<PathBuf>,
    /// Set a variable; may be repeated
    #[arg(long = "env", value_name = "NAME=VALUE", value_parser = variable)]
    pub(super) environment: Vec<(String, String)>,
    /// Columns
    #[arg(long, value_name = "N")]
    pub(super) columns: Option<u16>,
    /// Rows
    #[arg(long, value_name = "N")]
    pub(super) rows: Option<u16>,
}

/// How long to wait, and how to print the output
#[derive(Debug, Args)]
pub(super) struct Limits {
    /// Stop waiting after this time; the command goes on
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(super) limit: Option<Duration>,
    /// Stop waiting when nothing was printed for this time
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(super) quiet: Option<Duration>,
    /// Stop waiting when the command seems to wait for input
    #[arg(long)]
    pub(super) return_on_input: bool,
    /// Write every byte unchanged, including carriage returns
    #[arg(long)]
    pub(super) raw: bool,
}

#[derive(Debug, Args)]
pub(super) struct Run {
    #[command(flatten)]
    pub(super) shell: ShellArgument,
    #[command(flatten)]
    pub(super) limits: Limits,
    /// The command, of one or more lines, or - to read it from stdin
    pub(super) command: String,
}

#[derive(Debug, Args)]
pub(super) struct Wait {
    #[command(flatten)]
    pub(super) shell: ShellArgument,
    #[command(flatten)]
    pub(super) limits: Limits,
    /// Fail unless the latest command has this number, as `list` shows it
    #[arg(long, value_name = "NUMBER")]
    pub(super) command: Option<u64>,
    /// Show the output from this offset on [default: from the beginning of the command]
    #[arg(long, value_name = "OFFSET")]
    pub(super) from: Option<u64>,
}

#[derive(Debug, Args)]
pub(super) struct Read {
    #[command(flatten)]
    pub(super) shell: ShellArgument,
    /// Begin at this offset of the shell's log
    #[arg(long, value_name = "OFFSET")]
    pub(super) from: Option<u64>,
    /// Print at most this many bytes
    #[arg(long, value_name = "N")]
    pub(super) bytes: Option<u64>,
    /// Write the bytes unchanged, instead of what a terminal would show
    #[arg(long, conflicts_with = "colours")]
    pub(super) raw: bool,
    /// Keep colours
    #[arg(long)]
    pub(super) colours: bool,
}

fn variable(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("not NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

fn signal_name(text: &str) -> Result<SignalName, String> {
    let name = text.to_ascii_uppercase();
    let name = name.strip_prefix("SIG").unwrap_or(&name);
    serde_json::from_value(serde_json::Value::from(name))
        .map_err(|_| "use INT, TERM, KILL, QUIT, HUP, CONT, STOP, USR1 or USR2".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_have_two_names() {
        assert_eq!(signal_name("sigterm"), Ok(SignalName::Term));
        assert_eq!(signal_name("KILL"), Ok(SignalName::Kill));
        assert!(signal_name("15").is_err());
    }
}
