//! The arms of the comparison: servers that answer the same load.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;
use tempfile::TempDir;

use crate::framing::Framing;
use crate::load::{Address, Target};
use crate::process::{Process, ourselves, root};
use crate::servers::HostTarget;

pub const SOCKET_IO_PATH: &str = "/socket.io/?EIO=4&transport=websocket";

/// A server and how to reach it.
pub struct Arm {
    pub name: &'static str,
    pub target: Target,
    /// The process whose CPU time counts.
    pub server: Process,
    /// The daemon's ready line; null for other servers.
    pub ready: Value,
    /// The host that answers behind a broker.
    _host: Option<Process>,
    _directory: Option<TempDir>,
}

/// A bare echo server. All other arms are compared with it.
pub struct Floor {
    pub address: Address,
    _server: Process,
    _directory: Option<TempDir>,
}

impl Floor {
    pub fn tcp() -> Result<Self> {
        let mut server = Process::start(&mut ourselves(&["serve", "tcp"])?)?;
        let address = Address::Tcp(server.line()?.parse()?);
        Ok(Self { address, _server: server, _directory: None })
    }

    pub fn unix() -> Result<Self> {
        let directory = tempfile::tempdir()?;
        let path = directory.path().join("echo");
        let mut server = Process::start(ourselves(&["serve", "unix"])?.arg(&path))?;
        server.line()?;
        Ok(Self { address: Address::Unix(path), _server: server, _directory: Some(directory) })
    }
}

pub const BROKER: &str = "Run Bridge broker, TCP (2 hops)";
pub const BROKER_UNIX: &str = "Run Bridge broker, Unix socket (2 hops)";
pub const ECHO: &str = "tokio-tungstenite echo (1 hop)";
pub const JSONRPSEE: &str = "jsonrpsee call (1 hop)";
pub const NODE: &str = "Node ws server (1 hop)";
pub const SOCKET_IO: &str = "python-socketio broker (2 hops)";

/// Starts all arms; those in Node and Python only if their libraries are installed.
pub fn start(daemon: &Path, node: Option<&Path>, python: Option<&Path>) -> Result<Vec<Arm>> {
    let mut arms = vec![
        one_hop(ECHO, &mut ourselves(&["serve", "web-socket"])?, Framing::Echo)?,
        one_hop(JSONRPSEE, &mut ourselves(&["serve", "jsonrpsee"])?, Framing::JsonRpc("echo"))?,
        broker(BROKER, daemon, false)?,
        broker(BROKER_UNIX, daemon, true)?,
    ];
    if let Some(modules) = node {
        let mut command = Command::new("node");
        command
            .arg(root().join("bench/peers/ws.js"))
            .env("NODE_PATH", modules.join("node_modules"));
        arms.push(one_hop(NODE, &mut command, Framing::Typed)?);
    }
    if let Some(python) = python {
        arms.push(socket_io(python)?);
    }
    Ok(arms)
}

fn one_hop(name: &'static str, command: &mut Command, framing: Framing) -> Result<Arm> {
    let mut server = Process::start(command)?;
    let address = Address::Tcp(server.line()?.parse()?);
    let target = Target { address, path: "/", token: None, framing };
    Ok(Arm { name, target, server, ready: Value::Null, _host: None, _directory: None })
}

/// The daemon with a host of our own attached.
pub fn broker(name: &'static str, daemon: &Path, unix: bool) -> Result<Arm> {
    let directory = tempfile::tempdir()?;
    let (server, ready) = daemon_process(daemon, directory.path(), unix)?;
    let address = match unix {
        true => Address::Unix(socket_path(directory.path(), &ready)?),
        false => tcp_address(&ready)?,
    };
    attach_host(name, address, server, ready, Some(directory))
}

fn attach_host(
    name: &'static str,
    address: Address,
    server: Process,
    ready: Value,
    directory: Option<TempDir>,
) -> Result<Arm> {
    let target = HostTarget { address: address.clone(), token: text(&ready, "hostToken")? };
    let line = serde_json::to_string(&target)?;
    let host = started_host(&mut ourselves(&["serve", "host"])?, &line)?;
    Arm::behind_daemon(name, address, server, ready, host, directory)
}

