//! Shells on a real tmux in a directory of their own, which leave nothing behind.

#![allow(dead_code, reason = "each test binary uses its part")]
#![allow(clippy::unwrap_used, reason = "this is test code, though outside of a test function")]

use std::{
    fs,
    future::Future,
    io::{Read as _, Seek as _, SeekFrom},
    ops::Range,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use sandbox::shell::{
    CommandResult, Config, Job, Progress, Session, SessionId, SessionSpec, Shells, Wait,
};
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;

/// Longest that anything may take; a machine under load is slow, but not that slow.
pub const LIMIT: Duration = Duration::from_secs(60);

pub struct Home {
    directory: TempDir,
}

impl Home {
    pub fn new() -> Self {
        // Below /tmp, because a socket's path must be short.
        Self { directory: tempfile::Builder::new().prefix("sb").tempdir_in("/tmp").unwrap() }
    }

    /// The state directory.
    pub fn root(&self) -> PathBuf {
        self.directory.path().join("root")
    }

    /// A directory to work in.
    pub fn work(&self) -> PathBuf {
        let work = self.directory.path().join("work");
        fs::create_dir_all(&work).unwrap();
        work
    }

    pub fn config(&self) -> Config {
        Config::new(self.root(), env!("CARGO_BIN_EXE_sandbox"))
    }

    pub async fn open(&self) -> Shells {
        self.open_with(self.config()).await
    }

    pub async fn open_with(&self, config: Config) -> Shells {
        within("opening the shells", Shells::open(config)).await.unwrap()
    }

    pub fn spec(&self, name: &str) -> SessionSpec {
        let mut spec = SessionSpec { id: id(name), ..SessionSpec::in_directory(self.work()) };
        // A home without start-up files, so that the tests do not depend on the user's.
        spec.environment.push(("HOME".into(), self.work().into()));
        spec
    }

    pub async fn session(&self, shells: &Shells, name: &str) -> Session {
        within("creating a session", shells.create(self.spec(name))).await.unwrap()
    }
}

impl Drop for Home {
    /// A failed test has not shut its shells down: the server is found by its socket and ended.
    fn drop(&mut self) {
        let socket = self.root().join("tmux");
        if socket.exists() {
            let mut command = std::process::Command::new("tmux");
            let _ = command.arg("-S").arg(socket).arg("kill-server").output();
        }
    }
}

pub fn id(name: &str) -> SessionId {
    name.parse().unwrap()
}

/// Waits for something, but not for ever.
pub async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(LIMIT, future).await {
        Ok(value) => value,
        Err(_) => panic!("{what} took longer than {LIMIT:?}"),
    }
}

/// Runs a command to its end.
pub async fn finish(session: &Session, text: impl Into<Vec<u8>>) -> Arc<CommandResult> {
    let job = within("starting a command", session.run(text)).await.unwrap();
    ended(&job).await
}

/// Waits for a job's end.
pub async fn ended(job: &Job) -> Arc<CommandResult> {
    match job.wait(Wait::at_most(LIMIT)).await.unwrap() {
        Progress::Finished(result) => result,
        Progress::Running(running) => {
            let log = job.session().log();
            let start = running.output.start.saturating_sub(200);
            let output = log.read(start..running.output.end).unwrap_or_default();
            panic!("still running: {running:?}\n{}", String::from_utf8_lossy(&output))
        }
    }
}

/// The raw output of a finished command.
pub fn raw(session: &Session, result: &CommandResult) -> Vec<u8> {
    session.log().read(result.output.clone()).unwrap()
}

/// Runs a command to its end: exit code and output, with line ends as the programs wrote them.
pub async fn run(session: &Session, text: impl Into<Vec<u8>>) -> (i32, String) {
    let result = finish(session, text).await;
    (result.exit_code, text_of(session, &result))
}

pub fn text_of(session: &Session, result: &CommandResult) -> String {
    String::from_utf8(raw(session, result)).unwrap().replace("\r\n", "\n")
}

/// Where the output of a job begins, as soon as that is known.
pub async fn start_of(job: &Job) -> u64 {
    within("the start of a command", job.started()).await.unwrap();
    job.output().unwrap().start
}

/// Waits until the session's log, from an offset on, contains a text; returns the log from there.
pub async fn until_printed(session: &Session, from: u64, wanted: &str) -> String {
    let mut seen = Vec::new();
    let reading = async {
        let mut subscription = session.log().subscribe(from).unwrap();
        let mut buffer = vec![0; 4096];
        while !String::from_utf8_lossy(&seen).contains(wanted) {
            let read = subscription.next(&mut buffer).await.unwrap();
            seen.extend_from_slice(&buffer[..read]);
        }
    };
    if tokio::time::timeout(LIMIT, reading).await.is_err() {
        panic!("{wanted:?} was not printed, but {:?}", String::from_utf8_lossy(&seen));
    }
    String::from_utf8_lossy(&seen).into_owned()
}

/// 100 MB of random text on the terminal, and in the file `sum` its hash, with line ends as the
/// terminal makes them.
pub const FLOOD: &str = "head -c 100000000 /dev/urandom | base64 -w 99 | head -c 100000000 | \
    tee >(sed 's/$/\\r/' | sha256sum >sum.new; mv sum.new sum)";

/// Checks that the log holds exactly what the flood printed.
pub async fn check_flood(session: &Session, result: &CommandResult) {
    let (_, sum) = run(session, "until [ -e sum ]; do sleep 0.05; done; cat sum; rm sum").await;
    let path = session.log().path().clone();
    let range = result.output.clone();
    assert_eq!(sum.split(' ').next(), Some(&*hash(&path, range)), "the log has every byte");
    assert!(result.output.end - result.output.start > 100_000_000);
}

fn hash(path: &Path, range: Range<u64>) -> String {
    let mut file = fs::File::open(path).unwrap();
    file.seek(SeekFrom::Start(range.start)).unwrap();
    let mut file = file.take(range.end - range.start);
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 1 << 20];
    loop {
        match file.read(&mut buffer).unwrap() {
            0 => break,
            read => hasher.update(&buffer[..read]),
        }
    }
    hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Every living process that has the text in its command line or environment.
pub fn processes_with(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().filter_map(Result::ok) {
        let path = entry.path();
        let read = |name: &str| fs::read(path.join(name)).unwrap_or_default();
        let words = [read("cmdline"), b" ".to_vec(), read("environ")].concat();
        let words = String::from_utf8_lossy(&words).replace('\0', " ");
        let own = path.file_name().unwrap().to_str() == Some(&std::process::id().to_string());
        if !own && words.contains(text) {
            found.push(format!("{}: {words:.300}", path.display()));
        }
    }
    found
}

/// Runs an asynchronous test on a runtime of its own.
pub fn test(future: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    tokio::task::LocalSet::new().block_on(&runtime, future);
}
