//! Compares the sandbox's shells with the bare tools that they are made of.
//!
//! A bare tmux shows output, but does not report when and how a command has ended; the closest event is the next
//! prompt. The report shows the time until the output and the time until the prompt. The target applies to the
//! first, which is shorter.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use sandbox_shells::{Config, Progress, Shell, ShellSpec, Shells, Wait};

use crate::Run;
use crate::bare::{BarePty, BareTmux, Terminal};
use crate::process::{built, resident_kib};
use crate::report::{Figure, Report, Target, median_of};
use crate::series::Series;

const PTY: &str = "bare terminal";
const TMUX: &str = "bare tmux -C";
const TMUX_PROMPT: &str = "bare tmux -C, until the next prompt";
const OURS: &str = "Run Bridge shell, until the result";
const FIRST: &str = "Run Bridge shell, the first, with its tmux server";

/// A command, bytes that its output has but the echo of its text has not, and measurements in each round.
const COMMANDS: [(&str, &[u8], usize); 2] =
    [("echo hi", b"\rhi\r\n", 40), ("seq 1 10000", b"\n10000\r\n", 10)];
const STARTS: usize = 5;
/// Rounds of the output measurement. They are few, because each takes seconds.
const FLOODS: usize = 3;
const FLOOD_LINES: usize = 1_562_500;
const LINE: &str = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ+\n";

pub fn measure(run: &mut Run) -> Result<()> {
    let program = built("sandbox-host", "sandbox")?;
    run.runtime.block_on(compare(&mut run.report, &program, run.rounds))
}

async fn compare(report: &mut Report, program: &Path, rounds: usize) -> Result<()> {
    let directory = tempfile::tempdir()?;
    let directory = directory.path();
    let shells = Shells::open(Config::new(directory.join("root"), program)).await?;
    let shell = shells.create(spec(directory)).await?;
    let (mut pty, mut tmux) = (BarePty::start()?, BareTmux::start(directory.join("bare"))?);
    let mut series = Series::default();
    for round in 0..rounds {
        eprintln!("shells: round {} of {rounds}", round + 1);
        for (command, ending, count) in COMMANDS {
            let (mut times, mut prompts) = ([vec![], vec![], vec![]], vec![]);
            for _ in 0..count {
                times[0].push(pty.round_trip(command, ending)?.0);
                let (shown, prompt) = tmux.round_trip(command, ending)?;
                times[1].push(shown);
                prompts.push(prompt);
                times[2].push(run(&shell, command).await?);
            }
            for (arm, times) in [PTY, TMUX, OURS].into_iter().zip(times) {
                series.add(command, arm, median_of(times) * 1e3);
            }
            series.add(command, TMUX_PROMPT, median_of(prompts) * 1e3);
        }
        let mut times = [vec![], vec![], vec![]];
        for start in 0..STARTS {
            let begun = Instant::now();
            drop((BareTmux::start(directory.join(format!("s{round}-{start}")))?, {
                times[0].push(begun.elapsed());
            }));
            let begun = Instant::now();
            let root = directory.join(format!("r{round}-{start}"));
            let fresh = Shells::open(Config::new(root, program)).await?;
            fresh.create(spec(directory)).await?;
            times[1].push(begun.elapsed());
            fresh.shut_down().await?;
            let begun = Instant::now();
            let another = shells.create(spec(directory)).await?;
            times[2].push(begun.elapsed());
            another.close().await?;
        }
        for (arm, times) in [TMUX, FIRST, OURS].into_iter().zip(times) {
            series.add("start", arm, median_of(times) * 1e3);
        }
    }
    flood(&mut series, directory, &shell, &mut pty, &mut tmux, rounds.min(FLOODS)).await?;
    summarise(report, &series);
    let memory = "Memory of a shell that has printed 100 MB (resident, MiB)";
    let server = resident_kib(shells.server().await?.pid)? / 1024.0;
    report.add(memory, Figure::new("its tmux server, with all panes", Some(&vec![server])));
    drop((pty, tmux));
    shells.shut_down().await?;
    Ok(())
}

async fn flood(
    series: &mut Series,
    directory: &Path,
    shell: &Shell,
    pty: &mut BarePty,
    tmux: &mut BareTmux,
    rounds: usize,
) -> Result<()> {
    let (big, piped) = (directory.join("big"), directory.join("piped"));
    fs::write(&big, LINE.repeat(FLOOD_LINES))?;
    // A terminal prints CR LF for each line end.
    let shown = (LINE.len() + 1) * FLOOD_LINES;
    let megabytes = |time: Duration| shown as f64 / 1e6 / time.as_secs_f64();
    for round in 0..rounds {
        eprintln!("output: round {} of {rounds}", round + 1);
        series.add("output", PTY, megabytes(pty.flood(&big, shown as u64, &piped)?));
        fs::remove_file(&piped)?;
        series.add("output", TMUX, megabytes(tmux.flood(&big, shown as u64, &piped)?));
        fs::remove_file(&piped)?;
        let time = run(shell, &format!("cat {}", big.display())).await?;
        series.add("output", OURS, megabytes(time));
    }
    Ok(())
}

fn summarise(report: &mut Report, series: &Series) {
    let mut add = |what: &str, group: &str, arms: &[&'static str], target: Target| {
        for &arm in arms {
            let target = [OURS, FIRST].contains(&arm).then_some(target);
            let figure = Figure::new(arm, series.get(what, arm));
            report.add(group, figure.with_ratios(series.ratios(what, arm, TMUX), target));
        }
    };
    for (command, must) in [("echo hi", 2.0), ("seq 1 10000", 1.5)] {
        let group = format!("Shell, `{command}`: p50 in ms, and × bare tmux -C");
        add(command, &group, &[PTY, TMUX, TMUX_PROMPT, OURS], Target::at_most(must, must));
    }
    let group = "Shell, start to the first prompt: p50 in ms, and × bare tmux -C with its server";
    add("start", group, &[TMUX, OURS, FIRST], Target::at_most(1.5, 1.5));
    let group = "Shell, 100 MB of output into a file: MB/s, and × bare tmux with pipe-pane to cat";
    add("output", group, &[PTY, TMUX, OURS], Target::at_least(0.8, 0.8));
}

/// Parameters of a shell that reads no start-up files, whose time would be measured, too.
pub fn spec(directory: &Path) -> ShellSpec {
    let mut spec = ShellSpec::in_directory(directory);
    spec.environment.push(("HOME".into(), directory.into()));
    spec
}

async fn run(shell: &Shell, command: &str) -> Result<Duration> {
    let begun = Instant::now();
    let job = shell.run(command).await?;
    match job.wait(Wait::forever()).await? {
        Progress::Finished(result) => ensure!(result.exit_code == 0, "{command} failed"),
        Progress::Running(running) => bail!("{running:?}"),
    }
    Ok(begun.elapsed())
}
