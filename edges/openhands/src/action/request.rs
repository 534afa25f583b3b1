//! The actions of agents.

use std::{path::PathBuf, time::Duration};

/// An action and its time limit.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// The action.
    pub action: Action,
    /// When to stop waiting. A command goes on after that.
    pub timeout: Option<Duration>,
}

/// A cell of the IPython kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cell {
    /// The code.
    pub code: String,
    /// Whether to run it in a new kernel. The former kernel ends, even during a cell.
    pub restart: bool,
}

/// An action of an agent.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Run a command in a shell, or continue with the running one.
    Run(Run),
    /// Run a cell in the IPython kernel.
    RunIpython(Cell),
    /// Read a file.
    Read(Read),
    /// Write some lines of a file, or the whole file.
    Write(Write),
    /// Change a part of a file, view it, or undo a change.
    Edit(Edit),
    /// Show a web page.
    Browse {
        /// The address, or a path relative to the directory of the main shell.
        url: String,
    },
    /// Create a directory and its missing parents.
    CreateDirectory {
        /// The path.
        path: PathBuf,
    },
    /// Remove an empty directory.
    RemoveDirectory {
        /// The path.
        path: PathBuf,
    },
    /// Remove a file, or a tree if `recursive` is set.
    Remove {
        /// The path.
        path: PathBuf,
        /// Whether a directory is removed with everything in it.
        recursive: bool,
    },
    /// End the shell with everything in it. The next command gets a new shell.
    Close,
}

/// A command, or input for the running command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// The text. If it is empty, wait for the running command and show its new output. `C-c` and
    /// similar texts are keys.
    pub command: String,
    /// Whether the text is for the running command, not for the shell.
    pub input: bool,
    /// Whether to go on waiting when nothing is printed.
    pub blocking: bool,
    /// The shell in which it runs.
    pub shell: RunIn,
    /// Whether only a program reads the output, which is then complete.
    pub hidden: bool,
}

/// The shell of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunIn {
    /// The agent's main shell, with its directory, variables and jobs.
    Main,
    /// A shell that is made for this command.
    Fresh {
        /// Its directory; the initial directory by default.
        cwd: Option<PathBuf>,
    },
}

/// A file to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Read {
    /// Relative to the directory of the main shell, except for [`ReadAs::View`].
    pub path: PathBuf,
    /// The form of the result.
    pub form: ReadAs,
}

/// The form in which a file is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadAs {
    /// Lines, unchanged; media as data. Lines are counted from 0; `end` is excluded, and -1 means
    /// the end of the file. A slice beyond the end gives the last two lines.
    Slice {
        /// The first line.
        start: i64,
        /// The line after the last.
        end: i64,
    },
    /// Numbered lines for display, or the entries of a directory. The path must be absolute.
    View {
        /// First and last line, counted from 1; -1 means the last line.
        range: Option<[i64; 2]>,
    },
}

/// Lines to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Write {
    /// Relative to the directory of the main shell.
    pub path: PathBuf,
    /// The new lines. The last one gets a line end, whether or not it has one.
    pub content: String,
    /// The first line that they replace, counted from 0.
    pub start: i64,
    /// The line after the last one that they replace; -1 for all.
    pub end: i64,
}

/// A change of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    /// An absolute path.
    pub path: PathBuf,
    /// The command of the editor.
    pub command: EditCommand,
}

/// A command of the editor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EditCommand {
    /// View the file.
    View,
    /// Create a file with exactly this text.
    Create {
        /// The text.
        text: String,
    },
    /// Replace the only occurrence of a text.
    Replace {
        /// The text to find. If it does not occur, it is tried without surrounding blanks.
        old: String,
        /// The text that replaces it.
        new: String,
    },
    /// Insert lines.
    Insert {
        /// After this line; 0 is before the first.
        line: i64,
        /// The lines. The last one gets a line end, whether or not it has one.
        text: String,
    },
    /// Undo the last change.
    Undo,
    /// An invalid command. It is a command because errors of the path come before its own error.
    Invalid {
        /// Whether it would have created a file.
        creates: bool,
        /// What is wrong with it.
        reason: String,
    },
}
