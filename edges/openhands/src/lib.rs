//! The OpenHands edge: carries out actions of OpenHands agents (version 0.62) with the tools
//! `shell/*`, `file/*`, `cell/*` and `page/*` of a runtime.
//!
//! - [`tools`]: calls these tools, in this process or at a broker.
//! - [`action`]: actions and observations as values, and the executor of actions.
//! - [`event`]: actions and observations as JSON, in the words of OpenHands.
//! - [`service`]: serves `action/*` at a broker.
//! - [`action_server`]: serves actions over HTTP, for clients of OpenHands.

pub mod action;
pub mod action_server;
pub mod event;
pub mod service;
pub mod tools;
