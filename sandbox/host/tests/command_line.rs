//! Tests of the command line of `sandbox`.

#![allow(clippy::unwrap_used, reason = "this is test code, also outside of test functions")]

use std::{fs, process::Command};

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
    let doctor = Command::new(PROGRAM).arg("doctor").output().unwrap();
    let doctor = String::from_utf8(doctor.stdout).unwrap();
    assert!(doctor.contains("a shell: starts\n"), "{doctor}");
    assert!(
        doctor.contains("isolation landlock: restricts commands and cells, which\n"),
        "{doctor}"
    );
    assert!(doctor.contains("  cannot use Unix sockets"), "{doctor}");
    assert!(doctor.contains("  CAN    change modes, owners, times or attributes"), "{doctor}");
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
