//! The ledger: the files from which a new owner learns about the shells of a state directory.
//!
//! ```text
//! ROOT/run-bridge.lock       marks the directory as ours; locked by the living owner; contains the lease in seconds
//! ROOT/alive                 pipe by which the keeper notices that the owner is gone
//! ROOT/tmux                  the private tmux socket
//! ROOT/tmux.conf, init.bash  start-up files of tmux and of the shells
//! ROOT/builtin.so            the builtin that the shells load to run commands
//! ROOT/environment           environment for tmux; exists only while tmux reads it
//! ROOT/shells/ID/
//!     shell.json             the ledger's entry: written when a shell is started or has died, when its terminal is
//!                            resized, and when a command is given up
//!     start                  directory and environment for init.bash
//!     pipe                   pipe for the nonces; has a name only while the shell starts
//!     policy                 what the shell may do, if it is confined
//!     pid                    the shell's process number, written by the shell or its launcher
//!     command                text of the latest command, up to a NUL; the rest is left from older ones
//!     script                 text of a command that turns line editing off
//!     expected               digests of the nonces of the latest command
//!     exports                the shell's environment, on request; empty otherwise
//!     log, index             written by the recorder
//! ```
//!
//! Everything is private to the user (directories 0700, files 0600). No nonce is ever in a file.

use std::{
    fmt, fs, io,
    path::{Path, PathBuf},
    str::FromStr,
};

use serde::{Deserialize, Serialize};

use crate::Error;
use crate::marker::Seq;
use process_identity::ProcessId;

/// The name of a shell: `[A-Za-z0-9_-]{1,64}`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ShellId(String);

impl ShellId {
    /// A random name that no other shell has.
    pub fn fresh() -> Self {
        Self(format!("{:016x}", rand::random::<u64>()))
    }

    /// The name itself.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ShellId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for ShellId {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let fits = (1..=64).contains(&text.len())
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
        if fits {
            Ok(Self(text.to_owned()))
        } else {
            Err(Error::Invalid(format!(
                "{text:?} is not a valid shell name; use 1 to 64 letters, digits, `_` or `-`"
            )))
        }
    }
}

impl TryFrom<String> for ShellId {
    type Error = Error;

    fn try_from(text: String) -> Result<Self, Error> {
        text.parse()
    }
}

impl From<ShellId> for String {
    fn from(id: ShellId) -> Self {
        id.0
    }
}

/// The size of a shell's terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Size {
    /// Characters in a line.
    pub columns: u16,
    /// Lines on the screen.
    pub rows: u16,
}

impl Size {
    /// The smallest terminal that tmux accepts.
    const SMALLEST: Self = Self { columns: 2, rows: 2 };
    /// The largest terminal. A screen of this size takes about 30 MiB while output is rendered; tmux would accept one
    /// that takes 3 GiB.
    pub const LARGEST: Self = Self { columns: 1000, rows: 500 };

    /// Checks that a shell can have a terminal of this size.
    pub(crate) fn check(self) -> Result<(), Error> {
        let Self { columns, rows } = self;
        let (least, most) = (Self::SMALLEST, Self::LARGEST);
        let fits = (least.columns..=most.columns).contains(&columns)
            && (least.rows..=most.rows).contains(&rows);
        match fits {
            true => Ok(()),
            false => Err(Error::TerminalSize { size: self }),
        }
    }

    /// The nearest size that a screen can have, for sizes that come from files.
    pub(crate) fn clamped(self) -> Self {
        Self {
            columns: self.columns.clamp(1, Self::LARGEST.columns),
            rows: self.rows.clamp(1, Self::LARGEST.rows),
        }
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} columns and {} rows", self.columns, self.rows)
    }
}

impl Default for Size {
    fn default() -> Self {
        Self { columns: 160, rows: 48 }
    }
}

/// The ledger's entry for a shell. It is written when a shell is started in the pane or has died there, when the
/// terminal is resized, and when a command is given up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Entry {
    pub(crate) id: ShellId,
    /// Value of the environment variable that marks every descendant of this shell and of its replacements.
    pub(crate) mark: String,
    /// The id of the pane in the tmux server `server`.
    pub(crate) pane: String,
    pub(crate) server: ProcessId,
    /// The process that tmux started in the pane; the shell is its child (see `launch`).
    pub(crate) leader: ProcessId,
    pub(crate) size: Size,
    /// The latest command whose shell died, or that was given up, if there was one.
    #[serde(default)]
    pub(crate) latest: Option<Latest>,
}

