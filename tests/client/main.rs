//! Tests of the real `bridge-client` against the real daemon.

#![allow(clippy::unwrap_used)] // Tests fail by panicking.
#![allow(missing_docs)] // The names are the documentation.

/// `act`: an agent's actions on the command line.
mod act;
/// `cell` and `page` on the command line, with a scripted host.
mod cells_and_pages;
/// Arguments and output of the other subcommands.
mod commands;
/// The examples that need no Python.
mod examples;
/// Failures: the exit code, and one line that names cause and remedy.
mod failures;
/// `file`: files on the command line.
mod file;
/// How the client finds a daemon.
mod finding;
/// `stdio` and `host`: subcommands for other programs.
mod relays;
/// `shell`: shells and their commands on the command line.
mod shell;
/// `--runtime` and `--in`: the choice of the runtime that gets a request.
mod targets;

use harness::{Daemon, Program};

/// Exit code and output of a command line that has ended.
pub struct Output {
    pub code: Option<i32>,
    pub lines: Vec<String>,
    pub stderr: String,
}

/// Runs `bridge-client` with the variables of this daemon and an empty stdin.
pub fn run(daemon: &Daemon, arguments: &[&str]) -> Output {
    finish(start(daemon, arguments))
}

pub fn start(daemon: &Daemon, arguments: &[&str]) -> Program {
    Program::start(daemon.run_command("bridge-client").args(arguments))
}

pub fn finish(mut program: Program) -> Output {
    program.close_stdin();
    let code = program.wait().code();
    Output { code, lines: program.rest(), stderr: program.stderr() }
}
