//! Tests of the real `bridge-daemon` through its sockets and its command line.

#![allow(clippy::unwrap_used)] // Tests fail by panicking.

/// `action/*`: actions of agents, and their observations.
mod actions;
/// Web pages for agents, by the program `sandbox`.
mod browse;
/// Cells of agents, on a real kernel.
mod cells;
/// Hosts that the daemon starts: their start, end and restart.
mod children;
/// `--require`: confined commands and cells.
mod confined;
/// The original client, unmodified: every MUST of its contract.
mod evolve;
/// The gate from outside: origin, host, token, half-open connections.
mod gate;
/// Plain HTTP: health, status, metrics, submit.
mod http;
/// SIGKILL of each process under load.
mod killed;
/// The default limits, each reached from outside.
mod limits;
/// Routing of requests between real connections.
mod routing;
/// `bridge-daemon run`: environment, signals, exit codes, leftovers.
mod run;
/// `--sandbox`: shells and files over the wire.
mod sandbox;
/// The end of the sandbox's process.
mod sandbox_killed;
/// `--sandbox`: start and end of the sandbox, and hosts that try to replace it.
mod sandbox_life;
/// `bridge-daemon serve`: the ready line, its ways to end, secrets.
mod serve;
/// `run` with the terminal host.
mod terminal;
/// jsonrpsee's client, unmodified.
mod third_party;
/// Tokens with fewer rights, at every place where tokens are checked.
mod tokens;