/// The daemon with a host of our own and a sandbox. All files of the sandbox are in this directory.
pub fn sandboxed_broker(daemon: &Path, directory: &Path) -> Result<Arm> {
    let workspace = directory.join("workspace");
    std::fs::create_dir(&workspace)?;
    let mut command = daemon_command(daemon, directory);
    command.env("HOME", directory).arg("--sandbox").arg(workspace);
    let (server, ready) = ready_daemon(&mut command)?;
    attach_host(BROKER, tcp_address(&ready)?, server, ready, None)
}

/// The daemon with the given host, which gets the daemon's ready line on stdin.
pub fn broker_with_host(
    name: &'static str,
    daemon: &Path,
    host: impl Fn() -> Result<Command>,
) -> Result<Arm> {
    let directory = tempfile::tempdir()?;
    let (server, ready) = daemon_process(daemon, directory.path(), false)?;
    let host = started_host(&mut host()?, &ready.to_string())?;
    Arm::behind_daemon(name, tcp_address(&ready)?, server, ready, host, Some(directory))
}

/// Starts a host, writes the line to its stdin, and returns when the host has connected.
fn started_host(command: &mut Command, line: &str) -> Result<Process> {
    let mut host = Process::start(command)?;
    host.write_line(line)?;
    host.line()?;
    Ok(host)
}

impl Arm {
    fn behind_daemon(
        name: &'static str,
        address: Address,
        server: Process,
        ready: Value,
        host: Process,
        directory: Option<TempDir>,
    ) -> Result<Self> {
        let framing = Framing::JsonRpc("vscode/chat");
        let target = Target { address, path: "/", token: Some(text(&ready, "token")?), framing };
        Ok(Self { name, target, server, ready, _host: Some(host), _directory: directory })
    }
}

fn text(ready: &Value, name: &str) -> Result<String> {
    let value = ready[name].as_str().map(str::to_owned);
    value.with_context(|| format!("the daemon's ready line has no {name}"))
}

/// The TCP address in a daemon's ready line.
pub fn tcp_address(ready: &Value) -> Result<Address> {
    let address = text(ready, "addr")?;
    let port = address.trim_end_matches('/').rsplit(':').next().and_then(|port| port.parse().ok());
    Ok(Address::Tcp(port.context("no port")?))
}

/// The path of a daemon's Unix socket, from its connection file: the ready line does not have it.
fn socket_path(directory: &Path, ready: &Value) -> Result<PathBuf> {
    let session = ready["session"].as_str().context("no session")?;
    let file = directory.join("run-bridge").join(session).with_extension("json");
    let file: Value = serde_json::from_str(&std::fs::read_to_string(file)?)?;
    Ok(file["unix"].as_str().context("no Unix socket")?.into())
}

/// Starts a daemon, and returns it with its ready line.
pub fn daemon_process(daemon: &Path, directory: &Path, unix: bool) -> Result<(Process, Value)> {
    let mut command = daemon_command(daemon, directory);
    if unix {
        command.arg("--unix");
    }
    ready_daemon(&mut command)
}

/// Starts a daemon with a sandbox in this workspace.
pub fn sandbox_daemon_process(
    daemon: &Path,
    directory: &Path,
    workspace: &Path,
) -> Result<(Process, Value)> {
    ready_daemon(daemon_command(daemon, directory).arg("--sandbox").arg(workspace))
}

fn daemon_command(daemon: &Path, directory: &Path) -> Command {
    let mut command = Command::new(daemon);
    // Log only errors, as a run does.
    command.args(["serve", "--log", "error"]).env("XDG_RUNTIME_DIR", directory);
    command
}

fn ready_daemon(command: &mut Command) -> Result<(Process, Value)> {
    let mut server = Process::start(command)?;
    let ready = serde_json::from_str(&server.line()?)?;
    Ok((server, ready))
}

fn socket_io(python: &Path) -> Result<Arm> {
    let script = root().join("bench/peers/socketio_broker.py");
    let mut server = Process::start(Command::new(python).arg(script))?;
    let port: u16 = server.line()?.parse()?;
    let mut host =
        Process::start(&mut ourselves(&["serve", "socket-io-host", &port.to_string()])?)?;
    host.line()?;
    let target = Target {
        address: Address::Tcp(port),
        path: SOCKET_IO_PATH,
        token: None,
        framing: Framing::SocketIo,
    };
    Ok(Arm {
        name: SOCKET_IO,
        target,
        server,
        ready: Value::Null,
        _host: Some(host),
        _directory: None,
    })
}
