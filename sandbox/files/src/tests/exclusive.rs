//! Moves, copies and removals wait for other changes of the same files.

use std::sync::Arc;
use std::thread;

use super::super::edit::target_key;
use super::super::exclusive::{in_lock_order, key};
use super::super::file_locks::lock;
use super::super::*;
use super::Fixture;

const REPLACE: Destination =
    Destination { existing: Existing::Replace, parents: Parents::MustExist };

/// Checks that a change waits while somebody else holds the lock of `name`.
fn check_waits(
    fixture: &Fixture,
    name: &str,
    change: impl FnOnce(&Editor) -> Result<(), Error> + Send,
) {
    let editor = Editor::default();
    let key = target_key(&fixture.path(name), Parents::MustExist).unwrap();
    let file_lock = editor.locks.of(&key);
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
fn opposite_changes_take_their_locks_in_the_same_order() {
    let fixture = Fixture::new();
    let [a, b] = ["a", "b"].map(|name| {
        let path = fixture.path(name);
        key(&path, &path.entry().unwrap()).unwrap()
    });
    let order = in_lock_order(vec![a.clone(), b.clone()]);
    assert_eq!(in_lock_order(vec![b.clone(), a.clone()]), order);
    assert_eq!(in_lock_order(vec![a.clone(), a]).len(), 1);
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
