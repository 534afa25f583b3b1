//! Measures Run Bridge beside its floors and its peers, in one run.
//!
//! Machines differ and are noisy, so no figure stands alone: each arm is measured with a bare TCP echo
//! right before it, arms take turns in rounds, and what is reported is the ratio. Replies are checked for
//! their content, since a broker that only returns errors would be the fastest of all.

mod arms;
mod counts;
mod framing;
mod load;
mod peers;
mod process;
mod report;
mod rounds;
mod servers;
mod standing;

use std::path::PathBuf;

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
    /// Everything: latency, throughput, many clients, start, memory, instruction counts
    All(Options),
    /// Only the bridge: latency, throughput, many clients, start, memory
    Bridge(Options),
    /// Only instruction counts of the hot paths, under valgrind
    Counts(Options),
    /// One server, in a process of its own
    #[command(hide = true)]
    Serve(servers::Server),
    /// A hot path, repeated, for the instruction counter
    #[command(hide = true)]
    Repeat(counts::Repeat),
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

fn main() -> Result<()> {
    match Cli::parse().command {
        Command::Serve(server) => servers::serve(server),
        Command::Repeat(repeat) => {
            counts::repeat(&repeat);
            Ok(())
        }
        Command::All(options) => measure(&options, true, true),
        Command::Bridge(options) => measure(&options, true, false),
        Command::Counts(options) => measure(&options, false, true),
    }
}

fn measure(options: &Options, bridge: bool, counts: bool) -> Result<()> {
    let mut report = report::Report::default();
    if bridge {
        let binary = process::built("bridge-daemon")?;
        let peers = match options.no_peers {
            true => peers::Peers::none("left out by --no-peers"),
            false => peers::Peers::install(),
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(rounds::measure(&mut report, &binary, &peers, options.rounds))?;
        runtime.block_on(standing::measure(&mut report, &binary, options.rounds))?;
    }
    if counts {
        counts::measure(&mut report)?;
    }
    report.print();
    report.write(&options.output)
}
