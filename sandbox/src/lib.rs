//! Persistent shells and files for agents.
//!
//! - [`shell`]: real interactive shells on a private tmux server, with exact results and lossless
//!   output.
//! - [`kernel`]: a persistent IPython, with its output as data.
//! - [`files`]: the files of a workspace, confined by the kernel.
//! - [`isolation`]: what a command may touch, and how much it may use.
//! - [`action`]: what an agent can do with all of these, as values.
//! - [`openhands`]: the actions over HTTP, for clients of that project.

#[cfg(feature = "serve")]
pub mod action;
pub mod error;
pub mod files;
pub mod isolation;
pub mod kernel;
#[cfg(feature = "serve")]
pub mod openhands;
pub mod shell;

pub use error::{Error, Result};
