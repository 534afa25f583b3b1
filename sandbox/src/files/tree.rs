//! Directories and whole trees: create, remove, move, copy.

use std::io::{self, Seek as _};
use std::os::unix::ffi::OsStrExt;

use rustix::fs::{
    AtFlags, Mode, RenameFlags, fchmod, fstat, mkdirat, renameat, renameat_with, symlinkat,
    unlinkat,
};
use rustix::io::Errno;

use super::read::open_regular;
use super::root::Entry;
use super::stat::{Kind, identity, permissions};
use super::write::Pending;
use super::{Error, Existing, WorkspacePath, WriteOptions};

/// What to do about directories that are missing on the way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Parents {
    /// Create them.
    #[default]
    Create,
    /// Fail with [`Error::NotFound`].
    MustExist,
}

/// How much to remove.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removal {
    /// One file, link, pipe or the like. A link is removed, not what it leads to.
    File,
    /// Also a directory with everything in it. Links in it are removed, not followed.
    Recursive,
}

/// How to move or copy. The default creates parents and refuses to replace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Destination {
    /// What to do about something that is there. Only files take the place of files.
    pub existing: Existing,
    /// What to do about missing directories.
    pub parents: Parents,
}

impl Default for Destination {
    fn default() -> Self {
        Self { existing: Existing::Refuse, parents: Parents::Create }
    }
}

/// Creates a directory. With [`Parents::Create`] one that exists already is fine.
pub fn create_directory(path: &WorkspacePath, parents: Parents) -> Result<(), Error> {
    if parents == Parents::Create {
        path.create_parents()?;
    }
    let entry = path.entry()?;
    match mkdirat(&entry.dir, &entry.name, Mode::from_raw_mode(0o777)) {
        Err(Errno::EXIST) if parents == Parents::Create => path.open_directory().map(drop),
        made => made.map_err(|error| path.failed(error.into())),
    }
}

/// Removes an empty directory.
pub fn remove_directory(path: &WorkspacePath) -> Result<(), Error> {
    let entry = path.entry()?;
    unlinkat(&entry.dir, &entry.name, AtFlags::REMOVEDIR).map_err(|error| path.failed(error.into()))
}

/// Removes a file, or a tree if that is asked for. A workspace itself is never removed.
pub fn remove(path: &WorkspacePath, removal: Removal) -> Result<(), Error> {
    let entry = path.entry()?;
    let is_directory = kind(path, &entry)? == Kind::Directory;
    match removal {
        Removal::File if is_directory => {
            Err(Error::IsDirectory { path: path.as_path().to_path_buf() })
        }
        Removal::Recursive if is_directory => {
            entry.dir.remove_dir_all(&entry.name).map_err(|source| path.failed(source))
        }
        _ => unlinkat(&entry.dir, &entry.name, AtFlags::empty())
            .map_err(|error| path.failed(error.into())),
    }
}

/// Moves a file, link or tree. Between file systems that is a copy followed by a removal.
pub fn move_entry(
    from: &WorkspacePath,
    to: &WorkspacePath,
    destination: Destination,
) -> Result<(), Error> {
    let source = from.entry()?;
    let moved = kind(from, &source)?;
    let target = prepare(to, destination)?;
    if destination.existing == Existing::Replace {
        check_replaceable(to, &target, moved)?;
    }
    let (a, b) = ((&source.dir, &source.name), (&target.dir, &target.name));
    let renamed = match destination.existing {
        Existing::Replace => renameat(a.0, a.1, b.0, b.1),
        Existing::Refuse => match renameat_with(a.0, a.1, b.0, b.1, RenameFlags::NOREPLACE) {
            // The file system cannot promise it, so the best is to look first.
            Err(Errno::NOSYS | Errno::NOTSUP) => {
                check_absent(to, &target)?;
                renameat(a.0, a.1, b.0, b.1)
            }
            renamed => renamed,
        },
    };
    match renamed {
        Ok(()) => Ok(()),
        Err(Errno::INVAL) if moved == Kind::Directory => {
            Err(Error::IntoItself { path: to.as_path().to_path_buf() })
        }
        Err(Errno::XDEV) => {
            match moved {
                Kind::Symlink => copy_link(from, to)?,
                _ => copy(from, to, destination)?,
            }
            remove(from, Removal::Recursive)
        }
        Err(error) => Err(to.failed(error.into())),
    }
}

