//! Tests of the command line of `sandbox`.

#![allow(clippy::unwrap_used, reason = "this is test code, also outside of test functions")]

use std::{
    ffi::OsString,
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::Path,
    process::Command,
};

use sandbox_test_support::{Home, landlock_works, serve_page};

const PROGRAM: &str = env!("CARGO_BIN_EXE_sandbox");
const PAGE: &str = "<html><body><h1>A title</h1><p>See <a href='/next'>next</a>.</p></body></html>";

#[test]
fn the_command_line_can_require_a_policy() {
    if !landlock_works() {
        return;
    }
    let home = Home::new();
    let place = |name: &str| {
        let place = home.root().with_file_name(name);
        fs::create_dir(&place).unwrap();
        place
    };
    let (temporary, outside) = (place("temporary"), place("outside"));
    let sandbox = |arguments: &[&str]| {
        let mut command = Command::new(PROGRAM);
        command.args(["shell", "--require", "landlock", "--limit-file-size", "1", "--root"]);
        command.arg(home.root()).args(arguments);
        command.current_dir(home.work()).env("HOME", home.work()).env("TMPDIR", &temporary);
        command.output().unwrap()
    };
    let escape =
        format!("echo x >inside; echo x >\"$TMPDIR/too\"; echo x >{}/new", outside.display());
    let output = sandbox(&["run", "--shell", "a", &escape]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(home.work().join("inside").exists() && temporary.join("too").exists());
    assert!(!outside.join("new").exists());
    assert_eq!(
        sandbox(&["run", "--shell", "a", "head -c 2M /dev/zero >big"]).status.code(),
        Some(128 + 25)
    );
    assert!(sandbox(&["end"]).status.success());
    let doctor = Command::new(PROGRAM).arg("doctor").env("HOME", &outside).output().unwrap();
    let doctor = String::from_utf8(doctor.stdout).unwrap();
    assert!(doctor.contains("a shell: starts\n"), "{doctor}");
    assert!(
        doctor.contains("isolation landlock: restricts commands and cells, which\n"),
        "{doctor}"
    );
    assert!(doctor.contains("  cannot use Unix sockets"), "{doctor}");
    assert!(doctor.contains("  CAN    change modes, owners, times or attributes"), "{doctor}");
}

/// The mode and the names in a directory.
fn look(directory: &Path) -> (u32, Vec<OsString>) {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name());
    (fs::metadata(directory).unwrap().permissions().mode() & 0o777, entries.collect())
}

#[test]
fn a_directory_with_other_files_is_not_taken_for_shells() {
    let home = Home::new();
    let documents = home.work();
    fs::set_permissions(&documents, fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(documents.join("letter"), "dear").unwrap();
    let link = home.root().with_file_name("link");
    symlink(&documents, &link).unwrap();
    for (root, reason) in [(&documents, "chmod 700"), (&link, "it is a link")] {
        let mut command = Command::new(PROGRAM);
        let output = command.args(["shell", "--root"]).arg(root).arg("end").output().unwrap();
        let printed = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(125), "{printed}");
        assert!(printed.contains(reason), "{printed}");
        assert!(printed.contains(root.to_str().unwrap()), "{printed}");
        assert_eq!(look(&documents), (0o755, vec!["letter".into()]));
    }
}

#[test]
fn no_name_in_the_directory_for_temporary_files_is_followed() {
    let home = Home::new();
    let [temporary, victim, own] = ["temporary", "victim", "own"].map(|name| {
        let place = home.root().with_file_name(name);
        fs::create_dir(&place).unwrap();
        fs::set_permissions(&place, fs::Permissions::from_mode(0o755)).unwrap();
        place
    });
    let user = rustix::process::geteuid().as_raw();
    symlink(&victim, temporary.join(format!("sandbox-{user}"))).unwrap();
    // An empty variable counts as unset.
    for runtime in [None, Some("")] {
        let mut command = Command::new(PROGRAM);
        command.args(["shell", "create", "a"]).current_dir(home.work());
        command.env("HOME", &own).env("TMPDIR", &temporary);
        command.env_remove("XDG_STATE_HOME").env_remove("XDG_RUNTIME_DIR");
        command.envs(runtime.map(|runtime| ("XDG_RUNTIME_DIR", runtime)));
        let created = command.output().unwrap();
        let state = own.join(".local/state/run-bridge/shells");
        let is_there = state.join("shells/a").is_dir();
        let mut end = Command::new(PROGRAM);
        let ended = end.args(["shell", "--root"]).arg(&state).arg("end").output().unwrap();
        assert!(created.status.success() && ended.status.success(), "{created:?} {ended:?}");
        assert!(is_there, "{created:?}");
        assert_eq!(look(&victim), (0o755, Vec::new()));
        assert_eq!(look(&home.work()).1, Vec::<OsString>::new());
    }
}

#[test]
fn a_limit_that_makes_no_sense_is_refused() {
    let home = Home::new();
    for limit in ["-1", "NaN", "soon", "1e300"] {
        let mut command = Command::new(PROGRAM);
        command.args(["shell", "--root"]).arg(home.root());
        let limit = format!("--limit={limit}");
        let output = command.args(["run", &limit, "true"]).output().unwrap();
        let printed = String::from_utf8(output.stderr).unwrap();
        assert!(printed.contains("--limit") && !printed.contains("panicked"), "{printed}");
        assert_eq!(output.status.code(), Some(2));
    }
}

#[test]
fn browse_prints_a_page_or_the_error() {
    let show = |url: &str| {
        let mut command = Command::new(PROGRAM);
        command.args(["browse", "--browser-program", "/no/such/browser", url]).output().unwrap()
    };
    let shown = show(&serve_page(PAGE));
    assert!(shown.status.success(), "{shown:?}");
    let text = String::from_utf8(shown.stdout).unwrap();
    assert!(text.contains("A title") && text.ends_with("[1]: /next\n"), "{text}");
    let failed = show("http://127.0.0.1:1/");
    assert_eq!(failed.status.code(), Some(125));
    assert!(String::from_utf8(failed.stderr).unwrap().contains("the page cannot be shown"));
}
