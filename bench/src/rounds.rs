//! Measures latency, throughput and CPU time of all arms in rounds. Each arm has its turn in each round. A
//! latency is measured right after that of the floor, so that a ratio compares two figures of the same moment.
//!
//! Latencies are measured with all processes on one core. On more cores, the scheduler decides whether a
//! message must wake a sleeping core, which takes longer than everything else: the floor is then 8 or 60 µs,
//! by chance.

use std::time::Duration;

use anyhow::{Context, Result};

use crate::Run;
use crate::arms::{self, Arm, BROKER, ECHO, Floor, JSONRPSEE, SOCKET_IO};
use crate::framing::payload;
use crate::load::{floor, latency, many, pipelined};
use crate::process::{allow_files, built, on_one_core};
use crate::report::{Figure, Report, Target, median_of};
use crate::series::Series;

const SIZES: [(&str, usize, usize); 3] =
    [("200 B", 200, 1000), ("64 KiB", 64 * 1024, 200), ("1 MiB", 1024 * 1024, 20)];
const IN_FLIGHT: u64 = 64;
const CROWDS: [usize; 3] = [1, 100, 1000];
const MOMENT: Duration = Duration::from_millis(500);

/// Open files for a thousand clients on either side, and some more.
const OPEN_FILES: u64 = 2200;

pub fn measure(run: &mut Run) -> Result<()> {
    allow_files(OPEN_FILES)?;
    let Run { report, rounds, peers, runtime } = run;
    let (node, python) = (peers.node(), peers.python());
    for (peer, installed) in [("Node ws", &node), ("python-socketio", &python)] {
        if let Err(reason) = installed {
            report.note(format!("{peer} is not compared: {reason}"));
        }
    }
    let (node, python) = (node.ok(), python.ok());
    let daemon = built("bridge-daemon", "bridge-daemon")?;
    let start = || arms::start(&daemon, node.as_deref(), python.as_deref());
    let mut series = Series::default();
    on_one_core(|| {
        let arms = start()?;
        runtime.block_on(latencies(&mut series, &arms, *rounds))
    })?;
    let arms = start()?;
    runtime.block_on(loads(&mut series, &arms, *rounds))?;
    summarise(report, &series, &arms);
    Ok(())
}

/// The arms in the order of this round; another arm begins in each round.
fn turns(arms: &[Arm], round: usize) -> impl Iterator<Item = &Arm> {
    (0..arms.len()).map(move |turn| &arms[(round + turn) % arms.len()])
}

async fn latencies(series: &mut Series, arms: &[Arm], rounds: usize) -> Result<()> {
    let (tcp, unix) = (Floor::tcp()?, Floor::unix()?);
    for round in 0..rounds {
        eprintln!("latency: round {} of {rounds}", round + 1);
        for (size, bytes, count) in SIZES {
            let mut add = |name: &'static str, time: f64, bare: f64| {
                series.add(format!("latency {size}"), name, time * 1e6);
                series.add(format!("ratio {size}"), name, time / bare);
            };
            for Arm { name, target, .. } in turns(arms, round) {
                let bare = median_of(floor(&tcp.address, bytes, count).await?);
                let times = latency(target, &payload(bytes), count).await.context(*name)?;
                add(name, median_of(times), bare);
            }
            let bare = median_of(floor(&tcp.address, bytes, count).await?);
            add(UNIX_FLOOR, median_of(floor(&unix.address, bytes, count).await?), bare);
        }
    }
    Ok(())
}

async fn loads(series: &mut Series, arms: &[Arm], rounds: usize) -> Result<()> {
    for round in 0..rounds {
        eprintln!("load: round {} of {rounds}", round + 1);
        for arm in turns(arms, round) {
            load(series, arm).await.context(arm.name)?;
        }
    }
    Ok(())
}

const UNIX_FLOOR: &str = "Unix socket echo (floor)";

async fn load(series: &mut Series, arm: &Arm) -> Result<()> {
    let Arm { name, target, server, .. } = arm;
    for (size, bytes, _) in &SIZES[..2] {
        let before = server.cpu()?;
        let (rate, made) = pipelined(target, &payload(*bytes), IN_FLIGHT, MOMENT).await?;
        series.add(format!("pipelined {size}"), name, rate);
        let spent = server.cpu()?.saturating_sub(before);
        series.add(format!("CPU {size}"), name, spent.as_secs_f64() * 1e6 / made as f64);
    }
    for clients in CROWDS {
        let (rate, _) = many(target, &payload(200), clients, MOMENT).await?;
        series.add(format!("crowd {clients}"), name, rate);
    }
    Ok(())
}

fn summarise(report: &mut Report, series: &Series, arms: &[Arm]) {
    let names = || arms.iter().map(|arm| arm.name);
    for (size, _, _) in SIZES {
        let group =
            format!("Latency of one request, {size}, on one core: p50 in µs, and × TCP echo");
        for name in std::iter::once(UNIX_FLOOR).chain(names()) {
            let target = match (size, name) {
                ("200 B", BROKER) => Some(Target::at_most(4.0, 2.5)),
                ("64 KiB", BROKER) => Some(Target::at_most(6.5, 3.5)),
                _ => None,
            };
            let times = series.get(&format!("latency {size}"), name);
            let ratios = series.get(&format!("ratio {size}"), name).cloned();
            report.add(&group, Figure::new(name, times).with_ratios(ratios, target));
        }
    }
    for (size, _, _) in &SIZES[..2] {
        let what = format!("pipelined {size}");
        let group = format!("{IN_FLIGHT} in flight, {size}: requests/s, and × one-hop echo");
        for name in names() {
            let target = (*size == "200 B" && name == BROKER).then(|| Target::at_least(0.4, 0.6));
            let ratios = series.ratios(&what, name, ECHO);
            report.add(
                &group,
                Figure::new(name, series.get(&what, name)).with_ratios(ratios, target),
            );
        }
        let what = format!("CPU {size}");
        let group = format!("CPU of the server, {size}: µs a request, and × one-hop jsonrpsee");
        for name in names() {
            let target = (*size == "200 B" && name == BROKER).then(|| Target::at_most(0.36, 0.2));
            let ratios = series.ratios(&what, name, JSONRPSEE);
            report.add(
                &group,
                Figure::new(name, series.get(&what, name)).with_ratios(ratios, target),
            );
        }
    }
    if let Some(ratios) = series.ratios("pipelined 200 B", BROKER, SOCKET_IO) {
        let figure = Figure::new(BROKER, series.get("pipelined 200 B", BROKER));
        let target = Some(Target::at_least(80.0, 80.0));
        let group = format!("{IN_FLIGHT} in flight, 200 B: requests/s, and × python-socketio");
        report.add(&group, figure.with_ratios(Some(ratios), target));
    }
    for clients in CROWDS {
        let what = format!("crowd {clients}");
        let group = format!(
            "{clients} client(s), one in flight each, 200 B: requests/s, and × python-socketio"
        );
        for name in names() {
            let target = (clients == 1000 && name == BROKER).then(|| Target::at_least(10.0, 25.0));
            let ratios = series.ratios(&what, name, SOCKET_IO);
            report.add(
                &group,
                Figure::new(name, series.get(&what, name)).with_ratios(ratios, target),
            );
        }
    }
}
