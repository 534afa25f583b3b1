//! A real VS Code with our extension, which has opened a run as a person would. The benchmark adds a language
//! model that answers at once, and a command that returns its argument.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;
use tempfile::TempDir;

use crate::arms::tcp_address;
use crate::framing::Framing;
use crate::load::Target;
use crate::peers::run;
use crate::process::{Process, root};

/// A window that answers the calls of its run. Dropping it closes the window.
pub struct Editor {
    window: Process,
    run: Value,
    _home: TempDir,
}

impl Editor {
    /// Starts the editor, and returns when its run is connected.
    pub fn start(daemon: &Path) -> Result<Self> {
        let extension = root().join("vscode-ext");
        run(Command::new("node").args(["esbuild.mjs", "--tests"]).current_dir(&extension))?;
        let home = tempfile::tempdir()?;
        let mut command = Command::new("node");
        command.arg(extension.join("out/e2e/benchmark.js")).arg(daemon);
        command.env("RUN_BRIDGE_TEST_HOME", home.path()).env("HOME", home.path());
        let mut window = Process::start(&mut command)?;
        let line = window.line().context("the editor did not open a run, see above")?;
        Ok(Self { window, run: serde_json::from_str(&line)?, _home: home })
    }

    /// Address and token for a client of the run, with the framing of the method to call.
    pub fn target(&self, framing: Framing) -> Result<Target> {
        let token = self.run["token"].as_str().context("the run has no token")?;
        let address = tcp_address(&self.run)?;
        Ok(Target { address, path: "/", token: Some(token.to_owned()), framing })
    }
}

impl Drop for Editor {
    fn drop(&mut self) {
        self.window.hang_up();
    }
}
