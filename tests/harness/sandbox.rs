//! A real daemon with a sandbox. All shells end with the test.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use process_identity::ProcessId;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::daemon::{Daemon, binary, run_directory};
use crate::program::{Program, command, process_exists, wait_until};
use crate::socket::Socket;

/// The session id, which stays the same when the daemon is started again.
const SESSION: &str = "sandboxed";

/// How the sandbox is attached to the daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// A child of the daemon, by `--sandbox DIR`.
    Child,
    /// `sandbox host --connect`, with a token from a file.
    Connected,
}

/// Makes two tests of each function that takes a [`Placement`].
#[macro_export]
macro_rules! in_both_placements {
    ($($test:ident),* $(,)?) => {
        mod child {
            $(#[test] fn $test() { super::$test($crate::Placement::Child); })*
        }
        mod connected {
            $(#[test] fn $test() { super::$test($crate::Placement::Connected); })*
        }
    };
}

/// A daemon with a sandbox, ready. The directories outlive both, so that they can be started again.
pub struct SandboxDaemon {
    pub daemon: Daemon,
    /// The program `sandbox host`, if it is not a child of the daemon.
    connected: Option<Program>,
    placement: Placement,
    flags: Vec<String>,
    directories: Directories,
}

struct Directories {
    runtime: TempDir,
    workspace: TempDir,
    temporary: TempDir,
}

impl SandboxDaemon {
    /// Starts a daemon whose sandbox is its child.
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// Starts a daemon with further flags, whose sandbox is its child. The flags are also used when it is started again.
    pub fn start_with(flags: &[&str]) -> Self {
        Self::start_in(Placement::Child, flags)
    }

    pub fn start_in(placement: Placement, flags: &[&str]) -> Self {
        let (directories, flags) = (Directories::new(), owned(flags));
        let (daemon, connected) = directories.launch(placement, &flags, |_| ());
        Self { daemon, connected, placement, flags, directories }
    }

    /// Starts a daemon without root's privileges over files of other users, even if the test runs as root.
    pub fn start_without_privileges() -> Self {
        const PRIVILEGES: &str = "-chown,-dac_override,-dac_read_search";
        let (directories, placement) = (Directories::new(), Placement::Child);
        let (daemon, connected) = directories.launch(placement, &[], |command| {
            let mut without = Command::new("setpriv");
            without.args(["--bounding-set", PRIVILEGES]).arg(command.get_program());
            without.args(command.get_args());
            without.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
            *command = without;
        });
        Self { daemon, connected, placement, flags: Vec::new(), directories }
    }

    pub fn workspace(&self) -> PathBuf {
        self.directories.workspace.path().canonicalize().unwrap()
    }

    pub fn client(&self) -> Socket {
        self.daemon.client()
    }

    /// The process of `sandbox host`.
    pub fn sandbox_pid(&self) -> u32 {
        match &self.connected {
            Some(program) => program.pid(),
            None => child_of(self.daemon.program.pid()).expect("a child of the daemon"),
        }
    }

    /// Ends `sandbox host` by a signal. If it is a child, its daemon restarts it; otherwise this function does.
    pub fn kill_sandbox(&mut self, signal: Signal) {
        let pid = self.sandbox_pid();
        let mut connected = self.connected.take();
        wait_until("the end of the sandbox", || {
            // Repeated, because a Rust program returns from the first SIGSEGV, expecting a real fault to happen again.
            let sent = kill(Pid::from_raw(pid.cast_signed()), signal);
            match &mut connected {
                Some(program) => !program.is_running(),
                None => sent.is_err() || !process_exists(pid),
            }
        });
        if connected.is_some() {
            self.connected = self.directories.connect(self.placement, &self.daemon, &self.flags);
        }
    }

    /// Kills only the daemon, with SIGKILL.
    pub fn kill_daemon(&mut self) {
        killed(&mut self.daemon.program);
    }

    /// Kills the daemon, and a sandbox that is not its child, with SIGKILL.
    pub fn kill(&mut self) {
        self.kill_daemon();
        if let Some(mut program) = self.connected.take() {
            killed(&mut program);
        }
    }

    /// Kills the daemon with SIGKILL and starts a new one for the same session and directory.
    pub fn kill_and_start_again(&mut self) {
        self.kill();
        (self.daemon, self.connected) =
            self.directories.launch(self.placement, &self.flags, |_| ());
    }

    /// Kills the daemon with SIGKILL and starts a new one with other flags.
    pub fn kill_and_start_with(&mut self, flags: &[&str]) {
        self.flags = owned(flags);
        self.kill_and_start_again();
    }

    /// Ends the daemon with SIGTERM, and waits for the end of daemon and sandbox.
    pub fn end(&mut self) {
        self.daemon.program.signal(Signal::SIGTERM);
        self.daemon.program.wait();
        if let Some(mut program) = self.connected.take() {
            let ended = program.wait();
            assert!(ended.success(), "{ended}: {}", program.stderr());
        }
    }

    /// The state directory of the shells.
    pub fn state(&self) -> PathBuf {
        let found = self.leftovers().into_iter().find(|path| path.join("run-bridge.lock").exists());
        found.expect("a state directory beside the connection files")
    }

    /// The files that daemons have left in the directory of connection files.
    pub fn leftovers(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.directories.files()).unwrap();
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

impl Directories {
    fn new() -> Self {
        let [runtime, workspace, temporary] = [(); 3].map(|()| run_directory());
        Self { runtime, workspace, temporary }
    }

    /// The directory of connection files and of the shells' state.
    fn files(&self) -> PathBuf {
        self.runtime.path().join("run-bridge")
    }

    fn launch(
        &self,
        placement: Placement,
        flags: &[String],
        adjust: impl FnOnce(&mut Command),
    ) -> (Daemon, Option<Program>) {
        let daemon = Daemon::start_by(|command| {
            self.set_environment(command);
            command.args(["--session", SESSION]);
            if placement == Placement::Child {
                command.arg("--sandbox").arg(self.workspace.path()).args(flags);
            }
            adjust(command);
        });
        let connected = self.connect(placement, &daemon, flags);
        (daemon, connected)
    }

    /// Starts a sandbox that is not a child, and returns when it has registered.
    fn connect(&self, placement: Placement, daemon: &Daemon, flags: &[String]) -> Option<Program> {
        if placement == Placement::Child {
            return None;
        }
        let mut host = Socket::connect(daemon.port(), daemon.text("hostToken"));
        let tools = ["shell/*", "file/*", "cell/*", "page/*"];
        let wanted = json!({"role": "host", "runtimeIds": ["sandbox"], "tools": tools});
        let token = host.call("bridge/createToken", wanted);
        let file = self.temporary.path().join("token");
        std::fs::write(&file, token["token"].as_str().unwrap()).unwrap();
        let mut command = command(binary("sandbox"));
        self.set_environment(&mut command);
        command.args(["host", "--log", "debug", "--connect", daemon.text("addr")]);
        command.args(["--session", SESSION, "--token-file"]).arg(&file);
        command.arg("--workspace").arg(self.workspace.path());
        command.arg("--runtime-directory").arg(self.files()).args(flags);
        let mut program = Program::start(&mut command);
        let mut client = daemon.client();
        wait_until("the sandbox to register", || {
            assert!(program.is_running(), "{}", program.stderr());
            let runtimes = client.call("runtime/list", json!({}));
            runtimes.as_array().unwrap().iter().any(|runtime| runtime["runtimeId"] == "sandbox")
        });
        std::fs::remove_file(file).unwrap();
        Some(program)
    }

    /// Sets an empty home directory, so that start-up files of the person who runs the tests have no effect.
    fn set_environment(&self, command: &mut Command) {
        command.env("XDG_RUNTIME_DIR", self.runtime.path()).env("HOME", self.runtime.path());
        command.env("TMPDIR", self.temporary.path());
    }
}

fn killed(program: &mut Program) {
    if program.is_running() {
        program.signal(Signal::SIGKILL);
    }
    program.wait();
}

/// The process `sandbox host` that this process has started.
fn child_of(parent: u32) -> Option<u32> {
    let children = process_identity::children(ProcessId::of(parent)?);
    // The edge is a child of the daemon, too, and has the same argument.
    let is_sandbox = |child: &ProcessId| child.is_named("sandbox") && child.has_argument(b"host");
    children.into_iter().find(is_sandbox).map(|child| child.pid)
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
        let id = self.send_request("shell/run", params);
        let mut printed = Vec::new();
        while !String::from_utf8_lossy(&printed).contains(text) {
            let message = self.receive();
            assert_eq!(message["params"]["id"], id, "instead of {text:?}: {message}");
            printed.extend(piece(&message));
        }
        id
    }

    /// Executes an action and returns its observation.
    #[track_caller]
    pub fn act(&mut self, action: &str, args: Value) -> Value {
        self.call("action/execute", json!({"action": action, "args": args}))
    }

    /// Starts an action whose output is streamed, and returns when it has printed a text.
    #[track_caller]
    pub fn act_until(&mut self, mut params: Value, text: &str) -> u64 {
        params["stream"] = json!(true);
        let id = self.send_request("action/execute", params);
        let mut printed = String::new();
        while !printed.contains(text) {
            let message = self.receive();
            assert_eq!(message["params"]["id"], id, "instead of {text:?}: {message}");
            printed += message["params"]["value"]["text"].as_str().unwrap();
        }
        id
    }

    /// Waits until the command of a shell waits for hidden input, and types a line. Typed earlier, the terminal would
    /// show it.
    #[track_caller]
    pub fn type_secretly(&mut self, shell: &str, text: &str) {
        let waiting = json!({"shell": shell, "returnOnInput": true, "limitMs": 300});
        wait_until("the command to wait for input", || {
            self.call("shell/wait", waiting.clone())["input"] == "hidden"
        });
        self.call("shell/input", json!({"shell": shell, "text": text, "enter": true}));
    }

    /// Waits for the answer to a request, and skips its progress.
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
        let id = self.send_request(method, params);
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
