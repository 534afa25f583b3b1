//! The OpenHands edge: actions of agents of OpenHands (version 0.62), carried out with `shell/*`, `file/*`,
//! `cell/*` and `page/*` of a runtime.
//!
//! - [`tools`]: how these are called, in this process or at a broker.
//! - [`action`]: actions and observations as values, and what carries the actions out.
//! - [`event`]: actions and observations as JSON, in the words of OpenHands.
//! - [`service`]: `action/*` at a broker.
//! - [`action_server`]: the same over HTTP, for clients of that project.

pub mod action;
pub mod action_server;
pub mod event;
pub mod service;
pub mod tools;
