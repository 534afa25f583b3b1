//! The actions.

use std::{path::PathBuf, time::Duration};

/// An action and how long it may take.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// The action.
    pub action: Action,
    /// After so long the wait ends. A command goes on nevertheless.
    pub timeout: Option<Duration>,
}

/// A cell of the IPython kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cell {
    /// The code.
    pub code: String,
    /// Run it in a new kernel. The former one ends, also under a cell that is running.
    pub restart: bool,
}

/// Something to do.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Run a command in a shell, or go on with the one that runs there.
    Run(Run),
    /// Run a cell in the IPython kernel.
    RunIpython(Cell),
    /// Read a file.
    Read(Read),
    /// Write lines of a file, or all of it.
    Write(Write),
    /// Change a part of a file, look at it, or take a change back.
    Edit(Edit),
    /// Show a web page.
    Browse {
        /// Its address, or a path relative to the directory of the main shell.
        url: String,
    },
    /// Make a directory, with those above it that are missing.
    CreateDirectory {
        /// Its path.
        path: PathBuf,
    },
    /// Remove an empty directory.
    RemoveDirectory {
        /// Its path.
        path: PathBuf,
    },
    /// Remove a file or, if asked for, a tree.
    Remove {
        /// Its path.
        path: PathBuf,
        /// Whether a directory is removed with everything in it.
        recursive: bool,
    },
    /// End the shell with everything in it. The next command gets a new one.
    Close,
}

/// A command, or input for the one that runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// The text. Empty: wait for the running command and tell what is new. `C-c` and its sisters are
    /// keys.
    pub command: String,
    /// The text is for the running command, not for the shell.
    pub input: bool,
    /// Silence is no reason to stop waiting.
    pub blocking: bool,
    /// The shell that runs it.
    pub shell: RunIn,
    /// Nobody wants to see it: the output is for a program, and complete.
    pub hidden: bool,
}

/// The shell of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunIn {
    /// The agent's own, with its directory, variables and jobs.
    Main,
    /// One made for this command.
    Fresh {
        /// Its directory, the initial one if none.
        cwd: Option<PathBuf>,
    },
}

/// A file to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Read {
    /// Relative to the directory of the main shell, except for [`ReadAs::View`].
    pub path: PathBuf,
    /// In which form.
    pub form: ReadAs,
}

/// The form in which a file is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadAs {
    /// Lines as they are; media as data. Counted from 0, the end excluded, -1 for the last. A slice
    /// beyond the end gives the last two lines.
    Slice {
        /// The first line.
        start: i64,
        /// The line after the last.
        end: i64,
    },
    /// For the eye: numbered lines, or what a directory holds. The path must be absolute.
    View {
        /// First and last line, counted from 1, -1 for the last.
        range: Option<[i64; 2]>,
    },
}

/// Lines to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Write {
    /// Relative to the directory of the main shell.
    pub path: PathBuf,
    /// The new lines. The last one is ended too, whether or not it ends here.
    pub content: String,
    /// The first line that they replace, counted from 0.
    pub start: i64,
    /// The line after the last that they replace, -1 for all.
    pub end: i64,
}

/// A change of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    /// An absolute path.
    pub path: PathBuf,
    /// The action.
    pub command: EditCommand,
}

/// A command of the editor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EditCommand {
    /// Look at it.
    View,
    /// Make a new file with exactly this text.
    Create {
        /// The text.
        text: String,
    },
    /// Replace the only occurrence of a text.
    Replace {
        /// The text to find. If it does not occur, it is tried without the blanks around it.
        old: String,
        /// The text that replaces it.
        new: String,
    },
    /// Insert lines.
    Insert {
        /// After this line; 0 is before the first.
        line: i64,
        /// The lines. The last one is ended too, whether or not it ends here.
        text: String,
    },
    /// Take the last change back.
    Undo,
    /// None that can be carried out. An agent is told what is wrong with the path first.
    Wrong {
        /// Whether it would have made a file.
        creates: bool,
        /// A sentence about what is wrong with it.
        reason: String,
    },
}
