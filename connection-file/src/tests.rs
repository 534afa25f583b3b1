use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use super::*;

fn files(session: &str, pid: u32, start: u64) -> (ConnectionFile, HostFile) {
    let session: SessionId = session.parse().unwrap();
    let client = ConnectionFile {
        schema: SCHEMA,
        session: session.clone(),
        pid,
        process_start: start,
        version: "0".into(),
        addr: "ws://127.0.0.1:1/".into(),
        unix: None,
        token: Secret::from_random([1; 32]),
        directory: "/".into(),
        program: None,
        wants_editor: false,
        started_at: 1,
    };
    let host = HostFile {
        schema: SCHEMA,
        session,
        pid,
        process_start: start,
        host_token: Secret::from_random([2; 32]),
    };
    (client, host)
}

fn own(session: &str) -> (ConnectionFile, HostFile) {
    let pid = std::process::id();
    files(session, pid, ProcessId::of(pid).unwrap().start_time)
}

fn directory() -> (tempfile::TempDir, Directory) {
    let temp = tempfile::tempdir().unwrap();
    let directory = Directory::at(temp.path().join("run-bridge"));
    (temp, directory)
}

fn sessions(directory: &Directory) -> Vec<String> {
    directory.list().unwrap().into_iter().map(|file| file.session.to_string()).collect()
}

#[test]
fn published_files_are_private_found_and_removed() {
    let (_temp, directory) = directory();
    let (client, host) = own("one");
    let published = directory.publish(&client, &host).unwrap();
    let mode = |name: &str| fs::metadata(directory.path().join(name)).unwrap().mode() & 0o777;
    assert_eq!(fs::metadata(directory.path()).unwrap().mode() & 0o777, 0o700);
    assert_eq!((mode("one.json"), mode("one.host.json")), (0o600, 0o600));
    assert_eq!(sessions(&directory), ["one"]);
    let token = directory.host_token(&client.session).unwrap();
    assert_eq!(token.expose(), host.host_token.expose());
    let text = fs::read_to_string(directory.path().join("one.json")).unwrap();
    assert!(!text.contains(token.expose()), "the client's file must not hold the host token");
    drop(published);
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn a_session_has_one_living_daemon() {
    let (_temp, directory) = directory();
    let (client, host) = own("one");
    let published = directory.publish(&client, &host).unwrap();
    let again = directory.publish(&client, &host).unwrap_err();
    assert!(matches!(again, Error::SessionTaken { .. }), "{again}");
    assert_eq!(sessions(&directory), ["one"], "a refused daemon must not remove the other's files");
    drop(published);
}

#[test]
fn a_session_can_be_claimed_unless_its_daemon_is_alive() {
    let (_temp, directory) = directory();
    let (client, host) = own("one");
    let published = directory.publish(&client, &host).unwrap();
    let taken = directory.claim(&client.session).unwrap_err();
    assert!(matches!(taken, Error::SessionTaken { pid, .. } if pid == client.pid), "{taken}");
    drop(published);
    directory.claim(&client.session).unwrap();
}

#[test]
fn a_missing_directory_lists_no_daemons_and_a_file_in_its_place_is_an_error() {
    let (_temp, directory) = directory();
    assert!(sessions(&directory).is_empty());
    fs::write(directory.path(), "").unwrap();
    assert!(matches!(directory.list(), Err(Error::Io { .. })));
}

#[test]
fn only_files_of_a_reasonable_size_are_read() {
    let (_temp, directory) = directory();
    for (session, bytes) in [("long", 40_000), ("endless", 80_000)] {
        let (mut client, host) = own(session);
        client.program = Some("x".repeat(bytes));
        std::mem::forget(directory.publish(&client, &host).unwrap());
    }
    assert_eq!(sessions(&directory), ["long"]);
}

#[test]
fn files_of_dead_daemons_are_replaced_and_swept() {
    let (_temp, directory) = directory();
    for session in ["dead", "reused"] {
        let (client, host) = match session {
            "dead" => files(session, 999_999_999, 1),
            _ => files(session, std::process::id(), 1),
        };
        std::mem::forget(directory.publish(&client, &host).unwrap());
        fs::write(directory.socket(&client.session), "").unwrap();
    }
    let (client, host) = own("dead");
    let published = directory.publish(&client, &host).unwrap();
    assert_eq!(sessions(&directory), ["dead"]);
    drop(published);
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0, "sockets and host files too");
}

