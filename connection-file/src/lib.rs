//! Private files by which programs of one user find a running daemon.
//!
//! A daemon [publishes](Directory::publish) `{session}.json` for clients and `{session}.host.json`
//! for hosts in a directory that only its user can enter. A program that looks for a daemon
//! [lists](Directory::list) the directory. A file counts only if it is a regular file of this user
//! that nobody else can read and its daemon is still alive. Every program that finds a file of a dead
//! daemon removes it. Only the daemon itself removes the files of a living daemon.
//!
//! Claiming, publishing and sweeping hold the lock of the directory, so that no program removes a file
//! that a new daemon of the same session has just published. A file appears complete or not at all: it
//! is written under a temporary name and then hard-linked to its final name, which fails if that name
//! exists. Files are not synced to disk, because they mean nothing after a crash of the machine.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt};
use std::path::{Path, PathBuf};

use bridge_protocol::connection_file::{
    ConnectionFile, HostFile, SCHEMA, file_name, host_file_name, socket_name,
};
use bridge_protocol::{Secret, SessionId};
use process_identity::ProcessId;
use rustix::fs::{FlockOperation, OFlags, flock};
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// Most bytes that are read of a file. A larger file is no connection file and is ignored.
const FILE_BYTES: u64 = 64 * 1024;

/// The name of the file that is locked while connection files appear and disappear.
const LOCK: &str = "lock";

/// The lock of the directory. Dropping it removes the file while it is still locked, so that nothing is left.
struct Lock {
    path: PathBuf,
    _file: File,
}

impl Drop for Lock {
    fn drop(&mut self) {
        // If the file stays, the next holder removes it.
        let _ = fs::remove_file(&self.path);
    }
}

/// An error of this crate. Each message says what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// None of `XDG_RUNTIME_DIR`, `XDG_STATE_HOME` and `HOME` names a usable directory.
    #[error("cannot tell where connection files belong: set XDG_RUNTIME_DIR or HOME")]
    NoPlace,
    /// Another user could create or read files in the directory.
    #[error(
        "{path} must be a directory of your own with mode 0700: {reason}, or set XDG_RUNTIME_DIR to a private directory"
    )]
    NotPrivate {
        /// The directory.
        path: PathBuf,
        /// What is wrong with it.
        reason: private_files::Unfit,
    },
    /// Another living daemon serves this session.
    #[error(
        "session {session} is already served by process {pid}: stop it, or choose another --session"
    )]
    SessionTaken {
        /// The session.
        session: SessionId,
        /// Process id of the other daemon.
        pid: u32,
    },
    /// A system call failed.
    #[error("cannot use {path}: {source}")]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
}

/// The private directory of connection files.
#[derive(Clone, Debug)]
pub struct Directory(PathBuf);

/// The two files of a daemon. Dropping this value removes them.
#[derive(Debug)]
pub struct Published {
    /// The client's file comes first, because files are removed in this order: a program that finds
    /// the client's file also finds the host's file.
    files: [PathBuf; 2],
}

impl Directory {
    /// The directory of this user's connection files: `run-bridge` below `XDG_RUNTIME_DIR`, else below
    /// `XDG_STATE_HOME`, else below `HOME/.local/state`. A variable that names a directory of another user does not
    /// count, and neither does an empty one.
    pub fn locate(get: impl Fn(&str) -> Option<String>) -> Result<Self, Error> {
        let path = |name| get(name).map(PathBuf::from).filter(|path| path.is_absolute());
        // Under `su` or `sudo` the variable may still name the directory of the former user.
        let runtime = path("XDG_RUNTIME_DIR").filter(|path| is_own_directory(path));
        let home = |name| path(name).filter(|path| is_safe_from_others(path));
        let base = runtime
            .or_else(|| home("XDG_STATE_HOME"))
            .or_else(|| home("HOME").map(|home| home.join(".local/state")))
            .ok_or(Error::NoPlace)?;
        Ok(Self(base.join("run-bridge")))
    }

    /// The given directory, whatever the environment says.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// The path of the directory.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The path of a session's Unix socket.
    pub fn socket(&self, session: &SessionId) -> PathBuf {
        self.0.join(socket_name(session))
    }

    /// Creates the directory if it is missing, and checks that it is private.
    pub fn prepare(&self) -> Result<(), Error> {
        let created = private_files::create_directories(&self.0);
        created.map_err(|source| Error::Io { path: self.0.clone(), source })?;
        self.check()
    }

    /// Checks that no living daemon serves this session, and removes the files that a dead daemon left
    /// behind for it.
    pub fn claim(&self, session: &SessionId) -> Result<(), Error> {
        let _lock = self.lock()?;
        self.claim_locked(session)
    }

    fn claim_locked(&self, session: &SessionId) -> Result<(), Error> {
        for name in [file_name(session), host_file_name(session)] {
            match self.read::<DaemonIdentity>(&name) {
                Some(other) if other.is_alive() => {
                    return Err(Error::SessionTaken { session: other.session, pid: other.pid });
                }
                Some(_) => self.remove(session),
                None => {}
            }
        }
        Ok(())
    }

    /// Writes both files. Fails if a living daemon serves the same session.
    pub fn publish(&self, client: &ConnectionFile, host: &HostFile) -> Result<Published, Error> {
        self.prepare()?;
        let [client_path, host_path] =
            [file_name(&client.session), host_file_name(&client.session)]
                .map(|name| self.0.join(name));
        let _lock = self.lock()?;
        self.claim_locked(&client.session)?;
        // The host's file comes first: a program that finds the client's file also finds the host's.
        self.write(&host_path, host, &client.session)?;
        if let Err(error) = self.write(&client_path, client, &client.session) {
            // The first error is the one to report; the next program that lists removes the file.
            let _ = fs::remove_file(host_path);
            return Err(error);
        }
        Ok(Published { files: [client_path, host_path] })
    }

