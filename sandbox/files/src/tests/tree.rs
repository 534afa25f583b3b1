//! Tests of directories and trees.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

use tempfile::TempDir;

use super::super::*;
use super::{Fixture, names};

const REPLACE: Destination =
    Destination { existing: Existing::Replace, parents: Parents::MustExist };

#[test]
fn directories_are_created_and_removed() {
    let fixture = Fixture::new();
    let deep = fixture.path("a/b/c");
    let missing = create_directory(&deep, Parents::MustExist);
    assert!(matches!(missing, Err(Error::NotFound { .. })), "{missing:?}");
    create_directory(&deep, Parents::Create).unwrap();
    create_directory(&deep, Parents::Create).unwrap();
    let again = create_directory(&deep, Parents::MustExist);
    assert!(matches!(again, Err(Error::Exists { .. })), "{again:?}");
    let full = remove_directory(&fixture.path("a"));
    assert!(matches!(full, Err(Error::NotEmpty { .. })), "{full:?}");
    remove_directory(&deep).unwrap();
    assert_eq!(fixture.names("a/b"), [""; 0]);
    let file = fixture.put("file", "");
    assert!(matches!(remove_directory(&file), Err(Error::NotDirectory { .. })));
    let over = create_directory(&file, Parents::Create);
    assert!(matches!(over, Err(Error::NotDirectory { .. })), "{over:?}");
}

#[test]
fn removal_of_a_tree_must_be_asked_for_and_follows_no_link() {
    let fixture = Fixture::new();
    fixture.put("tree/a/b", "");
    symlink("../../outside", fixture.inside("tree/door")).unwrap();
    symlink(fixture.outside(""), fixture.inside("tree/absolute")).unwrap();
    let tree = fixture.path("tree");
    let refused = remove(&tree, Removal::File);
    assert!(matches!(refused, Err(Error::IsDirectory { .. })), "{refused:?}");
    remove(&tree, Removal::Recursive).unwrap();
    assert_eq!(fixture.names("."), [""; 0]);
    assert!(fixture.outside("secret.txt").exists());
    assert!(matches!(remove(&tree, Removal::Recursive), Err(Error::NotFound { .. })));
}

#[test]
fn moving() {
    let fixture = Fixture::new();
    let (a, b) = (fixture.put("a", "a"), fixture.put("b", "b"));
    let refused = move_entry(&a, &b, Destination::default());
    assert!(matches!(refused, Err(Error::Exists { .. })), "{refused:?}");
    move_entry(&a, &b, REPLACE).unwrap();
    assert_eq!((fixture.names("."), fixture.content("b")), (vec!["b".to_owned()], b"a".to_vec()));
    let gone = move_entry(&a, &b, REPLACE);
    assert!(matches!(gone, Err(Error::NotFound { .. })), "{gone:?}");
    let deep = fixture.path("new/parents/b");
    assert!(matches!(move_entry(&b, &deep, REPLACE), Err(Error::NotFound { .. })));
    move_entry(&b, &deep, Destination::default()).unwrap();
    let new = fixture.path("new");
    let swallowed = move_entry(&new, &fixture.path("new/parents/new"), Destination::default());
    assert!(matches!(swallowed, Err(Error::IntoItself { .. })), "{swallowed:?}");
    let file = fixture.put("file", "");
    assert!(matches!(move_entry(&file, &new, REPLACE), Err(Error::IsDirectory { .. })));
    assert!(matches!(move_entry(&new, &file, REPLACE), Err(Error::Exists { .. })));
    symlink("nowhere", fixture.inside("link")).unwrap();
    move_entry(&fixture.path("link"), &fixture.path("moved"), Destination::default()).unwrap();
    assert_eq!(fs::read_link(fixture.inside("moved")).unwrap(), Path::new("nowhere"));
}

/// A directory on another file system than the fixture, if there is one.
fn elsewhere(fixture: &Fixture) -> Option<TempDir> {
    let other = Path::new("/dev/shm");
    let here = fs::metadata(fixture.inside("")).unwrap().dev();
    if !fs::metadata(other).is_ok_and(|metadata| metadata.dev() != here) {
        eprintln!("skipped: {} is not another file system", other.display());
        return None;
    }
    Some(tempfile::tempdir_in(other).unwrap())
}

