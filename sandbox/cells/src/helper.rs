//! The helper process: a Python program of ours that keeps the kernel.

use std::{
    ffi::OsString,
    fs,
    os::unix::{ffi::OsStrExt as _, fs::DirBuilderExt as _},
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
use sandbox_process::{self as process, MARK_VARIABLE};

const SOURCE: &str = include_str!("helper.py");
/// The source comes in the first line, so that it lies in no file and in no argument, and with it the
/// environment of cells. Modules are not looked for in the working directory.
const BOOT: &str = "import sys
sys.path[:] = [entry for entry in sys.path if entry]
import json
source, environment = json.loads(sys.stdin.buffer.readline())
exec(compile(source, 'kernel helper', 'exec'))";
/// How long the helper may take to end the kernel, before everything is killed.
const PATIENCE: Duration = Duration::from_secs(10);
/// How much is kept of what helper and kernel say on their standard error, for explanations.
const LAST_WORDS: usize = 2048;

pub(super) struct Helper {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    /// Requests on their way; closing this ends the helper.
    requests: mpsc::UnboundedSender<String>,
    /// Returns what helper and kernel have said last, when their standard error is closed.
    last_words: JoinHandle<Vec<u8>>,
    failure: Option<String>,
    /// What the kernel has in its environment, whatever else is there.
    own: Environment,
    mark: String,
    directory: PathBuf,
}

impl Helper {
    pub(super) fn start(python: &Path, spec: &KernelSpec) -> Result<Self> {
        let mark = format!("{:032x}", rand::random::<u128>());
        let within_walls = spec.is_within_walls();
        let directory = make_directory(&mark, within_walls)?;
        let mark_entry = OsString::from(format!("{MARK_VARIABLE}={mark}"));
        let mut command = python::command(python, spec.confinement.as_ref());
        // Unix sockets are nothing for others to find; without them there are signed messages over TCP.
        let transport = if within_walls { "tcp" } else { "ipc" };
        command.args(["-c", BOOT]).arg(&directory).arg(&spec.cwd).arg(mark_entry).arg(transport);
        if let Some(prelude) = &spec.prelude {
            command.arg(prelude);
        }
        let mut own = vec![(MARK_VARIABLE.into(), mark.clone().into())];
        if within_walls {
            // The home directory is probably not to be written to.
            own.push(("IPYTHONDIR".into(), directory.join("ipython").into()));
        }
        // Not in our process group: a Ctrl-C for us is not for the kernel.
        command.envs(own.iter().cloned()).current_dir("/").process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| {
            let _ = fs::remove_dir(&directory);
            Error::io("starting Python")(error)
        })?;
        let (requests, receiver) = mpsc::unbounded_channel();
        let input = child.stdin.take().expect("stdin was asked to be a pipe");
        let output = child.stdout.take().expect("stdout was asked to be a pipe");
        let errors = child.stderr.take().expect("stderr was asked to be a pipe");
        tokio::spawn(write(receiver, input));
        let last_words = tokio::spawn(listen(errors));
        let lines = BufReader::new(output).lines();
        let failure = None;
        let helper = Self { child, lines, requests, last_words, failure, own, mark, directory };
        helper.send(&json!([SOURCE, helper.environment(spec.environment.as_ref())]));
        Ok(helper)
    }

    /// Replaces the kernel by one with this environment, or with the former one.
    pub(super) fn restart_kernel(&self, environment: Option<&Environment>) {
        self.send(&json!({"do": "restart", "environment": self.environment(environment)}));
    }

    /// The environment of cells, and of them alone: what it says of Python's modules and libraries must not hold
    /// for the helper.
    fn environment(&self, variables: Option<&Environment>) -> Value {
        let pair =
            |(name, value): &(OsString, OsString)| json!([name.as_bytes(), value.as_bytes()]);
        let all = |variables: &Environment| variables.iter().chain(&self.own).map(pair).collect();
        variables.map_or(Value::Null, all)
    }

    /// Sends a request. If the helper is gone, the end of its lines tells.
    pub(super) fn send(&self, request: &Value) {
        let _ = self.requests.send(format!("{request}\n"));
    }

    /// The next event; `None` when there will be no more. Cancelling loses nothing.
    pub(super) async fn next_line(&mut self) -> Option<String> {
        self.lines.next_line().await.ok().flatten()
    }

    pub(super) fn note_failure(&mut self, reason: String) {
        self.failure = Some(reason);
    }

    /// Ends the helper and everything that it or the kernel has started; says why it ended, if it
    /// was not our wish.
    pub(super) async fn end(&mut self) -> String {
        self.requests = mpsc::unbounded_channel().0;
        let reading =
            async { while self.lines.next_line().await.is_ok_and(|line| line.is_some()) {} };
        let _ = time::timeout(PATIENCE, reading).await;
        if time::timeout(PATIENCE, self.child.wait()).await.is_err() {
            let _ = self.child.kill().await;
        }
        for process in process::with_mark(&self.mark) {
            process.send(rustix::process::Signal::KILL);
        }
        let _ = fs::remove_dir_all(&self.directory);
        let words = time::timeout(PATIENCE, &mut self.last_words).await;
        let words = words.ok().and_then(Result::ok).unwrap_or_default();
        let words = String::from_utf8_lossy(&words).trim().to_owned();
        match (self.failure.take(), words.as_str()) {
            (Some(reason), "") => reason,
            (Some(reason), words) => format!("{reason}; it said: {words}"),
            (None, "") => "it was shut down".into(),
            (None, words) => words.to_owned(),
        }
    }
}

/// A private directory for the kernel's sockets, whose paths must be short. Without sockets it may be
/// anywhere, but a policy may allow only the usual place.
fn make_directory(mark: &str, may_be_long: bool) -> Result<PathBuf> {
    const LONGEST: usize = 64;
    let name = format!("kernel-{}", &mark[..16]);
    let temporary =
        Some(std::env::temp_dir()).filter(|path| may_be_long || path.as_os_str().len() <= LONGEST);
    let directory = temporary.unwrap_or_else(|| "/tmp".into()).join(name);
    let made = fs::DirBuilder::new().mode(0o700).create(&directory);
    made.map_err(Error::io("making a directory for the kernel"))?;
    Ok(directory)
}

async fn write(mut requests: mpsc::UnboundedReceiver<String>, mut input: ChildStdin) {
    while let Some(request) = requests.recv().await {
        if input.write_all(request.as_bytes()).await.is_err() {
            return;
        }
    }
}

async fn listen(mut errors: ChildStderr) -> Vec<u8> {
    let mut buffer = [0; LAST_WORDS];
    let mut words = Vec::new();
    while let Ok(read @ 1..) = errors.read(&mut buffer).await {
        words.extend_from_slice(&buffer[..read]);
        words.drain(..words.len().saturating_sub(LAST_WORDS));
    }
    words
}
