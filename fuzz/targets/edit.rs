//! The edit engine: an edit changes one place, and undo restores the bytes.
//!
//! An input is the text to find, the replacement, and the file, separated by lines `====`.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use sandbox_files::{
    Durability, EDIT_BYTES, Editor, Undo, Workspace, WorkspacePath, WriteOptions, read_bytes, write,
};
use tempfile::TempDir;

static DIRECTORY: LazyLock<TempDir> = LazyLock::new(|| tempfile::tempdir().expect("a directory"));

fuzz_target!(|bytes: &[u8]| {
    let Some((old, rest)) = split(bytes) else { return };
    let Some((new, file)) = split(rest) else { return };
    let (Ok(old), Ok(new)) = (str::from_utf8(old), str::from_utf8(new)) else { return };
    let workspace = Workspace::confined(DIRECTORY.path()).expect("the directory is there");
    let path = workspace.path("file").expect("a plain name");
    let unsynced = WriteOptions { durability: Durability::Unsynced, ..WriteOptions::default() };
    write(&path, file, unsynced).expect("the file can be written");

    let editor = Editor::default();
    if let Ok(edited) = editor.replace_once(&path, old, new) {
        let (old, new) = (old.replace("\r\n", "\n"), new.replace("\r\n", "\n"));
        let before = edited.before.expect("there was a file");
        assert_eq!(before.matches(&old).count(), 1);
        // A lone carriage return may become part of a line end when another text follows it.
        if !before.contains('\r') && !new.contains('\r') {
            assert_eq!(edited.after, Some(before.replacen(&old, &new, 1)));
        }
        if str::from_utf8(file).is_ok() {
            // Each `\n` of the text may be two bytes (CR LF) in the file.
            let longest = old.len() + old.matches('\n').count();
            assert!(removed(file, &content(&path)) <= longest, "more than one place was changed");
        }
        editor.undo(&path, Undo::IfUnchanged).expect("the edit can be undone");
    }
    assert_eq!(
        content(&path),
        file,
        "a refused edit changes nothing, and undo restores every byte"
    );

    if editor.insert_after(&path, old.len(), new).is_ok() {
        assert_eq!(removed(file, &content(&path)), 0, "an insertion removes nothing");
        editor.undo(&path, Undo::IfUnchanged).expect("the insertion can be undone");
    }
    assert_eq!(content(&path), file);
});

fn split(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    const SEPARATOR: &[u8] = b"\n====\n";
    let at = bytes.windows(SEPARATOR.len()).position(|part| part == SEPARATOR)?;
    Some((&bytes[..at], &bytes[at + SEPARATOR.len()..]))
}

fn content(path: &WorkspacePath) -> Vec<u8> {
    read_bytes(path, EDIT_BYTES).expect("the file can be read")
}

/// Number of bytes of `before` between the common prefix and the common suffix of both.
fn removed(before: &[u8], after: &[u8]) -> usize {
    let start = before.iter().zip(after).take_while(|(a, b)| a == b).count();
    let (before, after) = (&before[start..], &after[start..]);
    let end = before.iter().rev().zip(after.iter().rev()).take_while(|(a, b)| a == b).count();
    before.len() - end
}
