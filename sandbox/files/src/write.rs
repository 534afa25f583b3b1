//! Writes a whole file in one step.
//!
//! The content goes to a temporary file in the same directory, which then replaces the old file by
//! a rename. Readers see the old file or the new one, never a part. With [`Durability::Synced`]
//! this also holds after a crash of the machine. Mode and owner of an existing file are kept. A
//! link is followed, and its target is replaced. Since the file is a new one, other hard links keep
//! the old content, and extended attributes are not carried over.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write as _};

use rustix::fs::{
    AtFlags, Gid, Mode, OFlags, RenameFlags, Stat as RawStat, Uid, fchmod, fchown, fstat, linkat,
    openat, renameat, renameat_with, unlinkat,
};
use rustix::io::Errno;

use super::root::Entry;
use super::stat::{Kind, permissions};
use super::tree::Parents;
use super::{Error, WorkspacePath};

/// The bits by which a program runs with the rights of the file's owner or group.
const SET_ID_BITS: Mode = Mode::SUID.union(Mode::SGID);

/// What to do if something exists at the path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Existing {
    /// Replace it.
    #[default]
    Replace,
    /// Fail with [`Error::Exists`], even if it appears at the last moment.
    Refuse,
}

/// When the content is on the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// Synced to the disk before it replaces the old file. Takes as long as the disk needs.
    #[default]
    Synced,
    /// Written by the system some seconds later. After a crash of the machine the file may be
    /// empty.
    Unsynced,
}

/// How to write. The default creates parents, replaces and syncs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteOptions {
    /// What to do about an existing file.
    pub existing: Existing,
    /// What to do about missing directories.
    pub parents: Parents,
    /// When the content is on the disk.
    pub durability: Durability,
}

/// Whether the file owner is still the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileOwner {
    /// The file is new, or has the owner and group that it had.
    Kept,
    /// This process was not permitted to give the file to its former owner or group. The file
    /// belongs to the user of this process now, and its set-id bits were dropped.
    Changed,
}

/// The result of [`write()`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// Whether the file did not exist before.
    pub created: bool,
    /// Whether the file owner is still the same.
    pub owner: FileOwner,
}

/// Writes a file from a stream, in one step like [`write()`], and returns the number of bytes.
pub fn write_from(
    path: &WorkspacePath,
    content: &mut impl io::Read,
    options: WriteOptions,
) -> Result<u64, Error> {
    let mut pending = Pending::begin(path, options)?;
    let bytes = io::copy(content, pending.file()).map_err(|source| path.failed(source))?;
    pending.commit(path, options)?;
    Ok(bytes)
}

/// Sets the permission bits of a file or directory.
pub fn set_mode(path: &WorkspacePath, mode: u32) -> Result<(), Error> {
    fchmod(path.open()?, Mode::from_raw_mode(mode)).map_err(|error| path.failed(error.into()))
}

/// Writes the whole content of a file.
pub fn write(path: &WorkspacePath, bytes: &[u8], options: WriteOptions) -> Result<Written, Error> {
    let mut pending = Pending::begin(path, options)?;
    pending.file().write_all(bytes).map_err(|source| path.failed(source))?;
    pending.commit(path, options)
}

/// A temporary file that is going to replace another. It is removed on drop unless it was
/// committed.
pub(super) struct Pending {
    entry: Entry,
    /// The state of the file that it is going to replace.
    old: Option<RawStat>,
    temporary: Option<OsString>,
    file: File,
}

impl Pending {
    /// Begins to replace the file that the path leads to. Its attributes are kept.
    pub fn begin(path: &WorkspacePath, options: WriteOptions) -> Result<Self, Error> {
        let (entry, old) = locate(path, options)?;
        Self::at(path, entry, old)
    }

    /// Begins a new file that replaces the entry itself, even if that is a link.
    pub fn begin_anew(path: &WorkspacePath, entry: Entry) -> Result<Self, Error> {
        Self::at(path, entry, None)
    }

    fn at(path: &WorkspacePath, entry: Entry, old: Option<RawStat>) -> Result<Self, Error> {
        // The umask reduces the mode of a new file.
        let mode = old.as_ref().map_or(Mode::from_raw_mode(0o666), mode_while_written);
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let temporary = temporary_name();
        let file = openat(&entry.dir, &temporary, flags, mode)
            .map_err(|error| path.failed(error.into()))?
            .into();
        Ok(Self { entry, old, temporary: Some(temporary), file })
    }

    /// Whether the file did not exist before.
    pub fn creates(&self) -> bool {
        self.old.is_none()
    }

