//! Starts commands under a policy through a launcher.

use std::{
    convert::Infallible,
    ffi::{OsStr, OsString},
    io,
    os::unix::process::CommandExt as _,
    path::PathBuf,
    process::Command,
};

use super::{Policy, enter};

/// How commands are started under a policy: as `LAUNCHER confine -- POLICY -- COMMAND`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Confinement {
    /// The program that calls [`confine`].
    pub launcher: PathBuf,
    /// What the commands may do.
    pub policy: Policy,
}

impl Confinement {
    /// Returns the command that starts this program under the policy. The caller adds the program's arguments.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(&self.launcher);
        command.args(["confine", "--"]).args(self.policy.to_arguments()).arg("--").arg(program);
        command
    }
}

/// Applies the policy at the front of the arguments and becomes the command after it. This is the launcher's whole
/// work. It returns only on an error, and then nothing was started.
pub fn confine(arguments: Vec<OsString>) -> io::Result<Infallible> {
    let mut arguments = arguments.into_iter();
    let policy = Policy::from_arguments(&mut arguments).map_err(io::Error::other)?;
    become_command(&policy, arguments)
}

/// Applies a policy to this process and becomes a command. It returns only on an error.
pub fn become_command(
    policy: &Policy,
    words: impl IntoIterator<Item = OsString>,
) -> io::Result<Infallible> {
    let mut words = words.into_iter();
    let program = words.next().ok_or_else(|| io::Error::other("the command is missing"))?;
    let mut command = Command::new(program);
    command.args(words);
    Err(enter(policy, command).map_err(io::Error::other)?.exec())
}
