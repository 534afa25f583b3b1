//! Support for tests of shells and kernels: shells on a real tmux in a temporary directory, which leave nothing
//! behind, and a Python that can run kernels.

#![allow(missing_docs, reason = "the names are the documentation")]
#![allow(clippy::unwrap_used, reason = "this is test code, though outside of a test function")]
#![allow(clippy::new_without_default, reason = "a new directory is no default value")]

mod kernel_python;
mod page;

use std::{
    fs,
    future::Future,
    io::{Read, Seek as _, SeekFrom},
    ops::Range,
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Command, Stdio},
    sync::Arc,
    time::Duration,
};

use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use sandbox_isolation::{self as isolation, Level, Unavailable};
use sandbox_shells::{
    CommandResult, Config, Job, ProcessId, Progress, Shell, ShellId, ShellSpec, Shells, Wait,
};
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;

pub use kernel_python::kernel_python;
pub use page::serve_page;

/// The path of the program `shells-helper`, which cargo builds with the tests of `sandbox-shells`.
pub fn helper() -> PathBuf {
    let ours = std::env::current_exe().unwrap();
    let directory = ours.parent().unwrap();
    let directory =
        if directory.ends_with("deps") { directory.parent().unwrap() } else { directory };
    let helper = directory.join("shells-helper");
    assert!(
        helper.exists(),
        "{} is missing: run `cargo build -p sandbox-shells`",
        helper.display()
    );
    helper
}

/// Whether Landlock works. Prints a note if Linux lacks it; any other failure fails the test, so that these tests are
/// not skipped by accident.
pub fn landlock_works() -> bool {
    match isolation::require(Level::Landlock) {
        Ok(_) => true,
        Err(isolation::Error::Unavailable { reason: Unavailable::NotInKernel, .. }) => {
            eprintln!("skipped: this Linux has no Landlock");
            false
        }
        Err(error) => panic!("{error}"),
    }
}

/// The longest time that anything may take; a machine under load is slow, but not this slow.
pub const LIMIT: Duration = Duration::from_secs(60);

/// A temporary directory with the state directory and the workspace of one test.
#[derive(Debug)]
pub struct Home {
    directory: TempDir,
}

impl Home {
    pub fn new() -> Self {
        // Below /tmp, because the path of a socket must be short.
        Self { directory: tempfile::Builder::new().prefix("sb").tempdir_in("/tmp").unwrap() }
    }

    /// The state directory.
    pub fn root(&self) -> PathBuf {
        self.directory.path().join("root")
    }

    /// The workspace, which is created on the first call.
    pub fn work(&self) -> PathBuf {
        let work = self.directory.path().join("work");
        fs::create_dir_all(&work).unwrap();
        work
    }

    pub fn config(&self) -> Config {
        Config::new(self.root(), helper())
    }

    pub async fn open(&self) -> Shells {
        self.open_with(self.config()).await
    }

    pub async fn open_with(&self, config: Config) -> Shells {
        within("opening the shells", Shells::open(config)).await.unwrap()
    }

    pub fn spec(&self, name: &str) -> ShellSpec {
        let mut spec = ShellSpec { id: id(name), ..ShellSpec::in_directory(self.work()) };
        // A home directory without start-up files, so that the tests do not depend on the user's.
        spec.environment.push(("HOME".into(), self.work().into()));
        spec
    }

    pub async fn shell(&self, shells: &Shells, name: &str) -> Shell {
        within("creating a shell", shells.create(self.spec(name))).await.unwrap()
    }
}

impl Drop for Home {
    /// Ends the tmux server, which it finds by its socket: a failed test has not shut its shells down.
    fn drop(&mut self) {
        let socket = self.root().join("tmux");
        if socket.exists() {
            let mut command = Command::new("tmux");
            // Fails if the server has ended already.
            let _ = command.arg("-S").arg(socket).arg("kill-server").output();
        }
    }
}

/// Another process that owns the shells, so that a test can kill it.
#[derive(Debug)]
pub struct Owner {
    child: Child,
    /// The output of its command.
    output: ChildStdout,
}