    pub fn file(&mut self) -> &mut File {
        &mut self.file
    }

    pub fn commit(mut self, path: &WorkspacePath, options: WriteOptions) -> Result<Written, Error> {
        let failed = |error: Errno| path.failed(error.into());
        // After the content: writing to a file clears its set-id bits.
        let owner = match &self.old {
            Some(old) => keep_attributes(&self.file, old).map_err(failed)?,
            None => FileOwner::Kept,
        };
        let written = Written { created: self.creates(), owner };
        if options.durability == Durability::Synced {
            self.file.sync_all().map_err(|source| path.failed(source))?;
        }
        let Some(temporary) = &self.temporary else { return Ok(written) };
        let placed = match options.existing {
            Existing::Replace => {
                renameat(&self.entry.dir, temporary, &self.entry.dir, &self.entry.name)
                    .map(|()| Placed::Renamed)
            }
            Existing::Refuse => place_new(&self.entry, temporary),
        };
        if placed.map_err(failed)? == Placed::Renamed {
            self.temporary = None;
        }
        Ok(written)
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if let Some(temporary) = &self.temporary {
            // A failure leaves a hidden file behind, which is harmless. The caller already gets the
            // error that led here.
            let _ = unlinkat(&self.entry.dir, temporary, AtFlags::empty());
        }
    }
}

/// A random name for a file that is going to be renamed.
pub(super) fn temporary_name() -> OsString {
    format!(".run-bridge-{:016x}.tmp", rand::random::<u64>()).into()
}

#[derive(PartialEq, Eq)]
enum Placed {
    Renamed,
    /// The temporary name still exists beside the final one.
    Linked,
}

/// Gives the file its name only if that is free. File systems without such a rename get a hard
/// link.
fn place_new(entry: &Entry, temporary: &OsString) -> Result<Placed, Errno> {
    let (dir, name) = (&entry.dir, &entry.name);
    match renameat_with(dir, temporary, dir, name, RenameFlags::NOREPLACE) {
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
            linkat(dir, temporary, dir, name, AtFlags::empty()).map(|()| Placed::Linked)
        }
        renamed => renamed.map(|()| Placed::Renamed),
    }
}

/// The entry to write to, and its present state. Only a regular file may be there.
fn locate(path: &WorkspacePath, options: WriteOptions) -> Result<(Entry, Option<RawStat>), Error> {
    let located = match path.target() {
        Err(Error::NotFound { .. }) if options.parents == Parents::Create => {
            path.create_parents()?;
            path.target()?
        }
        located => located?,
    };
    let shown = || path.as_path().to_path_buf();
    match located.1.as_ref().map(Kind::of) {
        None => Ok(located),
        Some(_) if options.existing == Existing::Refuse => Err(Error::Exists { path: shown() }),
        Some(Kind::File) => Ok(located),
        Some(Kind::Directory) => Err(Error::IsDirectory { path: shown() }),
        Some(kind) => Err(Error::NotRegular { path: shown(), kind }),
    }
}

/// The mode of the temporary file while it is written. It may not have the old owner and group yet,
/// so other users get only the permissions that all three classes had.
fn mode_while_written(old: &RawStat) -> Mode {
    let bits = permissions(old).as_raw_mode();
    let for_all = bits & (bits >> 3) & (bits >> 6) & 0o7;
    Mode::from_raw_mode((bits & 0o700) | (for_all << 3) | for_all)
}

fn keep_attributes(file: &File, old: &RawStat) -> Result<FileOwner, Errno> {
    let mut owner = FileOwner::Kept;
    let new = fstat(file)?;
    if (new.st_uid, new.st_gid) != (old.st_uid, old.st_gid) {
        let group = Some(Gid::from_raw(old.st_gid));
        match fchown(file, Some(Uid::from_raw(old.st_uid)), group) {
            Ok(()) => {}
            Err(Errno::PERM) => {
                owner = FileOwner::Changed;
                // Best effort: an owner that is in the group may still set the group alone.
                let _ = fchown(file, None, group);
            }
            Err(error) => return Err(error),
        }
    }
    let mode = match owner {
        FileOwner::Kept => permissions(old),
        FileOwner::Changed => permissions(old).difference(SET_ID_BITS),
    };
    // Last, since a change of owner clears some of the bits. Usually nothing has to change.
    if owner == FileOwner::Kept && permissions(&new) == mode {
        return Ok(owner);
    }
    fchmod(file, mode)?;
    Ok(owner)
}
