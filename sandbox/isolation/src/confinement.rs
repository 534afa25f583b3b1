//! Starts commands under a policy through a launcher.

use std::{
    convert::Infallible,
    env,
    ffi::{OsStr, OsString},
    io,
    os::fd::BorrowedFd,
    os::unix::{ffi::OsStrExt as _, process::CommandExt as _},
    path::PathBuf,
    process::Command,
};

use rustix::io::{FdFlags, fcntl_setfd};

use super::{Level, Policy, enter};

/// How the names of variables begin that may contain the token of a daemon or the key of an action server.
const SECRET_VARIABLES: [&[u8]; 3] = [b"RUN_BRIDGE_", b"EVOLVE_RUN_BRIDGE_", b"SESSION_API_KEY"];

/// How commands are started under a policy: as `LAUNCHER confine -- POLICY -- COMMAND`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Confinement {
    /// The program that calls [`confine`].
    pub launcher: PathBuf,
    /// The policy for the commands.
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
    become_command(&policy, arguments, None)
}

/// Applies a policy to this process and becomes a command. It returns only on an error.
///
/// The command inherits the three standard descriptors and the given one, and no other: one that the launcher has
/// got by accident could lead out. A confined command does not get the variables with the token of a daemon or the key
/// of an action server: these act outside of the walls.
pub fn become_command(
    policy: &Policy,
    words: impl IntoIterator<Item = OsString>,
    inherited: Option<BorrowedFd<'_>>,
) -> io::Result<Infallible> {
    let mut words = words.into_iter();
    let program = words.next().ok_or_else(|| io::Error::other("the command is missing"))?;
    let mut command = Command::new(program);
    command.args(words);
    if policy.level > Level::None {
        for (name, _) in env::vars_os() {
            if SECRET_VARIABLES.iter().any(|secret| name.as_bytes().starts_with(secret)) {
                command.env_remove(name);
            }
        }
    }
    close_on_exec()?;
    if let Some(descriptor) = inherited {
        fcntl_setfd(descriptor, FdFlags::empty())?;
    }
    Err(enter(policy, command).map_err(io::Error::other)?.exec())
}

/// Marks all descriptors but the standard ones as not to be inherited.
#[cfg(target_os = "linux")]
fn close_on_exec() -> io::Result<()> {
    for entry in std::fs::read_dir("/proc/self/fd")? {
        let number = entry?.file_name().to_str().and_then(|name| name.parse().ok());
        let Some(number @ 3..) = number else { continue };
        // SAFETY: the descriptor is used only for this call; if it is closed by now, the call fails.
        #[allow(unsafe_code, reason = "descriptors are known only by their numbers")]
        let descriptor = unsafe { BorrowedFd::borrow_raw(number) };
        fcntl_setfd(descriptor, FdFlags::CLOEXEC)?;
    }
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn close_on_exec() -> io::Result<()> {
    Ok(())
}
