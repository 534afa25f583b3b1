//! Chaos test: injects random faults into the real programs and checks the invariants after each of them.
//!
//! A seed decides which faults come in which order: `cargo test -p bridge-tests --test chaos -- --seed 7
//! --steps 2000`. A run that fails prints its seed and its steps. Without flags, as in the test command, the
//! test makes short runs with a few fixed seeds.

#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs)] // A test, and it prints its progress.

/// A client with its unanswered requests.
mod client;
/// A disk that can be full.
mod disk;
/// The faults and how often they occur.
mod fault;
/// Processes and their resource limits.
mod processes;
/// Calls of the sandbox's tools.
mod sandbox_calls;
/// Faults of shells, files, disk, descriptors and memory.
mod sandbox_faults;
/// A model of the shells: the expected state and output of each.
mod shell_model;
/// All processes of a run, and the invariants that are checked.
mod world;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

use rand::SeedableRng;
use rand::rngs::StdRng;

use fault::Fault;
use world::World;

const SHORT_SEEDS: std::ops::Range<u64> = 1..5;
const SHORT_STEPS: usize = 60;

/// Steps between two rests. At a rest, all requests and commands must end.
const STEPS_UNTIL_REST: usize = 12;

fn main() -> ExitCode {
    let flag = |name: &str| {
        let mut arguments = std::env::args().skip_while(|argument| argument != name).skip(1);
        arguments
            .next()
            .map(|value| value.parse::<u64>().unwrap_or_else(|_| panic!("{name} needs a number")))
    };
    let steps = flag("--steps").map_or(SHORT_STEPS, |steps| usize::try_from(steps).unwrap());
    let seeds = flag("--seed").map_or(SHORT_SEEDS, |seed| seed..seed + 1);
    processes::adopt_orphans();
    let mounting = disk::allow_mounting();
    if let Err(reason) = &mounting {
        println!(
            "chaos: SKIPPED: a full disk is not tested, because no disk can be mounted here ({reason})"
        );
    }
    for seed in seeds {
        let mut history = Vec::new();
        let outcome = catch_unwind(AssertUnwindSafe(|| run(seed, steps, &mounting, &mut history)));
        if outcome.is_err() {
            println!("chaos: FAILED after these steps:");
            for step in &history {
                println!("  {step:?}");
            }
            println!(
                "chaos: repeat with: cargo test -p bridge-tests --test chaos -- --seed {seed} --steps {steps}"
            );
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

fn run(seed: u64, steps: usize, mounting: &disk::Mounting, history: &mut Vec<Fault>) {
    let mut random = StdRng::seed_from_u64(seed);
    let mut world = World::new(mounting);
    for step in 1..=steps {
        let fault = Fault::choose(&mut random);
        history.push(fault);
        world.apply(fault, &mut random);
        world.check();
        if step % STEPS_UNTIL_REST == 0 || step == steps {
            world.come_to_rest();
        }
    }
    let totals = world.end();
    println!("chaos: seed {seed}, {steps} steps: {totals}");
}
