//! An action server for agents that speak to OpenHands' own (version 0.62): the same routes, the same
//! JSON, the same words where clients look for them.
//!
//! The routes and what HTTP makes of requests and failures are in here, with [`router`] as the list of
//! routes. The JSON of actions and observations is in [`crate::event`]; what is done is decided in
//! [`crate::action`].
//!
//! The port is open at once. Requests that need the shell wait until it is at its first prompt, and
//! `/alive` says whether it is. Where the original guesses, races or loses output, this one does
//! not; `OPENHANDS.md` lists the differences.

mod access;
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

pub use access::{Access, WithoutKey};
pub use server::{Config, Plugins, serve};
pub use skills::{edit_lines, prelude};
pub use vscode::EditorSettings;
