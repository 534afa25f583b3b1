//! The command line of `bridge-client act`.

use clap::{Args, Subcommand};

use super::file::Edit;
use super::target::Target;

pub const ACT_HELP: &str = "\
Each verb is one action of an agent; --json prints the observation exactly as the agent gets it.
Commands run in the agent's persistent shell, at the runtime that --runtime or --in chooses. Paths are
relative to the directory of that shell, also with --in, and must lie in the runtime's workspace.

Examples:
  bridge-client act run 'cd src && make'
  bridge-client act --json run 'cd src && make' | jq .extras.metadata.exit_code
  bridge-client act ipython 'import os; os.getcwd()'
  bridge-client act read src/main.rs
  git diff | bridge-client act write change.patch
  bridge-client act edit a.py --old 'x = 1' --new 'x = 2'";

const RUN_HELP: &str = "\
The output appears as it comes. Ctrl-C interrupts the command and ends this program with 130.
Where stdout is no terminal, lines end with a newline alone, as they would in a pipe.

Exit codes: that of the command; 124 if it goes on after --timeout or, with --impatient, after 10
seconds of silence; those of bridge-client if it could not be run at all.";

const EDIT_HELP: &str = "\
Examples:
  bridge-client act edit a.py --old 'x = 1' --new 'x = 2'
  bridge-client act edit a.py --insert-after 0 --new 'import os'
  bridge-client act edit new.py --new 'print(1)'

The old text must occur exactly once. Without --old and --insert-after a new file is created.
Prints the content of the observation.";

/// `act VERB`
#[derive(Args, Debug)]
pub struct Act {
    #[command(flatten)]
    pub target: Target,
    #[command(subcommand)]
    pub verb: Verb,
}

#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Run a command in the agent's shell, show its output, and end with its exit code
    #[command(after_help = RUN_HELP)]
    Run(Run),
    /// Run a cell in the agent's IPython kernel, show what it prints, and end with 1 if it fails
    Ipython {
        #[command(flatten)]
        shell: AgentShell,
        /// The code, or - to read it from stdin
        code: String,
    },
    /// Give the agent a new IPython kernel; variables are gone, and a cell that is running ends
    RestartKernel {
        #[command(flatten)]
        shell: AgentShell,
    },
    /// Print a file, or some of its lines
    Read(Read),
    /// Write a file; its last line is ended
    Write {
        #[command(flatten)]
        shell: AgentShell,
        /// Which file
        path: String,
        /// The text [default: what is on stdin]
        #[arg(long, value_name = "TEXT")]
        content: Option<String>,
    },
    /// Replace a text that occurs once, insert lines, or create a file
    #[command(after_help = EDIT_HELP)]
    Edit(EditFile),
    /// Undo the latest edit of a file
    Undo(Place),
    /// Create a directory and its missing parents
    Mkdir(Place),
    /// Remove an empty directory
    Rmdir(Place),
    /// Remove a file
    Rm {
        #[command(flatten)]
        place: Place,
        /// Also remove a directory with everything in it
        #[arg(short, long)]
        recursive: bool,
    },
    /// Print the text and the links of a web page
    Browse {
        #[command(flatten)]
        shell: AgentShell,
        /// The address of the page
        url: String,
    },
    /// End the agent's shell and kernel; the next action gets new ones
    Close {
        #[command(flatten)]
        shell: AgentShell,
    },
}

#[derive(Args, Debug)]
pub struct AgentShell {
    /// Name of the agent's shell
    #[arg(long, value_name = "NAME", default_value = "agent")]
    pub shell: String,
}

/// `act run COMMAND`
#[derive(Args, Debug)]
pub struct Run {
    #[command(flatten)]
    pub shell: AgentShell,
    /// Send the text to the running command: a line to type, or a key such as C-c
    #[arg(long)]
    pub input: bool,
    /// Run the command in a new shell that is made for it
    #[arg(long, conflicts_with = "input")]
    pub fresh: bool,
    /// Stop waiting after 10 seconds of silence, as agents do; the command goes on
    #[arg(long)]
    pub impatient: bool,
    /// The command, or - to read it from stdin; if it is empty, wait for the running command
    pub command: String,
}

/// `act edit PATH`
#[derive(Args, Debug)]
pub struct EditFile {
    #[command(flatten)]
    pub shell: AgentShell,
    #[command(flatten)]
    pub edit: Edit,
}

/// `act read PATH`
#[derive(Args, Debug)]
pub struct Read {
    #[command(flatten)]
    pub place: Place,
    /// First line to print, counted from 0
    #[arg(long, value_name = "LINE", conflicts_with = "view")]
    pub start: Option<i64>,
    /// Line before which to stop
    #[arg(long, value_name = "LINE", conflicts_with = "view")]
    pub end: Option<i64>,
    /// Print line numbers; for a directory, print its entries
    #[arg(long)]
    pub view: bool,
}

/// A file or directory of the workspace.
#[derive(Args, Debug)]
pub struct Place {
    #[command(flatten)]
    pub shell: AgentShell,
    /// The path
    pub path: String,
}
