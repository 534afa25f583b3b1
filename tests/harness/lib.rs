//! What the tests in this folder are made of: real programs, started in a directory of their own,
//! killed when the test ends, with their log shown when it fails.
//!
//! - [`Daemon`]: `bridge-daemon serve` with its addresses and secrets.
//! - [`SandboxDaemon`]: the same with `--sandbox`, and with nothing left of its shells.
//! - [`Installation`]: a daemon beside children that do what a rules file says.
//! - [`Program`]: any program whose output is read line by line.
//! - [`Socket`]: a WebSocket in the role of a client or a host, speaking JSON values.
//! - [`EvolveClient`]: the original project's client, byte for byte as its contract describes it.
//!
//! Nothing here sleeps: every wait is for an event, and has a limit that says what was awaited.

#![allow(clippy::unwrap_used)] // Harness of tests: a panic is the right way to fail.
#![allow(missing_docs)] // The names are the documentation; the module docs tell the story.

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
pub use program::{Program, command, process_exists, wait_until, wait_until_none, write_program};
pub use sandbox::{SandboxDaemon, piece};
pub use sandbox_test_support::kernel_python;
pub use socket::{Closed, Socket};

use std::time::Duration;

/// How long any wait may take before the test gives up.
pub const PATIENCE: Duration = Duration::from_secs(90);
