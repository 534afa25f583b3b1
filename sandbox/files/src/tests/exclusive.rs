//! Moves, copies and removals wait for other changes of the same files.

use std::sync::{Arc, Barrier, mpsc};
use std::thread;
use std::time::Duration;

use super::super::file_locks::lock;
use super::super::*;
use super::Fixture;

/// Far more than the moves of a test take, even on a busy machine.
const DEADLOCK: Duration = Duration::from_secs(60);

const REPLACE: Destination =
    Destination { existing: Existing::Replace, parents: Parents::MustExist };

/// Checks that a change waits while somebody else holds the lock of `name`.
fn check_waits(
    fixture: &Fixture,
    name: &str,
    change: impl FnOnce(&Editor) -> Result<(), Error> + Send,
) {
    let editor = Editor::default();
    let file_lock = editor.file_lock(&fixture.path(name), Parents::MustExist).unwrap();
    let unused = Arc::strong_count(&file_lock);
    thread::scope(|scope| {
        let guard = lock(&file_lock);
        let changing = scope.spawn(|| change(&editor));
        // The change gets the lock from the map before it waits for it.
        while Arc::strong_count(&file_lock) == unused {
            assert!(!changing.is_finished(), "the change of {name} did not take its lock");
            thread::yield_now();
        }
        assert_eq!(fixture.names("."), ["a", "b"]);
        assert_eq!((fixture.content("a"), fixture.content("b")), (b"1".to_vec(), b"2".to_vec()));
        drop(guard);
        changing.join().unwrap().unwrap();
    });
}

#[test]
fn changes_wait_for_the_locks_of_all_their_paths() {
    for name in ["a", "b"] {
        let fixture = Fixture::new();
        let (a, b) = (fixture.put("a", "1"), fixture.put("b", "2"));
        check_waits(&fixture, name, |editor| editor.copy(&a, &b, REPLACE).map(drop));
        assert_eq!(fixture.content("b"), b"1");
        fixture.put("b", "2");
        check_waits(&fixture, name, |editor| editor.move_entry(&a, &b, REPLACE));
        assert_eq!(fixture.names("."), ["b"]);
    }
    let fixture = Fixture::new();
    let a = fixture.put("a", "1");
    fixture.put("b", "2");
    check_waits(&fixture, "a", |editor| editor.remove(&a, Removal::File));
    assert_eq!(fixture.names("."), ["b"]);
}

#[test]
fn opposite_moves_do_not_deadlock() {
    let (sender, finished) = mpsc::channel();
    // Detached: a scope would wait for ever for threads that are deadlocked.
    thread::spawn(move || {
        let fixture = Fixture::new();
        let (a, b) = (fixture.put("a", "1"), fixture.put("b", "1"));
        let (editor, barrier) = (Editor::default(), Barrier::new(2));
        thread::scope(|scope| {
            for (from, to) in [(&a, &b), (&b, &a)] {
                let (editor, barrier) = (&editor, &barrier);
                scope.spawn(move || {
                    barrier.wait();
                    for _ in 0..2000 {
                        match editor.move_entry(from, to, REPLACE) {
                            // The other thread has moved it last.
                            Ok(()) | Err(Error::NotFound { .. }) => {}
                            Err(error) => panic!("{error}"),
                        }
                    }
                });
            }
        });
        sender.send(fixture.names(".").len()).unwrap();
    });
    assert_eq!(finished.recv_timeout(DEADLOCK), Ok(1));
}

#[test]
fn a_move_onto_itself_and_a_missing_source_are_handled() {
    let (fixture, editor) = (Fixture::new(), Editor::default());
    let a = fixture.put("a", "1");
    editor.move_entry(&a, &a, REPLACE).unwrap();
    assert_eq!(fixture.content("a"), b"1");
    let missing = fixture.path("missing");
    let moved = editor.move_entry(&missing, &fixture.path("new/b"), Destination::default());
    assert!(matches!(moved, Err(Error::NotFound { .. })), "{moved:?}");
    assert_eq!(fixture.names("."), ["a"]);
}
