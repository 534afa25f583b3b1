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
//! [`run`] and [`serve`] are the two ways to live; both start a [`daemon`]. The [`terminal_host`] is a host like
//! any other, except that it lives [`in_process`] and needs no socket. Sandboxes are processes of their own,
//! which [`children`] starts, attaches by socket pairs, and starts anew when they end.

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
pub mod in_process;
pub mod logging;
mod orphans;
pub mod run;
pub mod sandboxes;
mod secrets;
pub mod serve;
pub mod terminal_host;
