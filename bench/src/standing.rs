//! Start time and idle memory of the daemon.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::Result;

use crate::Run;
use crate::arms::{daemon_process, tcp_address};
use crate::framing::Framing;
use crate::load::Target as Server;
use crate::process::{allow_files, built};
use crate::report::{Figure, Report, Target};

const STARTS: usize = 20;
const CLIENTS: usize = 1000;

pub fn measure(run: &mut Run) -> Result<()> {
    let daemon = built("bridge-daemon", "bridge-daemon")?;
    start(&mut run.report, &daemon)?;
    run.runtime.block_on(memory(&mut run.report, &daemon, run.rounds))
}

fn start(report: &mut Report, daemon: &Path) -> Result<()> {
    let (mut beyond, mut empty) = (Vec::new(), Vec::new());
    for _ in 0..STARTS {
        let begun = Instant::now();
        Command::new("true").stdout(Stdio::null()).status()?;
        let floor = begun.elapsed().as_secs_f64() * 1e3;
        let directory = tempfile::tempdir()?;
        let begun = Instant::now();
        let started = daemon_process(daemon, directory.path(), false)?;
        beyond.push(begun.elapsed().as_secs_f64() * 1e3 - floor);
        empty.push(floor);
        drop(started);
    }
    let group = "Start: ms until an empty process has ended, and ms more until the daemon is ready";
    report.add(group, Figure::new("empty process", Some(&empty)));
    let figure = Figure::new("daemon ready, beyond that", Some(&beyond));
    report.add(group, figure.with_target(Target::at_most(5.0, 1.0)));
    Ok(())
}

async fn memory(report: &mut Report, daemon: &Path, rounds: usize) -> Result<()> {
    // One for each client, and some more.
    allow_files(CLIENTS as u64 + 200)?;
    let (mut idle, mut each) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        let directory = tempfile::tempdir()?;
        let (server, ready) = daemon_process(daemon, directory.path(), false)?;
        let before = server.resident_kib()?;
        let target = Server {
            address: tcp_address(&ready)?,
            path: "/",
            token: ready["token"].as_str().map(str::to_owned),
            framing: Framing::JsonRpc("bridge/ping"),
        };
        let mut clients = Vec::new();
        for _ in 0..CLIENTS {
            clients.push(target.connect().await?);
        }
        idle.push(before / 1024.0);
        each.push((server.resident_kib()? - before) / CLIENTS as f64);
    }
    let group = "Memory of the daemon (resident)";
    let idle = Figure::new("idle, MiB", Some(&idle)).with_target(Target::at_most(4.0, 3.0));
    let each = Figure::new("each of 1000 idle clients, KiB", Some(&each));
    report.add(group, idle);
    report.add(group, each.with_target(Target::at_most(18.0, 10.0)));
    Ok(())
}
