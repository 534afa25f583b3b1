//! Tests of the state directory that a server is given.

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _},
    os::unix::fs::{PermissionsExt as _, symlink},
    path::{Path, PathBuf},
    process::{Command, ExitStatus, Stdio},
};

use tempfile::TempDir;

use crate::server::signal;

/// Starts a server, tells it to end as soon as it has printed its address, and returns how it ended and what it
/// printed.
fn serve(home: &TempDir, arguments: &[&Path]) -> (ExitStatus, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_openhands-edge"));
    command.args(["serve", "0"]).args(arguments).current_dir(home.path());
    command.env("HOME", home.path()).env("SESSION_API_KEY", "a key").env("XDG_RUNTIME_DIR", "");
    command.env("TMPDIR", place(home, "temporary")).env_remove("XDG_STATE_HOME");
    command.env_remove("SANDBOX_HOST").env_remove("RUNTIME_USERNAME");
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut errors = BufReader::new(child.stderr.take().unwrap());
    let mut printed = String::new();
    while !printed.contains("http://") && errors.read_line(&mut printed).unwrap() > 0 {}
    // The server ends in order only when its shell has started, or has failed to start.
    signal(child.id(), "TERM");
    errors.read_to_string(&mut printed).unwrap();
    (child.wait().unwrap(), printed)
}

fn new_home() -> TempDir {
    let home = tempfile::Builder::new().prefix("oh").tempdir_in("/tmp").unwrap();
    fs::create_dir(place(&home, "temporary")).unwrap();
    home
}

fn place(home: &TempDir, name: &str) -> PathBuf {
    home.path().join(name)
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<_> = entries.map(|name| name.into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_directory_with_files_of_others_is_no_state_directory() {
    let home = new_home();
    let documents = place(&home, "documents");
    fs::create_dir(&documents).unwrap();
    fs::write(documents.join("letter"), "dear").unwrap();
    let link = place(&home, "link");
    symlink(&documents, &link).unwrap();
    for (mode, state, reason) in [
        (0o755, &documents, "chmod 700"),
        (0o700, &documents, "files that are not ours, such as letter"),
        (0o700, &link, "it is a link"),
    ] {
        fs::set_permissions(&documents, fs::Permissions::from_mode(mode)).unwrap();
        let (status, printed) = serve(&home, &["--state".as_ref(), state.as_ref()]);
        assert!(!status.success(), "{printed}");
        assert!(printed.contains(reason), "{printed}");
        assert!(printed.contains(state.to_str().unwrap()), "{printed}");
        assert_eq!(names(&documents), ["letter"]);
        assert_eq!(fs::metadata(&documents).unwrap().permissions().mode() & 0o777, mode);
    }
}

#[test]
fn a_server_without_a_runtime_directory_uses_no_public_directory() {
    let home = new_home();
    let (status, printed) = serve(&home, &[]);
    assert!(status.success(), "{printed}");
    assert_eq!(names(&place(&home, "temporary")), [""; 0]);
    let state = place(&home, ".local/state/run-bridge");
    assert_eq!(fs::metadata(&state).unwrap().permissions().mode() & 0o777, 0o700);
    assert_eq!(names(&state), [""; 0], "everything of the server is removed");
    assert_eq!(names(home.path()), [".local", "temporary"]);
}
