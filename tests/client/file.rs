use std::os::unix::fs::{DirBuilderExt as _, chown};

use harness::SandboxDaemon;
use nix::unistd::geteuid;
use serde_json::{Value, json};

use crate::{Output, finish, run, start};

fn file(sandbox: &SandboxDaemon, arguments: &[&str]) -> Output {
    run(&sandbox.daemon, &[&["file"], arguments].concat())
}

#[track_caller]
fn check(daemon: &SandboxDaemon, arguments: &[&str], code: i32, lines: &[&str]) {
    let output = file(daemon, arguments);
    assert_eq!(output.code, Some(code), "{arguments:?}: {}", output.stderr);
    assert_eq!(output.lines, lines, "{arguments:?}");
}

#[test]
fn file_subcommands_do_as_they_say() {
    let daemon = SandboxDaemon::start();
    let mut program = start(&daemon.daemon, &["file", "write", "src/a.py", "-"]);
    program.write("x = 1\ny = 2\nz = 3\n");
    assert_eq!(finish(program).code, Some(0));
    check(&daemon, &["read", "src/a.py", "--lines", "2:"], 0, &["y = 2", "z = 3"]);
    check(&daemon, &["read", "src/a.py", "--tail", "1"], 0, &["z = 3"]);
    let edited = file(&daemon, &["edit", "src/a.py", "--old", "y = 2", "--new", "y = 4"]).lines;
    assert!(edited.contains(&"+y = 4".to_owned()), "{edited:?}");
    check(&daemon, &["grep", "y =", "--files", "**/*.py"], 0, &["src/a.py:2:y = 4"]);
    file(&daemon, &["undo", "src/a.py"]);
    check(&daemon, &["read", "src/a.py", "--lines", "2:2"], 0, &["y = 2"]);
    check(
        &daemon,
        &["edit", "b", "--new", "new"],
        0,
        &["--- b", "+++ b", "@@ -0,0 +1 @@", "+new", "\\ No newline at end of file"],
    );
    check(&daemon, &["cp", "src", "copy"], 0, &[]);
    check(&daemon, &["mv", "b", "copy/b"], 0, &[]);
    check(&daemon, &["mkdir", "empty"], 0, &[]);
    check(&daemon, &["list"], 0, &["copy/", "empty/", "src/"]);
    check(&daemon, &["ls", "--nested", "copy"], 0, &["a.py", "b"]);
    check(&daemon, &["glob", "**/a.py"], 0, &["copy/a.py", "src/a.py"]);
    check(&daemon, &["rmdir", "empty"], 0, &[]);
    check(&daemon, &["rm", "-r", "copy"], 0, &[]);
    let stat: Value = serde_json::from_str(&file(&daemon, &["stat", "src"]).lines[0]).unwrap();
    assert_eq!(stat["kind"], "directory");
    let digest = "af198c55433fe187409ea8a13312aa228a9c63d6850587688ec7ccee01aca375";
    check(&daemon, &["hash", "src/a.py"], 0, &[digest]);
    let hashed = file(&daemon, &["--json", "hash", "src/a.py"]).lines;
    let hashed: Value = serde_json::from_str(&hashed[0]).unwrap();
    assert_eq!(json!([hashed["sha256"], hashed["size"]]), json!([digest, 18]));
    assert!(hashed["version"].is_string(), "{hashed}");
    std::fs::write(daemon.workspace().join("blob"), b"\x00\x01\n").unwrap();
    let program = start(&daemon.daemon, &["file", "read", "blob"]);
    assert_eq!(finish(program).lines, ["\u{0}\u{1}"]);
    let mut program = start(&daemon.daemon, &["file", "write", "binary", "-"]);
    program.write(b"\x89PNG\r\n\x1a\n\xff\0");
    assert_eq!(finish(program).code, Some(0));
    let binary = std::fs::read(daemon.workspace().join("binary")).unwrap();
    assert_eq!(binary, b"\x89PNG\r\n\x1a\n\xff\0");
    let output = file(&daemon, &["--json", "read", "binary"]);
    let mut media: Value = serde_json::from_str(&output.lines[0]).unwrap();
    assert!(media.as_object_mut().unwrap().remove("version").unwrap().is_string(), "{media}");
    let expected = json!({"kind": "media", "mediaType": "image/png", "base64": "iVBORw0KGgr/AA=="});
    assert_eq!(media, expected);
    std::fs::write(daemon.workspace().join("big"), "x".repeat(11 << 20)).unwrap();
    assert!(file(&daemon, &["read", "big"]).stderr.contains("big"));
    let output = file(&daemon, &["read", "big", "--limit-bytes", "12000000"]);
    assert_eq!(output.lines[0].len(), 11 << 20, "{}", output.stderr);
    for (arguments, code, words) in [
        (&["read", "../secret"][..], 1, "leads out of the workspace"),
        (&["read", "missing"], 1, "does not exist"),
        (&["rm", "src"], 1, "is a directory"),
        (&["read", "src/a.py", "--lines", "x"], 2, "FIRST:LAST"),
    ] {
        let output = file(&daemon, arguments);
        assert_eq!(output.code, Some(code), "{arguments:?}");
        assert!(output.stderr.contains(words), "{}", output.stderr);
    }
}

