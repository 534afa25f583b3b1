//! Shells within walls: the policy of a session, and the launcher that puts it in force.
//!
//! The owner writes the policy into the session's directory, where the shell cannot change it, since
//! the state directory must lie outside of everything that a policy makes writable. In the pane
//! tmux then starts `sandbox enter DIR bash …`, which takes on the policy and becomes the shell. tmux,
//! the recorder and the process that waits for the shell stay outside.

use std::{
    convert::Infallible,
    ffi::OsString,
    fs, io,
    os::unix::ffi::{OsStrExt as _, OsStringExt as _},
    path::Path,
    process,
};

use rustix::io::{FdFlags, fcntl_setfd};

use super::{
    config::Config,
    ledger::{SessionDir, overwrite_beginning, overwrite_private},
};
use crate::{
    Error, Result,
    isolation::{self, Level, Policy},
};

/// Checks that the policy can be put in force here and that the shell could not tear it down.
pub(super) fn check(config: &Config, policy: &Policy) -> Result<()> {
    policy.check(config.require).map_err(|error| Error::Invalid(error.to_string()))?;
    if policy.level == Level::None {
        return Ok(());
    }
    for path in &policy.writable {
        let real = path.canonicalize().map_err(Error::io("looking at a writable directory"))?;
        if config.root.starts_with(&real) {
            return Err(Error::Invalid(format!(
                "the state directory {} lies below {}, where the session may write; choose another for one of them",
                config.root.display(),
                path.display()
            )));
        }
    }
    Ok(())
}

/// Writes the policy down; there is no file if there is nothing to put in force.
pub(super) fn save(dir: &SessionDir, policy: &Policy) -> Result<()> {
    if policy.is_empty() {
        return Ok(());
    }
    let mut bytes = Vec::new();
    for argument in policy.to_arguments() {
        bytes.extend_from_slice(argument.as_bytes());
        bytes.push(0);
    }
    overwrite_private(&dir.policy(), &bytes).map_err(Error::io("writing the policy"))
}

/// Takes on the policy of a session and becomes its shell: the launcher's whole life. It returns only
/// if something is wrong, and then nothing was started.
pub fn enter(directory: &Path, command: Vec<OsString>) -> io::Result<Infallible> {
    let dir = SessionDir::new(directory.to_owned());
    let bytes = fs::read(dir.policy())?;
    let arguments = bytes.split_inclusive(|&byte| byte == 0).map(|argument| {
        OsString::from_vec(argument.strip_suffix(&[0]).unwrap_or(argument).to_vec())
    });
    let mut arguments = arguments.chain(["--".into()]);
    let policy = Policy::from_arguments(&mut arguments).map_err(io::Error::other)?;
    // From inside the shell could not say it itself; it will have our number.
    overwrite_private(&dir.pid(), format!("{}\n", process::id()).as_bytes())?;
    // Nor could it open this; it finds it among its descriptors.
    let exports = overwrite_beginning(&dir.exports(), b"")?;
    fcntl_setfd(&exports, FdFlags::empty())?;
    isolation::become_command(&policy, command)
}
