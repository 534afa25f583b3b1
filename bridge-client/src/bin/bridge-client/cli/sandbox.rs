//! What a person can type after `bridge-client sandbox`.

use std::time::Duration;

use clap::{Args, Subcommand};

use super::seconds;

pub const SANDBOX_HELP: &str = "\
The daemon must have been started with --sandbox DIR. Commands run in shells that stay, by name;
`main` is used where none is named, and started when it is first needed. Files are those below
DIR; paths are relative to it.

Examples:
  bridge-client sandbox run 'cd src && make'
  bridge-client sandbox run --shell server --limit 5 './serve'
  bridge-client sandbox output --shell server
  bridge-client sandbox keys --shell server C-c
  bridge-client sandbox read src/main.rs --lines 10:20
  git diff | bridge-client sandbox write change.patch -
  bridge-client sandbox grep 'fn main' --files '*.rs'";

const RUN_HELP: &str = "\
The output appears as it comes. Ctrl-C interrupts the command; a second Ctrl-C leaves it running.
Where stdout is no terminal, lines end with a newline alone, as they would in a pipe.

Exit codes: that of the command; 124 if it goes on after --limit, --quiet or --return-on-input;
those of bridge-client if it could not be run at all.";

const EDIT_HELP: &str = "\
Examples:
  bridge-client sandbox edit a.py --old 'x = 1' --new 'x = 2'
  bridge-client sandbox edit a.py --insert-after 0 --new 'import os'
  bridge-client sandbox edit new.py --new 'print(1)'

The old text must occur exactly once. Without --old and --insert-after a new file is created.
Prints the change as a diff.";

#[derive(Debug, Subcommand)]
pub enum Sandbox {
    /// Run a command in a shell, show its output, and end with its exit code
    #[command(after_help = RUN_HELP)]
    Run(Run),
    /// Wait for the latest command of a shell, and show what it prints
    #[command(after_help = RUN_HELP)]
    Wait(Wait),
    /// Print what the latest command of a shell has printed, or its log from an offset on
    Output(ReadOutput),
    /// Type a text and Enter
    Input {
        #[command(flatten)]
        shell: ShellArgument,
        /// Without Enter
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
        /// Which signal
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
    /// List the shells
    Shells,
    /// Start a shell and print its name
    Create(Create),
    /// End a shell with all its programs
    Close {
        /// Which shell
        #[arg(default_value = "main")]
        shell: String,
    },
    /// Attach this terminal to a shell; leave with Ctrl-B and D. Without a terminal, print the command
    Attach {
        /// Which shell
        #[arg(default_value = "main")]
        shell: String,
        /// Watch only
        #[arg(long)]
        read_only: bool,
    },
    #[command(flatten)]
    Files(Files),
}

/// What concerns files.
#[derive(Debug, Subcommand)]
pub enum Files {
    /// Print a file, or some of its lines
    Read(Read),
    /// Write a whole file in one step
    Write {
        /// Which file
        path: String,
        /// Its content, or - for stdin
        content: String,
        /// Refuse to replace a file
        #[arg(long)]
        new: bool,
    },
    /// Replace a text that occurs once, insert lines, or create a file
    #[command(after_help = EDIT_HELP)]
    Edit(Edit),
    /// Take the latest edit of a file back
    Undo {
        /// Which file
        path: String,
        /// Even if the file was changed since
        #[arg(long)]
        force: bool,
    },
    /// List a directory
    Ls {
        /// Which directory
        #[arg(default_value = ".")]
        path: String,
        /// Also hidden entries
        #[arg(short, long)]
        all: bool,
        /// Also the entries of its directories
        #[arg(short, long)]
        nested: bool,
        /// At most so many [default: 10000]
        #[arg(long, value_name = "N")]
        limit: Option<usize>,
    },
    /// Find files by a pattern such as 'src/**/*.rs'
    Glob {
        /// The pattern
        pattern: String,
        /// Below this directory
        #[arg(default_value = ".")]
        path: String,
        #[command(flatten)]
        filter: Filter,
    },
    /// Find lines by a regular expression
    Grep(Grep),
    /// Print what is known of a path, as JSON
    Stat {
        /// Which path
        path: String,
        /// Of a link itself, not of what it leads to
        #[arg(long)]
        no_follow: bool,
    },
    /// Create a directory, and those above it
    Mkdir {
        /// Its path
        path: String,
    },
    /// Remove an empty directory
    Rmdir {
        /// Its path
        path: String,
    },
    /// Remove a file
    Rm {
        /// Its path
        path: String,
        /// Also a directory, with everything in it
        #[arg(short, long)]
        recursive: bool,
    },
    /// Move a file or directory
    Mv(Transfer),
    /// Copy a file or directory
    Cp(Transfer),
}

#[derive(Args, Debug)]
pub struct ShellArgument {
    /// Which shell
    #[arg(long, value_name = "NAME", default_value = "main")]
    pub shell: String,
}

/// How long to wait.
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
    /// Write every byte as it came, carriage returns included
    #[arg(long)]
    pub raw: bool,
    /// Keep colours in the text of --json. Without --json they are as the command printed them
    #[arg(long)]
    pub colours: bool,
}

