//! What lies on disk about the shells, so that they outlive their owner.
//!
//! ```text
//! ROOT/owner.lock            held by the living owner; holds the lease in seconds
//! ROOT/alive                 pipe that tells the keeper when the owner is gone
//! ROOT/tmux                  the private socket
//! ROOT/tmux.conf, init.bash  start-up files of tmux and of the shells
//! ROOT/builtin.so            what the shells load to run commands
//! ROOT/environment           what tmux is just being told
//! ROOT/shells/ID/
//!     shell.json           who we are: written when the shell or its shell starts
//!     start                  directory and environment for init.bash
//!     pipe                   secrets' way into the shell; has a name only while the shell starts
//!     policy                 what the shell may do, if it is confined
//!     pid                    the shell's process number, written by itself or its launcher
//!     command                text of the latest command, up to a NUL; what follows is of older ones
//!     script                 the text of a command that turns line editing off
//!     expected               digests of the nonces of the latest command
//!     exports                where the shell writes its environment when it is asked; empty otherwise
//!     log, index             written by the recorder
//! ```
//! Everything is private to the user (directories 0700, files 0600). No secret is ever in a file.

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
    /// A name that nobody else has.
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
                "{text:?} is no shell name; use 1 to 64 letters, digits, `_` or `-`"
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
    /// Whether tmux makes a terminal of it.
    pub(crate) fn check(self) -> Result<(), Error> {
        let fits = |length: u16| (2..=10_000).contains(&length);
        if fits(self.columns) && fits(self.rows) {
            return Ok(());
        }
        let Self { columns, rows } = self;
        Err(Error::Invalid(format!(
            "a terminal cannot have {columns} columns and {rows} rows; choose 2 to 10000 of each"
        )))
    }
}

impl Default for Size {
    fn default() -> Self {
        Self { columns: 160, rows: 48 }
    }
}

/// The ledger's entry for a shell, written whenever its shell starts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Entry {
    pub(crate) id: ShellId,
    /// Value of the variable that marks every descendant of this shell, whichever bash has started it.
    pub(crate) mark: String,
    /// The pane, as the tmux server in `server` numbers it.
    pub(crate) pane: String,
    pub(crate) server: ProcessId,
    /// The process that tmux has started; the shell is its child (see `launch`).
    pub(crate) leader: ProcessId,
    pub(crate) size: Size,
    /// The latest command of the shells that have died, or that was given up, if there was one.
    #[serde(default)]
    pub(crate) latest: Option<Latest>,
}

/// A command of a shell that has died, or of whose end nothing will be heard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Latest {
    pub(crate) seq: Seq,
    pub(crate) fate: Fate,
}

/// What became of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Fate {
    /// It ended at the prompt of a shell that has died since; the index tells how.
    AtPrompt,
    /// It was reported with an unknown code, whatever the index may tell since.
    GivenUp,
    /// The shell died with it, and had this code.
    ShellDied(i32),
}

/// The directory of one shell and the names in it.
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

    /// Puts the text of the next command where the shell takes it from: up to the first NUL, which
    /// no command contains. What lies behind may stay.
    pub(crate) fn write_command(&self, mut text: Vec<u8>) -> io::Result<()> {
        text.push(0);
        private_files::overwrite_beginning(&self.command(), &text).map(drop)
    }

    /// The text of a command that is read as a file.
    pub(crate) fn script(&self) -> PathBuf {
        self.0.join("script")
    }

    /// Where the shell writes its environment when it is asked for it.
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

    /// The shell, by its own word.
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
}
