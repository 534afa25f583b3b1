//! Tests the action server over real HTTP with real shells.

#![allow(clippy::unwrap_used, reason = "this is test code, though outside of a test function")]

mod browse;
mod confined;
mod files;
mod http;
mod ipython;
mod launcher;
mod output;
mod run;
mod server;
mod state;
mod strangers;
mod survival;
mod transfer;
mod user;
