//! The program `sandbox`: serves the tools of a sandbox to a broker, is recorder and keeper of the shells, and has a
//! small command line to try things by hand.

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
