//! A program for the tests: the helper of a [`Misbehave`] job.

use std::process::ExitCode;

use clap::Parser;
use sandbox_worker::Assignment;

mod misbehave;

#[derive(Debug, Parser)]
enum Command {
    Work(Assignment),
}

fn main() -> ExitCode {
    let Command::Work(assignment) = Command::parse();
    let done = assignment.carry_out::<misbehave::Misbehave>();
    match done.unwrap_or_else(|| Err(assignment.unknown())) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("worker-helper: {error}");
            ExitCode::FAILURE
        }
    }
}