/// A command whose shell has died, or whose end will never be reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Latest {
    pub(crate) seq: Seq,
    pub(crate) outcome: Outcome,
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Outcome {
    /// At the prompt of a shell that has died since; the index has the details.
    AtPrompt,
    /// It was reported with an unknown code, whatever the index says later.
    GivenUp,
    /// The shell died while it ran, with this exit code.
    ShellDied(i32),
}

/// The directory of one shell and the paths in it.
#[derive(Debug, Clone)]
pub(crate) struct ShellDir(PathBuf);

impl ShellDir {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn log(&self) -> PathBuf {
        self.0.join("log")
    }

    pub(crate) fn index(&self) -> PathBuf {
        self.0.join("index")
    }

    pub(crate) fn expected(&self) -> PathBuf {
        self.0.join("expected")
    }

    pub(crate) fn command(&self) -> PathBuf {
        self.0.join("command")
    }

    /// Writes the text of the next command to the file from which the shell takes it: up to the first NUL, which no
    /// command contains. Older bytes after it may stay.
    pub(crate) fn write_command(&self, mut text: Vec<u8>) -> io::Result<()> {
        text.push(0);
        private_files::overwrite_beginning(&self.command(), &text).map(drop)
    }

    /// The text of a command that bash sources as a file.
    pub(crate) fn script(&self) -> PathBuf {
        self.0.join("script")
    }

    /// The file to which the shell writes its environment on request.
    pub(crate) fn exports(&self) -> PathBuf {
        self.0.join("exports")
    }

    pub(crate) fn start(&self) -> PathBuf {
        self.0.join("start")
    }

    pub(crate) fn pipe(&self) -> PathBuf {
        self.0.join("pipe")
    }

    pub(crate) fn policy(&self) -> PathBuf {
        self.0.join("policy")
    }

    pub(crate) fn pid(&self) -> PathBuf {
        self.0.join("pid")
    }

    /// The shell, by the process number that it wrote itself.
    pub(crate) fn shell(&self) -> Option<ProcessId> {
        fs::read_to_string(self.pid()).ok()?.trim().parse().ok().and_then(ProcessId::of)
    }

    fn entry(&self) -> PathBuf {
        self.0.join("shell.json")
    }

    pub(crate) fn create(&self) -> io::Result<()> {
        private_files::create_directory(&self.0)
    }

    pub(crate) fn save(&self, entry: &Entry) -> io::Result<()> {
        private_files::replace(&self.entry(), &serde_json::to_vec_pretty(entry)?)
    }

    pub(crate) fn load(&self) -> io::Result<Entry> {
        Ok(serde_json::from_slice(&fs::read(self.entry())?)?)
    }

    pub(crate) fn remove(&self) -> io::Result<()> {
        match fs::remove_dir_all(&self.0) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            result => result,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shell_names_are_checked() {
        for good in ["a", "A-1_b", &"x".repeat(64)] {
            assert!(good.parse::<ShellId>().is_ok(), "{good}");
        }
        for bad in ["", "a b", "a.b", "../x", "a:b", "ä", &"x".repeat(65)] {
            assert!(bad.parse::<ShellId>().is_err(), "{bad}");
        }
    }

    /// Rendering takes memory for a whole screen, so its size is bounded wherever it comes from.
    #[test]
    fn terminals_beyond_all_bounds_are_refused() {
        let Size { columns, rows } = Size::LARGEST;
        for (columns, rows, is_good) in [
            (2, 2, true),
            (columns, rows, true),
            (columns + 1, rows, false),
            (columns, rows + 1, false),
            (10_000, 10_000, false),
            (1, 48, false),
            (160, 0, false),
        ] {
            let size = Size { columns, rows };
            let checked = size.check();
            assert_eq!(checked.is_ok(), is_good, "{size}");
            assert!(is_good || checked.unwrap_err().to_string().contains("2 to 1000 columns"));
            assert!(size.clamped().columns <= Size::LARGEST.columns);
        }
        let text = crate::render(
            b"a\x1b[9999;9999Hb",
            Size { columns: 10_000, rows: 10_000 },
            crate::Colours::Strip,
        );
        assert!(text.ends_with('b'));
    }
}
