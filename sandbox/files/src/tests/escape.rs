//! Nothing outside the workspace can be reached: not by names, not by links, and not by links that
//! are swapped in between a check and the use.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use rustix::fs::{CWD, RenameFlags, renameat_with};

use super::super::*;
use super::{Fixture, names};

const TRIES: usize = 100_000;

/// The outcome of one attempt.
#[derive(Debug, PartialEq, Eq)]
enum Try {
    Inside,
    Refused,
    Escaped,
}

#[test]
fn names_that_lead_outside_are_refused() {
    let fixture = Fixture::new();
    fs::create_dir(fixture.inside("sub")).unwrap();
    for name in ["../outside/secret.txt", "sub/../../outside/secret.txt", "..", "sub/../.."] {
        let read = read_bytes(&fixture.path(name), READ_BYTES);
        assert!(matches!(read, Err(Error::Escapes { .. })), "{name}: {read:?}");
    }
    let absolute = fixture.workspace.path(fixture.outside("secret.txt"));
    assert!(matches!(absolute, Err(Error::Escapes { .. })), "{absolute:?}");
    // `..` in the middle is allowed as long as the path stays inside.
    fixture.put("a", "1");
    assert_eq!(read_bytes(&fixture.path("sub/../a"), READ_BYTES).unwrap(), b"1");
    // An absolute path may begin with the workspace's own path.
    let own = fixture.inside("").canonicalize().unwrap();
    assert_eq!(read_bytes(&fixture.path(own.join("a")), READ_BYTES).unwrap(), b"1");
    let beside = own.with_file_name("workspace-of-others");
    assert!(matches!(fixture.workspace.path(beside), Err(Error::Escapes { .. })));
}

#[test]
fn unusable_names_are_refused() {
    let fixture = Fixture::new();
    for name in ["", "a\0b"] {
        assert!(matches!(fixture.workspace.path(name), Err(Error::InvalidPath { .. })));
    }
    for name in [".", "/", "sub/.."] {
        let Ok(path) = fixture.workspace.path(name) else { continue };
        let removed = remove(&path, Removal::Recursive);
        assert!(matches!(removed, Err(Error::InvalidPath { .. })), "{name}: {removed:?}");
    }
    let everything = Workspace::whole_file_system();
    assert!(matches!(everything.path("relative"), Err(Error::InvalidPath { .. })));
}

#[test]
fn links_that_lead_outside_are_refused_by_every_operation() {
    let fixture = Fixture::new();
    symlink("../outside", fixture.inside("door")).unwrap();
    symlink(fixture.outside(""), fixture.inside("absolute")).unwrap();
    symlink("door/secret.txt", fixture.inside("chain")).unwrap();
    symlink("../outside/new.txt", fixture.inside("dangling")).unwrap();
    fixture.put("a", "1");
    for through in ["door/secret.txt", "absolute/secret.txt", "chain"] {
        let path = fixture.path(through);
        let to = Destination { existing: Existing::Replace, ..Destination::default() };
        let results = [
            ("read", read_bytes(&path, READ_BYTES).map(drop)),
            ("text", read_text(&path, LineRange::All, READ_BYTES).map(drop)),
            ("any", read_any(&path, LineRange::All, READ_BYTES).map(drop)),
            ("stat", stat(&path, Links::Follow).map(drop)),
            ("hash", hash(&path).map(drop)),
            ("write", write(&path, b"x", WriteOptions::default()).map(drop)),
            ("edit", Editor::default().replace_once(&path, "outside", "x").map(drop)),
            ("copy from", copy(&path, &fixture.path("b"), to).map(drop)),
            ("grep", grep(&path, &super::search::query("outside")).map(drop)),
        ];
        for (operation, result) in results {
            assert!(matches!(result, Err(Error::Escapes { .. })), "{operation}: {result:?}");
        }
    }
    let door = fixture.path("door");
    let below = fixture.path("door/new");
    for (operation, result) in [
        ("list", list(&door, ListOptions::default()).map(drop)),
        ("glob", glob(&door, "**", Filter::default(), 10).map(drop)),
        ("mkdir", create_directory(&below, Parents::MustExist)),
        ("mkdir parents", create_directory(&below, Parents::Create)),
        ("write", write(&below, b"x", WriteOptions::default()).map(drop)),
        ("write dangling", {
            write(&fixture.path("dangling"), b"x", WriteOptions::default()).map(drop)
        }),
        ("remove", remove(&fixture.path("door/secret.txt"), Removal::Recursive)),
        ("move", move_entry(&fixture.path("a"), &below, Destination::default())),
        ("copy", copy(&fixture.path("a"), &below, Destination::default()).map(drop)),
    ] {
        assert!(matches!(result, Err(Error::Escapes { .. })), "{operation}: {result:?}");
    }
    assert_untouched(&fixture);
    // The link itself is inside the workspace, so it can be read and removed.
    assert_eq!(stat(&door, Links::Keep).unwrap().link.as_deref(), Some(Path::new("../outside")));
    remove(&door, Removal::Recursive).unwrap();
    assert_untouched(&fixture);
}

