//! Latency of clients and hosts in other languages: the Python client, the extension's connection in plain
//! Node, and the whole extension in a real editor.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::Run;
use crate::arms::{self, Arm, BROKER};
use crate::editor::Editor;
use crate::framing::{Framing, payload};
use crate::load::latency;
use crate::peers::installed_modules;
use crate::process::{Process, built, root};
use crate::report::{Figure, median_of};
use crate::series::Series;

const RUST: &str = "Rust client, Rust host";
const PYTHON: &str = "Python client, Rust host";
const TYPESCRIPT: &str = "Rust client, the extension's TypeScript as host";
const EDITOR_COMMAND: &str = "Rust client, VS Code as host: a command";
const EDITOR_CHAT: &str = "Rust client, VS Code as host: a chat";
const WHAT: &str = "latency";
const COUNT: usize = 500;

pub fn measure(run: &mut Run) -> Result<()> {
    let Run { report, rounds, peers, runtime } = run;
    let daemon = &built("bridge-daemon", "bridge-daemon")?;
    let rust = arms::broker(BROKER, daemon, false)?;
    let mut python = match &peers.python() {
        Ok(program) => Some(python_client(program, &rust)?),
        Err(reason) => {
            report.note(format!("the Python client is not measured: {reason}"));
            None
        }
    };
    let typescript = match &peers.node() {
        Ok(_) => Some(arms::broker_with_host(TYPESCRIPT, daemon, typescript_host)?),
        Err(reason) => {
            report.note(format!("the TypeScript host is not measured: {reason}"));
            None
        }
    };
    let editor = match peers.editor().and_then(|_| started_editor(daemon)) {
        Ok(editor) => Some(editor),
        Err(reason) => {
            report.note(format!("the extension in a real editor is not measured: {reason}"));
            None
        }
    };
    let mut targets = vec![(RUST, rust.target.clone())];
    if let Some(arm) = &typescript {
        targets.push((TYPESCRIPT, arm.target.clone()));
    }
    if let Some(editor) = &editor {
        targets.push((EDITOR_COMMAND, editor.target(Framing::EditorCommand("benchmark.echo"))?));
        targets.push((EDITOR_CHAT, editor.target(Framing::JsonRpc("vscode/chat"))?));
    }
    let mut series = Series::default();
    for round in 0..*rounds {
        eprintln!("clients: round {} of {rounds}", round + 1);
        for (name, target) in &targets {
            let times = runtime.block_on(latency(target, &payload(200), COUNT));
            series.add(WHAT, name, median_of(times.context(*name)?) * 1e6);
        }
        if let Some(python) = &mut python {
            python.write_line(&COUNT.to_string())?;
            series.add(WHAT, PYTHON, python.line()?.parse()?);
        }
    }
    let group = "Clients and hosts, one request of 200 B: p50 in µs, and × Rust client and host";
    for name in [RUST, PYTHON, TYPESCRIPT, EDITOR_COMMAND, EDITOR_CHAT] {
        if let Some(times) = series.get(WHAT, name) {
            let ratios = series.ratios(WHAT, name, RUST);
            report.add(group, Figure::new(name, Some(times)).with_ratios(ratios, None));
        }
    }
    Ok(())
}

/// Starts the editor. A failure is a note, so that a machine without an editor still shows all other figures.
fn started_editor(daemon: &Path) -> Result<Editor, String> {
    eprintln!("clients: starting VS Code");
    Editor::start(daemon).map_err(|error| format!("{error:#}"))
}

fn python_client(program: &Path, broker: &Arm) -> Result<Process> {
    let mut command = Command::new(program);
    command.arg(root().join("bench/peers/python_client.py"));
    command.env("PYTHONPATH", root().join("bridge-client/python"));
    for (name, key) in [("ADDR", "addr"), ("TOKEN", "token"), ("SESSION", "session")] {
        let value = broker.ready[key].as_str().with_context(|| format!("no {key}"))?;
        command.env(format!("RUN_BRIDGE_{name}"), value);
    }
    Process::start(&mut command)
}

/// A host made of the extension's own modules, bundled into one file.
fn typescript_host() -> Result<Command> {
    let extension = root().join("vscode-ext");
    let bundle = root().join(".cache/bench/typescript-host.js");
    installed_modules(&extension)?;
    crate::peers::run(
        Command::new(extension.join("node_modules/.bin/esbuild"))
            .args(["test/bench/host.ts", "--bundle", "--platform=node", "--log-level=warning"])
            .arg(format!("--outfile={}", bundle.display()))
            .current_dir(&extension),
    )?;
    let mut command = Command::new("node");
    command.arg(bundle);
    Ok(command)
}
