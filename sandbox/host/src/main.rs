//! The program `sandbox`: serves the tools of a sandbox to a broker, runs as recorder and keeper of
//! the shells, and has a small command line for people.

mod program;

use std::process::ExitCode;

use clap::Parser as _;

fn main() -> ExitCode {
    match program::run(program::Arguments::parse()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("sandbox: {error:#}");
            ExitCode::from(125)
        }
    }
}