#[test]
fn links_that_stay_inside_work() {
    let fixture = Fixture::new();
    fixture.put("real/a.txt", "one");
    symlink("real", fixture.inside("directory")).unwrap();
    symlink("../real/a.txt", fixture.inside("real/file")).unwrap();
    symlink("directory/file", fixture.inside("chain")).unwrap();
    assert_eq!(read_bytes(&fixture.path("chain"), READ_BYTES).unwrap(), b"one");
    write(&fixture.path("chain"), b"two", WriteOptions::default()).unwrap();
    assert_eq!(fixture.content("real/a.txt"), b"two");
    assert!(fixture.inside("chain").is_symlink() && fixture.inside("real/file").is_symlink());
    symlink("loop", fixture.inside("loop")).unwrap();
    let looped = write(&fixture.path("loop"), b"x", WriteOptions::default());
    assert!(matches!(looped, Err(Error::InvalidPath { .. })), "{looped:?}");
}

#[test]
fn the_whole_file_system_follows_any_link() {
    let fixture = Fixture::new();
    symlink(fixture.outside("secret.txt"), fixture.inside("link")).unwrap();
    let path = Workspace::whole_file_system().path(fixture.inside("link")).unwrap();
    assert_eq!(read_bytes(&path, READ_BYTES).unwrap(), b"outside");
    write(&path, b"changed", WriteOptions::default()).unwrap();
    assert_eq!(fs::read(fixture.outside("secret.txt")).unwrap(), b"changed");
    let deep = Workspace::whole_file_system().path(fixture.inside("new/directory/file")).unwrap();
    assert_eq!(deep.absolute(), fixture.inside("new/directory/file"));
    write(&deep, b"deep", WriteOptions::default()).unwrap();
    assert_eq!(fs::read(fixture.inside("new/directory/file")).unwrap(), b"deep");
}

#[test]
fn a_workspace_must_exist_and_may_be_named_itself() {
    let fixture = Fixture::new();
    let absent = Workspace::confined(&fixture.inside("absent"));
    assert!(matches!(absent, Err(Error::NotFound { .. })), "{absent:?}");
    let real = fixture.inside("").canonicalize().unwrap();
    let itself = fixture.path(&real);
    assert_eq!((itself.as_path(), itself.absolute()), (Path::new("."), real));
}

#[test]
fn a_racing_swap_never_leads_outside() {
    let fixture = racing_fixture();
    let unsynced = WriteOptions { durability: Durability::Unsynced, ..WriteOptions::default() };
    let editor = Editor::default();
    let ends = race(&fixture, TRIES, |number| {
        let file = fixture.path("door/secret.txt");
        let new = fixture.path("door/new.txt");
        let over = Destination { existing: Existing::Replace, ..Destination::default() };
        match number % 12 {
            0 => judge(read_bytes(&file, READ_BYTES).map(|bytes| bytes == b"outside")),
            1 => judge(write(&new, b"new", unsynced).map(|_| false)),
            2 => judge(list(&fixture.path("door"), ListOptions::default()).map(|listing| {
                listing.entries.iter().any(|entry| entry.path == Path::new("only-outside"))
            })),
            3 => judge(stat(&file, Links::Follow).map(|stat| stat.size == 7)),
            4 => judge(create_directory(&fixture.path("door/sub"), Parents::Create).map(no)),
            5 => judge(move_entry(&fixture.path("mine"), &new, over).map(no)),
            6 => judge(copy(&fixture.path("other"), &new, over).map(|_| false)),
            7 => judge(remove(&new, Removal::File).map(no)),
            8 => judge(remove(&fixture.path("door/sub"), Removal::Recursive).map(no)),
            9 => judge(write(&fixture.path("door/deep/new"), b"new", unsynced).map(|_| false)),
            10 => judge(editor.undo(&file, Undo::IfUnchanged).map(|_| false)),
            _ => judge(move_entry(&new, &fixture.path("mine"), over).map(no)),
        }
    });
    // Both outcomes must occur, or there was no race.
    assert!(ends.inside > 1000 && ends.refused > 1000, "{ends:?}");
    assert_eq!(ends.escaped, 0, "{ends:?}");
    assert_untouched_by_race(&fixture);
}

#[test]
fn a_racing_swap_brings_nothing_from_outside_into_a_search() {
    let fixture = racing_fixture();
    let query = super::search::query("outside");
    let ends = race(&fixture, TRIES / 50, |number| match number % 2 {
        0 => judge(
            glob(&fixture.path("."), "**/only-outside", Filter::default(), 10)
                .map(|found| !found.paths.is_empty()),
        ),
        _ => judge(grep(&fixture.path("."), &query).map(|grepped| !grepped.lines.is_empty())),
    });
    assert_eq!(ends.escaped, 0, "{ends:?}");
}

