//! Persistent shells and files for agents.
//!
//! - [`shell`]: real interactive shells on a private tmux server, with exact results and lossless
//!   output.
//! - [`kernel`]: a persistent IPython, with its output as data.
//! - [`files`]: the files of a workspace, confined by the kernel.
//! - [`isolation`]: what a command may touch, and how much it may use.

pub mod error;
pub mod files;
pub mod isolation;
pub mod kernel;
pub mod shell;

pub use error::{Error, Result};
