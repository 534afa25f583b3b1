//! Tests of servers that root starts for another user. They need root.

use std::{
    fs,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    process::{self, Command},
};

use sandbox_test_support::kernel_python;
use serde_json::json;

use crate::server::{Options, Server, content, exit_code, metadata};

/// A user that the server has created for a test. It is removed at the end of the test.
struct Made(String);

impl Drop for Made {
    fn drop(&mut self) {
        // Best effort: the test may have failed before the user was created.
        let _ = Command::new("userdel").args(["--force", "--remove", &self.0]).output();
    }
}

/// The id for a new user. Prints why the test is skipped if there cannot be one.
fn new_user_id() -> Option<u32> {
    let is_free = |id: &u32| {
        ["passwd", "group"].iter().all(|database| {
            let asked = Command::new("getent").args([database, &&*id.to_string()]).output();
            asked.is_ok_and(|answer| !answer.status.success())
        })
    };
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root can become another user");
        return None;
    }
    if Command::new("useradd").arg("--help").output().is_err() {
        eprintln!("skipped: useradd is not installed");
        return None;
    }
    (52_000 + process::id() % 5_000..).find(is_free)
}

fn owned(arguments: &[&str]) -> Vec<String> {
    arguments.iter().map(|&argument| argument.to_owned()).collect()
}

fn owner(path: &str) -> (u32, u32) {
    let found = fs::symlink_metadata(path).unwrap();
    (found.uid(), found.gid())
}

/// A Python with a kernel that every user can run: the one of the other tests, or the system's own
/// with the same packages, if it has the same version.
fn python_for_all(directory: &Path) -> Option<PathBuf> {
    let is_open = |path: &Path| {
        let real = path.canonicalize().unwrap();
        let is_open = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o005 == 0o005;
        real.ancestors().all(is_open)
    };
    let (tested, system) = (Path::new(kernel_python()), Path::new("/usr/bin/python3"));
    if is_open(tested) {
        return Some(tested.to_owned());
    }
    let packages = |python: &Path| {
        let code =
            "import sysconfig, sys; print(sysconfig.get_path('purelib'), sys.version_info[:2])";
        let output = Command::new(python).args(["-c", code]).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        let (packages, version) = text.trim().split_once(' ')?;
        Some((packages.to_owned(), version.to_owned()))
    };
    let (ours, theirs) = (packages(tested)?, packages(system)?);
    if ours.1 != theirs.1 || !is_open(Path::new(&ours.0)) {
        return None;
    }
    let wrapper = directory.join("python");
    let script = format!("#!/bin/sh\nPYTHONPATH='{}' exec {} \"$@\"", ours.0, system.display());
    let write = "printf '%s\\n' \"$1\" >\"$0\" && chmod 755 \"$0\"";
    assert!(
        Command::new("sh")
            .args(["-c", write])
            .arg(&wrapper)
            .arg(script)
            .status()
            .unwrap()
            .success()
    );
    Some(wrapper)
}

