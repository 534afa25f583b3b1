//! Measures Run Bridge beside its floors and its peers, in one run.
//!
//! Machines differ and are noisy, so no figure stands alone: each arm is measured with a bare TCP echo
//! right before it, arms take turns in rounds, and what is reported is the ratio. Replies are checked for
//! their content, since a broker that only returns errors would be the fastest of all.

mod action_servers;
mod arms;
mod bare;
mod clients;
mod counts;
mod editor;
mod files;
mod framing;
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

/// Measures Run Bridge beside its floors and its peers, in one run.
///
/// Each arm is measured in turns with the others and with a floor, and what counts is the ratio, shown with
/// its spread: `× 3.2 [2.9…3.6]`. Groups are printed as they finish; figures.json and, with the bridge,
/// chart.svg are written at the end. Ctrl-C ends everything that was started, and removes its files.
///
/// Programs of this workspace are built first. tmux is needed for the sandbox. Peers (Node and Python servers,
/// OpenHands, a VS Code with a browser) are installed below .cache, once. What cannot be installed, or a
/// valgrind that is missing, is left out, and the reason is said.
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
    /// One server, in a process of its own
    #[command(hide = true)]
    Serve(servers::Server),
    /// A hot path, repeated, for the instruction counter
    #[command(hide = true)]
    Repeat(counts::Repeat),
}

#[derive(Subcommand)]
enum Measurement {
    /// Everything but the soak
    All(Options),
    /// The bridge: latency, throughput, many clients, start, memory, and the ends in other languages
    Bridge(Options),
    /// The ends of the bridge in other languages: Python, TypeScript, a real extension host
    Clients(Options),
    /// The sandbox: shells, files, the action server
    Sandbox(Options),
    /// Instructions of the hot paths, counted by valgrind
    Counts(Options),
    /// Mixed traffic for minutes, during which memory and descriptors must not grow
    Soak(soak::Soak),
}

#[derive(Parser)]
struct Options {
    /// Rounds in which every arm is measured once
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..))]
    rounds: u16,

    /// Where the figures and the chart are written
    #[arg(long, default_value = "bench/results", value_name = "DIRECTORY")]
    output: PathBuf,

    /// Leave out the peers that must be installed first
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

/// A part of a measurement, whose groups are finished when it returns.
type Part = fn(&mut Run) -> Result<()>;

const BRIDGE: &[Part] = &[rounds::measure, standing::measure];
const CLIENTS: &[Part] = &[clients::measure];
const SANDBOX: &[Part] = &[shells::measure, idle::measure, files::measure, action_servers::measure];

/// Everything that the parts of a measurement share.
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
