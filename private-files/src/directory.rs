//! Directories in which a program of ours keeps files, and the check that a directory is one of them.
//!
//! A user may name any directory, and other users may have made something of that name before us. So a directory
//! counts as ours only if it is a real directory of this user that nobody else may enter, and if it is new, empty, or
//! carries our marker. Nothing is changed in any other directory, not even its mode.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::{create_directories, create_directory, is_own, is_private};

/// Why a directory cannot be used. Each message says what to do.
#[derive(Debug, thiserror::Error)]
pub enum Unfit {
    /// There is a link of this name. It may lead to a directory that somebody else chose.
    #[error("it is a link; name the directory itself")]
    Link,
    /// There is something else of this name.
    #[error("it is not a directory; choose another path")]
    NotADirectory,
    /// The directory of another user, who could change what we write there.
    #[error("it belongs to another user; choose another")]
    OtherUser,
    /// Other users may enter or change the directory.
    #[error(
        "other users may enter it; run `chmod 700` on it if it is only for this, or choose another"
    )]
    NotPrivate,
    /// The directory has files, and does not carry our marker.
    #[error("it has files that are not ours, such as {}; choose a new or an empty directory", .0.display())]
    InUse(
        /// One of the files.
        OsString,
    ),
    /// A system call failed.
    #[error("{0}; choose another, or correct its permissions")]
    Io(#[from] io::Error),
}

/// Checks that a path is a directory of this user that nobody else may enter. Does not follow a link of this name.
pub fn check_directory(path: &Path) -> Result<(), Unfit> {
    let found = fs::symlink_metadata(without_trailing_slash(path))?;
    if found.is_symlink() {
        Err(Unfit::Link)
    } else if !found.is_dir() {
        Err(Unfit::NotADirectory)
    } else if !is_own(&found) {
        Err(Unfit::OtherUser)
    } else if !is_private(&found) {
        Err(Unfit::NotPrivate)
    } else {
        Ok(())
    }
}

/// Creates a directory for our files, or checks that an existing one is ours: private, and either empty or with a
/// private regular file of this user by the name `marker`. The caller creates the marker before any other file, and
/// removes it after all others. Returns the path without links.
pub fn take_directory(path: &Path, marker: &str) -> Result<PathBuf, Unfit> {
    let path = without_trailing_slash(&std::path::absolute(path)?);
    let path = match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => {
            create_directories(parent)?;
            parent.canonicalize()?.join(name)
        }
        _ => path,
    };
    match create_directory(&path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error.into()),
        _ => check_directory(&path)?,
    }
    if !is_marked(&path, marker)
        && let Some(file) = fs::read_dir(&path)?.next().transpose()?
        // Another process may have taken the empty directory meanwhile.
        && !is_marked(&path, marker)
    {
        return Err(Unfit::InUse(file.file_name()));
    }
    Ok(path)
}

fn is_marked(path: &Path, marker: &str) -> bool {
    fs::symlink_metadata(path.join(marker)).is_ok_and(|file| file.is_file() && is_private(&file))
}

/// With a slash at its end, the path of a link means the directory to which it leads.
fn without_trailing_slash(path: &Path) -> PathBuf {
    path.components().collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, symlink};

    use super::*;

    const MARKER: &str = "marker";

    fn mode(path: &Path) -> u32 {
        fs::symlink_metadata(path).unwrap().mode() & 0o777
    }

    fn open(path: &Path) {
        fs::create_dir(path).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    #[test]
    fn a_new_an_empty_and_a_marked_directory_are_ours() {
        let base = tempfile::tempdir().unwrap();
        let path = base.path().canonicalize().unwrap().join("above/state");
        for _ in 0..2 {
            assert_eq!(take_directory(&path, MARKER).unwrap(), path);
            assert_eq!(mode(&path), 0o700);
        }
        crate::create_new(&path.join(MARKER), b"").unwrap();
        crate::create_new(&path.join("other"), b"").unwrap();
        assert_eq!(take_directory(&path.join("../state/"), MARKER).unwrap(), path);
    }

    #[test]
    fn a_directory_with_files_of_others_is_refused_and_stays_as_it_is() {
        let base = tempfile::tempdir().unwrap();
        let path = base.path().join("documents");
        create_directory(&path).unwrap();
        fs::write(path.join("letter"), "dear").unwrap();
        let refused = take_directory(&path, MARKER).unwrap_err();
        assert!(matches!(&refused, Unfit::InUse(name) if name == "letter"), "{refused}");
        // A marker counts only if nobody else could have made it.
        symlink(path.join("letter"), path.join(MARKER)).unwrap();
        assert!(matches!(take_directory(&path, MARKER), Err(Unfit::InUse(_))));
        fs::remove_file(path.join(MARKER)).unwrap();
        fs::write(path.join(MARKER), "").unwrap();
        fs::set_permissions(path.join(MARKER), fs::Permissions::from_mode(0o644)).unwrap();
        assert!(matches!(take_directory(&path, MARKER), Err(Unfit::InUse(_))));
    }

    #[test]
    fn a_directory_that_others_may_enter_keeps_its_mode() {
        let base = tempfile::tempdir().unwrap();
        let path = base.path().join("open");
        open(&path);
        assert!(matches!(take_directory(&path, MARKER), Err(Unfit::NotPrivate)));
        assert_eq!(mode(&path), 0o755);
    }

    #[test]
    fn links_and_other_files_are_refused() {
        let base = tempfile::tempdir().unwrap();
        let (real, link, file) =
            (base.path().join("real"), base.path().join("link"), base.path().join("file"));
        create_directory(&real).unwrap();
        symlink(&real, &link).unwrap();
        fs::write(&file, "").unwrap();
        for spelling in ["", "/", "/."] {
            let mut spelled = link.clone().into_os_string();
            spelled.push(spelling);
            let refused = take_directory(Path::new(&spelled), MARKER);
            assert!(matches!(refused, Err(Unfit::Link)), "{spelling}");
        }
        assert!(matches!(take_directory(&file, MARKER), Err(Unfit::NotADirectory)));
        symlink(base.path().join("nowhere"), base.path().join("dangling")).unwrap();
        assert!(matches!(take_directory(&base.path().join("dangling"), MARKER), Err(Unfit::Link)));
        assert!(!base.path().join("nowhere").exists());
    }

    #[test]
    fn a_directory_of_another_user_is_refused() {
        if !rustix::process::geteuid().is_root() {
            eprintln!("skipped: only root can give a directory away");
            return;
        }
        let base = tempfile::tempdir().unwrap();
        let path = base.path().join("foreign");
        create_directory(&path).unwrap();
        chown(&path, Some(65534), None).unwrap();
        assert!(matches!(take_directory(&path, MARKER), Err(Unfit::OtherUser)));
    }
}
