//! The state directory: making it fit, being its only owner, and leaving it.

use std::{
    fs::{self, File},
    io::{self, Write as _},
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    time::Duration,
};

use rustix::fs::{FlockOperation, flock};
use tokio::time::{self, Instant};
use tracing::warn;

use crate::config::Config;
use crate::{Error, Result};

/// A Unix socket's path has 108 bytes with its end; `/tmux` is ours.
const LONGEST_ROOT: usize = 100;
/// How long a lock may outlive its owner: one that was killed while it started a program holds it until
/// that program has begun.
const LOCK_PATIENCE: Duration = Duration::from_secs(2);

/// Finds the programs, makes the directory and checks that tmux and the kernel can work with it.
pub(super) fn prepare(mut config: Config) -> Result<Config> {
    for program in [&mut config.program, &mut config.tmux, &mut config.bash] {
        *program = found_from_anywhere(program)?;
    }
    // That tmux is missing is said when it is started.
    for program in [&config.program, &config.bash] {
        if program.is_absolute() && !program.is_file() {
            let problem = format!("{} is no program; name one that is there", program.display());
            return Err(Error::Invalid(problem));
        }
    }
    let making = format!("making {}", config.root.display());
    private_files::create_directories(&config.root).map_err(Error::io(making.clone()))?;
    config.root = config.root.canonicalize().map_err(Error::io(making.clone()))?;
    let unusable = |reason| Error::UnusableRoot { root: config.root.clone(), reason };
    // Who owns it could change what our shells load, and root may change anybody's permissions.
    let metadata = fs::metadata(&config.root).map_err(Error::io(making.clone()))?;
    if !private_files::is_own(&metadata) {
        return Err(unusable("it belongs to another user; choose another"));
    }
    fs::set_permissions(&config.root, fs::Permissions::from_mode(0o700))
        .map_err(Error::io(making.clone()))?;
    let text =
        config.root.to_str().ok_or_else(|| unusable("its path is not UTF-8; choose another"))?;
    if text.len() > LONGEST_ROOT {
        return Err(unusable("its path is too long for a socket; choose one of at most 100 bytes"));
    }
    if text.chars().any(char::is_control) {
        return Err(unusable("its path has control characters; choose another"));
    }
    Ok(config)
}

/// A program's path that means the same in every directory. A name alone is looked for in PATH by whoever starts it.
fn found_from_anywhere(program: &Path) -> Result<PathBuf> {
    if program.components().count() == 1 && !program.has_root() {
        return Ok(program.to_owned());
    }
    std::path::absolute(program).map_err(Error::io(format!("finding {}", program.display())))
}

/// Whether a state directory has had an owner before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Past {
    /// No, or it has left nothing.
    None,
    /// It may have been killed at any moment.
    Unknown,
}

/// Waits to be the only owner. Who was it before may have removed the directory and the lock when it ended.
pub(super) async fn lock(config: &Config) -> Result<(File, Past)> {
    let path = config.lock();
    let deadline = Instant::now() + LOCK_PATIENCE;
    let mut file = loop {
        let file = private_files::create_directories(&config.root)
            .and_then(|()| private_files::overwrite_beginning(&path, b""));
        let file = file.map_err(Error::io("opening the owner's lock"))?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) if is_at(&file, &path) => break file,
            Ok(()) | Err(rustix::io::Errno::WOULDBLOCK) if Instant::now() < deadline => {
                time::sleep(Duration::from_millis(10)).await;
            }
            Ok(()) | Err(rustix::io::Errno::WOULDBLOCK) => {
                return Err(Error::RootInUse { root: config.root.clone() });
            }
            Err(error) => return Err(Error::io("locking the state directory")(error)),
        }
    };
    let past = match private_files::create_directory(&config.shells()) {
        Ok(()) => Past::None,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Past::Unknown,
        Err(error) => return Err(Error::io("making the directory of the shells")(error)),
    };
    // The keeper finds the lease here; writing it also sets the time from which it counts.
    // Cut to length afterwards, so that a full disk leaves the one before.
    let lease = format!("{}\n", config.lease.as_secs());
    file.write_all(lease.as_bytes())
        .and_then(|()| file.set_len(lease.len() as u64))
        .map_err(Error::io("writing down the lease"))?;
    Ok((file, past))
}

/// Whether this file is what the path leads to.
fn is_at(file: &File, path: &Path) -> bool {
    let (Ok(file), Ok(named)) = (file.metadata(), fs::metadata(path)) else { return false };
    (file.dev(), file.ino()) == (named.dev(), named.ino())
}

/// Removes what is not of a shell, unless there is one. The lock goes last: then the directory may be another's.
pub(super) fn clear(config: &Config) {
    if fs::remove_dir(config.shells()).is_err() {
        return;
    }
    let lock = config.lock();
    for entry in fs::read_dir(&config.root).into_iter().flatten().flatten() {
        if entry.path() != lock {
            remove(&entry.path());
        }
    }
    remove(&lock);
}

fn remove(path: &Path) {
    if let Err(error) = fs::remove_file(path) {
        warn!(path = %path.display(), %error, "a file of the state directory stays");
    }
}
