//! The state directory: creating and checking it, locking it, and removing it.

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

/// The path of a Unix socket has at most 108 bytes including its NUL, and the socket adds `/tmux`.
const LONGEST_ROOT: usize = 100;
/// How long a lock may outlive its owner. If an owner is killed while it starts a program, the child process holds
/// the lock until that program has begun.
const LOCK_LIMIT: Duration = Duration::from_secs(2);

/// Resolves the programs, creates the directory, and checks that tmux and Linux can work with it.
pub(super) fn prepare(mut config: Config) -> Result<Config> {
    for program in [&mut config.program, &mut config.tmux, &mut config.bash] {
        *program = independent_of_directory(program)?;
    }
    // A missing tmux is reported when it is started.
    for program in [&config.program, &config.bash] {
        if program.is_absolute() && !program.is_file() {
            let problem = format!("{} does not exist; name an existing program", program.display());
            return Err(Error::Invalid(problem));
        }
    }
    let making = format!("making {}", config.root.display());
    private_files::create_directories(&config.root).map_err(Error::io(making.clone()))?;
    config.root = config.root.canonicalize().map_err(Error::io(making.clone()))?;
    let unusable = |reason| Error::UnusableRoot { root: config.root.clone(), reason };
    // Refuse the directory of another user, who could change what our shells load. The check is needed because root
    // may change the permissions of any directory.
    let owner = fs::metadata(&config.root).map_err(Error::io(making.clone()))?.uid();
    if owner != rustix::process::geteuid().as_raw() {
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

/// Makes a program's path independent of the working directory. A bare name stays, because it is searched in PATH
/// when the program is started.
fn independent_of_directory(program: &Path) -> Result<PathBuf> {
    if program.components().count() == 1 && !program.has_root() {
        return Ok(program.to_owned());
    }
    std::path::absolute(program).map_err(Error::io(format!("finding {}", program.display())))
}

/// Whether a state directory may contain shells of an earlier owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PriorUse {
    /// There was no earlier owner, or it has left nothing.
    None,
    /// There may have been one, and it may have been killed at any moment.
    Possible,
}

/// Waits until this process is the only owner. The earlier owner may have removed the directory and the lock when it
/// ended, so both are created again.
pub(super) async fn lock(config: &Config) -> Result<(File, PriorUse)> {
    let path = config.lock();
    let deadline = Instant::now() + LOCK_LIMIT;
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
    let prior_use = match private_files::create_directory(&config.shells()) {
        Ok(()) => PriorUse::None,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => PriorUse::Possible,
        Err(error) => return Err(Error::io("creating the directory of the shells")(error)),
    };
    // The keeper reads the lease here; writing it also sets the modification time from which the lease counts.
    // Truncated after the write, so that a full disk leaves the previous content.
    let lease = format!("{}\n", config.lease.as_secs());
    file.write_all(lease.as_bytes())
        .and_then(|()| file.set_len(lease.len() as u64))
        .map_err(Error::io("writing the lease"))?;
    Ok((file, prior_use))
}

/// Whether the path still refers to this open file.
fn is_at(file: &File, path: &Path) -> bool {
    let (Ok(file), Ok(named)) = (file.metadata(), fs::metadata(path)) else { return false };
    (file.dev(), file.ino()) == (named.dev(), named.ino())
}

/// Removes all files that belong to no shell, unless a shell is left. The lock goes last, because from then on the
/// directory may belong to another owner.
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
        warn!(path = %path.display(), %error, "a file of the state directory could not be removed");
    }
}
