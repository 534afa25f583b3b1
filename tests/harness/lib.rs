//! Test harness: starts real programs, each in a directory of its own. They are killed when the test ends, and
//! their log is shown when it fails.
//!
//! - [`Daemon`]: `bridge-daemon serve` with its addresses and secrets.
//! - [`SandboxDaemon`]: a daemon with a sandbox, which is its child or has connected by itself. When the test ends, none of its shells is left.
//! - [`Installation`]: a daemon whose children answer as a rules file says.
//! - [`Program`]: any program whose output is read line by line.
//! - [`Socket`]: a WebSocket of a client or a host that exchanges JSON values.
//! - [`EvolveClient`]: the original project's client, byte for byte as its contract describes it.
//!
//! Waits are for events. Only [`wait_until`] and [`wait_until_complete`] poll, for conditions without an event, such
//! as the end of a process that is not our child. Every wait has a timeout, whose message says what was awaited.

#![allow(clippy::unwrap_used)] // In a test harness a panic is the right way to fail.
#![allow(missing_docs)] // Most names say everything; the module docs give the overview.

mod children;
mod daemon;
mod evolve;
mod http;
mod program;
mod sandbox;
mod socket;

pub use children::Installation;
pub use daemon::{Daemon, binary, run_directory};
pub use evolve::EvolveClient;
pub use http::{HttpAnswer, http, http_request, raw_exchange};
pub use program::{
    Program, command, process_exists, wait_until, wait_until_complete, write_program,
};
pub use sandbox::{Placement, SandboxDaemon, piece};
pub use sandbox_test_support::kernel_python;
pub use socket::{Closed, Socket};

use std::time::Duration;

/// Timeout of every wait. When it passes, the test fails.
pub const TIMEOUT: Duration = Duration::from_secs(90);
