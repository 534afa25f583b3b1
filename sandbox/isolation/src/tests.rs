//! Tests policies on real commands: each test starts a launcher, which is this test binary again, and checks what the
//! command could do.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::net::TcpListener;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

use super::*;

/// The variable with the launcher's arguments, separated by a control character.
const LAUNCH: &str = "RUN_BRIDGE_TEST_LAUNCH";

/// Not a test, but the launcher that [`run`] starts. The other tests would fail if it did nothing.
#[test]
fn launcher() {
    let Some(arguments) = env::var_os(LAUNCH) else { return };
    let arguments = arguments.as_bytes().split(|byte| *byte == 0x1F);
    let mut arguments = arguments.map(|bytes| OsString::from_vec(bytes.to_vec()));
    let policy = Policy::from_arguments(&mut arguments).unwrap();
    let mut command = Command::new(arguments.next().unwrap());
    command.args(arguments).env_remove(LAUNCH);
    let error = match enter(&policy, command) {
        Ok(mut command) => command.exec().to_string(),
        Err(error) => error.to_string(),
    };
    panic!("{error}");
}

/// Runs a shell script under the policy.
fn run(policy: &Policy, script: &str) -> Output {
    let mut arguments = policy.to_arguments();
    arguments.extend(["--", "/bin/bash", "-c", script].map(OsString::from));
    let separator = OsString::from_vec(vec![0x1F]);
    Command::new(env::current_exe().unwrap())
        .args(["--exact", "tests::launcher", "--nocapture"])
        .env(LAUNCH, arguments.join(&separator))
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

fn succeeds(policy: &Policy, script: &str) -> bool {
    run(policy, script).status.success()
}

struct Places {
    base: TempDir,
}

impl Places {
    fn new() -> Self {
        let base = tempfile::tempdir().unwrap();
        for name in ["workspace", "temporary", "outside"] {
            fs::create_dir(base.path().join(name)).unwrap();
        }
        fs::write(base.path().join("outside/file"), "kept").unwrap();
        Self { base }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.base.path().join(name)
    }

    fn policy(&self, level: Level) -> Policy {
        Policy::for_workspace(level, &self.path("workspace"), &self.path("temporary"))
    }

    fn script(&self, script: &str) -> String {
        format!("cd '{}' && {script}", self.base.path().display())
    }
}

/// Whether Landlock works. Prints a note if Linux lacks it; any other failure fails the test, so that these tests are
/// not skipped by accident.
fn landlock_works() -> bool {
    match require(Level::Landlock) {
        Ok(_) => true,
        Err(Error::Unavailable { reason: Unavailable::NotInKernel, .. }) => {
            eprintln!("skipped: this Linux has no Landlock");
            false
        }
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn writing_is_possible_only_where_the_policy_says() {
    if !landlock_works() {
        return;
    }
    let places = Places::new();
    for (script, unconfined, confined) in [
        ("echo x > workspace/a && mkdir workspace/d && mv workspace/a workspace/d", true, true),
        ("echo x > temporary/a && ln temporary/a temporary/b && rm temporary/a", true, true),
        ("echo x > /dev/null && : < /dev/zero", true, true),
        ("cat outside/file && ls /", true, true),
        ("(echo x > outside/new) && rm outside/new", true, false),
        ("echo kept >> outside/file", true, false),
        ("truncate -s 4 outside/file", true, false),
        ("mkdir outside/d && rmdir outside/d", true, false),
        ("cp outside/file workspace/f && mv workspace/f outside/f && rm outside/f", true, false),
        ("ln -s ../outside workspace/door && echo kept > workspace/door/file", true, false),
        ("rm -f workspace/door; rm outside/file", true, false),
    ] {
        let script = places.script(script);
        fs::write(places.path("outside/file"), "kept").unwrap();
        let allowed = succeeds(&places.policy(Level::Landlock), &script);
        assert_eq!(allowed, confined, "{script}");
        if !confined {
            assert_eq!(fs::read(places.path("outside/file")).unwrap(), b"kept", "{script}");
            assert!(!places.path("outside/new").exists() && !places.path("outside/f").exists());
        }
        // The same script without confinement, to show that the policy caused the failure above and not the script.
        for name in ["workspace", "temporary"] {
            fs::remove_dir_all(places.path(name)).unwrap();
            fs::create_dir(places.path(name)).unwrap();
        }
        assert_eq!(succeeds(&places.policy(Level::None), &script), unconfined, "{script}");
    }
}

#[test]
fn what_a_command_starts_is_confined_as_well() {
    if !landlock_works() {
        return;
    }
    let places = Places::new();
    let script = places.script("setsid -w sh -c '(sh -c \"echo x > outside/new\")'");
    assert!(!succeeds(&places.policy(Level::Landlock), &script));
    assert!(!places.path("outside/new").exists());
}

#[test]
fn tcp_is_as_chosen() {
    if !landlock_works() {
        return;
    }
    let places = Places::new();
    let [good, bad] = [0; 2].map(|port| TcpListener::bind(("127.0.0.1", port)).unwrap());
    let [good, bad] = [&good, &bad].map(|listener| listener.local_addr().unwrap().port());
    let connect = |port: u16| format!("exec 3<>/dev/tcp/127.0.0.1/{port}");
    let open = places.policy(Level::Landlock);
    assert!(succeeds(&open, &connect(good)) && succeeds(&open, &connect(bad)));
    let network = Network::Only { connect: vec![good], listen: vec![], udp: false };
    let chosen = Policy { network, ..open.clone() };
    assert!(succeeds(&chosen, &connect(good)));
    assert!(!succeeds(&chosen, &connect(bad)));
    let network = Network::Only { connect: vec![], listen: vec![], udp: false };
    assert!(!succeeds(&Policy { network, ..open }, &connect(good)));
}

#[test]
fn processes_outside_cannot_be_signalled() {
    if !landlock_works() || !require(Level::Landlock).unwrap().signals {
        return;
    }
    let places = Places::new();
    let signal = format!("kill -0 {}", std::process::id());
    assert!(succeeds(&places.policy(Level::None), &signal));
    assert!(!succeeds(&places.policy(Level::Landlock), &signal));
    assert!(succeeds(&places.policy(Level::Landlock), "sleep 60 & kill $! && ! wait $!"));
}

#[test]
fn a_policy_that_cannot_be_enforced_starts_nothing() {
    let places = Places::new();
    let started = places.path("workspace/started");
    let script = format!("touch '{}'", started.display());
    let network = Network::Only { connect: vec![], listen: vec![], udp: false };
    let unenforced = Policy { network, ..places.policy(Level::None) };
    let output = run(&unenforced, &script);
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("cannot restrict TCP"));
    let mut missing = places.policy(Level::Landlock);
    missing.writable.push(places.path("missing"));
    assert!(!succeeds(&missing, &script));
    assert!(!started.exists());
    assert!(succeeds(&places.policy(Level::None), &script) && started.exists());
}

#[test]
fn limits_hold() {
    const MIB: u64 = 1024 * 1024;
    let places = Places::new();
    let policy = |limits| Policy { limits, ..places.policy(Level::None) };
    let write = places.script("head -c 2000000 /dev/zero > workspace/big");
    assert!(succeeds(&policy(Limits::default()), &write));
    let small = policy(Limits { file_bytes: Some(MIB), ..Limits::default() });
    assert!(!succeeds(&small, &write));
    assert_eq!(fs::metadata(places.path("workspace/big")).unwrap().len(), MIB);

    let grow = "x=$(head -c 100000000 /dev/zero | tr '\\0' x); test ${#x} = 100000000";
    assert!(succeeds(&policy(Limits::default()), grow));
    let little = policy(Limits { memory_bytes: Some(64 * MIB), ..Limits::default() });
    assert!(!succeeds(&little, grow));

    let short = policy(Limits { cpu_seconds: Some(1), ..Limits::default() });
    let status = run(&short, "while :; do :; done").status;
    assert_eq!(status.signal(), Some(24), "SIGXCPU expected: {status}");

    let few = policy(Limits { processes: Some(123), ..Limits::default() });
    let output = run(&few, "test $(ulimit -u) = 123 && test $(ulimit -Hu) = 123");
    // Linux does not limit the number of processes of root, so such a limit is refused.
    let is_root = rustix::process::getuid().is_root();
    assert_eq!(output.status.success(), !is_root);
    assert_eq!(few.check(Level::None).is_err(), is_root);
    let refused = String::from_utf8_lossy(&output.stderr).contains("leave out --limit-processes");
    assert_eq!(refused, is_root);
    // Root cannot raise a limit again.
    assert!(!succeeds(&small, "ulimit -Hf unlimited"));
}

#[test]
fn a_stricter_limit_stays() {
    let places = Places::new();
    let limits = Limits { file_bytes: Some(1 << 40), ..Limits::default() };
    let policy = Policy { limits, ..places.policy(Level::None) };
    // The outer launcher sets a stricter limit, and the inner shell shows the limit that results.
    let mut strict = policy.clone();
    strict.limits.file_bytes = Some(1024 * 100);
    let inner = policy.to_arguments();
    let mut inner: Vec<_> = inner.into_iter().map(|text| text.into_string().unwrap()).collect();
    inner.extend(["--", "/bin/bash", "-c", "test $(ulimit -f) = 100"].map(str::to_owned));
    let script = format!(
        "{LAUNCH}=$'{}' exec '{}' --exact tests::launcher",
        inner.join("\\x1f"),
        env::current_exe().unwrap().display(),
    );
    assert!(succeeds(&strict, &script));
}

#[test]
fn probing_leaves_this_process_as_it_was() {
    let supports = probe();
    assert_eq!(supports.len(), Level::ALL.len());
    assert_eq!(supports[0].level, Level::None);
    assert!(supports[0].works.is_ok());
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), "still possible").unwrap();
}

#[test]
fn an_unknown_level_is_refused_with_those_that_there_are() {
    let error = "walls".parse::<Level>().unwrap_err().to_string();
    assert_eq!(error, "there is no isolation level \"walls\": use none or landlock");
}

#[test]
fn a_network_is_named_by_its_ports() {
    let only = |connect: &[u16], listen: &[u16], udp| Network::Only {
        connect: connect.to_vec(),
        listen: listen.to_vec(),
        udp,
    };
    for (text, network) in [
        ("all", Network::Unrestricted),
        ("none", only(&[], &[], false)),
        ("443", only(&[443], &[], false)),
        ("80,listen:8000,443,udp", only(&[80, 443], &[8000], true)),
        ("udp", only(&[], &[], true)),
    ] {
        assert_eq!(text.parse::<Network>().unwrap(), network, "{text}");
    }
    for text in ["", "none,80", "80,", "65536", "listen:", "loopback", "http", "udp:53"] {
        assert!(text.parse::<Network>().is_err(), "{text}");
    }
}
