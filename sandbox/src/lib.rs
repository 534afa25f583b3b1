//! Persistent shells and files for agents.
//!
//! - [`shell`]: real interactive shells on a private tmux server, with exact results and lossless
//!   output.
//! - [`kernel`]: a persistent IPython, with its output as data.
//! - [`files`]: the files of a workspace, confined by the kernel.
//! - [`isolation`]: what a command may touch, and how much it may use.
//! - [`browser`]: web pages as text.
//! - [`action`]: what an agent can do with all of these, as values.
//! - [`event`]: actions and observations as JSON, in the words of OpenHands.
//! - [`openhands`]: the same over HTTP, for clients of that project.

#[cfg(feature = "actions")]
pub mod action;
#[cfg(feature = "actions")]
pub mod browser;
pub mod error;
#[cfg(feature = "actions")]
pub mod event;
pub mod files;
pub mod isolation;
pub mod kernel;
#[cfg(feature = "serve")]
pub mod openhands;
pub mod shell;

pub use error::{Error, Result};