impl Owner {
    /// Starts an owner that runs a command in the shell `a`. Its environment differs from that of every other owner,
    /// so that it has to update tmux.
    pub fn run(home: &Home, command: &str) -> Self {
        let owner = unique();
        let mut child = Command::new(helper())
            .arg("run")
            .arg(home.root())
            .args(["a", command])
            .current_dir(home.work())
            .env("HOME", home.work())
            .envs((0..40).map(|number| (format!("OWNER_{number}"), owner.to_string())))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        Self { output: child.stdout.take().unwrap(), child }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Reads the output up to and including this text.
    pub fn until_printed(&mut self, wanted: &str) {
        let (mut seen, mut byte) = (Vec::new(), [0]);
        while !seen.ends_with(wanted.as_bytes()) {
            let ended = || panic!("the owner ended without {wanted:?}");
            self.output.read_exact(&mut byte).unwrap_or_else(|_| ended());
            seen.extend_from_slice(&byte);
        }
    }

    /// Reads this many bytes of output.
    pub fn until_length(&mut self, length: usize) {
        self.output.read_exact(&mut vec![0; length]).unwrap();
    }

    /// Returns the rest of the command's output, when the command has ended.
    pub fn read_to_end(mut self) -> Vec<u8> {
        let mut output = Vec::new();
        self.output.read_to_end(&mut output).unwrap();
        assert!(self.child.wait().unwrap().success());
        output
    }

    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// Kills a process that must be alive.
pub fn kill(process: ProcessId) {
    let status = Command::new("kill").args(["-9", &process.pid.to_string()]).status();
    assert!(status.unwrap().success(), "{process:?} is there to be killed");
}

/// The process numbers of all recorders of the shell `a`, the present one last.
pub fn recorders(home: &Home) -> Vec<u32> {
    let index = fs::read_to_string(home.root().join("shells/a/index")).unwrap();
    let opened = index.lines().filter(|line| line.starts_with("O "));
    opened.map(|line| line.split(' ').nth(3).unwrap().parse().unwrap()).collect()
}

/// Waits until the tmux server knows a control client other than the former one, and returns it.
pub async fn control_client(home: &Home, former: Option<ProcessId>) -> ProcessId {
    within("a control client", async {
        loop {
            let mut ask = tokio::process::Command::new("tmux");
            ask.arg("-S").arg(home.root().join("tmux")).env_remove("TMUX");
            ask.args(["list-clients", "-t", "=keeper", "-F", "#{client_pid}"]);
            let pids = String::from_utf8(ask.output().await.unwrap().stdout).unwrap();
            let pid = pids.lines().next_back().map(|pid| pid.parse().unwrap());
            let client = pid.and_then(ProcessId::of).filter(|client| Some(*client) != former);
            if let Some(client) = client {
                return client;
            }
        }
    })
    .await
}

/// A random number that no other process on this machine uses.
pub fn unique() -> u32 {
    rand::random_range(1_000_000..10_000_000)
}

/// Waits until a condition holds that depends on a file or on the content of a directory.
pub async fn until_changed(path: &Path, what: &str, is_so: impl Fn() -> bool) {
    let inotify = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).unwrap();
    let changes =
        WatchFlags::MODIFY | WatchFlags::CREATE | WatchFlags::DELETE | WatchFlags::MOVED_TO;
    inotify::add_watch(&inotify, path, changes).unwrap();
    // tokio can treat it as a pipe; each event means that the condition must be checked again.
    let changed = tokio::net::unix::pipe::Receiver::from_owned_fd_unchecked(inotify).unwrap();
    let mut buffer = [0; 4096];
    within(what, async {
        while !is_so() {
            changed.readable().await.unwrap();
            while changed.try_read(&mut buffer).is_ok() {}
        }
    })
    .await;
}

/// Waits until all processes have ended that have this text in their command line or environment.
pub async fn until_gone(text: &str) {
    within("the end of the processes", async {
        while let Some(process) = pids_with(text).into_iter().find_map(ProcessId::of) {
            process.ended().await.unwrap();
        }
    })
    .await;
}

pub fn id(name: &str) -> ShellId {
    name.parse().unwrap()
}

/// Waits for a future, and panics if it takes longer than [`LIMIT`].
pub async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(LIMIT, future).await {
        Ok(value) => value,
        Err(_) => panic!("{what} took longer than {LIMIT:?}"),
    }
}

