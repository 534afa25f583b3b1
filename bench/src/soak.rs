//! Soak test: runs mixed traffic for some minutes, and checks that memory, file descriptors and processes do not
//! grow.
//!
//! It compares the minimum of the last quarter with the minimum of the second quarter (the first is warm-up).
//! Minima are used because traffic comes in bursts, and a leak is still there between bursts.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::Args;
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::arms::{Arm, sandboxed_broker};
use crate::framing::payload;
use crate::load::{Socket, Target, latency, many, pipelined};
use crate::plot::{Line, plot};
use crate::process::{built, open_files, resident_kib, with_argument};

/// Relative growth that counts as flat, because an allocator keeps some of the memory that it once had.
const MARGIN: f64 = 0.10;
/// Absolute growth that counts as flat, for memory in KiB: a tenth of a small figure is too strict.
const MARGIN_KIB: f64 = 2048.0;
/// Absolute growth that counts as flat, for numbers of descriptors and processes.
const MARGIN_COUNT: f64 = 4.0;

#[derive(Args)]
pub struct Soak {
    /// Duration in minutes
    #[arg(long, default_value_t = 5.0)]
    minutes: f64,

    /// Use this daemon, instead of building an optimised one
    #[arg(long, value_name = "PROGRAM")]
    daemon: Option<PathBuf>,

    /// Directory for the figures and the plot
    #[arg(long, default_value = "bench/results", value_name = "DIRECTORY")]
    output: PathBuf,
}

/// The figures that must not grow.
const WATCHED: [&str; 5] =
    ["daemon, KiB", "tmux, KiB", "largest recorder, KiB", "daemon, descriptors", "processes"];

/// The figures at one moment, in the order of [`WATCHED`].
type Sample = [f64; WATCHED.len()];

pub fn soak(options: &Soak) -> Result<()> {
    let daemon =
        options.daemon.clone().map_or_else(|| built("bridge-daemon", "bridge-daemon"), Ok)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let workspace = tempfile::tempdir()?;
    let mut arm = sandboxed_broker(&daemon, workspace.path())?;
    let duration = Duration::from_secs_f64(options.minutes * 60.0);
    let samples = runtime.block_on(watch(&arm, workspace.path(), duration));
    // End the daemon by SIGTERM, so that it also ends its shells.
    arm.server.terminate();
    let samples = samples?;
    write(&samples, &options.output)?;
    judge(&samples)
}

/// Runs the traffic for `duration`, and takes a sample every second.
async fn watch(arm: &Arm, workspace: &Path, duration: Duration) -> Result<Vec<Sample>> {
    let mut traffic = JoinSet::new();
    traffic.spawn(calls(arm.target.clone()));
    traffic.spawn(short_connections(arm.target.clone()));
    traffic.spawn(shells(arm.target.clone()));
    let begun = Instant::now();
    let mut second = tokio::time::interval(Duration::from_secs(1));
    let mut samples = Vec::new();
    while begun.elapsed() < duration {
        tokio::select! {
            _ = second.tick() => {
                let sample = take_sample(arm, workspace)?;
                if samples.len() % 30 == 0 {
                    let seconds = begun.elapsed().as_secs();
                    eprintln!("{seconds} s: {}", describe(&sample));
                }
                samples.push(sample);
            }
            ended = traffic.join_next() => {
                ended.context("the traffic has stopped")???;
            }
        }
    }
    traffic.shutdown().await;
    Ok(samples)
}

/// Calls of all sizes, one at a time and many in flight, and events.
async fn calls(target: Target) -> Result<()> {
    let (small, large, huge) = (payload(200), payload(64 << 10), payload(1 << 20));
    loop {
        latency(&target, &small, 200).await?;
        latency(&target, &large, 20).await?;
        latency(&target, &huge, 2).await?;
        pipelined(&target, &small, 64, Duration::from_millis(200)).await?;
        let mut socket = target.connect().await?;
        for number in 0..50 {
            let event = json!({"jsonrpc": "2.0", "method": "dapEvent",
                "params": {"event": "soak", "body": {"number": number}}});
            socket.send(event.to_string().into()).await?;
        }
        call(&mut socket, "bridge/ping", &json!({})).await?;
    }
}

