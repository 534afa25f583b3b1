//! The daemon between running code and VS Code windows.
//!
//! # Theory of operation
//!
//! A connection arrives at a [`server`], which reads its request head and asks the [`gate`]. One
//! that is let in becomes a [`connection`] (or a plain [`http`] request). Its messages go to the
//! [`hub`], which holds the [`broker`]: a plain value that decides everything and does nothing.
//! What it decides, the hub carries out: texts go into the [`outbox`] of a connection, the daemon's
//! [`own_methods`] are called, deadlines are kept.
//!
//! [`run`] and [`serve`] are the two ways to live; both start a [`daemon`]. The [`terminal_host`] and the
//! [`sandbox_host`] are hosts like any other, except that they live [`in_process`] and need no socket.

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

pub mod config;
pub mod daemon;
pub mod in_process;
pub mod logging;
mod orphans;
mod readiness;
pub mod run;
pub mod sandbox_host;
pub mod serve;
pub mod terminal_host;
