//! Tests of the real `bridge-daemon` through its sockets and its command line.

#![allow(clippy::unwrap_used)] // Tests fail by panicking.

/// `action/*`: what agents do, and what they learn from it.
mod actions;
/// Web pages for agents, by the program `sandbox`.
mod browse;
/// Cells of agents, on a real kernel.
mod cells;
/// Hosts that the daemon starts: their attachment, end and return.
mod children;
/// `--require`: commands and cells within walls.
mod confined;
/// The original client, unmodified: every MUST of its contract.
mod evolve;
/// The gate as a stranger meets it: origin, host, token, half-open connections.
mod gate;
/// Plain HTTP: health, status, metrics, submit.
mod http;
/// SIGKILL of any party under load, and what is left behind.
mod killed;
/// Default limits, each met from outside.
mod limits;
/// Routing of requests between real connections.
mod routing;
/// `bridge-daemon run`: environment, signals, exit codes, leftovers.
mod run;
/// `--sandbox`: shells and files over the wire.
mod sandbox;
/// The end of the sandbox's process.
mod sandbox_killed;
/// `--sandbox`: how it begins and ends, and who else wants to be it.
mod sandbox_life;
/// `bridge-daemon serve`: the ready line, its ways to end, secrets.
mod serve;
/// `run` with the terminal host.
mod terminal;
/// jsonrpsee's client, unmodified.
mod third_party;
/// Tokens that allow less, at every door.
mod tokens;
