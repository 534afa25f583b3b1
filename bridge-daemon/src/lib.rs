//! The daemon between running code and VS Code windows.
//!
//! # Theory of operation
//!
//! The [`server`] accepts a connection, reads its request head and asks the [`gate`]. An admitted one becomes a
//! [`connection`] or a plain [`http`] request. Its messages go to the [`hub`], which holds the [`broker`]: a plain value
//! that makes all decisions and does no I/O. The hub carries out what it decides: it puts messages into the [`outbox`]
//! of a connection, calls the daemon's [`own_methods`], and keeps the deadlines.
//!
//! The daemon is started by [`run`] for one program, or by [`serve`] for a parent; both start a [`daemon`]. The
//! [`terminal_host`] is a host like any other, except that it runs [`in_process`] and needs no socket. Sandboxes are
//! separate processes, which [`children`] starts, connects by socket pairs, and restarts when they end.

pub mod broker;
pub mod gate;
pub mod heartbeat;

pub mod hub;
pub mod metrics;
pub mod outbox;
pub mod own_methods;

pub mod connection;
pub mod http;
pub mod server;

pub mod children;
pub mod config;
pub mod daemon;
mod descriptors;
mod exit_status;
pub mod in_process;
pub mod logging;
mod orphans;
pub mod run;
pub mod sandboxes;
mod secrets;
pub mod serve;
pub mod terminal_host;