/// Copies a file, or a tree with modes and links as they are. Whatever is in a tree besides files,
/// directories and links cannot be copied. A tree that cannot be copied as a whole leaves nothing
/// behind.
pub fn copy(
    from: &WorkspacePath,
    to: &WorkspacePath,
    destination: Destination,
) -> Result<(), Error> {
    let source = from.entry()?;
    match kind(from, &source)? {
        Kind::Directory => {
            let target = prepare(to, destination)?;
            check_absent(to, &target)?;
            let copied = copy_tree(from, to, None);
            // What exists was there before us; anything else that failed left a part behind.
            if !matches!(copied, Ok(()) | Err(Error::Exists { .. })) {
                let _ = target.dir.remove_dir_all(&target.name);
            }
            copied
        }
        // Named directly, a link stands for what it leads to.
        _ => copy_file(from, to, destination),
    }
}

fn copy_file(
    from: &WorkspacePath,
    to: &WorkspacePath,
    destination: Destination,
) -> Result<(), Error> {
    let (mut file, _) = open_regular(from)?;
    let options = WriteOptions {
        existing: destination.existing,
        parents: destination.parents,
        ..WriteOptions::default()
    };
    let (mut pending, written) = Pending::begin(to, options)?;
    let state = fstat(&file).map_err(|error| from.failed(error.into()))?;
    file.rewind().and_then(|()| io::copy(&mut file, pending.file())).map_err(|s| to.failed(s))?;
    if written.created {
        let mode = Mode::from_raw_mode(permissions(&state) & 0o777);
        fchmod(pending.file(), mode).map_err(|error| to.failed(error.into()))?;
    }
    pending.commit(to, options)
}

/// Copies a directory. `top` is the number of the directory that the whole copy goes to: meeting
/// it on the way means that the tree is being copied into itself.
fn copy_tree(
    from: &WorkspacePath,
    to: &WorkspacePath,
    top: Option<(u64, u64)>,
) -> Result<(), Error> {
    create_directory(to, Parents::MustExist)?;
    let top = match top {
        Some(top) => top,
        None => identity(&to.followed_state()?),
    };
    let directory = from.open_directory()?;
    let state = fstat(&directory).map_err(|error| from.failed(error.into()))?;
    if identity(&state) == top {
        return Err(Error::IntoItself { path: to.as_path().to_path_buf() });
    }
    for entry in directory.entries().map_err(|source| from.failed(source))? {
        let name = entry.map_err(|source| from.failed(source))?.file_name();
        let (from, to) = (from.join(&name), to.join(&name));
        match kind(&from, &from.entry()?)? {
            Kind::Directory => copy_tree(&from, &to, Some(top))?,
            Kind::Symlink => copy_link(&from, &to)?,
            Kind::File => copy_file(&from, &to, Destination::default())?,
            kind => {
                return Err(Error::NotRegular { path: from.as_path().to_path_buf(), kind });
            }
        }
    }
    // Last, since the mode may forbid writing into the directory.
    let mode = Mode::from_raw_mode(permissions(&state) & 0o777);
    fchmod(to.open()?, mode).map_err(|error| to.failed(error.into()))
}

fn copy_link(from: &WorkspacePath, to: &WorkspacePath) -> Result<(), Error> {
    let link = from.entry()?.link().map_err(|source| from.failed(source))?;
    let target = to.entry()?;
    symlinkat(link.as_os_str().as_bytes(), &target.dir, &target.name)
        .map_err(|error| to.failed(error.into()))
}

fn prepare(to: &WorkspacePath, destination: Destination) -> Result<Entry, Error> {
    if destination.parents == Parents::Create {
        to.create_parents()?;
    }
    to.entry()
}

fn kind(path: &WorkspacePath, entry: &Entry) -> Result<Kind, Error> {
    match entry.state().map_err(|source| path.failed(source))? {
        Some(state) => Ok(Kind::of(&state)),
        None => Err(Error::NotFound { path: path.as_path().to_path_buf() }),
    }
}

fn check_absent(path: &WorkspacePath, entry: &Entry) -> Result<(), Error> {
    match entry.state().map_err(|source| path.failed(source))? {
        Some(_) => Err(Error::Exists { path: path.as_path().to_path_buf() }),
        None => Ok(()),
    }
}

fn check_replaceable(to: &WorkspacePath, target: &Entry, moved: Kind) -> Result<(), Error> {
    let Some(state) = target.state().map_err(|source| to.failed(source))? else { return Ok(()) };
    let path = to.as_path().to_path_buf();
    match (moved, Kind::of(&state)) {
        (Kind::Directory, _) => Err(Error::Exists { path }),
        (_, Kind::Directory) => Err(Error::IsDirectory { path }),
        _ => Ok(()),
    }
}
