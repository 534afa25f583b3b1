//! A confined workspace: with any paths, files outside of it are neither read nor changed.
//!
//! An input is a list of lines: a letter for the operation, a path, and for some operations a second path
//! after `>`. A path that begins with `@` is absolute, below the parent directory of the workspace. Recursive
//! removal is not tested here: if the confinement failed, it would delete files of this machine.

#![no_main]

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use libfuzzer_sys::fuzz_target;
use sandbox_files::{
    Destination, Durability, Editor, Existing, Filter, LineRange, Links, ListOptions, Parents,
    READ_BYTES, Removal, Sha256, Workspace, WorkspacePath, WriteOptions, copy, create_directory,
    glob, hash, list, move_entry, read_any, read_bytes, read_text, remove, remove_directory,
    set_mode, stat, write,
};

const SECRET: &str = "what lies outside";
const NAME: &str = "only-outside";

fuzz_target!(|bytes: &[u8]| {
    // Texts of the input itself may come back in an error, or as the name of a file that it made.
    let has = |text: &str| bytes.windows(text.len()).any(|part| part == text.as_bytes());
    if has(SECRET) {
        return;
    }
    let check_names = !has(NAME);
    let base = prepare();
    let workspace = Workspace::confined(&base.path().join("workspace")).expect("it was made");
    for line in bytes.split(|byte| *byte == b'\n').take(32) {
        let Some((operation, paths)) = line.split_first() else { continue };
        let mut paths = paths.splitn(2, |byte| *byte == b'>');
        let mut next = || workspace.path(place(base.path(), paths.next()?)).ok();
        let Some(first) = next() else { continue };
        act(*operation, &first, next().as_ref(), check_names);
    }
    assert_eq!(names(base.path()), ["outside", "workspace"]);
    assert_eq!(names(&base.path().join("outside")), [NAME]);
    let secret = base.path().join("outside").join(NAME);
    assert_eq!(fs::read_to_string(&secret).expect("it is still there"), SECRET);
    assert_no_copy_of_the_secret(&base.path().join("workspace"));
});

fn prepare() -> tempfile::TempDir {
    let base = tempfile::tempdir().expect("a directory");
    let inside = base.path().join("workspace");
    fs::create_dir_all(inside.join("sub")).expect("a directory");
    fs::create_dir(base.path().join("outside")).expect("a directory");
    fs::write(base.path().join("outside").join(NAME), SECRET).expect("a file");
    fs::write(inside.join("a"), "inside").expect("a file");
    for (name, target) in [
        ("door", "../outside"),
        ("sub/up", "../.."),
        ("chain", "sub/up/outside"),
        ("file", "door/only-outside"),
        ("new", "../outside/new"),
        ("good", "sub/../a"),
        ("loop", "loop"),
    ] {
        symlink(target, inside.join(name)).expect("a link");
    }
    symlink(base.path().join("outside"), inside.join("absolute")).expect("a link");
    base
}

fn place(base: &Path, path: &[u8]) -> PathBuf {
    match path.strip_prefix(b"@") {
        Some(rest) => OsStr::from_bytes(&[base.as_os_str().as_bytes(), rest].concat()).into(),
        None => OsStr::from_bytes(path).into(),
    }
}

fn act(operation: u8, path: &WorkspacePath, other: Option<&WorkspacePath>, check_names: bool) {
    let options = WriteOptions { durability: Durability::Unsynced, ..WriteOptions::default() };
    let over = Destination { existing: Existing::Replace, parents: Parents::Create };
    // Only returned content matters here; most paths are expected to fail.
    match (operation, other) {
        (b'r', _) => {
            assert_ne!(read_bytes(path, READ_BYTES).ok().as_deref(), Some(SECRET.as_bytes()));
            let text = read_text(path, LineRange::Last(1), READ_BYTES).ok();
            assert_ne!(text.map(|text| text.content).as_deref(), Some(SECRET));
            let any = format!("{:?}", read_any(path, LineRange::All, READ_BYTES));
            assert!(!any.contains(SECRET), "{any}");
            let digest = hash(path).ok().map(|hashed| hashed.sha256);
            assert_ne!(digest, Some(Sha256::of(SECRET.as_bytes())));
        }
        (b's', _) => {
            let size = stat(path, Links::Follow).ok().map(|stat| stat.size);
            assert_ne!(size, Some(SECRET.len() as u64), "the size of the file outside");
        }
        (b'l', _) if check_names => {
            let listed =
                format!("{:?}", list(path, ListOptions { hidden: true, ..ListOptions::default() }));
            assert!(!listed.contains("path: \"only-outside\""), "{listed}");
        }
        (b'g', _) if check_names => {
            let found = glob(path, "**", Filter { hidden: true, ignored: true }, 100);
            let paths = found.map(|found| found.paths).unwrap_or_default();
            assert!(!paths.iter().any(|path| path.ends_with(NAME)), "{paths:?}");
        }
        (b'w', _) => _ = write(path, b"written", options),
        (b'e', _) => _ = Editor::default().replace_once(path, "outside", "edited"),
        (b'd', _) => _ = create_directory(path, Parents::Create),
        (b'x', _) => _ = remove(path, Removal::File),
        (b'X', _) => _ = remove_directory(path),
        (b'p', _) => _ = set_mode(path, 0o700),
        (b'm', Some(to)) => _ = move_entry(path, to, over),
        (b'c', Some(to)) => _ = copy(path, to, over),
        _ => {}
    }
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).expect("it is still there");
    let name = |entry: std::io::Result<fs::DirEntry>| entry.expect("an entry").file_name();
    let mut names: Vec<_> =
        entries.map(|entry| name(entry).to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Checks that no file of the workspace is a copy of the file outside.
fn assert_no_copy_of_the_secret(directory: &Path) {
    for entry in fs::read_dir(directory).expect("a directory that can be read") {
        let entry = entry.expect("an entry");
        let kind = entry.file_type().expect("a kind");
        if kind.is_dir() {
            assert_no_copy_of_the_secret(&entry.path());
        } else if kind.is_file() {
            let content = fs::read(entry.path()).expect("a file that can be read");
            assert_ne!(content, SECRET.as_bytes(), "{:?}", entry.path());
        }
    }
}
