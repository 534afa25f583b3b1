//! `sandbox doctor`: shows which features for sandboxes this machine has.

use std::io::{self, Write as _};
use std::process::{self, ExitCode};

use sandbox_host::state;
use sandbox_isolation::{self as isolation, Level, Wall};
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
            Ok(features) if support.level == Level::Landlock => {
                writeln!(out, "isolation {}: restricts commands and cells, which", support.level)?;
                for wall in isolation::walls(features) {
                    writeln!(out, "  {}", describe(wall))?;
                }
            }
            Ok(_) => writeln!(out, "isolation {}: restricts nothing", support.level)?,
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

fn describe(Wall { attempt, holds, reason }: Wall) -> String {
    let verb = if holds { "cannot" } else { "CAN" };
    format!("{verb:6} {attempt} ({reason})")
}
