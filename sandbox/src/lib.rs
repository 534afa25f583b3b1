//! Persistent shells and files for agents.
//!
//! - [`shell`]: real interactive shells on a private tmux server, with exact results and lossless
//!   output.
//! - [`action`]: what an agent can do with both, as values.
//! - [`files`]: the files of a workspace, confined by the kernel.
//! - [`openhands`]: the actions over HTTP, for clients of that project.
//! - [`isolation`]: what a command may touch, and how much it may use.

pub mod action;
pub mod error;
pub mod files;
pub mod isolation;
pub mod openhands;
pub mod shell;

pub use error::{Error, Result};
