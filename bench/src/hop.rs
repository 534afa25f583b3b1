//! The price of the sandbox being a process of its own: a tool is called in the sandbox's own process, and through a
//! daemon that passes the call on to `sandbox host`.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use bridge_protocol::methods::{MethodType, Ping, shell};
use futures_util::{SinkExt, StreamExt};
use sandbox_files::Workspace;
use sandbox_host::{Caller, Sandbox, Settings};
use sandbox_shells::Config;
use tokio_tungstenite::tungstenite::Message;

use crate::Run;
use crate::arms::{sandbox_daemon_process, tcp_address};
use crate::framing::Framing;
use crate::load::{Socket, Target as Server};
use crate::process::built;
use crate::report::{Figure, Report, Target, median_of};

const DIRECT: &str = "shell/list in the sandbox's own process";
const OWN: &str = "bridge/ping, which the daemon answers itself";
const THROUGH: &str = "shell/list through the daemon";
const HOP: &str = "the hop between daemon and sandbox";
/// Calls of each kind in each round.
const CALLS: usize = 500;

pub fn measure(run: &mut Run) -> Result<()> {
    let daemon = built("bridge-daemon", "bridge-daemon")?;
    let program = built("sandbox-host", "sandbox")?;
    run.runtime.block_on(compare(&mut run.report, &daemon, &program, run.rounds))
}

async fn compare(report: &mut Report, daemon: &Path, program: &Path, rounds: usize) -> Result<()> {
    let directory = tempfile::tempdir()?;
    let workspace = directory.path().join("workspace");
    std::fs::create_dir(&workspace)?;
    let sandbox = Sandbox::open(Settings {
        directory: workspace.clone(),
        workspace: Workspace::confined(&workspace)?,
        shells: Config::new(directory.path().join("root"), program),
        cells: None,
        browser: None,
    })
    .await?;
    let (_daemon, ready) = sandbox_daemon_process(daemon, directory.path(), &workspace)?;
    let server = Server {
        address: tcp_address(&ready)?,
        path: "/",
        token: ready["token"].as_str().map(str::to_owned),
        framing: Framing::Echo,
    };
    let mut socket = server.connect().await?;
    let mut times: [Vec<f64>; 4] = Default::default();
    for _ in 0..rounds {
        let mut round = [vec![], vec![], vec![]];
        for _ in 0..CALLS {
            let begun = Instant::now();
            let answer = sandbox.answer(shell::List::NAME, None, &Caller::without_progress()).await;
            ensure!(answer.is_ok(), "{} failed", shell::List::NAME);
            round[0].push(begun.elapsed());
            round[1].push(call(&mut socket, Ping::NAME).await?);
            round[2].push(call(&mut socket, shell::List::NAME).await?);
        }
        let [direct, own, through] = round.map(|times| median_of(times) * 1e6);
        for (series, time) in times.iter_mut().zip([direct, own, through, through - own - direct]) {
            series.push(time);
        }
    }
    let group = "A tool of the sandbox through the daemon: p50 in µs";
    for (name, series) in [DIRECT, OWN, THROUGH, HOP].into_iter().zip(&times) {
        let figure = Figure::new(name, Some(series));
        let is_hop = name == HOP;
        report.add(
            group,
            if is_hop { figure.with_target(Target::at_most(100.0, 100.0)) } else { figure },
        );
    }
    sandbox.shut_down().await;
    Ok(())
}

/// Calls a method without params, and returns the time until its result.
async fn call(socket: &mut Socket, method: &str) -> Result<Duration> {
    let request = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}"}}"#);
    let begun = Instant::now();
    socket.send(request.into()).await?;
    loop {
        let message = socket.next().await.context("the daemon closed the connection")??;
        let elapsed = begun.elapsed();
        if let Message::Text(text) = message {
            ensure!(text.contains(r#""result""#), "{method} failed: {text}");
            return Ok(elapsed);
        }
    }
}