/// The swap happens inside the tree that is being copied and removed.
#[test]
fn a_racing_swap_inside_a_tree_leads_neither_copy_nor_removal_outside() {
    let fixture = racing_fixture();
    let (tree, twin) = (fixture.path("tree"), fixture.path("twin"));
    let (door, trap) = (fixture.inside("tree/door"), fixture.inside("tree/trap"));
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                // Fails while the tree does not exist.
                let _ = renameat_with(CWD, &door, CWD, &trap, RenameFlags::EXCHANGE);
            }
        });
        let stop = Stop(&done);
        let mut stolen = false;
        for _ in 0..TRIES / 100 {
            fs::create_dir_all(&door).unwrap();
            fs::write(fixture.inside("tree/mine"), "in").unwrap();
            symlink("../../outside", &trap).unwrap();
            // A copy may fail during the swap; the test is about what it copied from outside.
            let _ = copy(&tree, &twin, Destination::default());
            stolen |= ["door", "trap"].iter().any(|name| {
                let copied = fixture.inside("twin").join(name);
                !copied.is_symlink() && copied.join("secret.txt").exists()
            });
            for (path, real) in [(&tree, "tree"), (&twin, "twin")] {
                // A removal fails if a directory becomes a link meanwhile; then it is repeated.
                while fixture.inside(real).exists() {
                    let _ = remove(path, Removal::Recursive);
                }
            }
        }
        drop(stop);
        assert!(!stolen);
    });
    assert_untouched_by_race(&fixture);
}

/// Compares path prefixes after `canonicalize`, which the crate never does. If the race did not
/// catch this check, it would prove nothing.
#[test]
fn the_same_race_catches_a_check_of_the_prefix() {
    let fixture = racing_fixture();
    let root = fixture.inside("").canonicalize().unwrap();
    let ends = race(&fixture, TRIES, |_| {
        let path = root.join("door/secret.txt");
        match path.canonicalize() {
            Ok(real) if real.starts_with(&root) => match fs::read(&path) {
                Ok(bytes) if bytes == b"outside" => Try::Escaped,
                _ => Try::Inside,
            },
            _ => Try::Refused,
        }
    });
    assert!(ends.escaped > 0, "{ends:?}");
}

#[derive(Debug, Default)]
struct Ends {
    inside: usize,
    refused: usize,
    escaped: usize,
}

/// Ends the swapping thread, also if the test panics.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// `door` is a directory of the workspace and `trap` is a link out of it. The race swaps them.
fn racing_fixture() -> Fixture {
    let fixture = Fixture::new();
    fixture.put("door/secret.txt", "in");
    fixture.put("mine", "mine");
    fixture.put("other", "other");
    fs::write(fixture.outside("only-outside"), "outside").unwrap();
    symlink("../outside", fixture.inside("trap")).unwrap();
    fixture
}

/// Repeats an attempt while another thread swaps the directory and the link.
fn race(fixture: &Fixture, tries: usize, attempt: impl Fn(usize) -> Try) -> Ends {
    let done = AtomicBool::new(false);
    let (door, trap) = (fixture.inside("door"), fixture.inside("trap"));
    let mut ends = Ends::default();
    thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                let swapped = renameat_with(CWD, &door, CWD, &trap, RenameFlags::EXCHANGE);
                assert!(swapped.is_ok(), "{:?}", swapped.map_err(io::Error::from));
            }
        });
        let _stop = Stop(&done);
        for number in 0..tries {
            match attempt(number) {
                Try::Inside => ends.inside += 1,
                Try::Refused => ends.refused += 1,
                Try::Escaped => ends.escaped += 1,
            }
        }
    });
    ends
}

/// `result` says whether something from outside was read.
fn judge(result: Result<bool, Error>) -> Try {
    match result {
        Ok(true) => Try::Escaped,
        Err(Error::Escapes { .. }) => Try::Refused,
        // Other errors come from the race, such as a file that another attempt has moved.
        Ok(false) | Err(_) => Try::Inside,
    }
}

fn no((): ()) -> bool {
    false
}

fn assert_untouched(fixture: &Fixture) {
    assert_eq!(names(&fixture.outside("")), ["secret.txt"]);
    assert_eq!(fs::read(fixture.outside("secret.txt")).unwrap(), b"outside");
}

fn assert_untouched_by_race(fixture: &Fixture) {
    assert_eq!(names(&fixture.outside("")), ["only-outside", "secret.txt"]);
    assert_eq!(fs::read(fixture.outside("secret.txt")).unwrap(), b"outside");
    let left: Vec<_> =
        fixture.names(".").into_iter().filter(|name| name.ends_with(".tmp")).collect();
    assert_eq!(left, [""; 0]);
}
