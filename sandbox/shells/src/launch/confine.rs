//! Shells within walls: the policy of a shell, and the launcher that puts it in force.
//!
//! The owner writes the policy into the shell's directory, where the shell cannot change it, since
//! the state directory must lie outside of everything that a policy or its level makes writable. In the pane
//! tmux then starts `sandbox enter DIR bash …`, which takes on the policy and becomes the shell. tmux,
//! the recorder and the process that waits for the shell stay outside.

use std::{
    convert::Infallible,
    ffi::OsString,
    fs::{self, Metadata},
    io,
    os::unix::{
        ffi::{OsStrExt as _, OsStringExt as _},
        fs::MetadataExt as _,
    },
    path::Path,
    process,
};

use rustix::io::{FdFlags, fcntl_setfd};

use crate::{Error, Result};
use crate::{config::Config, ledger::ShellDir};
use sandbox_isolation::{self as isolation, Level, Policy};

/// Checks that the policy can be put in force here and that the shell could not tear it down.
pub(crate) fn check(config: &Config, policy: &Policy) -> Result<()> {
    policy.check(config.require).map_err(|error| Error::Invalid(error.to_string()))?;
    if policy.level == Level::None {
        return Ok(());
    }
    for path in &policy.writable {
        let place = path.metadata().map_err(Error::io("looking at a writable directory"))?;
        if lies_below(&config.root, &place) {
            return Err(Error::Invalid(format!(
                "the state directory {} lies below {}, where the shell may write; choose another for one of them",
                config.root.display(),
                path.display()
            )));
        }
    }
    for path in policy.level.isolation().always_writable() {
        // Nobody writes below what is not there.
        if fs::metadata(path).is_ok_and(|place| lies_below(&config.root, &place)) {
            return Err(Error::Invalid(format!(
                "the state directory {} lies below {path}, where every confined shell may write; name another \
                 with --root or --state, or by XDG_RUNTIME_DIR",
                config.root.display(),
            )));
        }
    }
    Ok(())
}

/// Whether a path without links leads through this place. As for the kernel, a place is what it is, by
/// whatever name: a link or a second mount makes no difference.
fn lies_below(path: &Path, place: &Metadata) -> bool {
    let identity = |metadata: &Metadata| (metadata.dev(), metadata.ino());
    let is_place = |above: &Path| above.metadata().is_ok_and(|it| identity(&it) == identity(place));
    path.ancestors().any(is_place)
}

/// Writes the policy down; there is no file if there is nothing to put in force.
pub(crate) fn save(dir: &ShellDir, policy: &Policy) -> Result<()> {
    if policy.is_empty() {
        return Ok(());
    }
    let mut bytes = Vec::new();
    for argument in policy.to_arguments() {
        bytes.extend_from_slice(argument.as_bytes());
        bytes.push(0);
    }
    private_files::overwrite(&dir.policy(), &bytes).map_err(Error::io("writing the policy"))
}

/// Takes on the policy of a shell and becomes its shell: the launcher's whole life. It returns only
/// if something is wrong, and then nothing was started.
pub fn enter(directory: &Path, command: Vec<OsString>) -> io::Result<Infallible> {
    let dir = ShellDir::new(directory.to_owned());
    let bytes = fs::read(dir.policy())?;
    let arguments = bytes.split_inclusive(|&byte| byte == 0).map(|argument| {
        OsString::from_vec(argument.strip_suffix(&[0]).unwrap_or(argument).to_vec())
    });
    let mut arguments = arguments.chain(["--".into()]);
    let policy = Policy::from_arguments(&mut arguments).map_err(io::Error::other)?;
    // From inside the shell could not say it itself; it will have our number.
    private_files::overwrite(&dir.pid(), format!("{}\n", process::id()).as_bytes())?;
    // Nor could it open this; it finds it among its descriptors.
    let exports = private_files::overwrite_beginning(&dir.exports(), b"")?;
    fcntl_setfd(&exports, FdFlags::empty())?;
    isolation::become_command(&policy, command)
}
