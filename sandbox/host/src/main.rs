//! The `sandbox` program: recorder of the shells, and a small command line to try things by hand.

mod cli;

use std::process::ExitCode;

use clap::Parser as _;

fn main() -> ExitCode {
    match cli::run(cli::Arguments::parse()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("sandbox: {error:#}");
            ExitCode::from(125)
        }
    }
}
