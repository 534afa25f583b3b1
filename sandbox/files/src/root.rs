//! Where file operations may go, and the only way to name a path there.
//!
//! A [`Workspace`] is a handle on a directory, or the whole file system. It makes
//! [`WorkspacePath`]s, and every operation takes one of those, so nothing can be opened that the
//! workspace did not allow. Linux resolves a confined path relative to the handle (`openat2` with
//! `RESOLVE_BENEATH`; where that is missing, `cap-std` walks the path component by component and
//! follows links itself). Path texts are never compared to decide whether a path stays inside: a
//! link or a rename between the check and the use could change the answer.
//!
//! Operations that name an entry instead of opening it (create, rename, remove) first open the
//! parent directory in the same way. They then act on one plain name in it, which the system does
//! not resolve any further. So the code outside this file is the same for confined workspaces and
//! for the whole file system.
//!
//! Links inside a workspace work as long as they are relative and stay inside. An absolute link
//! counts as an escape even if it points back inside, as it does for `RESOLVE_BENEATH`.

use std::ffi::{OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cap_std::ambient_authority;
use cap_std::fs::{Dir, OpenOptions as CapOpenOptions, OpenOptionsExt as _};
use rustix::fs::{AtFlags, FileType, OFlags, Stat as RawStat, fstat, readlinkat, statat};
use rustix::io::Errno;

use super::Error;

/// How many symbolic links are followed before they count as a loop. Linux has the same limit.
const MAX_LINKS: usize = 40;

/// Flags to open for reading: do not block on a pipe without a writer, and do not make a terminal
/// the controlling terminal of this process.
const READING: OFlags = OFlags::NONBLOCK.union(OFlags::NOCTTY);

/// Flags to open only for `fstat`: needs no permission on the entry itself and never touches a
/// device.
#[cfg(target_os = "linux")]
const LOOKING: OFlags = OFlags::PATH;
#[cfg(not(target_os = "linux"))]
const LOOKING: OFlags = READING;

/// The files that operations may touch. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Workspace {
    root: Arc<Root>,
}

/// A path in a [`Workspace`]. Every operation on it is confined as the workspace is. It need not
/// exist.
#[derive(Clone, Debug)]
pub struct WorkspacePath {
    root: Arc<Root>,
    /// Relative to the directory of a confined root, absolute otherwise.
    path: PathBuf,
}

/// An entry of a directory that is held open. Create, rename and remove act on it.
#[derive(Debug)]
pub(super) struct Entry {
    pub dir: Dir,
    pub name: OsString,
}

#[derive(Debug)]
enum Root {
    /// `at` is the path of the directory when it was opened. It serves to accept and return
    /// absolute paths, never to decide what is inside.
    Beneath {
        dir: Dir,
        at: PathBuf,
    },
    Everything,
}

impl Workspace {
    /// Everything below `directory`, which must exist.
    pub fn confined(directory: &Path) -> Result<Self, Error> {
        let failed = |source| Error::from_io(directory, source);
        let at = directory.canonicalize().map_err(failed)?;
        let dir = Dir::open_ambient_dir(&at, ambient_authority()).map_err(failed)?;
        Ok(Self { root: Arc::new(Root::Beneath { dir, at }) })
    }

    /// The whole file system, as far as the user of this process has permissions. Paths are
    /// absolute.
    pub fn whole_file_system() -> Self {
        Self { root: Arc::new(Root::Everything) }
    }

    /// The current directory of this process as a confined workspace. `at` is its path as other
    /// processes know it.
    pub fn of_current_directory(at: PathBuf) -> Result<Self, Error> {
        let dir = Dir::open_ambient_dir(".", ambient_authority());
        let dir = dir.map_err(|source| Error::from_io(&at, source))?;
        Ok(Self { root: Arc::new(Root::Beneath { dir, at }) })
    }

    /// The handle and the path of the directory of a confined workspace; `None` for the whole file
    /// system.
    pub fn directory(&self) -> Option<(BorrowedFd<'_>, &Path)> {
        match &*self.root {
            Root::Beneath { dir, at } => Some((dir.as_fd(), at)),
            Root::Everything => None,
        }
    }

    /// Makes a path of this workspace. A confined workspace takes relative paths, and absolute
    /// paths that begin with its own.
    pub fn path(&self, given: impl AsRef<Path>) -> Result<WorkspacePath, Error> {
        let given = given.as_ref();
        let invalid = |reason| Error::InvalidPath { path: given.to_path_buf(), reason };
        if given.as_os_str().is_empty() {
            return Err(invalid("it is empty; the workspace itself is \".\""));
        }
        if given.as_os_str().as_bytes().contains(&0) {
            return Err(invalid("it contains a NUL byte"));
        }
        let path = match &*self.root {
            Root::Everything if given.is_relative() => {
                return Err(invalid("it must be absolute, beginning with \"/\""));
            }
            Root::Beneath { at, .. } if given.is_absolute() => {
                given.strip_prefix(at).map_err(|_| Error::Escapes { path: given.to_path_buf() })?
            }
            _ => given,
        };
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        Ok(WorkspacePath { root: Arc::clone(&self.root), path: path.to_path_buf() })
    }
}

impl WorkspacePath {
    /// The path relative to the workspace; absolute if the workspace is the whole file system.
    pub fn as_path(&self) -> &Path {
        &self.path
    }

