//! Real interactive shells for agents: exact results, no lost output, no polling.
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
//!     Progress::Running(running) => println!("still running, because of {:?}", running.why),
//! }
//! shells.shut_down().await
//! # }
//! ```
//!
//! # Theory of operation
//!
//! A shell is a pane of a tmux server that belongs to us alone, with a bash inside. Two channels
//! lead to it. Commands to tmux go through one control client. What the pane prints goes to a
//! recorder process, which appends it to a log and writes events to an index beside it. The
//! owner (this process) watches the index and is otherwise asleep; if it is killed, tmux, bash and
//! the recorder go on, and the next [`Shells::open`] reads the files and continues.
//!
//! A command is a file that bash evaluates at its prompt, and its beginning and end are markers in
//! the output stream that carry a secret of their own each (`builtin.c` tells how). So a result is
//! exactly ordered after the output that belongs to it, and nothing that a program prints can
//! imitate one. Code that runs *inside* the shell and goes looking for the secret, or that debugs
//! the shell from outside, is not kept from it.
//!
//! A shell may be confined ([`Config::policy`]): then bash and everything it starts can write only
//! where the policy says, reach no Unix socket and so not tmux, and touch neither log nor ledger.
//!
//! Each shell has one owner (`owner`), which is a value and decides everything about it, and one driver (`driver`), a task that does
//! what the owner decides. Handles ([`Shell`], [`Job`]) are cheap to clone;
//! dropping them changes nothing. Waiting is done in the caller, each with limits of its own, and a
//! wait that ends leaves the command running.

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
pub use config::{Config, ShellSpec, default_root};
pub use error::{Error, Result};
pub use helper::Helper;
pub use input::{InputHint, Key, Signal};
pub use job::{Job, OnInput, Output, Progress, StillRunning, Wait, Why};
pub use keeper::keep;
pub use launch::confine::enter;
pub use ledger::{ShellId, Size};
pub use marker::Seq;
pub use output::boundary::{self, whole_lines};
pub use output::log::{Log, Subscription, View};
pub use output::render::{Colours, Renderer, aside, render, render_lines};
pub use process_identity::ProcessId;
pub use recorder::record;
#[cfg(fuzzing)]
pub use recorder::scanner::{joined, scan};
pub use registry::Shells;
pub use shell::{Access, Shell};
pub use state::{CommandResult, Ended, Phase, Status};
