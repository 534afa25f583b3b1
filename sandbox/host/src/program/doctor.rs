//! `sandbox doctor`: shows which features for sandboxes this machine has.

use std::io::{self, Write as _};
use std::process::{self, ExitCode};

use sandbox_host::state;
use sandbox_isolation::{self as isolation, Features};
use sandbox_shells::{Config, ShellSpec, Shells};

pub(super) fn run() -> anyhow::Result<ExitCode> {
    let mut healthy = true;
    let mut out = io::stdout().lock();
    for (program, flag) in [("tmux", "-V"), ("bash", "--version")] {
        let output = process::Command::new(program).arg(flag).output();
        let line = output.ok().filter(|output| output.status.success()).and_then(|output| {
            Some(String::from_utf8_lossy(&output.stdout).lines().next()?.to_owned())
        });
        healthy &= line.is_some();
        let line = line.unwrap_or_else(|| "missing; install it".into());
        writeln!(out, "{program}: {line}")?;
    }
    let shell = super::block_on(try_shell());
    healthy &= shell.is_ok();
    match shell {
        Ok(()) => writeln!(out, "a shell: starts")?,
        Err(error) => writeln!(out, "a shell: does not start: {error:#}")?,
    }
    for support in isolation::probe() {
        match support.works {
            Ok(features) => writeln!(out, "isolation {}: {}", support.level, describe(features))?,
            Err(reason) => writeln!(out, "isolation {}: unavailable: {reason}", support.level)?,
        }
    }
    Ok(if healthy { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Starts a shell in the directory where state directories usually are, and ends it.
async fn try_shell() -> anyhow::Result<()> {
    let place =
        tempfile::Builder::new().prefix("doctor-").tempdir_in(state::runtime_directory()?)?;
    let shells = Shells::open(Config::of_this_program(place.path().join("probe"))?).await?;
    let started = shells.create(ShellSpec::default()).await;
    let ended = shells.shut_down().await;
    started?;
    Ok(ended?)
}

fn describe(features: Features) -> String {
    let Features { files, tcp, signals, unix_sockets } = features;
    let parts = [
        (files, "files"),
        (tcp, "TCP ports"),
        (unix_sockets, "Unix sockets"),
        (signals, "signals"),
    ];
    let enforced = parts.iter().filter_map(|(enforced, name)| enforced.then_some(*name));
    match enforced.collect::<Vec<_>>().as_slice() {
        [] => "restricts nothing".into(),
        names => format!("restricts {}", names.join(", ")),
    }
}
