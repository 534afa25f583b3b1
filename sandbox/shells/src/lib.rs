//! Real interactive shells for agents: exact results, complete output, no polling.
//!
//! # Usage
//!
//! ```no_run
//! # async fn example() -> sandbox_shells::Result<()> {
//! use sandbox_shells::{Config, Progress, ShellSpec, Shells, Wait};
//!
//! let shells = Shells::open(Config::new("/run/user/1000/shells", "/usr/bin/sandbox")).await?;
//! let shell = shells.create(ShellSpec::default()).await?;
//! let job = shell.run("cd /tmp && ls").await?;
//! match job.wait(Wait::forever()).await? {
//!     Progress::Finished(result) => println!("{} in {:?}", result.exit_code, result.cwd),
//!     Progress::Running(running) => println!("still running, because of {:?}", running.reason),
//! }
//! shells.shut_down().await
//! # }
//! ```
//!
//! # Theory of operation
//!
//! A shell is a pane of a private tmux server with a bash inside. Two channels lead to it. Commands to tmux go
//! through one control client. What the pane prints goes to a recorder process, which appends it to a log and writes
//! events to an index beside it. The owner (this process) watches the index and sleeps otherwise. If it is killed,
//! tmux, bash and the recorder continue, and the next [`Shells::open`] reads the files and adopts the shells.
//!
//! A command is a text in a file that bash evaluates at its prompt. Its start and end are markers in the output
//! stream, each with a random nonce of its own (see `builtin.c`). So a result is exactly ordered after the output of
//! its command, and nothing that a program prints can imitate it. This does not protect against code that runs
//! *inside* the shell and searches for the nonce, or that debugs the shell from outside.
//!
//! A shell may be confined ([`Config::policy`]): then bash and everything it starts can write only where the policy
//! allows, cannot reach any Unix socket (and so not tmux), and cannot change the log or the ledger.
//!
//! Each shell has one owner (`owner`), which is a value and makes all decisions, and one driver (`driver`), a task
//! that carries them out. Handles ([`Shell`], [`Job`]) are cheap to clone, and dropping them changes nothing. Each
//! caller waits with limits of its own, and a wait that ends leaves the command running.

mod arguments;
mod config;
mod driver;
mod error;
mod helper;
mod input;
mod job;
mod keeper;
mod launch;
mod ledger;
mod marker;
mod messages;
mod output;
mod owner;
mod recorder;
mod registry;
mod shell;
mod state;
mod tmux;

pub use arguments::ShellArguments;
pub use config::{Config, ShellSpec};
pub use error::{Error, Result};
pub use helper::Helper;
pub use input::{InputHint, Key, Signal};
pub use job::{Job, OnInput, Output, Progress, StillRunning, Wait, WaitEnd};
pub use keeper::keep;
pub use launch::confine::enter;
pub use ledger::{ShellId, Size};
pub use marker::Seq;
pub use output::boundary::{self, whole_lines};
pub use output::log::{Log, Subscription, View};
pub use output::render::{Colours, Renderer, render, render_in_background, render_lines};
pub use process_identity::ProcessId;
pub use recorder::record;
#[cfg(fuzzing)]
pub use recorder::scanner::{joined, scan};
pub use registry::Shells;
pub use shell::{Access, Shell};
pub use state::{CommandResult, Ended, Phase, Status};
