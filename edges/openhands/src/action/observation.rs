//! Observations: the results of actions.

use std::{ops::Range, path::PathBuf, time::Duration};

use tokio::sync::mpsc;

/// Takes what a command or a cell prints as it comes.
pub type OutputSink = mpsc::Sender<OutputPiece>;

/// A piece of what a command or a cell prints.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputPiece {
    /// Whole characters and whole escape sequences.
    pub text: String,
    /// Where it lies in the log of the shell; cells have none.
    pub place: Option<Range<u64>>,
}

/// The result of an action.
#[derive(Debug, Clone, PartialEq)]
pub enum Observation {
    /// Of a command.
    Run(RunObservation),
    /// Of a cell.
    Cell(CellObservation),
    /// Of reading.
    Read {
        /// The path: absolute, except for a view, where it is as given.
        path: PathBuf,
        /// The content.
        content: ReadContent,
    },
    /// Of writing.
    Written {
        /// The absolute path.
        path: PathBuf,
    },
    /// Of editing.
    Edited(EditObservation),
    /// Of a web page.
    Browsed(Page),
    /// A directory was made, or something was removed.
    Done {
        /// Its absolute path.
        path: PathBuf,
    },
    /// The shell has ended.
    Closed,
}

/// The result of a command so far.
#[derive(Debug, Clone, PartialEq)]
pub struct RunObservation {
    /// The text that was given, without the blanks around it.
    pub command: String,
    /// The output since the last observation, as a terminal shows it.
    pub content: String,
    /// How it stands.
    pub outcome: Outcome,
    /// The state of the shell, if it is at its prompt.
    pub shell: Option<ShellReport>,
    /// Whether an earlier observation has told a part of this command's output.
    pub continued: bool,
    /// The number of last lines that the content is, if there were more.
    pub last_lines: Option<usize>,
    /// Bytes of the command's output that could not be kept, so far: the log is full.
    pub lost: u64,
    /// Whether the output is for a program only.
    pub hidden: bool,
}

/// How a command stands.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// It has ended.
    Completed {
        /// Its exit code; -1 if there is none to know.
        exit_code: i32,
        /// The control key that was sent, if one was.
        key: Option<char>,
        /// Anything else that the agent should know.
        completion: Completion,
    },
    /// It goes on and has printed nothing for this long.
    Quiet(Duration),
    /// It goes on, and the time is over.
    TimedOut(Duration),
    /// It is not whole, so it has not begun, and its rest is expected as input. The duration is the silence after
    /// which the wait would have ended; none for an action that blocks.
    Unfinished(Option<Duration>),
    /// The new command was not run, because the former one still runs.
    Busy,
    /// There is no command to wait for or to type into.
    NothingRunning(NothingRunning),
}

/// Anything else that the agent should know of a command that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Completion {
    /// Nothing.
    Plain,
    /// The shell has ended with it, and there is a new one in the same directory.
    ShellReplaced,
    /// It had ended before the input came, which was therefore not sent.
    InputNotSent,
}

/// The wish of an agent that expects a running command although there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NothingRunning {
    /// Its output.
    Output,
    /// To take input.
    Input,
}

/// The state that a shell reports at its prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShellReport {
    /// Its directory.
    pub cwd: PathBuf,
    /// Its user.
    pub user: String,
    /// The machine.
    pub host: String,
    /// The latest background process.
    pub background_pid: Option<u32>,
    /// The Python that it would run.
    pub python: Option<PathBuf>,
}

/// The result of a cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CellObservation {
    /// Its output and displayed results as plain text, exceptions included. Of very long output both ends, with a
    /// line between them that says so.
    pub text: String,
    /// Bytes that were left out there, 0 as a rule.
    pub left_out: u64,
    /// The pictures that it displayed.
    pub pictures: Vec<Picture>,
    /// How it ended.
    pub outcome: CellOutcome,
    /// Why the kernel is a new one, if it is.
    pub renewal: Option<Renewal>,
    /// The directory of the shell, which the kernel follows.
    pub cwd: PathBuf,
    /// The Python of the kernel.
    pub python: PathBuf,
}

/// A picture that a cell displayed: PNG, JPEG, GIF or WebP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picture {
    /// Its media type.
    pub media_type: String,
    /// Its content.
    pub base64: String,
}

/// Why a cell was run in a new kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Renewal {
    /// The caller asked for that.
    AsAsked,
    /// An earlier cell did not come to its end.
    WasStuck,
}

/// How a cell ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CellOutcome {
    /// It ran to its end.
    Finished,
    /// By an exception, which is in its text.
    Raised,
    /// It took longer than it was allowed to, which is so long.
    TimedOut(Duration),
    /// The kernel's process has ended under it. There is a new one.
    KernelDied,
}

/// The content of a file or directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReadContent {
    /// Lines as they are.
    Text(String),
    /// An image, a film or a document.
    Media {
        /// Its media type.
        media_type: &'static str,
        /// The whole file.
        bytes: Vec<u8>,
    },
    /// Lines to look at.
    Lines {
        /// The text. A final line end counts as one more line, which is empty.
        text: String,
        /// The number of the first line.
        first: usize,
        /// The number of lines of the file, if a range went beyond them.
        only: Option<usize>,
    },
    /// The entries of a directory, two levels deep.
    Directory {
        /// Absolute paths, the directory first, directories with a slash at the end, sorted.
        entries: Vec<String>,
        /// Hidden entries of the directory itself that are left out.
        hidden: usize,
    },
}

/// A web page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// Its address.
    pub url: String,
    /// Its text.
    pub text: String,
    /// How it looks.
    pub screenshot: Option<Screenshot>,
    /// Why it could not be shown.
    pub error: Option<String>,
}

/// A picture of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Screenshot {
    /// The picture itself.
    pub png: Vec<u8>,
    /// Where it is kept, if it is.
    pub path: Option<PathBuf>,
}

/// The result of an edit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EditObservation {
    /// The path as given.
    pub path: PathBuf,
    /// The change.
    pub edition: Edition,
}

/// A change of a file, with the texts that the observation shows. Their lines end with `\n`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Edition {
    /// It was only looked at.
    Viewed(ReadContent),
    /// It was made.
    Created {
        /// Its text.
        text: String,
    },
    /// A text in it was replaced.
    Replaced {
        /// The text before.
        before: String,
        /// The text now.
        after: String,
        /// The lines around the change.
        snippet: String,
        /// The number of the first of them.
        first: usize,
    },
    /// Lines were inserted.
    Inserted {
        /// The text before.
        before: String,
        /// The text now.
        after: String,
        /// The lines around the change.
        snippet: String,
        /// The number of the first of them.
        first: usize,
    },
    /// The last change was taken back.
    Undone {
        /// The text before.
        before: String,
        /// The text now.
        after: String,
    },
}

impl Edition {
    /// The texts before and after.
    pub fn change(&self) -> (&str, &str) {
        match self {
            Self::Viewed(_) => ("", ""),
            Self::Created { text } => ("", text),
            Self::Replaced { before, after, .. }
            | Self::Inserted { before, after, .. }
            | Self::Undone { before, after } => (before, after),
        }
    }
}
