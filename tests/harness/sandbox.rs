//! A real daemon with a sandbox, whose shells end with the test.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use nix::sys::signal::Signal;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::daemon::{Daemon, run_directory};
use crate::program::wait_until;
use crate::socket::Socket;

/// The session that a restarted daemon has again.
const SESSION: &str = "sandboxed";

/// `bridge-daemon serve --sandbox`, ready. Its directories outlive it, so that it can be started again.
pub struct SandboxDaemon {
    pub daemon: Daemon,
    flags: Vec<String>,
    runtime: TempDir,
    workspace: TempDir,
    temporary: TempDir,
}

impl SandboxDaemon {
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// With more flags, also when it is started again.
    pub fn start_with(flags: &[&str]) -> Self {
        let [runtime, workspace, temporary] = [(); 3].map(|()| run_directory());
        let flags = owned(flags);
        let daemon = launch([&runtime, &workspace, &temporary], &flags);
        Self { daemon, flags, runtime, workspace, temporary }
    }

    /// One that may do no more with the files of others than anybody may, even if it is root.
    pub fn start_without_privileges() -> Self {
        const PRIVILEGES: &str = "-chown,-dac_override,-dac_read_search";
        let [runtime, workspace, temporary] = [(); 3].map(|()| run_directory());
        let daemon = launch_by([&runtime, &workspace, &temporary], &[], |command| {
            let mut without = Command::new("setpriv");
            without.args(["--bounding-set", PRIVILEGES]).arg(command.get_program());
            without.args(command.get_args());
            without.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
            *command = without;
        });
        Self { daemon, flags: Vec::new(), runtime, workspace, temporary }
    }

    pub fn workspace(&self) -> PathBuf {
        self.workspace.path().canonicalize().unwrap()
    }

    pub fn client(&self) -> Socket {
        self.daemon.client()
    }

    /// SIGKILL.
    pub fn kill(&mut self) {
        self.daemon.program.signal(Signal::SIGKILL);
        self.daemon.program.wait();
    }

    /// SIGKILL, and a new daemon for the same session and directory.
    pub fn kill_and_start_again(&mut self) {
        self.kill();
        self.daemon = launch([&self.runtime, &self.workspace, &self.temporary], &self.flags);
    }

    /// The same with other flags.
    pub fn kill_and_start_with(&mut self, flags: &[&str]) {
        self.flags = owned(flags);
        self.kill_and_start_again();
    }

    /// SIGTERM, and everything that it entails.
    pub fn end(&mut self) {
        self.daemon.program.signal(Signal::SIGTERM);
        self.daemon.program.wait();
    }

    /// Where the shells lie.
    pub fn state(&self) -> PathBuf {
        let found = self.leftovers().into_iter().find(|path| path.join("owner.lock").exists());
        found.expect("a state directory beside the connection files")
    }

    /// What daemons have left in the directory of connection files.
    pub fn leftovers(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.runtime.path().join("run-bridge")).unwrap();
        entries.map(|entry| entry.unwrap().path()).collect()
    }
}

impl Drop for SandboxDaemon {
    fn drop(&mut self) {
        if self.daemon.program.is_running() {
            self.end();
        }
        // A daemon that was killed, or failed to end its shells, must not leave them for an hour.
        for directory in self.leftovers() {
            let mut tmux = Command::new("tmux");
            tmux.arg("-S").arg(directory.join("tmux")).arg("kill-server");
            let _ = tmux.stdout(Stdio::null()).stderr(Stdio::null()).status();
        }
    }
}

fn launch(directories: [&TempDir; 3], flags: &[String]) -> Daemon {
    launch_by(directories, flags, |_| ())
}

/// Start-up files of whoever runs the tests have no say: the home directory is an empty one.
fn launch_by(
    directories: [&TempDir; 3],
    flags: &[String],
    adjust: impl FnOnce(&mut Command),
) -> Daemon {
    let [runtime, workspace, temporary] = directories.map(TempDir::path);
    Daemon::start_by(|command| {
        command.env("XDG_RUNTIME_DIR", runtime).env("HOME", runtime).env("TMPDIR", temporary);
        command.args(["--session", SESSION, "--sandbox"]).arg(workspace).args(flags);
        adjust(command);
    })
}

fn owned(flags: &[&str]) -> Vec<String> {
    flags.iter().map(|&flag| flag.to_owned()).collect()
}

impl Socket {
    /// Runs a command and waits for its end.
    #[track_caller]
    pub fn run(&mut self, command: &str) -> Value {
        self.call("shell/run", json!({"command": command}))
    }

    /// Starts a command whose output is streamed, and returns when it has printed a text.
    #[track_caller]
    pub fn run_until(&mut self, shell: &str, command: &str, text: &str) -> u64 {
        let params = json!({"shell": shell, "create": true, "command": command, "stream": true});
        let id = self.ask("shell/run", params);
        let mut printed = Vec::new();
        while !String::from_utf8_lossy(&printed).contains(text) {
            let message = self.receive();
            assert_eq!(message["params"]["id"], id, "instead of {text:?}: {message}");
            printed.extend(piece(&message));
        }
        id
    }

    /// Carries an action out and returns the observation.
    #[track_caller]
    pub fn act(&mut self, action: &str, args: Value) -> Value {
        self.call("action/execute", json!({"action": action, "args": args}))
    }

    /// Begins an action whose output is streamed, and returns when it has printed a text.
    #[track_caller]
    pub fn act_until(&mut self, mut params: Value, text: &str) -> u64 {
        params["stream"] = json!(true);
        let id = self.ask("action/execute", params);
        let mut printed = String::new();
        while !printed.contains(text) {
            let message = self.receive();
            assert_eq!(message["params"]["id"], id, "instead of {text:?}: {message}");
            printed += message["params"]["value"]["text"].as_str().unwrap();
        }
        id
    }

    /// Types a line when the command of a shell waits for one that is not shown. Typed earlier, it would
    /// be shown.
    #[track_caller]
    pub fn type_secretly(&mut self, shell: &str, text: &str) {
        let waiting = json!({"shell": shell, "returnOnInput": true, "limitMs": 300});
        wait_until("the command to wait for input", || {
            self.call("shell/wait", waiting.clone())["input"] == "hidden"
        });
        self.call("shell/input", json!({"shell": shell, "text": text, "enter": true}));
    }

    /// The answer to a request, past its progress.
    #[track_caller]
    pub fn answer_to(&mut self, id: u64) -> Value {
        loop {
            let message = self.receive();
            if message["id"] == id {
                return message;
            }
        }
    }

    /// The error of a request that must fail.
    #[track_caller]
    pub fn refused(&mut self, method: &str, params: Value) -> Value {
        let id = self.ask(method, params);
        let answer = self.answer_to(id);
        assert!(answer["error"].is_object(), "{method} did not fail: {answer}");
        answer["error"].clone()
    }
}

/// The bytes in a piece of progress.
pub fn piece(message: &Value) -> Vec<u8> {
    use base64::prelude::{BASE64_STANDARD, Engine};
    let base64 = message["params"]["value"]["base64"].as_str();
    BASE64_STANDARD.decode(base64.unwrap_or_else(|| panic!("no progress: {message}"))).unwrap()
}
