//! Observations: the results of actions.

use std::{ops::Range, path::PathBuf, time::Duration};

use tokio::sync::mpsc;

/// Receives the output of a command or a cell as it comes.
pub type OutputSink = mpsc::Sender<OutputPiece>;

/// A piece of the output of a command or a cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputPiece {
    /// Complete characters and complete escape sequences.
    pub text: String,
    /// Its offsets in the log of the shell; `None` for cells.
    pub place: Option<Range<u64>>,
}

/// The result of an action.
#[derive(Debug, Clone, PartialEq)]
pub enum Observation {
    /// The result of a command.
    Run(RunObservation),
    /// The result of a cell.
    Cell(CellObservation),
    /// The result of reading.
    Read {
        /// The path: absolute, except for a view, where it is as given.
        path: PathBuf,
        /// The content.
        content: ReadContent,
    },
    /// The result of writing.
    Written {
        /// The absolute path.
        path: PathBuf,
    },
    /// The result of editing.
    Edited(EditObservation),
    /// The result of browsing.
    Browsed(Page),
    /// A directory was created, or something was removed.
    Done {
        /// The absolute path.
        path: PathBuf,
    },
    /// The shell has ended.
    Closed,
}

/// The result of a command so far.
#[derive(Debug, Clone, PartialEq)]
pub struct RunObservation {
    /// The command without surrounding blanks.
    pub command: String,
    /// The output since the last observation, as a terminal shows it.
    pub content: String,
    /// The state of the command.
    pub outcome: Outcome,
    /// The shell's report, if it is at its prompt.
    pub shell: Option<ShellReport>,
    /// Whether an earlier observation has shown a part of this command's output.
    pub continued: bool,
    /// The number of lines in the content, if there were more.
    pub last_lines: Option<usize>,
    /// Bytes of the command's output that were lost so far, because the log is full.
    pub lost: u64,
    /// Whether only a program reads the output.
    pub hidden: bool,
}

/// The state of a command.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// It has ended.
    Completed {
        /// The exit code; -1 if it is not known.
        exit_code: i32,
        /// The control key that was sent, if any.
        key: Option<char>,
        /// Special circumstances of the end.
        completion: Completion,
    },
    /// It is running and has printed nothing for this long.
    Quiet(Duration),
    /// It is running, and this time limit has passed.
    TimedOut(Duration),
    /// It is incomplete, so it has not begun, and the rest is expected as input. The duration is
    /// the time without output after which the wait would have ended; `None` for a blocking action.
    Unfinished(Option<Duration>),
    /// The new command was not run, because the former one is still running.
    Busy,
    /// There is no command to wait for or to type into.
    NothingRunning(NothingRunning),
}

/// Special circumstances of a command's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Completion {
    /// None.
    Plain,
    /// The shell ended with the command. A new one was started in the same directory.
    ShellReplaced,
    /// The command had ended before the input came, so the input was not sent.
    InputNotSent,
}

/// The wish of an agent that fails because no command is running.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NothingRunning {
    /// To see its output.
    Output,
    /// To send it input.
    Input,
}

/// The state that a shell reports at its prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShellReport {
    /// Its working directory.
    pub cwd: PathBuf,
    /// Its user.
    pub user: String,
    /// The name of the machine.
    pub machine: String,
    /// The latest background process.
    pub background_pid: Option<u32>,
    /// The Python that it finds on its `PATH`.
    pub python: Option<PathBuf>,
}

/// The result of a cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CellObservation {
    /// Output and displayed results as plain text, exceptions included. Very long output has both
    /// ends, with a note about the gap between them.
    pub text: String,
    /// Number of bytes that were omitted there; usually 0.
    pub omitted_bytes: u64,
    /// The pictures that it displayed.
    pub pictures: Vec<Picture>,
    /// How it ended.
    pub outcome: CellOutcome,
    /// Why the kernel is new, if it is.
    pub renewal: Option<Renewal>,
    /// The directory of the shell, which the kernel uses.
    pub cwd: PathBuf,
    /// The Python of the kernel.
    pub python: PathBuf,
}

/// A picture that a cell displayed: PNG, JPEG, GIF or WebP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picture {
    /// Its media type.
    pub media_type: String,
    /// Its content in Base64.
    pub base64: String,
}

/// Why a cell was run in a new kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Renewal {
    /// The caller asked for a new kernel.
    Requested,
    /// An earlier cell did not end.
    WasStuck,
}

/// How a cell ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CellOutcome {
    /// It ran to its end without an exception.
    Finished,
    /// An exception ended it, which is in its text.
    Raised,
    /// It exceeded this time limit.
    TimedOut(Duration),
    /// The kernel's process ended during the cell. A new one was started.
    KernelDied,
}

/// The content of a file or directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReadContent {
    /// Lines, unchanged.
    Text(String),
    /// An image, a video or a document.
    Media {
        /// Its media type.
        media_type: &'static str,
        /// The whole file.
        bytes: Vec<u8>,
    },
    /// Lines for display.
    Lines {
        /// The text. A final line end counts as the beginning of one more, empty, line.
        text: String,
        /// The number of the first line.
        first: usize,
        /// The number of lines of the file, if the range ended after them.
        only: Option<usize>,
    },
    /// The entries of a directory, two levels deep.
    Directory {
        /// Absolute paths, sorted; the directory itself is first, and directories end with a slash.
        entries: Vec<String>,
        /// Number of hidden entries of the directory itself, which are omitted.
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
    /// A screenshot of it.
    pub screenshot: Option<Screenshot>,
    /// Why it could not be rendered.
    pub error: Option<String>,
}

/// A screenshot of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Screenshot {
    /// The picture as a PNG file.
    pub png: Vec<u8>,
    /// The file in which it was saved, if that was possible.
    pub path: Option<PathBuf>,
}

/// The result of an edit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EditObservation {
    /// The path as given.
    pub path: PathBuf,
    /// The change.
    pub edition: EditOutcome,
}

/// The outcome of an edit command, with the texts that the observation shows. Their lines end with
/// `\n`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EditOutcome {
    /// The file was viewed.
    Viewed(ReadContent),
    /// The file was created.
    Created {
        /// Its text.
        text: String,
    },
    /// A text was replaced.
    Replaced {
        /// The text before.
        before: String,
        /// The text now.
        after: String,
        /// The lines around the change.
        snippet: String,
        /// The number of the snippet's first line.
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
        /// The number of the snippet's first line.
        first: usize,
    },
    /// The last change was undone.
    Undone {
        /// The text before.
        before: String,
        /// The text now.
        after: String,
    },
}

impl EditOutcome {
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
