//! A real daemon in a directory of its own.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use crate::program::{Program, command};
use crate::socket::Socket;

/// A running `bridge-daemon serve` that has printed its ready line.
pub struct Daemon {
    pub program: Program,
    pub ready: Value,
    directory: TempDir,
}

impl Daemon {
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// Starts a daemon with these flags. It logs at the most verbose level: failures show the log, and tests
    /// check that it contains no secrets.
    pub fn start_with(flags: &[&str]) -> Self {
        Self::start_by(|command| _ = command.args(flags))
    }

    pub fn start_by(adjust: impl FnOnce(&mut Command)) -> Self {
        let directory = run_directory();
        let mut command = command(binary("bridge-daemon"));
        command.env("XDG_RUNTIME_DIR", directory.path()).args(["serve", "--log", "trace"]);
        adjust(&mut command);
        let program = Program::start(&mut command);
        let ready = serde_json::from_str(&program.line()).expect("a JSON line");
        Self { program, ready, directory }
    }

    /// The directory of the daemon's connection files.
    pub fn files(&self) -> PathBuf {
        self.directory.path().join("run-bridge")
    }

    pub fn runtime_directory(&self) -> &Path {
        self.directory.path()
    }

    pub fn text(&self, name: &str) -> &str {
        self.ready[name].as_str().unwrap_or_else(|| panic!("no {name} in {}", self.ready))
    }

    pub fn port(&self) -> u16 {
        let address = self.text("addr").trim_end_matches('/');
        address.rsplit(':').next().unwrap().parse().unwrap()
    }

    pub fn client(&self) -> Socket {
        Socket::connect(self.port(), self.text("token"))
    }

    /// A host that has registered the `vscode/*` methods and events.
    pub fn host(&self, runtime_id: &str) -> Socket {
        let mut host = Socket::connect(self.port(), self.text("hostToken"));
        host.register(runtime_id);
        host
    }

    /// A command that finds this daemon by its connection files, without the variables of a run.
    pub fn command(&self, program: &str) -> Command {
        let mut command = command(binary(program));
        command.env("XDG_RUNTIME_DIR", self.directory.path());
        command
    }

    /// A command with the variables that the program of a run gets.
    pub fn run_command(&self, program: &str) -> Command {
        let mut command = self.command(program);
        for (name, value) in self.ready["env"].as_object().unwrap() {
            command.env(name, value.as_str().unwrap());
        }
        command
    }

    /// A `bridge-client host` with these rules. It prints a line once it has registered.
    pub fn scripted_host(&self, rules: &Value) -> Command {
        let path = self.directory.path().join("rules.json");
        std::fs::write(&path, rules.to_string()).unwrap();
        let mut command = self.command("bridge-client");
        command.args(["host", "--session", self.text("session"), "--rules"]).arg(&path);
        command
    }

    pub fn status(&self) -> Value {
        self.client().call("bridge/status", Value::Null)
    }
}

/// A private directory for connection files.
pub fn run_directory() -> TempDir {
    tempfile::Builder::new().prefix("bridge-test-").tempdir().unwrap()
}

/// Path of a program of this workspace, from a variable (`BRIDGE_DAEMON`, `BRIDGE_CLIENT`) or else in the
/// directory where `cargo build` puts it.
pub fn binary(name: &str) -> PathBuf {
    if let Some(path) = std::env::var_os(name.to_uppercase().replace('-', "_")) {
        return path.into();
    }
    let mut path = std::env::current_exe().unwrap();
    path.pop();
    if path.ends_with("deps") {
        path.pop();
    }
    path.push(name);
    assert!(path.exists(), "{} is missing: run `cargo build --workspace` first", path.display());
    path
}
