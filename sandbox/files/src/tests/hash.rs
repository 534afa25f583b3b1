//! Hashing.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use rustix::fs::{CWD, FileType, Mode, mknodat};

use super::super::*;
use super::Fixture;

#[test]
fn a_hash_tells_digest_size_and_the_version_that_reading_tells() {
    let fixture = Fixture::new();
    for bytes in [&b""[..], b"abc\n", b"\0\xff binary", &[b'x'; 300_000]] {
        let path = fixture.put("a", bytes);
        let read = read_any_versioned(&path, LineRange::All, READ_BYTES).unwrap();
        let size = bytes.len() as u64;
        let expected = Hashed { sha256: Sha256::of(bytes), size, version: read.version };
        assert!(expected.version.is_some());
        assert_eq!(hash(&path).unwrap(), expected);
    }
}

#[test]
fn a_large_file_has_a_digest_but_no_version() {
    let fixture = Fixture::new();
    let path = fixture.put("large", "");
    resize(&fixture, "large", VERSIONED_BYTES + 1);
    let hashed = hash(&path).unwrap();
    assert_eq!((hashed.size, hashed.version), (VERSIONED_BYTES + 1, None));
}

#[test]
fn a_file_beyond_the_limit_is_refused_at_once() {
    let fixture = Fixture::new();
    let path = fixture.put("huge", "");
    resize(&fixture, "huge", HASHED_BYTES + 1);
    let refused = hash(&path);
    assert!(matches!(refused, Err(Error::TooLargeToHash { .. })), "{refused:?}");
}

#[test]
fn a_file_that_changes_while_it_is_read_has_no_version() {
    let fixture = Fixture::new();
    let path = fixture.put("a", vec![b'x'; 4 << 20]);
    let file = File::options().write(true).open(fixture.inside("a")).unwrap();
    let ended = AtomicBool::new(false);
    let noticed = thread::scope(|scope| {
        scope.spawn(|| {
            while !ended.load(Ordering::Relaxed) {
                file.write_at(b"y", 0).unwrap();
            }
        });
        // The clock of a file system is coarse: a single hash may be done within one of its ticks.
        let noticed = (0..100).any(|_| hash(&path).is_ok_and(|hashed| hashed.version.is_none()));
        ended.store(true, Ordering::Relaxed);
        noticed
    });
    assert!(noticed);
}

#[test]
fn only_regular_files_are_hashed() {
    let fixture = Fixture::new();
    fs::create_dir(fixture.inside("d")).unwrap();
    mknodat(CWD, fixture.inside("pipe"), FileType::Fifo, Mode::RWXU, 0).unwrap();
    let directory = hash(&fixture.path("d"));
    assert!(matches!(directory, Err(Error::IsDirectory { .. })), "{directory:?}");
    let pipe = hash(&fixture.path("pipe"));
    assert!(matches!(pipe, Err(Error::NotRegular { kind: Kind::Pipe, .. })), "{pipe:?}");
    let missing = hash(&fixture.path("missing"));
    assert!(matches!(missing, Err(Error::NotFound { .. })), "{missing:?}");
}

/// Gives a file a size; the hole in it takes no space.
fn resize(fixture: &Fixture, name: &str, size: u64) {
    let file = File::options().write(true).open(fixture.inside(name)).unwrap();
    file.set_len(size).unwrap();
}
