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
mod files;
mod framing;
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
#[derive(Parser)]
#[command(name = "bridge-bench", version, about)]
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
    /// Everything: the bridge, the sandbox, instruction counts
    All(Options),
    /// Only the bridge: latency, throughput, many clients, start, memory
    Bridge(Options),
    /// Only the sandbox: shells, files, the action server
    Sandbox(Options),
    /// Only instruction counts of the hot paths, under valgrind
    Counts(Options),
    /// Mixed traffic for minutes, during which memory and descriptors must not grow
    Soak(soak::Soak),
}

#[derive(Parser)]
struct Options {
    /// Rounds in which every arm is measured once
    #[arg(long, default_value_t = 5)]
    rounds: usize,

    /// Where the figures and the chart are written
    #[arg(long, default_value = "bench/results", value_name = "DIRECTORY")]
    output: PathBuf,

    /// Leave out the peers that must be installed first (Node, Python)
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
        Measurement::All(options) => measure(&options, &[bridge, sandbox, counts::measure]),
        Measurement::Bridge(options) => measure(&options, &[bridge]),
        Measurement::Sandbox(options) => measure(&options, &[sandbox]),
        Measurement::Counts(options) => measure(&options, &[counts::measure]),
        Measurement::Soak(options) => soak::soak(&options),
    }
}

/// Everything that the parts of a measurement share.
struct Run {
    report: report::Report,
    rounds: usize,
    peers: peers::Peers,
    runtime: tokio::runtime::Runtime,
}

fn measure(options: &Options, parts: &[fn(&mut Run) -> Result<()>]) -> Result<()> {
    let mut run = Run {
        report: report::Report::default(),
        rounds: options.rounds,
        peers: match options.no_peers {
            true => peers::Peers::none("left out by --no-peers"),
            false => peers::Peers::install(),
        },
        runtime: tokio::runtime::Builder::new_current_thread().enable_all().build()?,
    };
    for part in parts {
        part(&mut run)?;
    }
    run.report.print();
    run.report.write(&options.output)
}

/// A thousand clients on either side, and some room.
const OPEN_FILES: u64 = 2200;

fn bridge(run: &mut Run) -> Result<()> {
    process::allow_files(OPEN_FILES)?;
    let Run { report, rounds, peers, runtime } = run;
    let daemon = process::built("bridge-daemon")?;
    runtime.block_on(rounds::measure(report, &daemon, peers, *rounds))?;
    runtime.block_on(standing::measure(report, &daemon, *rounds))?;
    runtime.block_on(clients::measure(report, &daemon, peers, *rounds))
}

fn sandbox(run: &mut Run) -> Result<()> {
    let Run { report, rounds, peers, runtime } = run;
    let program = process::built("sandbox")?;
    runtime.block_on(shells::measure(report, &program, *rounds))?;
    files::measure(report, *rounds)?;
    action_servers::measure(report, &program, peers, *rounds)
}