    /// The living daemons of this user, newest first. Removes the files and sockets of dead daemons.
    pub fn list(&self) -> Result<Vec<ConnectionFile>, Error> {
        let entries = match fs::read_dir(&self.0) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(source) => return Err(Error::Io { path: self.0.clone(), source }),
        };
        self.check()?;
        let _lock = self.lock()?;
        let mut alive = Vec::new();
        for name in entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()) {
            let Some(daemon) = self.read::<DaemonIdentity>(&name) else { continue };
            if !daemon.is_alive() {
                self.remove(&daemon.session);
            } else if name == file_name(&daemon.session) {
                alive.extend(self.read::<ConnectionFile>(&name));
            }
        }
        alive.sort_by_key(|file| std::cmp::Reverse(file.started_at));
        Ok(alive)
    }

    /// The host token of a session, if its daemon is alive.
    pub fn host_token(&self, session: &SessionId) -> Option<Secret> {
        let file: HostFile = self.read(&host_file_name(session))?;
        ProcessId { pid: file.pid, start_time: file.process_start }
            .is_alive()
            .then_some(file.host_token)
    }

    /// Waits for the lock of the directory, and holds it until the result is dropped. The lock is a file in the
    /// directory, and not the directory itself: a confined program can open the directory, and could hold its lock
    /// for ever, but not the file.
    fn lock(&self) -> Result<Lock, Error> {
        let path = self.0.join(LOCK);
        let failed = |source| Error::Io { path: path.clone(), source };
        loop {
            let file = private_files::append(&path).map_err(failed)?;
            flock(&file, FlockOperation::LockExclusive).map_err(|errno| failed(errno.into()))?;
            // Its last holder has removed the file; then another file of this name may be locked by now.
            let locked = file.metadata().map_err(failed)?;
            match fs::symlink_metadata(&path) {
                Ok(named) if (named.dev(), named.ino()) == (locked.dev(), locked.ino()) => {
                    return Ok(Lock { path, _file: file });
                }
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(failed(error)),
            }
        }
    }

    fn check(&self) -> Result<(), Error> {
        private_files::check_directory(&self.0)
            .map_err(|reason| Error::NotPrivate { path: self.0.clone(), reason })
    }

    fn write(
        &self,
        path: &Path,
        content: &impl serde::Serialize,
        session: &SessionId,
    ) -> Result<(), Error> {
        let temporary = self.0.join(format!(".{session}.{}.tmp", std::process::id()));
        let failed = |source| Error::Io { path: path.to_owned(), source };
        let text = serde_json::to_vec(content).map_err(|error| failed(error.into()))?;
        let written = private_files::create_new(&temporary, &text)
            .and_then(|()| fs::hard_link(&temporary, path));
        // A temporary file that stays is ignored by every reader: its name is none of the two.
        let _ = fs::remove_file(&temporary);
        written.map_err(failed)
    }

    /// Reads one file of the directory. `None` unless it is private, belongs to this user, has a known
    /// schema, and has the name of the session that it describes.
    fn read<T: DeserializeOwned>(&self, name: &str) -> Option<T> {
        let mut options = OpenOptions::new();
        let flags = OFlags::NOFOLLOW.union(OFlags::NONBLOCK);
        options.read(true).custom_flags(flags.bits().cast_signed());
        let file = options.open(self.0.join(name)).ok()?;
        if !is_private_file(&file) {
            return None;
        }
        let mut text = String::new();
        file.take(FILE_BYTES).read_to_string(&mut text).ok()?;
        let daemon: DaemonIdentity = serde_json::from_str(&text).ok()?;
        let named = [file_name(&daemon.session), host_file_name(&daemon.session)];
        let valid = daemon.schema == SCHEMA && named.iter().any(|known| known == name);
        valid.then(|| serde_json::from_str(&text).ok())?
    }

    fn remove(&self, session: &SessionId) {
        for name in [file_name(session), host_file_name(session), socket_name(session)] {
            // Most often there is no such file. A file that stays is ignored, because its daemon is dead.
            let _ = fs::remove_file(self.0.join(name));
        }
    }
}

impl Drop for Published {
    fn drop(&mut self) {
        for file in &self.files {
            // A file that stays is ignored and swept once this process is gone.
            let _ = fs::remove_file(file);
        }
    }
}

/// The daemon that a file is about: the members that both kinds of file have.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct DaemonIdentity {
    schema: u32,
    session: SessionId,
    pid: u32,
    process_start: u64,
}

impl DaemonIdentity {
    fn is_alive(&self) -> bool {
        ProcessId { pid: self.pid, start_time: self.process_start }.is_alive()
    }
}

fn is_own_directory(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|data| data.is_dir() && private_files::is_own(&data))
}

/// Whether a directory, or what is there of the path to it, belongs to this user or to root. `su` or `sudo` may leave
/// the home directory of the former user in the variables, who could replace whatever we make there.
fn is_safe_from_others(path: &Path) -> bool {
    let existing = path.ancestors().find_map(|ancestor| fs::metadata(ancestor).ok());
    existing.is_some_and(|data| private_files::is_own(&data) || data.uid() == 0)
}

fn is_private_file(file: &File) -> bool {
    file.metadata().is_ok_and(|data| data.is_file() && private_files::is_private(&data))
}

#[cfg(test)]
mod tests;
