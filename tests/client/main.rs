//! Tests of the real `bridge-client` against the real daemon.

#![allow(clippy::unwrap_used)] // Tests fail by panicking.
#![allow(missing_docs)] // The names are the documentation.

/// `act`: what an agent would do, as typed.
mod act;
/// `cell` and `page`, as typed, with a scripted host.
mod cells_and_pages;
/// Each subcommand as its user types it, and what it prints.
mod commands;
/// The examples that need no Python.
mod examples;
/// Every failure: its exit code, and one line that names cause and remedy.
mod failures;
/// `file`: files, as typed.
mod file;
/// How it finds the daemon.
mod finding;
/// `stdio` and `host`: the doors for other programs.
mod relays;
/// `shell`: shells and their commands, as typed.
mod shell;
/// `--runtime` and `--in`: which runtime gets a request.
mod targets;

use harness::{Daemon, Program};

/// What a finished command said.
pub struct Said {
    pub code: Option<i32>,
    pub lines: Vec<String>,
    pub stderr: String,
}

/// Runs the command line inside a run of this daemon, with nothing on stdin.
pub fn say(daemon: &Daemon, arguments: &[&str]) -> Said {
    finish(start(daemon, arguments))
}

pub fn start(daemon: &Daemon, arguments: &[&str]) -> Program {
    Program::start(daemon.run_command("bridge-client").args(arguments))
}

pub fn finish(mut program: Program) -> Said {
    program.close_stdin();
    let code = program.wait().code();
    Said { code, lines: program.rest(), stderr: program.stderr() }
}