#[test]
fn a_host_file_without_its_client_file_is_swept() {
    let (_temp, directory) = directory();
    let (client, host) = files("half", 999_999_999, 1);
    std::mem::forget(directory.publish(&client, &host).unwrap());
    fs::remove_file(directory.path().join("half.json")).unwrap();
    assert!(directory.host_token(&client.session).is_none());
    assert!(sessions(&directory).is_empty());
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn foreign_files_are_neither_believed_nor_touched() {
    let (temp, directory) = directory();
    let (client, host) = own("real");
    let published = directory.publish(&client, &host).unwrap();
    let text = fs::read_to_string(directory.path().join("real.json")).unwrap();
    // A link to a valid file, a file that others can read, a file under the wrong name, a newer
    // schema, a pipe, and text that is no JSON.
    let outside = temp.path().join("linked.json");
    fs::write(&outside, text.replace("real", "linked")).unwrap();
    fs::set_permissions(&outside, fs::Permissions::from_mode(0o600)).unwrap();
    symlink(&outside, directory.path().join("linked.json")).unwrap();
    let put = |name: &str, text: String, mode| {
        fs::write(directory.path().join(name), text).unwrap();
        fs::set_permissions(directory.path().join(name), fs::Permissions::from_mode(mode)).unwrap();
    };
    put("open.json", text.replace("real", "open"), 0o644);
    put("other.json", text.replace("real", "elsewhere"), 0o600);
    put("newer.json", text.replace("real", "newer").replace("\"schema\":1", "\"schema\":2"), 0o600);
    put("noise.json", "{".into(), 0o600);
    // A file under the wrong name claims that the living daemon's process is a dead one.
    let (dead, _) = files("real", 999_999_999, 1);
    put("slander.json", serde_json::to_string(&dead).unwrap(), 0o600);
    let pipe = directory.path().join("pipe.json");
    let made = std::process::Command::new("mkfifo").args(["-m", "400"]).arg(pipe).status().unwrap();
    assert!(made.success());
    assert_eq!(sessions(&directory), ["real"]);
    assert!(directory.host_token(&client.session).is_some(), "none of its files was swept");
    drop(published);
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 7);
}

#[test]
fn a_planted_symlink_is_not_followed_when_publishing() {
    let (temp, directory) = directory();
    directory.prepare().unwrap();
    let target = temp.path().join("target");
    symlink(&target, directory.path().join("one.json")).unwrap();
    let (client, host) = own("one");
    assert!(directory.publish(&client, &host).is_err());
    assert!(!target.exists());
}

#[test]
fn a_directory_that_others_may_enter_is_refused() {
    let (temp, directory) = directory();
    fs::create_dir(directory.path()).unwrap();
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let (client, host) = own("one");
    assert!(matches!(directory.publish(&client, &host), Err(Error::NotPrivate { .. })));
    assert!(matches!(directory.list(), Err(Error::NotPrivate { .. })));
    let link = Directory::at(temp.path().join("link"));
    fs::create_dir(temp.path().join("real")).unwrap();
    symlink(temp.path().join("real"), link.path()).unwrap();
    assert!(matches!(link.prepare(), Err(Error::NotPrivate { .. })));
}

#[test]
fn the_directory_follows_the_environment() {
    let temp = tempfile::tempdir().unwrap();
    let runtime = temp.path().to_str().unwrap().to_owned();
    let at = |set: &[(&str, &str)]| {
        let set: Vec<_> = set.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        Directory::locate(move |name| {
            set.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone())
        })
        .map(|directory| directory.path().to_str().unwrap().to_owned())
    };
    let all = [("XDG_RUNTIME_DIR", &*runtime), ("XDG_STATE_HOME", "/s"), ("HOME", "/h")];
    assert_eq!(at(&all).unwrap(), format!("{runtime}/run-bridge"));
    assert_eq!(at(&all[1..]).unwrap(), "/s/run-bridge");
    assert_eq!(at(&all[2..]).unwrap(), "/h/.local/state/run-bridge");
    let file = temp.path().join("file");
    fs::write(&file, "").unwrap();
    for unfit in ["", "relative", "/nonexistent", file.to_str().unwrap()] {
        let place = at(&[("XDG_RUNTIME_DIR", unfit), all[2]]).unwrap();
        assert_eq!(place, "/h/.local/state/run-bridge", "{unfit}");
    }
    assert!(matches!(at(&[]), Err(Error::NoPlace)));
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped in part: only root can give a directory away");
        return;
    }
    std::os::unix::fs::chown(temp.path(), Some(65534), None).unwrap();
    let foreign = temp.path().join("below");
    let foreign = foreign.to_str().unwrap();
    assert!(matches!(at(&[("HOME", foreign)]), Err(Error::NoPlace)));
    assert_eq!(
        at(&[("XDG_STATE_HOME", foreign), ("HOME", "/h")]).unwrap(),
        "/h/.local/state/run-bridge"
    );
}

/// A confined program can open directories, but no files in this one.
#[test]
fn whoever_locks_the_directory_itself_holds_nobody_up() {
    let base = tempfile::tempdir().unwrap();
    let directory = Directory::at(base.path().join("run-bridge"));
    directory.prepare().unwrap();
    let opened = File::open(directory.path()).unwrap();
    flock(&opened, FlockOperation::LockExclusive).unwrap();
    let (done, waited) = std::sync::mpsc::channel();
    let listing = directory.clone();
    std::thread::spawn(move || done.send(listing.list().unwrap().len()));
    assert_eq!(waited.recv_timeout(std::time::Duration::from_secs(10)), Ok(0));
}

#[test]
fn the_lock_is_exclusive_and_leaves_nothing() {
    let base = tempfile::tempdir().unwrap();
    let directory = Directory::at(base.path().join("run-bridge"));
    directory.prepare().unwrap();
    let inside = std::sync::atomic::AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..200 {
                    let _lock = directory.lock().unwrap();
                    let before = inside.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                    assert_eq!(before, 0, "two hold the lock");
                    inside.fetch_sub(1, std::sync::atomic::Ordering::SeqCst);
                }
            });
        }
    });
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}
