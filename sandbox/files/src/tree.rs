//! Directories and whole trees: create, remove, move, copy.

use std::ffi::{OsStr, OsString};
use std::io::{self, Seek as _};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;

use rustix::fs::{
    AtFlags, Dir as Directory, FileType, Mode, OFlags, RenameFlags, fchmod, fstat, mkdirat, openat,
    renameat, renameat_with, symlinkat, unlinkat,
};
use rustix::io::Errno;

use super::root::Entry;
use super::stat::{ACCESS_BITS, Kind, identity, permissions};
use super::write::{Pending, temporary_name};
use super::{Error, Existing, FileOwner, WorkspacePath, WriteOptions, open_file};

/// How deep a tree may be that is removed: each level holds a file descriptor open.
const REMOVED_DEPTH: usize = 256;

/// What to do about missing parent directories.
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
    /// One file, link, pipe or other single entry. A link is removed, not its target.
    File,
    /// Also a directory with everything in it. Links in it are removed, not followed.
    Recursive,
}

/// How to move or copy. The default creates parents and refuses to replace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Destination {
    /// What to do if something exists there. Only files can replace files.
    pub existing: Existing,
    /// What to do about missing directories.
    pub parents: Parents,
}

impl Default for Destination {
    fn default() -> Self {
        Self { existing: Existing::Refuse, parents: Parents::Create }
    }
}

/// Creates a directory. With [`Parents::Create`] it may exist already.
pub fn create_directory(path: &WorkspacePath, parents: Parents) -> Result<(), Error> {
    if parents == Parents::Create {
        // Needed for paths that do not end in a name, such as the workspace itself.
        if path.open_directory().is_ok() {
            return Ok(());
        }
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

/// Removes a file, or a tree if `removal` is recursive. The workspace itself is never removed.
pub fn remove(path: &WorkspacePath, removal: Removal) -> Result<(), Error> {
    let entry = path.entry()?;
    let is_directory = kind(path, &entry)? == Kind::Directory;
    match removal {
        Removal::File if is_directory => {
            Err(Error::IsDirectory { path: path.as_path().to_path_buf() })
        }
        Removal::Recursive if is_directory => remove_tree(path, &entry),
        _ => unlinkat(&entry.dir, &entry.name, AtFlags::empty())
            .map_err(|error| path.failed(error.into())),
    }
}

/// Moves a file, link or tree. Between file systems this is a copy followed by a removal. In both
/// cases a link at the destination is replaced, not followed.
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
            // This file system has no rename that refuses to replace, so check first. If INVAL was
            // about the move itself, the plain rename fails with it again.
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
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
            copy_for_move(from, to, target, moved, destination)?;
            remove(from, Removal::Recursive)
        }
        Err(error) => Err(to.failed(error.into())),
    }
}

/// Copies a file, or a tree with its modes and links. A tree that contains anything but files,
/// directories and links is refused. If a tree cannot be copied completely, the partial copy is
/// removed. Returns whether the owner of a replaced file was kept.
pub fn copy(
    from: &WorkspacePath,
    to: &WorkspacePath,
    destination: Destination,
) -> Result<FileOwner, Error> {
    let source = from.entry()?;
    match kind(from, &source)? {
        Kind::Directory => {
            let target = prepare(to, destination)?;
            check_absent(to, &target)?;
            let copied = copy_tree(from, to);
            // With `Exists`, somebody else has created the destination. After any other error it is our
            // partial copy; the caller gets the first error, and cleaning up is best effort.
            if !matches!(copied, Ok(()) | Err(Error::Exists { .. })) {
                let _ = remove_tree(to, &target);
            }
            copied.map(|()| FileOwner::Kept)
        }
        // A link that is named directly stands for its target.
        _ => copy_file(from, to, destination),
    }
}

/// Copies what a rename cannot move, to the place where the rename would have put it.
fn copy_for_move(
    from: &WorkspacePath,
    to: &WorkspacePath,
    target: Entry,
    moved: Kind,
    destination: Destination,
) -> Result<(), Error> {
    if destination.existing == Existing::Refuse {
        check_absent(to, &target)?;
    }
    match moved {
        Kind::Symlink if destination.existing == Existing::Replace => {
            replace_by_link(from, to, &target)
        }
        Kind::Symlink => copy_link(from, to),
        Kind::File => {
            copy_content(from, to, destination, |_| Pending::begin_anew(to, target)).map(drop)
        }
        _ => copy(from, to, destination).map(drop),
    }
}

fn copy_file(
    from: &WorkspacePath,
    to: &WorkspacePath,
    destination: Destination,
) -> Result<FileOwner, Error> {
    copy_content(from, to, destination, |options| Pending::begin(to, options))
}

fn copy_content(
    from: &WorkspacePath,
    to: &WorkspacePath,
    destination: Destination,
    begin: impl FnOnce(WriteOptions) -> Result<Pending, Error>,
) -> Result<FileOwner, Error> {
    let (mut file, _) = open_file(from)?;
    let options = WriteOptions {
        existing: destination.existing,
        parents: destination.parents,
        ..WriteOptions::default()
    };
    let mut pending = begin(options)?;
    let state = fstat(&file).map_err(|error| from.failed(error.into()))?;
    file.rewind().and_then(|()| io::copy(&mut file, pending.file())).map_err(|s| to.failed(s))?;
    if pending.creates() {
        let mode = permissions(&state) & ACCESS_BITS;
        fchmod(pending.file(), mode).map_err(|error| to.failed(error.into()))?;
    }
    Ok(pending.commit(to, options)?.owner)
}

