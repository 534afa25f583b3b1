//! The state directory: creating and checking it, locking it, and removing it.

use std::{
    fs::{self, File},
    io::{self, Write as _},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    time::Duration,
};

use rustix::fs::{FlockOperation, flock};
use tokio::time::{self, Instant};
use tracing::warn;

use crate::config::{Config, LOCK};
use crate::{Error, Result};

/// The path of a Unix socket has at most 108 bytes including its NUL, and the socket adds `/tmux`.
const LONGEST_ROOT: usize = 100;
/// How long a lock may outlive its owner. If an owner is killed while it starts a program, the child process holds
/// the lock until that program has begun.
const LOCK_LIMIT: Duration = Duration::from_secs(2);

/// The files of the state directory that belong to no shell, except for the lock. Those that end in `new` exist only
/// while the others are written.
const FILES: [&str; 10] = [
    "alive",
    "tmux",
    "tmux.conf",
    "tmux.new",
    "init.bash",
    "init.new",
    "builtin.so",
    "builtin.new",
    "environment",
    "environment.new",
];

/// Resolves the programs, creates the directory or checks that it is ours, and checks that tmux and Linux can work with
/// it.
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
    // Before the directory is created, so that nothing is left of one that cannot be used.
    check_path(&std::path::absolute(&config.root).map_err(Error::io("finding the directory"))?)?;
    config.root = take(&config.root)?;
    check_path(&config.root)?;
    Ok(config)
}

/// Creates the state directory, or checks that an existing one is ours.
fn take(root: &Path) -> Result<PathBuf> {
    private_files::take_directory(root, LOCK).map_err(|unfit| unusable(root, unfit))
}

fn unusable(root: &Path, reason: impl ToString) -> Error {
    Error::UnusableRoot { root: root.to_owned(), reason: reason.to_string() }
}

/// Checks that tmux can work with a path.
fn check_path(root: &Path) -> Result<()> {
    let text =
        root.to_str().ok_or_else(|| unusable(root, "its path is not UTF-8; choose another"))?;
    if text.len() > LONGEST_ROOT {
        let reason = "its path is too long for a socket; choose one of at most 100 bytes";
        return Err(unusable(root, reason));
    }
    if text.chars().any(char::is_control) {
        return Err(unusable(root, "its path has control characters; choose another"));
    }
    Ok(())
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
        take(&config.root)?;
        let file = private_files::overwrite_beginning(&path, b"");
        let file = match file {
            // The earlier owner has removed the directory since.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            file => file.map_err(Error::io("opening the owner's lock"))?,
        };
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

/// Removes our files that belong to no shell, by name, unless a shell is left. The lock goes last, because from then on
/// the directory may belong to another owner. The lock also marks the directory as ours, so it stays if anything else
/// is left.
pub(super) fn clear(config: &Config) {
    if fs::remove_dir(config.shells()).is_err() {
        return;
    }
    for name in FILES {
        remove(&config.root.join(name));
    }
    let mut entries = fs::read_dir(&config.root).into_iter().flatten().flatten();
    match entries.find(|entry| entry.file_name() != LOCK) {
        None => remove(&config.lock()),
        Some(entry) => {
            warn!(path = %entry.path().display(), "a file in the state directory is not ours and stays");
        }
    }
}

fn remove(path: &Path) {
    match fs::remove_file(path) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => {
            warn!(path = %path.display(), %error, "a file of the state directory could not be removed");
        }
    }
}
