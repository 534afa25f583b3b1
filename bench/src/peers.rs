//! Peers from other languages: their libraries are installed here, their servers are in `bench/peers`.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Result, bail};

use crate::process::root;

/// What is there to compare with. An absent peer says why.
pub struct Peers {
    pub node: Result<PathBuf, String>,
    pub python: Result<PathBuf, String>,
    /// The interpreter of an environment with OpenHands.
    pub openhands: Result<PathBuf, String>,
}

impl Peers {
    pub fn none(reason: &str) -> Self {
        let absent = || Err(reason.to_owned());
        Self { node: absent(), python: absent(), openhands: absent() }
    }

    /// Installs them below `.cache/bench`, once.
    pub fn install() -> Self {
        let home = root().join(".cache/bench");
        Self {
            node: install_node(&home).map_err(|error| error.to_string()),
            python: install_python(&home).map_err(|error| error.to_string()),
            openhands: install_openhands().map_err(|error| error.to_string()),
        }
    }
}

/// Returns the directory that holds `node_modules`.
fn install_node(home: &Path) -> Result<PathBuf> {
    let directory = home.join("node");
    if !directory.join("node_modules/ws").exists() {
        std::fs::create_dir_all(&directory)?;
        run(Command::new("npm")
            .args(["install", "--silent", "--no-audit", "--no-fund", "--prefix"])
            .arg(&directory)
            .arg("ws@8"))?;
    }
    Ok(directory)
}

/// Returns the interpreter of an environment with the libraries.
fn install_python(home: &Path) -> Result<PathBuf> {
    let directory = home.join("python");
    let python = directory.join("bin/python");
    let marker = directory.join("installed");
    if !marker.exists() {
        std::fs::create_dir_all(home)?;
        run(Command::new("python3").args(["-m", "venv"]).arg(&directory))?;
        run(Command::new(&python)
            .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"])
            .args(["python-socketio==5.*", "uvicorn[standard]", "websockets>=15"]))?;
        std::fs::write(marker, "")?;
    }
    Ok(python)
}

/// About a gigabyte, and it wants Python 3.12.
fn install_openhands() -> Result<PathBuf> {
    eprintln!("installing OpenHands, which takes some minutes the first time");
    Ok(run(&mut Command::new(root().join("scripts/setup-openhands")))?.trim_end().into())
}

/// Installs the packages that a directory names, once.
pub fn installed_modules(directory: &Path) -> Result<()> {
    if !directory.join("node_modules").exists() {
        run(Command::new("npm")
            .args(["ci", "--silent", "--no-audit", "--no-fund"])
            .current_dir(directory))?;
    }
    Ok(())
}

/// Returns what it printed.
pub fn run(command: &mut Command) -> Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    match command.stdin(Stdio::null()).output() {
        Ok(output) if output.status.success() => Ok(String::from_utf8(output.stdout)?),
        Ok(output) => bail!("{name} failed: {}", String::from_utf8_lossy(&output.stderr).trim()),
        Err(error) => bail!("{name}: {error}"),
    }
}