/// Runs a command and returns its result.
pub async fn finish(shell: &Shell, text: impl Into<Vec<u8>>) -> Arc<CommandResult> {
    let job = within("starting a command", shell.run(text)).await.unwrap();
    ended(&job).await
}

/// Waits for the end of a command and returns its result.
pub async fn ended(job: &Job) -> Arc<CommandResult> {
    match job.wait(Wait::at_most(LIMIT)).await.unwrap() {
        Progress::Finished(result) => result,
        Progress::Running(running) => {
            let log = job.shell().log();
            let start = running.output.start.saturating_sub(200);
            let output = log.read(start..running.output.end).unwrap_or_default();
            panic!("still running: {running:?}\n{}", String::from_utf8_lossy(&output))
        }
    }
}

/// The raw output of a finished command.
pub fn raw(shell: &Shell, result: &CommandResult) -> Vec<u8> {
    shell.log().read(result.output.clone()).unwrap()
}

/// Runs a command and returns its exit code and output, with line ends as the programs wrote them.
pub async fn run(shell: &Shell, text: impl Into<Vec<u8>>) -> (i32, String) {
    let result = finish(shell, text).await;
    (result.exit_code, text_of(shell, &result))
}

pub fn text_of(shell: &Shell, result: &CommandResult) -> String {
    String::from_utf8(raw(shell, result)).unwrap().replace("\r\n", "\n")
}

/// Returns the offset at which the output of a command begins, as soon as it is known.
pub async fn start_of(job: &Job) -> u64 {
    within("the start of a command", job.started()).await.unwrap();
    job.output().unwrap().start
}

/// Waits until the shell's log contains a text after this offset; returns the log from there.
pub async fn until_printed(shell: &Shell, from: u64, wanted: &str) -> String {
    let mut seen = Vec::new();
    let reading = async {
        let mut subscription = shell.log().subscribe(from).unwrap();
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

/// A command that prints 100 MB of random text and writes its hash to the file `sum`, with line ends as the terminal
/// makes them.
pub const FLOOD: &str = "head -c 100000000 /dev/urandom | base64 -w 99 | head -c 100000000 | \
    tee >(sed 's/$/\\r/' | sha256sum >sum.new; mv sum.new sum)";

/// Checks that this part of the log is exactly what [`FLOOD`] printed.
pub async fn check_flood(shell: &Shell, part: Range<u64>) {
    let (_, sum) = run(shell, "until [ -e sum ]; do sleep 0.05; done; cat sum; rm sum").await;
    assert!(part.end - part.start > 100_000_000);
    let mut log = fs::File::open(shell.log().path()).unwrap();
    log.seek(SeekFrom::Start(part.start)).unwrap();
    let recorded = hash(log.take(part.end - part.start));
    assert_eq!(sum.split(' ').next(), Some(&*recorded), "the log has every byte");
}

pub fn hash(mut stream: impl Read) -> String {
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 1 << 20];
    loop {
        match stream.read(&mut buffer).unwrap() {
            0 => break,
            read => hasher.update(&buffer[..read]),
        }
    }
    hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Describes every living process that has this text in its command line or environment.
pub fn processes_with(text: &str) -> Vec<String> {
    let describe = |pid| format!("{pid}: {:.300}", words_of(pid));
    pids_with(text).into_iter().map(describe).collect()
}

fn pids_with(text: &str) -> Vec<u32> {
    let entries = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|&pid| pid != std::process::id() && words_of(pid).contains(text)).collect()
}

fn words_of(pid: u32) -> String {
    let read = |name: &str| fs::read(format!("/proc/{pid}/{name}")).unwrap_or_default();
    let words = [read("cmdline"), b" ".to_vec(), read("environ")].concat();
    String::from_utf8_lossy(&words).replace('\0', " ")
}

/// Runs an asynchronous test on a tokio runtime of its own.
pub fn test(future: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    tokio::task::LocalSet::new().block_on(&runtime, future);
}
