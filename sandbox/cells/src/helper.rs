//! The helper process: a Python program of ours that runs the kernel.

use std::{
    ffi::OsString,
    fs,
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, Lines},
    process::{Child, ChildStderr, ChildStdin, ChildStdout},
    sync::mpsc,
    task::JoinHandle,
    time,
};

use super::{
    Environment, KernelSpec,
    error::{Error, Result},
    python,
};
use sandbox_members::{self as members, MARK_VARIABLE};

const SOURCE: &str = include_str!("helper.py");
/// Reads the helper's source and the environment of cells from the first line of standard input, so
/// that neither is in a file or an argument. Modules are not looked for in the working directory.
const BOOT: &str = "import sys
sys.path[:] = [entry for entry in sys.path if entry]
import json
source, environment = json.loads(sys.stdin.buffer.readline())
exec(compile(source, 'kernel helper', 'exec'))";
/// How long each step of the helper's end may take before everything is killed.
const END_TIMEOUT: Duration = Duration::from_secs(10);
/// How many bytes at the end of the standard error of helper and kernel are kept for error
/// messages.
const STDERR_TAIL_BYTES: usize = 2048;

pub(super) struct Helper {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    /// The queue of requests to the helper. Closing it ends the helper.
    requests: mpsc::UnboundedSender<String>,
    /// Returns the end of the standard error of helper and kernel when they have closed it.
    stderr_tail: JoinHandle<Vec<u8>>,
    failure: Option<String>,
    /// Variables that are set for the kernel in addition to any environment.
    own: Environment,
    mark: String,
    directory: PathBuf,
}

impl Helper {
    pub(super) fn start(python: &Path, spec: &KernelSpec) -> Result<Self> {
        let mark = format!("{:032x}", rand::random::<u128>());
        let restricted = spec.is_restricted();
        let directory = make_directory(&mark, restricted)?;
        let mark_entry = OsString::from(format!("{MARK_VARIABLE}={mark}"));
        let mut command = python::command(python, spec.confinement.as_ref());
        // Unix sockets in a private directory cannot be found by others. A confined kernel may not
        // use them, so it gets signed messages over TCP.
        let transport = if restricted { "tcp" } else { "ipc" };
        command.args(["-c", BOOT]).arg(&directory).arg(&spec.cwd).arg(mark_entry).arg(transport);
        if let Some(prelude) = &spec.prelude {
            command.arg(prelude);
        }
        let mut own = vec![(MARK_VARIABLE.into(), mark.clone().into())];
        if restricted {
            // The policy probably forbids writing to the home directory.
            own.push(("IPYTHONDIR".into(), directory.join("ipython").into()));
        }
        // In its own process group: a Ctrl-C for this process must not reach the kernel.
        command.envs(own.iter().cloned()).current_dir("/").process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| {
            // Best effort: the directory is empty and private, and the caller gets the error.
            let _ = fs::remove_dir(&directory);
            Error::io("starting Python")(error)
        })?;
        let (requests, receiver) = mpsc::unbounded_channel();
        let input = child.stdin.take().expect("stdin was asked to be a pipe");
        let output = child.stdout.take().expect("stdout was asked to be a pipe");
        let errors = child.stderr.take().expect("stderr was asked to be a pipe");
        tokio::spawn(write_requests(receiver, input));
        let stderr_tail = tokio::spawn(collect_stderr(errors));
        let lines = BufReader::new(output).lines();
        let failure = None;
        let helper = Self { child, lines, requests, stderr_tail, failure, own, mark, directory };
        helper.send(&json!([SOURCE, helper.environment(spec.environment.as_ref())]));
        Ok(helper)
    }

    /// Replaces the kernel by a new one, with this environment or the former one.
    pub(super) fn restart_kernel(&self, environment: Option<&Environment>) {
        self.send(&json!({"do": "restart", "environment": self.environment(environment)}));
    }

    /// The environment of cells as JSON. It is only for the kernel: its settings of Python's
    /// modules and libraries must not apply to the helper.
    fn environment(&self, variables: Option<&Environment>) -> Value {
        let pair =
            |(name, value): &(OsString, OsString)| json!([name.as_bytes(), value.as_bytes()]);
        let all = |variables: &Environment| variables.iter().chain(&self.own).map(pair).collect();
        variables.map_or(Value::Null, all)
    }

    /// Sends a request to the helper.
    pub(super) fn send(&self, request: &Value) {
        // If the helper is gone, `next_line` returns `None`, and the task ends.
        let _ = self.requests.send(format!("{request}\n"));
    }

    /// The next event; `None` at the end of the helper's output. Cancel-safe: a partial line is
    /// kept.
    pub(super) async fn next_line(&mut self) -> Option<String> {
        self.lines.next_line().await.ok().flatten()
    }

    pub(super) fn note_failure(&mut self, reason: String) {
        self.failure = Some(reason);
    }

    /// Ends the helper and everything that it or the kernel has started. Returns the reason for the
    /// end.
    pub(super) async fn end(&mut self) -> String {
        self.requests = mpsc::unbounded_channel().0;
        let reading =
            async { while self.lines.next_line().await.is_ok_and(|line| line.is_some()) {} };
        // Ignored: after a timeout the helper is killed below.
        let _ = time::timeout(END_TIMEOUT, reading).await;
        if time::timeout(END_TIMEOUT, self.child.wait()).await.is_err() {
            // Fails only if the helper has ended meanwhile.
            let _ = self.child.kill().await;
        }
        for process in members::with_mark(&self.mark) {
            process.send(rustix::process::Signal::KILL);
        }
        // Usually the helper has removed it. Best effort: a leftover is private.
        let _ = fs::remove_dir_all(&self.directory);
        let words = time::timeout(END_TIMEOUT, &mut self.stderr_tail).await;
        let words = words.ok().and_then(Result::ok).unwrap_or_default();
        let words = String::from_utf8_lossy(&words).trim().to_owned();
        match (self.failure.take(), words.as_str()) {
            (Some(reason), "") => reason,
            (Some(reason), words) => format!("{reason}; standard error: {words}"),
            (None, "") => "it was shut down".into(),
            (None, words) => words.to_owned(),
        }
    }
}

/// Makes a private directory for the kernel's sockets. Paths of sockets must be short. A kernel
/// without sockets gets the default temporary directory whatever its length, because a policy may
/// allow no other.
fn make_directory(mark: &str, may_be_long: bool) -> Result<PathBuf> {
    const LONGEST: usize = 64;
    let name = format!("kernel-{}", &mark[..16]);
    let temporary =
        Some(std::env::temp_dir()).filter(|path| may_be_long || path.as_os_str().len() <= LONGEST);
    let directory = temporary.unwrap_or_else(|| "/tmp".into()).join(name);
    let made = private_files::create_directory(&directory);
    made.map_err(Error::io("making a directory for the kernel"))?;
    Ok(directory)
}

async fn write_requests(mut requests: mpsc::UnboundedReceiver<String>, mut input: ChildStdin) {
    while let Some(request) = requests.recv().await {
        if input.write_all(request.as_bytes()).await.is_err() {
            return;
        }
    }
}

async fn collect_stderr(mut errors: ChildStderr) -> Vec<u8> {
    let mut buffer = [0; STDERR_TAIL_BYTES];
    let mut words = Vec::new();
    while let Ok(read @ 1..) = errors.read(&mut buffer).await {
        words.extend_from_slice(&buffer[..read]);
        words.drain(..words.len().saturating_sub(STDERR_TAIL_BYTES));
    }
    words
}