#[test]
fn unreadable_files_and_directories_are_counted() {
    if !geteuid().is_root() {
        eprintln!("skipped: only root can make files of others");
        return;
    }
    let daemon = SandboxDaemon::start_without_privileges();
    std::fs::write(daemon.workspace().join("a"), "x").unwrap();
    let closed = daemon.workspace().join("closed");
    std::fs::DirBuilder::new().mode(0o700).create(&closed).unwrap();
    chown(&closed, Some(65534), Some(65534)).unwrap();
    for (arguments, lines) in [
        (&["list", "--nested"][..], &["a", "closed/"][..]),
        (&["glob", "*"], &["a"]),
        (&["grep", "x"], &["a:1:x"]),
    ] {
        let output = file(&daemon, arguments);
        assert_eq!(output.lines, lines, "{}", output.stderr);
        assert_eq!(
            output.stderr, "(files or directories that could not be read: 1)\n",
            "{arguments:?}"
        );
    }
    let output = file(&daemon, &["list", "--limit", "1"]);
    assert_eq!(output.lines.len(), 1);
    assert!(output.stderr.contains("there are more: raise --limit"), "{}", output.stderr);
}

#[test]
fn a_change_of_the_owner_of_a_file_is_reported() {
    if !geteuid().is_root() {
        eprintln!("skipped: only root can make files of others");
        return;
    }
    let daemon = SandboxDaemon::start_without_privileges();
    let path = daemon.workspace().join("a");
    for path in [&path, &daemon.workspace().join("b")] {
        std::fs::write(path, "old").unwrap();
    }
    for arguments in [
        &["write", "a", "x"][..],
        &["edit", "a", "--old", "x", "--new", "y"],
        &["undo", "a"],
        &["cp", "--replace", "b", "a"],
    ] {
        chown(&path, Some(65534), Some(65534)).unwrap();
        let output = file(&daemon, arguments);
        assert_eq!(output.code, Some(0), "{}", output.stderr);
        assert!(output.stderr.contains("belongs to the daemon's user now"), "{arguments:?}");
    }
    assert_eq!(file(&daemon, &["write", "a", "x"]).stderr, "", "it is ours by now");
}

#[test]
fn relative_paths_begin_at_the_directory_of_the_in_flag() {
    let daemon = SandboxDaemon::start();
    let below = daemon.workspace().join("src/deep");
    std::fs::create_dir_all(&below).unwrap();
    let (below, link) = (below.to_str().unwrap(), daemon.workspace().join("link"));
    std::os::unix::fs::symlink("src/deep", &link).unwrap();
    check(&daemon, &["write", "--in", below, "a", "one\n"], 0, &[]);
    check(&daemon, &["read", "src/deep/a"], 0, &["one"]);
    check(&daemon, &["--in", link.to_str().unwrap(), "read", "a"], 0, &["one"]);
    check(&daemon, &["cp", "--in", below, "a", "b"], 0, &[]);
    check(&daemon, &["list", "--in", below], 0, &["a", "b"]);
    check(&daemon, &["glob", "--in", below, "*"], 0, &["a", "b"]);
    check(&daemon, &["grep", "--in", below, "one", "a"], 0, &["a:1:one"]);
    let absolute = format!("{below}/a");
    check(&daemon, &["read", "--in", "/no/such", &absolute], 0, &["one"]);
    let output = file(&daemon, &["read", "--in", "no/such", "a"]);
    assert_eq!(output.code, Some(2));
    assert!(output.stderr.contains("no such directory"), "{}", output.stderr);
}

#[test]
fn a_file_that_has_moved_on_is_not_changed() {
    let daemon = SandboxDaemon::start();
    let version = || {
        let output = file(&daemon, &["--json", "read", "a"]);
        let read: Value = serde_json::from_str(&output.lines[0]).unwrap();
        read["version"].as_str().unwrap().to_owned()
    };
    check(&daemon, &["write", "a", "one\n"], 0, &[]);
    let first = version();
    check(&daemon, &["write", "a", "two\n", "--if-version", &first], 0, &[]);
    for arguments in [
        &["write", "a", "three\n", "--if-version", &first][..],
        &["edit", "a", "--old", "two", "--new", "three", "--if-version", &first],
    ] {
        let output = file(&daemon, &[&["--json"], arguments].concat());
        assert_eq!(output.code, Some(1));
        let failed: Value = serde_json::from_str(&output.lines[0]).unwrap();
        assert_eq!(failed["error"]["kind"], "Conflict", "{failed}");
    }
    check(&daemon, &["read", "a"], 0, &["two"]);
    let second = version();
    let edit = ["edit", "a", "--old", "two", "--new", "three", "--if-version", &second];
    assert_eq!(file(&daemon, &edit).code, Some(0));
    check(&daemon, &["read", "a"], 0, &["three"]);
}
