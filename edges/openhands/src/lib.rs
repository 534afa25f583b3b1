//! The OpenHands edge: what agents of OpenHands (version 0.62) ask for, on shells, files, cells and pages.
//!
//! - [`action`]: what an agent can do with all of these, as values.
//! - [`event`]: actions and observations as JSON, in the words of OpenHands.
//! - [`action_server`]: the same over HTTP, for clients of that project.

pub mod action;
pub mod action_server;
pub mod event;
