//! Reads the metadata of a path.

use std::fmt;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use rustix::fs::{FileType, Mode, Stat as RawStat};

use super::{Error, WorkspacePath};

/// The kinds of entries a directory can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink,
    /// A named pipe.
    Pipe,
    /// A socket.
    Socket,
    /// A character or block device.
    Device,
    /// A kind that the system does not name.
    Other,
}

/// Whether a link at the end of the path is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Links {
    /// Report the target of the link.
    Follow,
    /// Report the link itself.
    Keep,
}

/// The result of [`stat`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stat {
    /// The kind of the entry.
    pub kind: Kind,
    /// Size in bytes.
    pub size: u64,
    /// Permission bits, including set-id and sticky bits.
    pub mode: u32,
    /// User id of the file owner.
    pub user: u32,
    /// Id of the group.
    pub group: u32,
    /// When the content changed last.
    pub modified: SystemTime,
    /// Where a link points to, as text. Only with [`Links::Keep`].
    pub link: Option<PathBuf>,
}

/// Reads the metadata of a path.
pub fn stat(path: &WorkspacePath, links: Links) -> Result<Stat, Error> {
    if links == Links::Follow {
        return Ok(Stat::new(&path.followed_state()?, None));
    }
    let entry = path.entry()?;
    let missing = || Error::NotFound { path: path.as_path().to_path_buf() };
    let state = entry.state().map_err(|source| path.failed(source))?.ok_or_else(missing)?;
    let link = match Kind::of(&state) {
        Kind::Symlink => Some(entry.link().map_err(|source| path.failed(source))?),
        _ => None,
    };
    Ok(Stat::new(&state, link))
}

impl Stat {
    fn new(state: &RawStat, link: Option<PathBuf>) -> Self {
        Self {
            kind: Kind::of(state),
            size: u64::try_from(state.st_size).unwrap_or(0),
            // A narrower integer on some systems.
            #[allow(clippy::useless_conversion)]
            mode: u32::from(permissions(state).as_raw_mode()),
            user: state.st_uid,
            group: state.st_gid,
            modified: modified(state),
            link,
        }
    }
}

impl Kind {
    pub(super) fn of(state: &RawStat) -> Self {
        FileType::from_raw_mode(state.st_mode).into()
    }
}

impl From<FileType> for Kind {
    fn from(kind: FileType) -> Self {
        match kind {
            FileType::RegularFile => Self::File,
            FileType::Directory => Self::Directory,
            FileType::Symlink => Self::Symlink,
            FileType::Fifo => Self::Pipe,
            FileType::Socket => Self::Socket,
            FileType::CharacterDevice | FileType::BlockDevice => Self::Device,
            FileType::Unknown => Self::Other,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::File => "file",
            Self::Directory => "directory",
            Self::Symlink => "symbolic link",
            Self::Pipe => "named pipe",
            Self::Socket => "socket",
            Self::Device => "device",
            Self::Other => "special file",
        })
    }
}

/// The permission bits, including set-id and sticky bits.
pub(super) fn permissions(state: &RawStat) -> Mode {
    Mode::from_raw_mode(state.st_mode)
}

/// The bits for reading, writing and executing.
pub(super) const ACCESS_BITS: Mode = Mode::RWXU.union(Mode::RWXG).union(Mode::RWXO);

/// Device and inode number: equal for two paths if they are the same file or directory.
pub(super) fn identity(state: &RawStat) -> (u64, u64) {
    // The widths of these fields differ between systems.
    #[allow(clippy::unnecessary_cast, clippy::cast_sign_loss)]
    (state.st_dev as u64, state.st_ino as u64)
}

fn modified(state: &RawStat) -> SystemTime {
    // Never negative, but signed on some systems.
    #[allow(clippy::unnecessary_cast, clippy::cast_sign_loss)]
    let nanoseconds = Duration::from_nanos(state.st_mtime_nsec as u64);
    let seconds = Duration::from_secs(state.st_mtime.unsigned_abs());
    let whole = match state.st_mtime < 0 {
        true => SystemTime::UNIX_EPOCH - seconds,
        false => SystemTime::UNIX_EPOCH + seconds,
    };
    whole + nanoseconds
}
