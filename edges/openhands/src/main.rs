//! The program `openhands-edge`: serves actions over HTTP or at a broker, and runs the helpers of
//! shells and kernels.

mod cli;
mod first_process;
mod host;
mod key;
mod serve;
mod user;

use std::process::ExitCode;

use clap::Parser as _;

fn main() -> ExitCode {
    match cli::run(cli::Arguments::parse()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("openhands-edge: {error:#}");
            ExitCode::from(125)
        }
    }
}
