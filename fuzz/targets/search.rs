//! Globs, regular expressions and ignore files: none ends the process, whatever is in them.
//!
//! An input is a pattern and a file of ignore rules, separated by a line `====`.

#![no_main]

use std::fs;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use sandbox_files::{Case, Filter, Grep, Workspace, glob, grep};
use tempfile::TempDir;

static DIRECTORY: LazyLock<TempDir> = LazyLock::new(|| {
    let directory = tempfile::tempdir().expect("a directory");
    fs::create_dir_all(directory.path().join("a/b")).expect("directories");
    fs::create_dir(directory.path().join(".git")).expect("a repository");
    for name in ["a/b/c.rs", "a/x.log", "y"] {
        fs::write(directory.path().join(name), "fn main() {}\nx\n").expect("a file");
    }
    directory
});

fuzz_target!(|bytes: &[u8]| {
    let mark = b"\n====\n";
    let middle = bytes.windows(mark.len()).position(|window| window == mark);
    let (pattern, rules) = match middle {
        Some(middle) => (&bytes[..middle], &bytes[middle + mark.len()..]),
        None => (bytes, bytes),
    };
    for name in [".gitignore", "a/.ignore"] {
        fs::write(DIRECTORY.path().join(name), rules).expect("the rules can be written");
    }
    let Ok(pattern) = str::from_utf8(pattern) else { return };
    let workspace = Workspace::confined(DIRECTORY.path()).expect("the directory is there");
    let path = workspace.path(".").expect("a plain name");
    // An error is as good as a result.
    let _ = glob(&path, pattern, Filter::default(), 10);
    let query = Grep {
        pattern: pattern.to_owned(),
        literal: false,
        case: Case::Smart,
        files: None,
        context: 1,
        filter: Filter::default(),
        limit: 10,
    };
    let _ = grep(&path, &query);
});
