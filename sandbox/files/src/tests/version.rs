//! Tests of versions: reading returns them, and stale changes are refused.

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::Barrier;
use std::thread;

use super::super::*;
use super::Fixture;

fn version(path: &WorkspacePath) -> String {
    let read = read_any_versioned(path, LineRange::All, READ_BYTES).unwrap();
    read.version.unwrap().to_string()
}

fn write_if(editor: &Editor, path: &WorkspacePath, text: &str, version: &str) -> Result<(), Error> {
    let options = WriteOptions { durability: Durability::Unsynced, ..WriteOptions::default() };
    editor.write(path, text.as_bytes(), options, Some(version)).map(drop)
}

#[test]
fn reading_tells_the_version_of_the_whole_file() {
    let fixture = Fixture::new();
    let expected = Version::of(b"1\n2\n3\n");
    let path = fixture.put("a", "1\n2\n3\n");
    for range in
        [LineRange::All, LineRange::Between { first: 2, last: Some(2) }, LineRange::Last(1)]
    {
        // With a limit below the size, only a part is read.
        for limit in [READ_BYTES, 3] {
            match read_any_versioned(&path, range, limit) {
                Ok(read) => assert_eq!(read.version, Some(expected), "{range:?}, {limit}"),
                Err(error) => assert!(matches!(error, Error::TooLarge { .. }) && limit == 3),
            }
        }
    }
    let png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR";
    let named = b"\0\x01\x02 not known by its content";
    for (name, bytes) in [("a.png", &png[..]), ("a.bin", &b"\0\x01\x02"[..]), ("a.mp3", named)] {
        let path = fixture.put(name, bytes);
        for limit in [READ_BYTES, 2] {
            if let Ok(read) = read_any_versioned(&path, LineRange::All, limit) {
                assert_eq!(read.version, Some(Version::of(bytes)), "{name}, {limit}");
                let plain = read_any(&path, LineRange::All, limit).unwrap();
                assert_eq!(read.content, plain, "{name}, {limit}");
            }
        }
    }
    let large = fixture.put("large", "x\n");
    fs::File::options()
        .write(true)
        .open(fixture.inside("large"))
        .unwrap()
        .set_len(VERSIONED_BYTES + 1)
        .unwrap();
    let first = LineRange::Between { first: 1, last: Some(1) };
    let read = read_any_versioned(&large, first, READ_BYTES);
    assert!(read.is_ok_and(|read| read.version.is_none()));
}

#[test]
fn a_stale_write_changes_nothing() {
    let fixture = Fixture::new();
    let (path, editor) = (fixture.put("a", "one"), Editor::default());
    let seen = version(&path);
    fs::write(fixture.inside("a"), "two").unwrap();
    match write_if(&editor, &path, "mine", &seen) {
        Err(Error::Changed { version, .. }) => assert_eq!(version, Some(Version::of(b"two"))),
        other => panic!("{other:?}"),
    }
    assert_eq!(fixture.content("a"), b"two");
    write_if(&editor, &path, "mine", &version(&path)).unwrap();
    assert_eq!(fixture.content("a"), b"mine");
    fs::remove_file(fixture.inside("a")).unwrap();
    let gone = write_if(&editor, &path, "again", &Version::of(b"mine").to_string());
    assert!(matches!(gone, Err(Error::Changed { version: None, .. })), "{gone:?}");
    assert!(!fixture.inside("a").exists());
    assert_eq!(fixture.names("."), Vec::<String>::new());
}

#[test]
fn a_stale_edit_changes_nothing() {
    let fixture = Fixture::new();
    let (path, editor) = (fixture.put("a", "one\n"), Editor::default());
    let replace = Edit::Replace { old: "one", new: "two" };
    let insert = Edit::Insert { after: 0, text: "zero" };
    for edit in [replace, insert] {
        let stale = editor.edit(&path, edit, Some("0123"));
        let Err(Error::Changed { version: Some(current), .. }) = stale else { panic!("{stale:?}") };
        assert_eq!(current, Version::of(b"one\n"));
        assert_eq!(fixture.content("a"), b"one\n");
    }
    let edited = editor.edit(&path, replace, Some(&version(&path))).unwrap();
    assert_eq!(edited.version(), Some(Version::of(b"two\n")));
    let edited = editor.edit(&path, insert, Some(&version(&path))).unwrap();
    assert_eq!(edited.version().unwrap().to_string(), version(&path));
    let undone = editor.undo(&path, Undo::IfUnchanged).unwrap();
    assert_eq!(undone.version(), Some(Version::of(b"two\n")));
    let created = editor.create(&fixture.path("new"), "n", WriteOptions::default()).unwrap();
    assert_eq!(created.version(), Some(Version::of(b"n")));
    let undone = editor.undo(&fixture.path("new"), Undo::IfUnchanged).unwrap();
    assert_eq!(undone.version(), None);
    let missing = editor.edit(&fixture.path("new"), insert, Some("0123"));
    assert!(matches!(missing, Err(Error::Changed { version: None, .. })), "{missing:?}");
}

/// Of many writers that have seen the same version exactly one succeeds, whatever path they use.
#[test]
fn one_of_several_writers_wins() {
    const WRITERS: usize = 8;
    let fixture = Fixture::new();
    let path = fixture.put("d/a", "start");
    symlink("d/a", fixture.inside("link")).unwrap();
    let (editor, barrier) = (Editor::default(), Barrier::new(WRITERS));
    for round in 0..50 {
        let seen = version(&path);
        let won = thread::scope(|scope| {
            let writers: Vec<_> = (0..WRITERS)
                .map(|number| {
                    let path = fixture.path(if number % 2 == 0 { "link" } else { "d/a" });
                    let (editor, barrier, seen) = (&editor, &barrier, &seen);
                    scope.spawn(move || {
                        let text = format!("{round} {number}");
                        barrier.wait();
                        match write_if(editor, &path, &text, seen) {
                            Ok(()) => Some(text),
                            Err(Error::Changed { .. }) => None,
                            Err(error) => panic!("{error}"),
                        }
                    })
                })
                .collect();
            writers.into_iter().filter_map(|writer| writer.join().unwrap()).collect::<Vec<_>>()
        });
        assert_eq!(won.len(), 1, "{won:?}");
        assert_eq!(fixture.content("d/a"), won[0].as_bytes());
    }
}
