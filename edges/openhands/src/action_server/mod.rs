//! An action server for clients of OpenHands' own server (version 0.62): the same routes, the same
//! JSON, and the same words where clients look for them.
//!
//! This module has the routes ([`router`] lists them) and turns requests and failures into HTTP.
//! The JSON of actions and observations is in [`crate::event`]; [`crate::action`] decides what is
//! done.
//!
//! The port is open at once. Requests that need the shell wait until it is at its first prompt, and
//! `/alive` says whether it is. `OPENHANDS.md` lists the differences to the original, which
//! sometimes guesses, races or loses output.

mod access;
mod entrance;
mod event;
mod execute;
mod failure;
mod info;
mod mcp;
mod router;
mod server;
mod skills;
mod transfer;
mod vscode;

pub use access::Access;
pub use server::{Config, Plugins, serve};
pub use skills::{edit_lines, prelude};
pub use vscode::EditorSettings;
