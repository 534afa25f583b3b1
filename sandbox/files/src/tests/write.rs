//! Tests of writing whole files.

use std::env;
use std::fs::{self, Permissions};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::process::geteuid;

use super::super::write::Pending;
use super::super::*;
use super::Fixture;

/// Tells the child process of a test where to write.
const DIRECTORY: &str = "RUN_BRIDGE_TEST_DIRECTORY";

#[test]
fn a_new_file_gets_its_parents_and_the_usual_mode() {
    let fixture = Fixture::new();
    let path = fixture.path("a/b/c.txt");
    let must_exist = WriteOptions { parents: Parents::MustExist, ..WriteOptions::default() };
    assert!(matches!(write(&path, b"x", must_exist), Err(Error::NotFound { .. })));
    let written = write(&path, b"x", WriteOptions::default()).unwrap();
    assert_eq!(written, Written { created: true, owner: FileOwner::Kept });
    assert_eq!(fixture.content("a/b/c.txt"), b"x");
    assert_eq!(fixture.names("a/b"), ["c.txt"]);
    // The mode that the umask of this process gives to any new file.
    fs::write(fixture.inside("usual"), "").unwrap();
    let mode = |name| fs::metadata(fixture.inside(name)).unwrap().mode();
    assert_eq!(mode("a/b/c.txt"), mode("usual"));
}

#[test]
fn an_existing_file_keeps_mode_and_owner() {
    let fixture = Fixture::new();
    let path = fixture.put("a", "old");
    fs::set_permissions(fixture.inside("a"), Permissions::from_mode(0o751)).unwrap();
    // Only root can change the owner of a file; without root the test checks only the mode.
    let owner = geteuid().is_root().then_some(12345);
    chown(fixture.inside("a"), owner, owner).unwrap();
    let before = fs::metadata(fixture.inside("a")).unwrap();
    let written = write(&path, b"new", WriteOptions::default()).unwrap();
    assert_eq!(written, Written { created: false, owner: FileOwner::Kept });
    let after = fs::metadata(fixture.inside("a")).unwrap();
    assert_eq!(
        (after.mode(), after.uid(), after.gid()),
        (before.mode(), before.uid(), before.gid())
    );
    assert_ne!(after.ino(), before.ino());
    assert_eq!(fixture.content("a"), b"new");
}

#[test]
fn nobody_sees_more_while_a_file_is_replaced() {
    let fixture = Fixture::new();
    for (old, expected) in [
        (0o644, 0o644),
        (0o755, 0o755),
        (0o600, 0o600),
        (0o640, 0o600),
        (0o664, 0o644),
        (0o604, 0o600),
        (0o4755, 0o755),
    ] {
        let path = fixture.put("a", "old");
        fs::set_permissions(fixture.inside("a"), Permissions::from_mode(old)).unwrap();
        let pending = Pending::begin(&path, WriteOptions::default()).unwrap();
        let mut temporary = fs::read_dir(fixture.inside("")).unwrap().map(Result::unwrap);
        let temporary = temporary.find(|entry| entry.file_name() != "a").unwrap();
        let mode = temporary.metadata().unwrap().mode() & 0o7777;
        assert_eq!(mode, expected, "{old:o}: {mode:o}");
        pending.commit(&path, WriteOptions::default()).unwrap();
        assert_eq!(fs::metadata(fixture.inside("a")).unwrap().mode() & 0o7777, old);
    }
}

/// Not a test of its own: the next test runs it as another user.
#[test]
fn write_as_another_user() {
    let Some(directory) = env::var_os(DIRECTORY) else { return };
    let path = Workspace::confined(Path::new(&directory)).unwrap().path("a").unwrap();
    let written = write(&path, b"new", WriteOptions::default()).unwrap();
    assert_eq!(written, Written { created: false, owner: FileOwner::Changed });
    // Writing to a file clears these bits, unless root writes.
    let own = Path::new(&directory).join("own");
    fs::write(&own, "old").unwrap();
    fs::set_permissions(&own, Permissions::from_mode(0o4755)).unwrap();
    let path = Workspace::confined(Path::new(&directory)).unwrap().path("own").unwrap();
    write(&path, b"new", WriteOptions::default()).unwrap();
    assert_eq!(fs::metadata(&own).unwrap().mode() & 0o7777, 0o4755);
}

