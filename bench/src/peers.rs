//! Installs the libraries of peers in other languages. Their servers are in `bench/peers`.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Result, bail};

use crate::process::root;

/// The path of an installed peer, or why it is not installed.
pub type Installed = Result<PathBuf, String>;

/// The peers to compare with. Each is installed below `.cache` when it is first needed.
pub struct Peers {
    pub wanted: bool,
}

impl Peers {
    /// The directory whose `node_modules` has a WebSocket server.
    pub fn node(&self) -> Installed {
        self.installed(install_node)
    }

    /// The Python interpreter of an environment with a Socket.IO server and the dependencies of our client.
    pub fn python(&self) -> Installed {
        self.installed(install_python)
    }

    /// The Python interpreter of an environment with OpenHands.
    pub fn openhands(&self) -> Installed {
        self.installed(install_openhands)
    }

    /// The directory of the extension, once VS Code and a browser are installed, too.
    pub fn editor(&self) -> Installed {
        self.installed(install_editor)
    }

    fn installed(&self, install: fn() -> Result<PathBuf>) -> Installed {
        match self.wanted {
            true => install().map_err(|error| error.to_string()),
            false => Err("left out by --no-peers".to_owned()),
        }
    }
}

fn install_node() -> Result<PathBuf> {
    let directory = home().join("node");
    if !directory.join("node_modules/ws").exists() {
        std::fs::create_dir_all(&directory)?;
        run(Command::new("npm")
            .args(["install", "--silent", "--no-audit", "--no-fund", "--prefix"])
            .arg(&directory)
            .arg("ws@8"))?;
    }
    Ok(directory)
}

fn install_python() -> Result<PathBuf> {
    let directory = home().join("python");
    let python = directory.join("bin/python");
    let marker = directory.join("installed");
    if !marker.exists() {
        std::fs::create_dir_all(home())?;
        run(Command::new("python3").args(["-m", "venv"]).arg(&directory))?;
        run(Command::new(&python)
            .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"])
            .args(["python-socketio==5.*", "uvicorn[standard]", "websockets>=15"]))?;
        std::fs::write(marker, "")?;
    }
    Ok(python)
}

fn home() -> PathBuf {
    root().join(".cache/bench")
}

/// Installs OpenHands, which takes about a gigabyte and needs Python 3.12.
fn install_openhands() -> Result<PathBuf> {
    eprintln!("installing OpenHands, which takes some minutes the first time");
    Ok(run(&mut Command::new(root().join("scripts/setup-openhands")))?.trim_end().into())
}

fn install_editor() -> Result<PathBuf> {
    let extension = root().join("vscode-ext");
    run(&mut Command::new(root().join("scripts/setup-editor")))?;
    installed_modules(&extension)?;
    Ok(extension)
}

/// Runs `npm ci` in the directory, unless its `node_modules` exists.
pub fn installed_modules(directory: &Path) -> Result<()> {
    if !directory.join("node_modules").exists() {
        run(Command::new("npm")
            .args(["ci", "--silent", "--no-audit", "--no-fund"])
            .current_dir(directory))?;
    }
    Ok(())
}

/// Runs a command to its end, and returns its stdout.
pub fn run(command: &mut Command) -> Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    match command.stdin(Stdio::null()).output() {
        Ok(output) if output.status.success() => Ok(String::from_utf8(output.stdout)?),
        Ok(output) => bail!("{name} failed: {}", String::from_utf8_lossy(&output.stderr).trim()),
        Err(error) => bail!("{name}: {error}"),
    }
}