#[test]
fn a_server_that_root_starts_is_all_of_the_user() {
    let Some(id) = new_user_id() else { return };
    let name = format!("rbtest{}", process::id());
    let _made = Made(name.clone());
    let tools = tempfile::tempdir_in("/tmp").unwrap();
    fs::set_permissions(tools.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let python = python_for_all(tools.path());
    let mut arguments = owned(&["--username", &name, "--user-id", &id.to_string()]);
    if let Some(python) = &python {
        arguments.extend(owned(&["--plugins", "jupyter", "--kernel-python"]));
        arguments.push(python.to_str().unwrap().to_owned());
    }
    let shared = Options { shared: true, ..Options::default() };
    let server = Server::start_with(&Options { arguments, ..shared.clone() });

    // Commands run as the user, without any right of root.
    assert_eq!(server.output("whoami; id -u"), format!("{name}\n{id}"));
    let home = format!("/home/{name} {name} {name} /bin/bash");
    assert_eq!(server.output("echo $HOME $USER $LOGNAME $SHELL"), home);
    assert!(!server.output("id -G").split(' ').any(|group| group == "0"));
    assert_ne!(exit_code(&server.run("cat /etc/shadow")), 0);
    let status = fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap();
    assert!(status.contains(&format!("Uid:\t{id}\t{id}\t{id}\t{id}\n")), "{status}");

    // The shell starts in the right directory, can change it, and reports it.
    assert_eq!(server.output("pwd"), server.work().to_str().unwrap());
    let moved = server.run("mkdir sub && cd sub && touch by-run");
    assert_eq!(metadata(&moved, "working_dir"), server.path("sub"));
    assert_eq!(metadata(&moved, "username"), name);
    assert_eq!(exit_code(&server.run("(exit 3)")), 3);
    assert_eq!(
        content(&server.action("run", json!({"command": "whoami", "is_static": true}))),
        name
    );

    // Files belong to the user, whatever creates them.
    server.action("write", json!({"path": "by-write", "content": "x"}));
    let mode = fs::metadata(server.path("sub/by-write")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o664);
    let path = server.path("sub/by-edit");
    server.action("edit", json!({"path": path, "command": "create", "file_text": "x"}));
    server.action("mkdir", json!({"path": "by-mkdir"}));
    let uploaded = server.upload(&format!("?destination={}", server.path("up")), "by-upload", b"x");
    assert_eq!(uploaded.status, 200, "{uploaded:?}");
    let mut made =
        vec!["", "sub", "sub/by-run", "sub/by-write", "sub/by-edit", "sub/by-mkdir", "up"];
    made.push("up/by-upload");
    match python {
        Some(_) => {
            let code = "import os; open('by-cell', 'w').close(); print(os.getuid(), os.path.expanduser('~'))";
            let cell = server.action("run_ipython", json!({"code": code, "include_extra": false}));
            assert_eq!(content(&cell), format!("{id} /home/{name}"));
            made.push("sub/by-cell");
        }
        None => eprintln!("without cells: no Python with a kernel is open to every user"),
    }
    for file in made {
        assert_eq!(owner(&server.path(file)), (id, id), "{file}");
    }

    // A link of the user does not lead to a file that only root may read.
    server.output("ln -s /etc/shadow secrets");
    let read = server.action("read", json!({"path": "secrets"}));
    assert_eq!(read["extras"]["error_id"], "permission", "{read}");
    drop(server);

    // An existing user keeps its id; the environment overrides the flags.
    let server = Server::start_with(&Options {
        arguments: owned(&["--username", "nobody", "--user-id", "1"]),
        variables: vec![("RUNTIME_USERNAME", name.clone()), ("RUNTIME_UID", (id + 1).to_string())],
        ..shared
    });
    assert_eq!(server.output("whoami; id -u"), format!("{name}\n{id}"));
}

#[test]
fn without_root_or_with_su_to_user_off_the_user_stays() {
    const NOBODY: u32 = 65_534;
    let us = rustix::process::geteuid();
    let shared = Options {
        shared: true,
        arguments: owned(&["--username", "rbtest-no"]),
        ..Options::default()
    };
    let user = us.is_root().then_some(NOBODY);
    let server = Server::start_with(&Options { user, ..shared.clone() });
    assert!(server.printed.contains("only root can become rbtest-no"), "{}", server.printed);
    assert_eq!(server.output("id -u"), user.unwrap_or(us.as_raw()).to_string());
    drop(server);

    let variables = vec![("SU_TO_USER", "false".to_owned())];
    let server = Server::start_with(&Options { variables, ..shared });
    assert_eq!(server.output("id -u"), us.as_raw().to_string());
    assert!(!server.printed.contains("rbtest-no"), "{}", server.printed);
    assert_ne!(exit_code(&server.run("getent passwd rbtest-no")), 0, "no user is created");
}

#[test]
fn obstacles_for_another_user_are_reported() {
    if new_user_id().is_none() {
        return;
    }
    let work = tempfile::tempdir().unwrap();
    let start = |name: &str, work: &Path, group: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_openhands-edge"));
        command
            .args(["serve", "0", "--username", name, "--user-id", "0", "--working-dir"])
            .arg(work);
        command.env_remove("RUNTIME_USERNAME").env_remove("RUNTIME_UID").env_remove("SU_TO_USER");
        let output = command.env("SANDBOX_GROUP_ID", group).output().unwrap();
        assert_eq!(output.status.code(), Some(125), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    let taken = start("rbtest-taken", work.path(), "");
    assert!(taken.contains("useradd cannot create it") && taken.contains("--user-id"), "{taken}");
    let everything = start("nobody", Path::new("/"), "");
    assert!(everything.contains("name another --working-dir"), "{everything}");
    let group = start("nobody", work.path(), "everybody");
    assert!(group.contains("SANDBOX_GROUP_ID is \"everybody\""), "{group}");
    assert_eq!(owner(work.path().to_str().unwrap()).0, 0, "nothing was given away");
}
