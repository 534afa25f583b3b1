//! Confined shells: the policy of a shell, and the launcher that applies it.
//!
//! A confined shell cannot read the state directory either, except for its own part of it, nor the directories in
//! which daemons and sandboxes of this user keep connection files and state: with these it could act through a
//! process that is not confined.
//!
//! The owner writes the policy into the shell's directory. The shell cannot change it there, because the state
//! directory must be outside of everything that the policy makes writable. tmux then starts
//! `sandbox enter DIR bash …` in the pane, which applies the policy and becomes the shell. tmux, the recorder and the
//! process that waits for the shell are not confined.

use std::{
    convert::Infallible,
    env,
    ffi::OsString,
    fs::{self, Metadata},
    io,
    os::fd::AsFd as _,
    os::unix::{
        ffi::{OsStrExt as _, OsStringExt as _},
        fs::MetadataExt as _,
    },
    path::{Path, PathBuf},
    process,
};

use crate::{Error, Result};
use crate::{config::Config, ledger::ShellDir};
use sandbox_isolation::{self as isolation, Level, Policy};

/// Checks that the policy can be applied on this machine and that the shell could not remove it.
pub(crate) fn check(config: &Config, policy: &Policy) -> Result<()> {
    policy.check(config.require).map_err(|error| Error::Invalid(error.to_string()))?;
    if policy.level == Level::None {
        return Ok(());
    }
    let private = private_places();
    for path in &policy.writable {
        let place = path.metadata().map_err(Error::io("looking at a writable directory"))?;
        let mut unreadable = policy.unreadable.iter().chain(&private);
        if let Some(private) = unreadable.find(|it| it.exists() && lies_below(it, &place)) {
            return Err(Error::Invalid(format!(
                "{}, where daemons keep their connection files, is below {}, where the shell may write; choose \
                 another workspace, or set XDG_RUNTIME_DIR or TMPDIR to a directory elsewhere",
                private.display(),
                path.display()
            )));
        }
        if lies_below(&config.root, &place) {
            return Err(Error::Invalid(format!(
                "the state directory {} is below {}, where the shell may write; choose another for one of them",
                config.root.display(),
                path.display()
            )));
        }
    }
    Ok(())
}

/// Whether a path without symbolic links is at or below this place. Like Linux, it compares device and inode: a link
/// or a second mount of the same directory makes no difference.
fn lies_below(path: &Path, place: &Metadata) -> bool {
    let identity = |metadata: &Metadata| (metadata.dev(), metadata.ino());
    let is_place = |above: &Path| above.metadata().is_ok_and(|it| identity(&it) == identity(place));
    path.ancestors().any(is_place)
}

fn private_places() -> Vec<PathBuf> {
    isolation::private_places(|name| env::var_os(name).map(PathBuf::from))
}

/// The policy with everything private as unreadable. It is no part of the settings, from which the name of the
/// state directory is made: it depends on what exists when a shell or the sandbox starts.
pub(crate) fn with_private_places(config: &Config, policy: &Policy) -> Policy {
    let mut policy = policy.clone();
    if policy.level > Level::None {
        policy.unreadable.extend(private_places());
        policy.unreadable.push(config.root.clone());
    }
    policy
}

/// Writes the policy to a file; writes none if the policy restricts nothing.
pub(crate) fn save(config: &Config, dir: &ShellDir, policy: &Policy) -> Result<()> {
    if policy.is_empty() {
        return Ok(());
    }
    let mut policy = with_private_places(config, policy);
    // The shell reads its start-up files and its commands.
    policy.readable.extend([config.init_file(), config.builtin(), dir.path().to_owned()]);
    let mut bytes = Vec::new();
    for argument in policy.to_arguments() {
        bytes.extend_from_slice(argument.as_bytes());
        bytes.push(0);
    }
    private_files::overwrite(&dir.policy(), &bytes).map_err(Error::io("writing the policy"))
}

/// Applies the policy of a shell and becomes the shell. This is the launcher's whole work. It returns only on an
/// error, and then nothing was started.
pub fn enter(directory: &Path, command: Vec<OsString>) -> io::Result<Infallible> {
    let dir = ShellDir::new(directory.to_owned());
    let bytes = fs::read(dir.policy())?;
    let arguments = bytes.split_inclusive(|&byte| byte == 0).map(|argument| {
        OsString::from_vec(argument.strip_suffix(&[0]).unwrap_or(argument).to_vec())
    });
    let mut arguments = arguments.chain(["--".into()]);
    let policy = Policy::from_arguments(&mut arguments).map_err(io::Error::other)?;
    // The confined shell cannot write this file itself. It keeps the launcher's process number.
    private_files::overwrite(&dir.pid(), format!("{}\n", process::id()).as_bytes())?;
    // The confined shell cannot open this file either; it inherits the descriptor.
    let exports = private_files::overwrite_beginning(&dir.exports(), b"")?;
    isolation::become_command(&policy, command, Some(exports.as_fd()))
}
