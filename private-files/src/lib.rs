//! Files, directories and pipes that no other user can open.
//!
//! Everything is created with its final mode (0600, 0700 for directories), so there is no moment at which
//! others can open it. An existing file keeps its mode and may be a link to somewhere else. So [`append`],
//! [`overwrite`] and [`overwrite_beginning`] are for files in private directories, or for files that the user has named.
//! Files are not synced to disk: what is in them means little after a crash of the machine.

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, mknodat};

mod directory;

pub use directory::{Unfit, check_directory, take_directory};

/// Creates a directory. Fails if there is something of this name.
pub fn create_directory(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(path)
}

/// Creates a directory and those above it, if they are missing. One that exists keeps its mode.
pub fn create_directories(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Creates a named pipe. Fails if there is something of this name.
pub fn create_pipe(path: &Path) -> io::Result<()> {
    Ok(mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?)
}

/// Writes a file that did not exist. Fails if there is something of this name, even a link that leads nowhere.
pub fn create_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    options().write(true).create_new(true).open(path)?.write_all(bytes)
}

/// Opens a file for appending, and creates it if it is missing.
pub fn append(path: &Path) -> io::Result<File> {
    options().append(true).create(true).open(path)
}

/// Replaces a file in one step, or creates it: readers see the old content or the new one. The new content is
/// first written to a file beside it, with the extension `new`.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let temporary = path.with_extension("new");
    overwrite(&temporary, bytes)?;
    fs::rename(temporary, path)
}

/// Writes a file in place, for a file whose only reader looks after we are done. It is faster than [`replace`].
pub fn overwrite(path: &Path, bytes: &[u8]) -> io::Result<()> {
    // Cut to length afterwards: ext4 writes a file out at once that was emptied first.
    overwrite_beginning(path, bytes)?.set_len(bytes.len() as u64)
}

/// Writes the beginning of a file in place and leaves the rest, for a content that says where it ends. Returns the
/// file, open for writing.
pub fn overwrite_beginning(path: &Path, bytes: &[u8]) -> io::Result<File> {
    let mut file = options().write(true).create(true).truncate(false).open(path)?;
    file.write_all(bytes)?;
    Ok(file)
}

/// Whether a file belongs to the user of this process.
pub fn is_own(file: &Metadata) -> bool {
    file.uid() == rustix::process::geteuid().as_raw()
}

/// Whether a file belongs to the user of this process, and its mode allows nothing to anybody else.
pub fn is_private(file: &Metadata) -> bool {
    is_own(file) && file.mode() & 0o077 == 0
}

fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(0o600);
    options
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _, symlink};

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::symlink_metadata(path).unwrap().mode() & 0o777
    }

    #[test]
    fn everything_is_private_from_the_beginning() {
        let base = tempfile::tempdir().unwrap();
        let path = |name: &str| base.path().join(name);
        create_directory(&path("directory")).unwrap();
        create_directories(&path("above/below")).unwrap();
        for name in ["directory", "above", "above/below"] {
            assert_eq!(mode(&path(name)), 0o700, "{name}");
        }
        create_pipe(&path("pipe")).unwrap();
        assert!(fs::metadata(path("pipe")).unwrap().file_type().is_fifo());
        create_new(&path("new-file"), b"a").unwrap();
        append(&path("appended")).unwrap();
        replace(&path("replaced"), b"a").unwrap();
        overwrite(&path("overwritten"), b"a").unwrap();
        for name in ["pipe", "new-file", "appended", "replaced", "overwritten"] {
            assert_eq!(mode(&path(name)), 0o600, "{name}");
            assert!(is_private(&fs::metadata(path(name)).unwrap()), "{name}");
        }
        assert_eq!(fs::read_dir(base.path()).unwrap().count(), 7, "no temporary file is left");
    }

    #[test]
    fn what_must_be_new_replaces_nothing_and_follows_no_link() {
        let base = tempfile::tempdir().unwrap();
        let path = |name: &str| base.path().join(name);
        fs::write(path("old"), "old").unwrap();
        symlink(path("nowhere"), path("link")).unwrap();
        for name in ["old", "link"] {
            let attempts = [
                create_new(&path(name), b"new"),
                create_pipe(&path(name)),
                create_directory(&path(name)),
            ];
            for attempt in attempts {
                assert_eq!(attempt.unwrap_err().kind(), io::ErrorKind::AlreadyExists, "{name}");
            }
        }
        assert_eq!(fs::read(path("old")).unwrap(), b"old");
        assert!(!path("nowhere").exists());
    }

    #[test]
    fn contents_are_replaced_overwritten_and_appended() {
        let base = tempfile::tempdir().unwrap();
        let file = base.path().join("file");
        let read = || fs::read_to_string(&file).unwrap();
        replace(&file, b"long content").unwrap();
        replace(&file, b"content").unwrap();
        assert_eq!(read(), "content");
        overwrite_beginning(&file, b"CON").unwrap();
        assert_eq!(read(), "CONtent");
        overwrite(&file, b"short").unwrap();
        assert_eq!(read(), "short");
        append(&file).unwrap().write_all(b"er").unwrap();
        assert_eq!(read(), "shorter");
    }

    #[test]
    fn readers_of_a_replaced_file_keep_the_old_content() {
        let base = tempfile::tempdir().unwrap();
        let file = base.path().join("file");
        replace(&file, b"old").unwrap();
        let before = fs::metadata(&file).unwrap().ino();
        let held = File::open(&file).unwrap();
        replace(&file, b"new").unwrap();
        assert_ne!(fs::metadata(&file).unwrap().ino(), before);
        assert_eq!(io::read_to_string(held).unwrap(), "old");
    }

    #[test]
    fn a_file_that_others_may_read_is_not_private() {
        let base = tempfile::tempdir().unwrap();
        let file = base.path().join("file");
        create_new(&file, b"").unwrap();
        for (mode, expected) in [(0o600, true), (0o700, true), (0o640, false), (0o602, false)] {
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
            let metadata = fs::metadata(&file).unwrap();
            assert!(is_own(&metadata));
            assert_eq!(is_private(&metadata), expected, "{mode:o}");
        }
    }
}
