//! The command line of `bridge-client shell`.

use std::time::Duration;

use clap::{Args, Subcommand};

use super::seconds;
use super::target::Target;

pub const SHELL_HELP: &str = "\
A shell keeps its directory, variables and functions from one command to the next. `main` is used
where none is named. `run` starts the shell that it names if there is none; the other verbs need
one. Shells are served by runtimes such as the sandboxes that `bridge-daemon --sandbox DIR`
starts; --runtime or --in chooses among several.

Examples:
  bridge-client shell run 'cd src && make'
  bridge-client shell run --shell server --limit 5 './serve'
  bridge-client shell read --shell server
  bridge-client shell keys --shell server C-c
  bridge-client shell run --in ~/orders 'git status'";

const RUN_HELP: &str = "\
The output appears as it comes. Ctrl-C interrupts the command; a second Ctrl-C leaves it running.
Where stdout is no terminal, lines end with a newline alone, as they would in a pipe.

Exit codes: that of the command; 124 if it goes on after --limit, --quiet or --return-on-input;
those of bridge-client if it could not be run at all.";

/// `shell VERB`
#[derive(Args, Debug)]
pub struct Shell {
    #[command(flatten)]
    pub target: Target,
    #[command(subcommand)]
    pub verb: Verb,
}

#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Start a shell and print its name
    Create(Create),
    /// List the shells
    #[command(visible_alias = "ls")]
    List,
    /// Run a command in a shell, show its output, and end with its exit code
    #[command(after_help = RUN_HELP)]
    Run(Run),
    /// Wait for the latest command of a shell, and show what it prints
    #[command(after_help = RUN_HELP)]
    Wait(Wait),
    /// Print the output of a shell's latest command, or the shell's log from an offset on
    Read(Read),
    /// Type a text and press Enter
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
    /// Signal the programs in the foreground: INT, TERM, KILL, QUIT, HUP, CONT, STOP, USR1, USR2
    Signal {
        #[command(flatten)]
        shell: ShellArgument,
        /// The signal, with or without SIG
        signal: String,
    },
    /// Change the size of a shell's terminal
    Resize {
        #[command(flatten)]
        shell: ShellArgument,
        /// Characters in a line
        columns: u16,
        /// Lines on the screen
        rows: u16,
    },
    /// End a shell with all its programs, and remove its log
    Close {
        /// The shell
        #[arg(default_value = "main", value_name = "NAME")]
        shell: String,
    },
    /// Attach this terminal to a shell; leave with Ctrl-B and D. Without a terminal, print the command
    Attach {
        /// The shell
        #[arg(default_value = "main", value_name = "NAME")]
        shell: String,
        /// Watch only
        #[arg(long)]
        read_only: bool,
    },
}

#[derive(Args, Debug)]
pub struct ShellArgument {
    /// The shell
    #[arg(long, value_name = "NAME", default_value = "main")]
    pub shell: String,
}

/// How long to wait, and how to print.
#[derive(Args, Debug)]
pub struct Limits {
    /// Stop waiting after this time; the command goes on
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub limit: Option<Duration>,
    /// Stop waiting when nothing was printed for this time
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub quiet: Option<Duration>,
    /// Stop waiting when the command seems to wait for input
    #[arg(long)]
    pub return_on_input: bool,
    /// Write every byte unchanged, including carriage returns
    #[arg(long)]
    pub raw: bool,
    /// Keep colours in the text of --json. Without --json, colours are always kept
    #[arg(long)]
    pub colours: bool,
}

/// `shell run COMMAND`
#[derive(Args, Debug)]
pub struct Run {
    #[command(flatten)]
    pub shell: ShellArgument,
    #[command(flatten)]
    pub limits: Limits,
    /// The command, of any number of lines, or - to read it from stdin
    pub command: String,
}

/// `shell wait`
#[derive(Args, Debug)]
pub struct Wait {
    #[command(flatten)]
    pub shell: ShellArgument,
    #[command(flatten)]
    pub limits: Limits,
    /// Fail unless the latest command has this number, as `shell list` and --json show it
    #[arg(long, value_name = "NUMBER")]
    pub command: Option<u64>,
    /// Show the output from this offset on [default: from the command's beginning]
    #[arg(long, value_name = "OFFSET")]
    pub from: Option<u64>,
}

/// `shell read`
#[derive(Args, Debug)]
pub struct Read {
    #[command(flatten)]
    pub shell: ShellArgument,
    /// Begin at this offset of the shell's log
    #[arg(long, value_name = "OFFSET")]
    pub from: Option<u64>,
    /// Print at most this many bytes
    #[arg(long, value_name = "N")]
    pub bytes: Option<u64>,
    /// Write the bytes unchanged, instead of the text that a terminal would show
    #[arg(long, conflicts_with = "colours")]
    pub raw: bool,
    /// Keep colours
    #[arg(long)]
    pub colours: bool,
}

/// `shell create`
#[derive(Args, Debug)]
pub struct Create {
    /// Its name [default: chosen at random]
    #[arg(value_name = "NAME")]
    pub shell: Option<String>,
    /// Start in this directory; relative to --in if that is given, otherwise to the workspace
    #[arg(long, value_name = "DIR")]
    pub cwd: Option<String>,
    /// Set a variable; may be given several times
    #[arg(long = "env", value_name = "NAME=VALUE")]
    pub environment: Vec<String>,
    /// Characters in a line
    #[arg(long)]
    pub columns: Option<u16>,
    /// Lines on the screen
    #[arg(long)]
    pub rows: Option<u16>,
}