/// Many clients that connect, make calls and disconnect.
async fn short_connections(target: Target) -> Result<()> {
    let small = payload(200);
    loop {
        many(&target, &small, 100, Duration::from_millis(200)).await?;
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
}

/// Shells that start, print and end, one shell that stays, and files.
async fn shells(target: Target) -> Result<()> {
    let staying = json!({"shell": "staying"});
    call(&mut target.connect().await?, "shell/create", &staying).await?;
    for round in 0_u64.. {
        let mut socket = target.connect().await?;
        let shell = json!({"shell": format!("soak-{}", round % 3)});
        call(&mut socket, "shell/create", &shell).await?;
        for number in 0..20 {
            let mut run = if number % 4 == 0 { staying.clone() } else { shell.clone() };
            run["command"] = json!(format!("echo {number}; seq 1 2000"));
            run["stream"] = json!(number % 2 == 0);
            let ended = call(&mut socket, "shell/run", &run).await?;
            ensure!(ended["exitCode"] == 0, "a command failed: {ended}");
            let text = format!("{round} {number}\n").repeat(1000);
            let file = json!({"path": "soak.txt", "text": text});
            call(&mut socket, "file/write", &file).await?;
            let read = call(&mut socket, "file/read", &json!({"path": "soak.txt"})).await?;
            ensure!(read["text"] == text, "the file has another content: {read}");
        }
        call(&mut socket, "shell/close", &shell).await?;
    }
    Ok(())
}

/// Makes one call, and skips notifications such as progress.
async fn call(socket: &mut Socket, method: &str, params: &Value) -> Result<Value> {
    let request = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    socket.send(request.to_string().into()).await?;
    loop {
        let message = socket.next().await.context("the daemon closed the connection")??;
        let Ok(text) = message.to_text() else { continue };
        let Ok(mut answer) = serde_json::from_str::<Value>(text) else { continue };
        if answer["id"] == 1 {
            ensure!(answer["error"].is_null(), "{method} failed: {}", answer["error"]);
            return Ok(answer["result"].take());
        }
    }
}

fn take_sample(arm: &Arm, workspace: &Path) -> Result<Sample> {
    let daemon = arm.server.pid();
    let root = workspace.to_string_lossy();
    let ours = with_argument(&root);
    // Skip processes that are ending and have no memory any more.
    let memory = |of: &str| -> Vec<f64> {
        let those = ours.iter().filter(|(_, arguments)| arguments.contains(of));
        those.filter_map(|(pid, _)| resident_kib(*pid).ok()).collect()
    };
    Ok([
        resident_kib(daemon)?,
        memory("tmux -S").into_iter().sum(),
        // The largest, not the sum, because the number of shells and recorders changes.
        memory(" record ").into_iter().fold(0.0, f64::max),
        open_files(daemon)?,
        ours.len() as f64,
    ])
}

fn describe(sample: &Sample) -> String {
    let figures = WATCHED.iter().zip(sample).map(|(name, figure)| format!("{name}: {figure:.0}"));
    figures.collect::<Vec<_>>().join(", ")
}

/// Writes `soak.csv` and `soak.svg`.
fn write(samples: &[Sample], directory: &Path) -> Result<()> {
    std::fs::create_dir_all(directory)?;
    let mut table = format!("second;{}\n", WATCHED.join(";"));
    for (second, sample) in samples.iter().enumerate() {
        let figures: Vec<_> = sample.iter().map(ToString::to_string).collect();
        let _ = writeln!(table, "{second};{}", figures.join(";"));
    }
    std::fs::write(directory.join("soak.csv"), table)?;
    let lines: Vec<_> = WATCHED
        .iter()
        .enumerate()
        .map(|(index, name)| Line { name, values: column(samples, index).collect() })
        .collect();
    let title =
        "Mixed traffic, one sample per second: each line is scaled to its own largest value";
    std::fs::write(directory.join("soak.svg"), plot(title, &lines))?;
    eprintln!("written: {}", directory.display());
    Ok(())
}

#[allow(clippy::print_stdout, reason = "the verdict is the output of this program")]
fn judge(samples: &[Sample]) -> Result<()> {
    let mut growing = Vec::new();
    for (index, name) in WATCHED.iter().enumerate() {
        let values: Vec<_> = column(samples, index).collect();
        let (early, late) =
            quarters(&values).context("too few samples: use --minutes 1 or more")?;
        let verdict = if is_flat(name, early, late) { "flat" } else { "GROWS" };
        println!("{name:<22} {early:>9.0} → {late:>9.0}  {verdict}");
        if verdict != "flat" {
            growing.push(*name);
        }
    }
    ensure!(growing.is_empty(), "these figures grow with time: {}", growing.join("; "));
    Ok(())
}

fn column(samples: &[Sample], index: usize) -> impl Iterator<Item = f64> + '_ {
    samples.iter().map(move |sample| sample[index])
}

/// The minimum of the second quarter and that of the last.
fn quarters(values: &[f64]) -> Option<(f64, f64)> {
    let quarter = values.len() / 4;
    let least = |part: &[f64]| part.iter().copied().min_by(f64::total_cmp);
    Some((least(&values[quarter..2 * quarter])?, least(&values[values.len() - quarter..])?))
}

fn is_flat(name: &str, early: f64, late: f64) -> bool {
    let least = if name.ends_with("KiB") { MARGIN_KIB } else { MARGIN_COUNT };
    late - early <= least.max(early * MARGIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_is_distinguished_from_noise() {
        let noisy: Vec<_> = (0..400).map(|n| 50_000.0 + f64::from(n % 7) * 1000.0).collect();
        let (early, late) = quarters(&noisy).unwrap();
        assert!(is_flat("daemon, KiB", early, late));
        let leaking: Vec<_> = (0..400).map(|n| 50_000.0 + f64::from(n) * 50.0).collect();
        let (early, late) = quarters(&leaking).unwrap();
        assert!(!is_flat("daemon, KiB", early, late));
        let descriptors: Vec<_> =
            (0..400).map(|n| 40.0 + f64::from(n / 20) + f64::from(n % 2) * 100.0).collect();
        let (early, late) = quarters(&descriptors).unwrap();
        assert!(!is_flat("daemon, descriptors", early, late));
        assert!(quarters(&[1.0]).is_none());
    }
}