#[test]
fn moving_between_file_systems_copies_and_removes() {
    let fixture = Fixture::new();
    let Some(elsewhere) = elsewhere(&fixture) else { return };
    fixture.put("tree/a", "1");
    symlink("a", fixture.inside("tree/link")).unwrap();
    let to = Workspace::confined(elsewhere.path()).unwrap().path("tree").unwrap();
    move_entry(&fixture.path("tree"), &to, Destination::default()).unwrap();
    assert_eq!(fixture.names("."), [""; 0]);
    assert_eq!(fs::read(elsewhere.path().join("tree/link")).unwrap(), b"1");
}

#[test]
fn moving_between_file_systems_replaces_what_a_rename_would() {
    let fixture = Fixture::new();
    let Some(elsewhere) = elsewhere(&fixture) else { return };
    let there = |name: &str| elsewhere.path().join(name);
    let other = Workspace::confined(elsewhere.path()).unwrap();
    for moved in ["link", "file"] {
        fixture.put("file", "new");
        fs::set_permissions(fixture.inside("file"), Permissions::from_mode(0o750)).unwrap();
        symlink("nowhere", fixture.inside("link")).unwrap();
        fs::write(there("kept"), "kept").unwrap();
        fs::write(there("taken"), "old").unwrap();
        symlink("kept", there("door")).unwrap();
        fs::create_dir(there("directory")).unwrap();
        let from = fixture.path(moved);
        let refused = move_entry(&from, &other.path("taken").unwrap(), Destination::default());
        assert!(matches!(refused, Err(Error::Exists { .. })), "{refused:?}");
        let refused = move_entry(&from, &other.path("directory").unwrap(), REPLACE);
        assert!(matches!(refused, Err(Error::IsDirectory { .. })), "{refused:?}");
        for name in ["taken", "door"] {
            move_entry(&from, &other.path(name).unwrap(), REPLACE).unwrap();
            assert!(!fixture.names(".").contains(&moved.to_owned()));
            let found = fs::symlink_metadata(there(name)).unwrap();
            match moved {
                "link" => assert_eq!(fs::read_link(there(name)).unwrap(), Path::new("nowhere")),
                _ => assert_eq!((found.is_file(), found.mode() & 0o777), (true, 0o750)),
            }
            move_entry(&other.path(name).unwrap(), &from, Destination::default()).unwrap();
        }
        assert_eq!(fs::read(there("kept")).unwrap(), b"kept");
        assert_eq!(names(elsewhere.path()), ["directory", "kept"], "nothing is left behind");
        fs::remove_dir(there("directory")).unwrap();
        fs::remove_file(fixture.inside("link")).unwrap();
    }
}

#[test]
fn copying_files() {
    let fixture = Fixture::new();
    let a = fixture.put("a", "a");
    fs::set_permissions(fixture.inside("a"), Permissions::from_mode(0o750)).unwrap();
    let deep = fixture.path("x/y");
    copy(&a, &deep, Destination::default()).unwrap();
    assert_eq!(fixture.content("x/y"), b"a");
    assert_eq!(stat(&deep, Links::Follow).unwrap().mode, 0o750);
    assert!(matches!(copy(&a, &deep, Destination::default()), Err(Error::Exists { .. })));
    // An existing file keeps its own mode.
    fixture.put("b", "b");
    fs::set_permissions(fixture.inside("b"), Permissions::from_mode(0o600)).unwrap();
    copy(&a, &fixture.path("b"), REPLACE).unwrap();
    assert_eq!(fixture.content("b"), b"a");
    assert_eq!(stat(&fixture.path("b"), Links::Follow).unwrap().mode, 0o600);
    symlink("a", fixture.inside("link")).unwrap();
    copy(&fixture.path("link"), &fixture.path("c"), Destination::default()).unwrap();
    assert_eq!(stat(&fixture.path("c"), Links::Keep).unwrap().kind, Kind::File);
}