/// Copies a directory with a list of directories to do, not by recursion: a deep tree must not
/// overflow the stack.
fn copy_tree(from: &WorkspacePath, to: &WorkspacePath) -> Result<(), Error> {
    let mut copied = None;
    let mut modes = Vec::new();
    let mut waiting = vec![(from.clone(), to.clone())];
    while let Some((from, to)) = waiting.pop() {
        create_directory(&to, Parents::MustExist)?;
        let directory = from.open_directory()?;
        let state = fstat(&directory).map_err(|error| from.failed(error.into()))?;
        let whole = match copied {
            Some(whole) => whole,
            None => *copied.insert(identity(&to.followed_state()?)),
        };
        // If the copy itself turns up among the sources, the tree is being copied into itself.
        if identity(&state) == whole {
            return Err(Error::IntoItself { path: to.as_path().to_path_buf() });
        }
        for entry in directory.entries().map_err(|source| from.failed(source))? {
            let name = entry.map_err(|source| from.failed(source))?.file_name();
            let (from, to) = (from.join(&name), to.join(&name));
            match kind(&from, &from.entry()?)? {
                Kind::Directory => waiting.push((from, to)),
                Kind::Symlink => copy_link(&from, &to)?,
                Kind::File => _ = copy_file(&from, &to, Destination::default())?,
                kind => {
                    return Err(Error::NotRegular { path: from.as_path().to_path_buf(), kind });
                }
            }
        }
        modes.push((to, permissions(&state) & ACCESS_BITS));
    }
    // Last and from the innermost directory up: a mode may forbid entering the directory or writing
    // to it.
    for (to, mode) in modes.into_iter().rev() {
        fchmod(to.open()?, mode).map_err(|error| to.failed(error.into()))?;
    }
    Ok(())
}

/// Removes a directory with everything in it. No link is followed: each directory is opened by its
/// plain name in its parent, which is held open.
fn remove_tree(path: &WorkspacePath, entry: &Entry) -> Result<(), Error> {
    let failed = |error: Errno| path.failed(error.into());
    let mut open = vec![(open_plain(&entry.dir, &entry.name).map_err(failed)?, entry.name.clone())];
    while let Some((directory, _)) = open.last_mut() {
        match remove_next(directory).map_err(failed)? {
            NextEntry::Removed => {}
            NextEntry::Directory(directory, name) if open.len() < REMOVED_DEPTH => {
                open.push((directory, name));
            }
            NextEntry::Directory(..) => {
                return Err(Error::TooDeep { path: path.as_path().to_path_buf() });
            }
            NextEntry::None => {
                let name = open.pop().map(|(_, name)| name).unwrap_or_default();
                let removed = match open.last() {
                    Some((above, _)) => {
                        above.fd().and_then(|above| unlinkat(above, &name, AtFlags::REMOVEDIR))
                    }
                    None => unlinkat(&entry.dir, &name, AtFlags::REMOVEDIR),
                };
                removed.map_err(failed)?;
            }
        }
    }
    Ok(())
}

/// The result of removing the next entry of a directory.
enum NextEntry {
    Removed,
    /// The entry is a directory, which must be emptied first.
    Directory(Directory, OsString),
    /// The directory has no more entries.
    None,
}

fn remove_next(directory: &mut Directory) -> Result<NextEntry, Errno> {
    let child = match directory.read() {
        Some(child) => child?,
        None => return Ok(NextEntry::None),
    };
    let name = OsStr::from_bytes(child.file_name().to_bytes());
    if name == "." || name == ".." {
        return Ok(NextEntry::Removed);
    }
    let directory = directory.fd()?;
    if matches!(child.file_type(), FileType::Directory | FileType::Unknown) {
        match open_plain(directory, name) {
            Ok(below) => return Ok(NextEntry::Directory(below, name.to_os_string())),
            // It is not a directory, or no longer one.
            Err(Errno::NOTDIR | Errno::LOOP | Errno::NOENT) => {}
            Err(error) => return Err(error),
        }
    }
    match unlinkat(directory, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(NextEntry::Removed),
        Err(error) => Err(error),
    }
}

fn open_plain(above: impl AsFd, name: &OsStr) -> Result<Directory, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(above, name, flags, Mode::empty()).and_then(Directory::new)
}

fn copy_link(from: &WorkspacePath, to: &WorkspacePath) -> Result<(), Error> {
    let link = from.entry()?.link().map_err(|source| from.failed(source))?;
    let target = to.entry()?;
    symlinkat(link.as_os_str().as_bytes(), &target.dir, &target.name)
        .map_err(|error| to.failed(error.into()))
}

/// Puts a copy of a link in the place of an existing entry. Only a rename can replace, so the link
/// is created under a temporary name first.
fn replace_by_link(from: &WorkspacePath, to: &WorkspacePath, target: &Entry) -> Result<(), Error> {
    let link = from.entry()?.link().map_err(|source| from.failed(source))?;
    let temporary = temporary_name();
    let (dir, failed) = (&target.dir, |error: Errno| to.failed(error.into()));
    symlinkat(link.as_os_str().as_bytes(), dir, &temporary).map_err(failed)?;
    renameat(dir, &temporary, dir, &target.name).map_err(|error| {
        // Best effort: a leftover is a hidden link. The caller gets the rename's error.
        let _ = unlinkat(dir, &temporary, AtFlags::empty());
        failed(error)
    })
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