#[test]
fn an_owner_that_cannot_be_kept_is_reported_and_set_id_bits_are_dropped() {
    if !geteuid().is_root() {
        eprintln!("skipped: only root can become another user");
        return;
    }
    let fixture = Fixture::new();
    fixture.put("a", "old");
    let mut child = Command::new(env::current_exe().unwrap());
    child
        .args(["--exact", "tests::write::write_as_another_user"])
        .env(DIRECTORY, fixture.inside(""))
        .uid(65534)
        .gid(65534)
        .stdout(Stdio::null());
    fs::set_permissions(fixture.base.path(), Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(fixture.inside(""), Permissions::from_mode(0o777)).unwrap();
    fs::set_permissions(fixture.inside("a"), Permissions::from_mode(0o6755)).unwrap();
    match child.status() {
        Ok(status) => assert!(status.success(), "{status}"),
        Err(error) => {
            eprintln!("skipped: the other user cannot run this test: {error}");
            return;
        }
    }
    let after = fs::metadata(fixture.inside("a")).unwrap();
    assert_eq!((after.uid(), after.mode() & 0o7777), (65534, 0o755));
    assert_eq!(fixture.content("a"), b"new");
}

#[test]
fn an_existing_file_is_refused_if_asked() {
    let fixture = Fixture::new();
    let path = fixture.put("a", "old");
    let refuse = WriteOptions { existing: Existing::Refuse, ..WriteOptions::default() };
    assert!(matches!(write(&path, b"new", refuse), Err(Error::Exists { .. })));
    assert_eq!(fixture.content("a"), b"old");
    write(&fixture.path("b"), b"new", refuse).unwrap();
    assert_eq!(fixture.names("."), ["a", "b"]);
}

#[test]
fn of_many_who_create_the_same_file_one_wins() {
    let fixture = Fixture::new();
    let refuse = WriteOptions {
        existing: Existing::Refuse,
        durability: Durability::Unsynced,
        ..WriteOptions::default()
    };
    for round in 0..200 {
        let path = fixture.path(format!("{round}"));
        let winners = thread::scope(|scope| {
            let threads: Vec<_> =
                (0..4).map(|_| scope.spawn(|| write(&path, b"x", refuse).is_ok())).collect();
            threads.into_iter().map(|thread| usize::from(thread.join().unwrap())).sum::<usize>()
        });
        assert_eq!(winners, 1);
    }
    assert_eq!(fixture.names(".").len(), 200, "temporary files are left");
}

#[test]
fn only_regular_files_are_replaced() {
    let fixture = Fixture::new();
    fs::create_dir(fixture.inside("directory")).unwrap();
    mknodat(CWD, fixture.inside("pipe"), FileType::Fifo, Mode::RWXU, 0).unwrap();
    fixture.put("file", "x");
    let write = |name: &str| write(&fixture.path(name), b"x", WriteOptions::default());
    assert!(matches!(write("directory"), Err(Error::IsDirectory { .. })));
    assert!(matches!(write("pipe"), Err(Error::NotRegular { kind: Kind::Pipe, .. })));
    let below = write("file/below");
    assert!(matches!(below, Err(Error::NotDirectory { .. })), "{below:?}");
    assert_eq!(fixture.names("."), ["directory", "file", "pipe"]);
}

#[test]
fn readers_see_the_old_or_the_new_file_and_never_a_part() {
    let fixture = Fixture::new();
    let contents = [vec![b'a'; 300_000], vec![b'b'; 200_000]];
    let path = fixture.put("a", &contents[0]);
    let done = AtomicBool::new(false);
    let unsynced = WriteOptions { durability: Durability::Unsynced, ..WriteOptions::default() };
    thread::scope(|scope| {
        scope.spawn(|| {
            for round in 0..300 {
                write(&path, &contents[round % 2], unsynced).unwrap();
            }
            done.store(true, Ordering::Relaxed);
        });
        while !done.load(Ordering::Relaxed) {
            let seen = read_bytes(&path, READ_BYTES).unwrap();
            assert!(contents.contains(&seen), "{} bytes", seen.len());
        }
    });
}

#[test]
fn a_write_that_does_not_come_to_its_end_leaves_the_old_file_and_nothing_else() {
    let fixture = Fixture::new();
    let path = fixture.put("a", "old");
    let mut pending = Pending::begin(&path, WriteOptions::default()).unwrap();
    pending.file().write_all(b"half").unwrap();
    assert_eq!(fixture.names(".").len(), 2);
    drop(pending);
    assert_eq!(fixture.names("."), ["a"]);
    assert_eq!(fixture.content("a"), b"old");
    // No directory entry can have a name of this length.
    let failed = write(&fixture.path("x".repeat(300)), b"new", WriteOptions::default());
    assert!(matches!(failed, Err(Error::InvalidPath { .. })), "{failed:?}");
    assert_eq!(fixture.names("."), ["a"]);
}
