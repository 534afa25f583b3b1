//! Measures Run Bridge, its floors and its peers in one run, and reports ratios.
//!
//! Machines differ and are noisy, so an absolute figure says little. Each arm is measured right after a bare
//! TCP echo, arms take turns in rounds, and the report shows the ratio. The content of replies is checked,
//! because a broker that only returned errors would be the fastest of all.

mod action_servers;
mod arms;
mod bare;
mod clients;
mod counts;
mod editor;
mod files;
mod framing;
mod hop;
mod idle;
mod load;
mod owner;
mod peers;
mod plot;
mod process;
mod report;
mod rounds;
mod series;
mod servers;
mod shells;
mod soak;
mod standing;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

/// Measures Run Bridge, its floors and its peers in one run, and reports ratios.
///
/// Each arm (a server under measurement) takes turns with the others and with a floor (a bare echo server, a
/// bare tmux, std::fs). The result is the ratio with its spread: `× 3.2 [2.9…3.6]`. Groups are printed as they
/// finish; figures.json and, with the bridge, chart.svg are written at the end. Ctrl-C ends all processes that
/// were started, and removes their files.
///
/// Programs of this workspace are built first. The sandbox needs tmux. Peers (Node and Python servers,
/// OpenHands, a VS Code with a browser) are installed below .cache, once. A peer that cannot be installed, or
/// a missing valgrind, is left out, and a note says why.
#[derive(Parser)]
#[command(name = "bridge-bench", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    #[command(flatten)]
    Measure(Measurement),
    /// Run one server in this process
    #[command(hide = true)]
    Serve(servers::Server),
    /// Repeat a hot path, for the instruction counter
    #[command(hide = true)]
    Repeat(counts::Repeat),
}

#[derive(Subcommand)]
enum Measurement {
    /// Measure everything except the soak test
    All(Options),
    /// Measure the bridge: latency, throughput, many clients, start, memory, and `clients`
    Bridge(Options),
    /// Measure clients and hosts in other languages: Python, TypeScript, a real extension host
    Clients(Options),
    /// Measure the sandbox: shells, files, the action server
    Sandbox(Options),
    /// Count the instructions of the hot paths with valgrind
    Counts(Options),
    /// Run mixed traffic for minutes and check that memory and file descriptors do not grow
    Soak(soak::Soak),
}

#[derive(Parser)]
struct Options {
    /// Number of rounds; each round measures every arm once
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..))]
    rounds: u16,

    /// Directory for the figures and the chart
    #[arg(long, default_value = "bench/results", value_name = "DIRECTORY")]
    output: PathBuf,

    /// Leave out peers that need an installation
    #[arg(long)]
    no_peers: bool,
}

fn main() -> Result<ExitCode> {
    match Cli::parse().command {
        Command::Measure(measurement) => return owner::owned(|| work(measurement)),
        Command::Serve(server) => servers::serve(server)?,
        Command::Repeat(repeat) => counts::repeat(&repeat),
    }
    Ok(ExitCode::SUCCESS)
}

fn work(measurement: Measurement) -> Result<()> {
    match measurement {
        Measurement::All(options) => {
            measure(&options, &[BRIDGE, CLIENTS, SANDBOX, &[counts::measure]])
        }
        Measurement::Bridge(options) => measure(&options, &[BRIDGE, CLIENTS]),
        Measurement::Clients(options) => measure(&options, &[CLIENTS]),
        Measurement::Sandbox(options) => measure(&options, &[SANDBOX]),
        Measurement::Counts(options) => measure(&options, &[&[counts::measure]]),
        Measurement::Soak(options) => soak::soak(&options),
    }
}

/// A part of a measurement. Its groups are complete when it returns.
type Part = fn(&mut Run) -> Result<()>;

const BRIDGE: &[Part] = &[rounds::measure, standing::measure];
const CLIENTS: &[Part] = &[clients::measure];
const SANDBOX: &[Part] =
    &[shells::measure, hop::measure, idle::measure, files::measure, action_servers::measure];

/// State that the parts of a measurement share.
struct Run {
    report: report::Report,
    rounds: usize,
    peers: peers::Peers,
    runtime: tokio::runtime::Runtime,
}

fn measure(options: &Options, parts: &[&[Part]]) -> Result<()> {
    let mut run = Run {
        report: report::Report::default(),
        rounds: options.rounds.into(),
        peers: peers::Peers { wanted: !options.no_peers },
        runtime: tokio::runtime::Builder::new_current_thread().enable_all().build()?,
    };
    for part in parts.iter().copied().flatten() {
        part(&mut run)?;
        run.report.print_new();
    }
    run.report.write(&options.output)
}