/// `sandbox run COMMAND`
#[derive(Args, Debug)]
pub struct Run {
    #[command(flatten)]
    pub shell: ShellArgument,
    #[command(flatten)]
    pub limits: Limits,
    /// The command, of any number of lines, or - to read it from stdin
    pub command: String,
}

/// `sandbox wait`
#[derive(Args, Debug)]
pub struct Wait {
    #[command(flatten)]
    pub shell: ShellArgument,
    #[command(flatten)]
    pub limits: Limits,
    /// Only for the command of this number, as `sandbox shells` and --json tell it [default: the latest]
    #[arg(long, value_name = "NUMBER")]
    pub command: Option<u64>,
    /// Show the output from this offset on [default: from the command's beginning]
    #[arg(long, value_name = "OFFSET")]
    pub from: Option<u64>,
}

/// `sandbox output`
#[derive(Args, Debug)]
pub struct ReadOutput {
    #[command(flatten)]
    pub shell: ShellArgument,
    /// Begin at this offset of the shell's log
    #[arg(long, value_name = "OFFSET")]
    pub from: Option<u64>,
    /// At most so many bytes
    #[arg(long, value_name = "N")]
    pub bytes: Option<u64>,
    /// Write the bytes as they are, instead of what a terminal would show
    #[arg(long, conflicts_with = "colours")]
    pub raw: bool,
    /// Keep colours
    #[arg(long)]
    pub colours: bool,
}

/// `sandbox create`
#[derive(Args, Debug)]
pub struct Create {
    /// Its name [default: drawn]
    pub shell: Option<String>,
    /// Where it starts
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

/// `sandbox read PATH`
#[derive(Args, Debug)]
pub struct Read {
    /// Which file
    pub path: String,
    /// Only these lines; either number may be missing
    #[arg(long, value_name = "FIRST:LAST", conflicts_with = "tail")]
    pub lines: Option<String>,
    /// Only so many lines at the end
    #[arg(long, value_name = "N")]
    pub tail: Option<usize>,
    /// Refuse to read more bytes, 16777216 at most [default: 10485760]
    #[arg(long, value_name = "N")]
    pub limit_bytes: Option<u64>,
}

/// `sandbox edit PATH`
#[derive(Args, Debug)]
pub struct Edit {
    /// Which file
    pub path: String,
    /// The text to replace
    #[arg(long, value_name = "TEXT", conflicts_with = "insert_after")]
    pub old: Option<String>,
    /// Insert after this line; 0 is before the first
    #[arg(long, value_name = "LINE")]
    pub insert_after: Option<usize>,
    /// The new text
    #[arg(long, value_name = "TEXT")]
    pub new: String,
}

/// What a search passes over.
#[derive(Args, Debug)]
pub struct Filter {
    /// Also hidden files
    #[arg(long)]
    pub hidden: bool,
    /// Also what .gitignore and .ignore exclude
    #[arg(long)]
    pub ignored: bool,
    /// At most so many [default: 1000]
    #[arg(long, value_name = "N")]
    pub limit: Option<usize>,
}

/// `sandbox grep PATTERN`
#[derive(Args, Debug)]
pub struct Grep {
    /// The regular expression
    pub pattern: String,
    /// In this file, or below this directory
    #[arg(default_value = ".")]
    pub path: String,
    /// The pattern is plain text
    #[arg(short = 'F', long)]
    pub literal: bool,
    /// Upper and lower case are the same
    #[arg(short, long)]
    pub ignore_case: bool,
    /// Only files whose path matches this glob
    #[arg(long, value_name = "GLOB")]
    pub files: Option<String>,
    /// Lines to show around each match
    #[arg(short = 'C', long, value_name = "N", default_value_t = 0)]
    pub context: usize,
    #[command(flatten)]
    pub filter: Filter,
}

/// `sandbox mv` and `sandbox cp`
#[derive(Args, Debug)]
pub struct Transfer {
    /// What
    pub from: String,
    /// Where to
    pub to: String,
    /// Take the place of a file that is there
    #[arg(long)]
    pub replace: bool,
}
