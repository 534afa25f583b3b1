//! The command line of `bridge-client file`.

use clap::{Args, Subcommand};

use super::target::Target;

pub const FILE_HELP: &str = "\
Relative paths begin at --in DIR if that is given, otherwise at the runtime's workspace. Nothing
outside the workspace can be reached. An absolute path also chooses the runtime: the one that has it
open.

Examples:
  bridge-client file read src/main.rs --lines 10:20
  bridge-client file read --in . README.md
  git diff | bridge-client file write change.patch -
  bridge-client file edit a.py --old 'x = 1' --new 'x = 2'
  bridge-client file grep 'fn main' --files '*.rs'

`file read --json` shows the version of a file. With --if-version, `file write` and `file edit` fail
with Conflict and change nothing if the file has another version by now.";

const EDIT_HELP: &str = "\
Examples:
  bridge-client file edit a.py --old 'x = 1' --new 'x = 2'
  bridge-client file edit a.py --insert-after 0 --new 'import os'
  bridge-client file edit new.py --new 'print(1)'

The old text must occur exactly once. Without --old and --insert-after a new file is created.
Prints the change as a diff.";

const HASH_HELP: &str = "\
Prints 64 lower-case hexadecimal digits, and nothing else. With --json also the size of the file and
its version, as `file read --json` shows it.";

/// `file VERB`
#[derive(Args, Debug)]
pub struct File {
    #[command(flatten)]
    pub target: Target,
    #[command(subcommand)]
    pub verb: Verb,
}

#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Print a file, or some of its lines
    Read(Read),
    /// Write a whole file in one step; missing directories are created
    Write {
        /// The file
        path: String,
        /// Its content, or - for stdin
        content: String,
        /// Refuse to replace a file
        #[arg(long)]
        new: bool,
        #[command(flatten)]
        version: IfVersion,
    },
    /// Replace a text that occurs once, insert lines, or create a file
    #[command(after_help = EDIT_HELP)]
    Edit(EditFile),
    /// Undo the latest edit of a file
    Undo {
        /// The file
        path: String,
        /// Undo even if the file has changed since the edit; that change is lost
        #[arg(long)]
        force: bool,
    },
    /// List a directory
    #[command(visible_alias = "ls")]
    List {
        /// The directory
        #[arg(default_value = ".")]
        path: String,
        /// Also list hidden entries
        #[arg(short, long)]
        all: bool,
        /// Also list the entries of its subdirectories
        #[arg(short, long)]
        nested: bool,
        /// Print at most this many entries [default: 10000]
        #[arg(long, value_name = "N")]
        limit: Option<usize>,
    },
    /// Find files by a pattern such as 'src/**/*.rs'
    Glob {
        /// The pattern
        pattern: String,
        /// Search below this directory
        #[arg(default_value = ".")]
        path: String,
        #[command(flatten)]
        filter: Filter,
    },
    /// Find lines by a regular expression
    Grep(Grep),
    /// Print type, size, owner and times of a path, as JSON
    Stat {
        /// The path
        path: String,
        /// Describe a symbolic link itself, not its target
        #[arg(long)]
        no_follow: bool,
    },
    /// Print the SHA-256 of a file
    #[command(after_help = HASH_HELP)]
    Hash {
        /// The file, of at most 16 GiB
        path: String,
    },
    /// Create a directory and its missing parents
    Mkdir {
        /// The directory
        path: String,
    },
    /// Remove an empty directory
    Rmdir {
        /// The directory
        path: String,
    },
    /// Remove a file
    Rm {
        /// The file
        path: String,
        /// Also remove a directory with everything in it
        #[arg(short, long)]
        recursive: bool,
    },
    /// Move a file or directory
    Mv(Transfer),
    /// Copy a file or directory
    Cp(Transfer),
}

#[derive(Args, Debug)]
pub struct IfVersion {
    /// Change the file only if it is still at this version, as `file read --json` shows it
    #[arg(long, value_name = "VERSION")]
    pub if_version: Option<String>,
}

/// `file read PATH`
#[derive(Args, Debug)]
pub struct Read {
    /// The file
    pub path: String,
    /// Print only these lines; either number may be left out
    #[arg(long, value_name = "FIRST:LAST", conflicts_with = "tail")]
    pub lines: Option<String>,
    /// Print only this many lines at the end
    #[arg(long, value_name = "N")]
    pub tail: Option<usize>,
    /// Refuse to read more than this many bytes, at most 16777216 [default: 10485760]
    #[arg(long, value_name = "N")]
    pub limit_bytes: Option<u64>,
}

/// `file edit PATH`
#[derive(Args, Debug)]
pub struct EditFile {
    #[command(flatten)]
    pub edit: Edit,
    #[command(flatten)]
    pub version: IfVersion,
}

/// What to change, for `file edit` and `act edit`.
#[derive(Args, Debug)]
pub struct Edit {
    /// The file
    pub path: String,
    /// The text to replace
    #[arg(long, value_name = "TEXT", conflicts_with = "insert_after")]
    pub old: Option<String>,
    /// Insert after this line; 0 inserts before the first
    #[arg(long, value_name = "LINE")]
    pub insert_after: Option<usize>,
    /// The new text
    #[arg(long, value_name = "TEXT")]
    pub new: String,
}

/// Which files a search includes, and how many results it prints.
#[derive(Args, Debug)]
pub struct Filter {
    /// Also search hidden files
    #[arg(long)]
    pub hidden: bool,
    /// Also search files that .gitignore and .ignore exclude
    #[arg(long)]
    pub ignored: bool,
    /// Print at most this many results [default: 1000]
    #[arg(long, value_name = "N")]
    pub limit: Option<usize>,
}

/// `file grep PATTERN`
#[derive(Args, Debug)]
pub struct Grep {
    /// The regular expression
    pub pattern: String,
    /// Search in this file, or below this directory
    #[arg(default_value = ".")]
    pub path: String,
    /// Take the pattern as plain text
    #[arg(short = 'F', long)]
    pub literal: bool,
    /// Ignore the difference between upper and lower case
    #[arg(short, long)]
    pub ignore_case: bool,
    /// Search only files whose path matches this glob
    #[arg(long, value_name = "GLOB")]
    pub files: Option<String>,
    /// Print this many lines before and after each match
    #[arg(short = 'C', long, value_name = "N", default_value_t = 0)]
    pub context: usize,
    #[command(flatten)]
    pub filter: Filter,
}

/// `file mv` and `file cp`
#[derive(Args, Debug)]
pub struct Transfer {
    /// The file or directory
    pub from: String,
    /// Its new path; missing directories are created
    pub to: String,
    /// Replace a file that exists at the new path
    #[arg(long)]
    pub replace: bool,
}
