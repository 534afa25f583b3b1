//! A program under test.

use std::borrow::BorrowMut;
use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use process_identity::ProcessId;

use crate::TIMEOUT;

/// A running program. Its stdout is read by lines, and its stderr is collected. Dropping it kills the program.
pub struct Program {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    stderr: Arc<Mutex<String>>,
    stderr_ended: Receiver<()>,
    name: String,
}

impl Program {
    pub fn start(mut command: impl BorrowMut<Command>) -> Self {
        let command = command.borrow_mut();
        let name = command.get_program().to_string_lossy().into_owned();
        let name = name.rsplit('/').next().unwrap_or_default().to_owned();
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child =
            command.spawn().unwrap_or_else(|error| panic!("cannot start {name}: {error}"));
        let (line_sender, lines) = channel();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                let _ = line_sender.send(line);
            }
        });
        let stderr = Arc::new(Mutex::new(String::new()));
        let (end_sender, stderr_ended) = channel();
        let mut source = child.stderr.take().unwrap();
        let kept = Arc::clone(&stderr);
        std::thread::spawn(move || {
            let mut chunk = [0; 4096];
            while let Ok(count @ 1..) = source.read(&mut chunk) {
                kept.lock().unwrap().push_str(&String::from_utf8_lossy(&chunk[..count]));
            }
            drop(end_sender);
        });
        let stdin = child.stdin.take();
        Self { child, stdin, lines, stderr, stderr_ended, name }
    }

    /// Runs a shell command on a terminal of its own, into which the test types. The last line of output is the
    /// exit code, because the exit code of `script` is random if the terminal closes before the command has
    /// been reaped.
    pub fn on_a_terminal(runtime_directory: &Path, shell_command: &str) -> Self {
        // The trap lets the shell survive a Ctrl-C that is meant for the command.
        let line = format!("trap : INT; {shell_command}; echo exit code $?");
        let mut script = command("script");
        script.args(["-qfc", &line, "/dev/null"]).env("XDG_RUNTIME_DIR", runtime_directory);
        Self::start(script)
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Waits for the next line of stdout.
    #[track_caller]
    pub fn line(&self) -> String {
        match self.lines.recv_timeout(TIMEOUT) {
            Ok(line) => line,
            Err(RecvTimeoutError::Timeout) => {
                panic!("{} printed nothing within {TIMEOUT:?}: {}", self.name, self.stderr())
            }
            Err(RecvTimeoutError::Disconnected) => {
                panic!("{} closed its output: {}", self.name, self.stderr())
            }
        }
    }

    /// Waits for the next line of stdout that contains this text.
    #[track_caller]
    pub fn line_with(&self, text: &str) -> String {
        let mut passed = Vec::new();
        loop {
            match self.lines.recv_timeout(TIMEOUT) {
                Ok(line) if line.contains(text) => return line,
                Ok(line) => passed.push(line),
                Err(error) => panic!("{error}: {text:?} is not in {passed:?}: {}", self.stderr()),
            }
        }
    }

    /// The next line of stdout, if it has already come.
    pub fn try_line(&self) -> Option<String> {
        self.lines.try_recv().ok()
    }

    /// All further lines of stdout, until it closes.
    pub fn rest(&self) -> Vec<String> {
        let mut rest = Vec::new();
        loop {
            match self.lines.recv_timeout(TIMEOUT) {
                Ok(line) => rest.push(line),
                Err(RecvTimeoutError::Disconnected) => return rest,
                Err(RecvTimeoutError::Timeout) => {
                    panic!("{} did not close its output: {}", self.name, self.stderr())
                }
            }
        }
    }

    pub fn stderr(&self) -> String {
        self.stderr.lock().unwrap().clone()
    }

    pub fn write(&mut self, text: impl AsRef<[u8]>) {
        self.stdin.as_mut().unwrap().write_all(text.as_ref()).unwrap();
    }

    pub fn close_stdin(&mut self) {
        self.stdin = None;
    }

    pub fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id().cast_signed()), signal).unwrap();
    }

    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Waits until the program has ended and its stderr has been read to the end.
    #[track_caller]
    pub fn wait(&mut self) -> ExitStatus {
        let mut status = None;
        wait_until(&format!("the end of {}", self.name), || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        let _ = self.stderr_ended.recv_timeout(TIMEOUT);
        status.unwrap()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
        if std::thread::panicking() {
            eprintln!("--- stderr of {} ---\n{}", self.name, self.stderr());
        }
    }
}

/// Polls until a condition holds. Only for conditions without an event to wait for, such as the end of a
/// process that is not our child.
#[track_caller]
pub fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    wait_until_complete(|| (!holds()).then(|| what.to_owned()));
}

/// Polls until `lacking` returns `None`. Its text says what is still missing, for the message of the timeout.
#[track_caller]
pub fn wait_until_complete(mut lacking: impl FnMut() -> Option<String>) {
    let limit = Instant::now() + TIMEOUT;
    while let Some(what) = lacking() {
        assert!(Instant::now() < limit, "waited {TIMEOUT:?} in vain for {what}");
        std::thread::park_timeout(Duration::from_millis(2));
    }
}

/// Whether a process exists and has not ended. A zombie has ended.
pub fn process_exists(pid: u32) -> bool {
    ProcessId::of(pid).is_some_and(|process| process.is_alive())
}

/// A command without any variable of a run (`RUN_BRIDGE`).
pub fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars().filter(|(name, _)| name.contains("RUN_BRIDGE")) {
        command.env_remove(name);
    }
    command
}

/// Writes an executable shell script. Another process writes it, because a file that is open for writing cannot
/// be executed, and a child that another thread has just forked may still have it open.
pub fn write_program(path: &Path, script: &str) {
    let write = r#"printf '#!/bin/sh\n%s\n' "$1" >"$0" && chmod +x "$0""#;
    let written = Command::new("sh").args(["-c", write]).arg(path).arg(script).status().unwrap();
    assert!(written.success());
}