    /// The path from the root of the file system. Links and `..` are not resolved.
    pub fn absolute(&self) -> PathBuf {
        match &*self.root {
            Root::Beneath { at, .. } if self.path == Path::new(".") => at.clone(),
            Root::Beneath { at, .. } => at.join(&self.path),
            Root::Everything => self.path.clone(),
        }
    }

    /// The directory at this path as a confined workspace of its own.
    pub fn confined(&self) -> Result<Workspace, Error> {
        let root = Root::Beneath { dir: self.open_directory()?, at: self.absolute() };
        Ok(Workspace { root: Arc::new(root) })
    }

    /// A path below this one. `below` is not checked: it comes from a directory listing or a
    /// pattern, and opening it is still confined.
    pub(super) fn join(&self, below: impl AsRef<Path>) -> Self {
        let path = match self.path == Path::new(".") {
            true => below.as_ref().to_path_buf(),
            false => self.path.join(below),
        };
        Self { root: Arc::clone(&self.root), path }
    }

    /// Opens for reading, following links.
    pub(super) fn open(&self) -> Result<File, Error> {
        self.root.open(&self.path, READING).map_err(|source| self.failed(source))
    }

    /// The state of what the path leads to, following links.
    pub(super) fn followed_state(&self) -> Result<RawStat, Error> {
        let looked = self.root.open(&self.path, LOOKING).and_then(|file| Ok(fstat(&file)?));
        looked.map_err(|source| self.failed(source))
    }

    /// Opens as a directory, following links.
    pub(super) fn open_directory(&self) -> Result<Dir, Error> {
        self.root.open_directory(&self.path).map_err(|source| self.failed(source))
    }

    /// The entry itself: if it is a link, the link.
    pub(super) fn entry(&self) -> Result<Entry, Error> {
        let (parent, name) = self.split(&self.path)?;
        let dir = self.root.open_directory(parent).map_err(|source| self.failed(source))?;
        Ok(Entry { dir, name: name.to_os_string() })
    }

    /// The entry that the path means after links at its end are followed, with its state (`None` if
    /// it does not exist yet). So writing through a link replaces its target, not the link.
    pub(super) fn target(&self) -> Result<(Entry, Option<RawStat>), Error> {
        let mut path = self.path.clone();
        for _ in 0..MAX_LINKS {
            let (parent, name) = self.split(&path)?;
            let dir = self.root.open_directory(parent).map_err(|source| self.failed(source))?;
            let entry = Entry { dir, name: name.to_os_string() };
            let Some(state) = entry.state().map_err(|source| self.failed(source))? else {
                return Ok((entry, None));
            };
            if FileType::from_raw_mode(state.st_mode) != FileType::Symlink {
                return Ok((entry, Some(state)));
            }
            let link = entry.link().map_err(|source| self.failed(source))?;
            path = parent.join(link);
        }
        Err(self.failed(Errno::LOOP.into()))
    }

    /// Creates the directories above this path that do not exist.
    pub(super) fn create_parents(&self) -> Result<(), Error> {
        let (parent, _) = self.split(&self.path)?;
        let made = match self.root.open_directory(parent) {
            // Opening first is cheap, and gives a better error if an existing parent is unusable.
            Err(error) if error.kind() == io::ErrorKind::NotFound => match &*self.root {
                Root::Beneath { dir, .. } => dir.create_dir_all(parent),
                Root::Everything => std::fs::create_dir_all(parent),
            },
            opened => opened.map(drop),
        };
        made.map_err(|source| self.failed(source))
    }

    /// Turns an error of the system about this path into our error.
    pub(super) fn failed(&self, source: io::Error) -> Error {
        Error::from_io(&self.path, source)
    }

    fn split<'a>(&self, path: &'a Path) -> Result<(&'a Path, &'a OsStr), Error> {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            let path = self.path.clone();
            return Err(Error::InvalidPath { path, reason: "it must end in a name" });
        };
        Ok((if parent.as_os_str().is_empty() { Path::new(".") } else { parent }, name))
    }
}

impl Entry {
    /// The state of the entry, without following a link; `None` if there is no entry.
    pub fn state(&self) -> io::Result<Option<RawStat>> {
        match statat(&self.dir, &self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(state) => Ok(Some(state)),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// The target of the entry, which must be a link.
    pub fn link(&self) -> io::Result<PathBuf> {
        let target = readlinkat(&self.dir, &self.name, Vec::new())?;
        Ok(OsString::from_vec(target.into_bytes()).into())
    }
}

impl Root {
    fn open(&self, path: &Path, flags: OFlags) -> io::Result<File> {
        let flags = flags.bits().cast_signed();
        match self {
            Self::Beneath { dir, .. } => {
                let mut options = CapOpenOptions::new();
                options.read(true).custom_flags(flags);
                dir.open_with(path, &options).map(cap_std::fs::File::into_std)
            }
            Self::Everything => OpenOptions::new().read(true).custom_flags(flags).open(path),
        }
    }

    fn open_directory(&self, path: &Path) -> io::Result<Dir> {
        match self {
            Self::Beneath { dir, .. } => dir.open_dir(path),
            Self::Everything => Dir::open_ambient_dir(path, ambient_authority()),
        }
    }
}