#[test]
fn copying_trees() {
    let fixture = Fixture::new();
    fixture.put("tree/sub/file", "1");
    symlink("sub/file", fixture.inside("tree/link")).unwrap();
    fs::create_dir(fixture.inside("tree/locked")).unwrap();
    fs::set_permissions(fixture.inside("tree/locked"), Permissions::from_mode(0o500)).unwrap();
    let (tree, twin) = (fixture.path("tree"), fixture.path("twin"));
    copy(&tree, &twin, Destination::default()).unwrap();
    assert_eq!(fixture.content("twin/sub/file"), b"1");
    assert_eq!(fs::read_link(fixture.inside("twin/link")).unwrap(), Path::new("sub/file"));
    assert_eq!(stat(&fixture.path("twin/locked"), Links::Keep).unwrap().mode, 0o500);
    let again = copy(&tree, &twin, REPLACE);
    assert!(matches!(again, Err(Error::Exists { .. })), "{again:?}");
    assert_eq!(fixture.content("twin/sub/file"), b"1");
    let into = copy(&tree, &fixture.path("tree/sub/tree"), Destination::default());
    assert!(matches!(into, Err(Error::IntoItself { .. })), "{into:?}");
    assert_eq!(fixture.names("tree/sub"), ["file"]);
}

/// Recursion would overflow the stack and end the whole process.
#[test]
fn deep_trees_do_no_harm() {
    let fixture = Fixture::new();
    let deep = |levels: usize| vec!["d"; levels].join("/");
    fs::create_dir_all(fixture.inside(&deep(1000))).unwrap();
    let (top, twin) = (fixture.path("d"), fixture.path("twin"));
    let refused = remove(&top, Removal::Recursive);
    assert!(matches!(refused, Err(Error::TooDeep { .. })), "{refused:?}");
    copy(&top, &twin, Destination::default()).unwrap();
    let below = fixture.inside("twin").join(deep(999));
    assert!(below.is_dir());
    for levels in (1..1000).rev().step_by(200) {
        remove(&fixture.path(deep(levels)), Removal::Recursive).unwrap();
    }
    remove(&top, Removal::Recursive).unwrap();
    assert_eq!(fixture.names("."), ["twin"]);
}

/// NFS and 9p have no rename that refuses to replace. They report that with EINVAL, which is also
/// the error for a directory that is moved into itself.
#[test]
#[cfg(target_os = "linux")]
fn moving_where_renames_cannot_refuse() {
    use seccompiler::{SeccompAction, SeccompFilter, apply_filter};

    let fixture = Fixture::new();
    let (file, taken) = (fixture.put("file", "1"), fixture.put("taken", "2"));
    let tree = fixture.path("tree");
    fixture.put("tree/leaf", "3");
    let deny = SeccompFilter::new(
        [(libc::SYS_renameat2, Vec::new())].into(),
        SeccompAction::Allow,
        SeccompAction::Errno(22),
        std::env::consts::ARCH.try_into().unwrap(),
    );
    let program: seccompiler::BpfProgram = deny.unwrap().try_into().unwrap();
    std::thread::scope(|scope| {
        // A seccomp filter applies to the thread that sets it.
        let moves = scope.spawn(|| {
            apply_filter(&program).unwrap();
            let move_to = |from: &WorkspacePath, to: &str| {
                move_entry(from, &fixture.path(to), Destination::default())
            };
            let refused = move_to(&file, "taken");
            assert!(matches!(refused, Err(Error::Exists { .. })), "{refused:?}");
            move_to(&file, "new").unwrap();
            let within = move_to(&tree, "tree/below");
            assert!(matches!(within, Err(Error::IntoItself { .. })), "{within:?}");
            move_to(&tree, "elsewhere").unwrap();
        });
        moves.join().unwrap();
    });
    assert_eq!(fixture.content("new"), b"1");
    assert_eq!(fixture.content("elsewhere/leaf"), b"3");
    assert_eq!(read_bytes(&taken, 9).unwrap(), b"2");
}
