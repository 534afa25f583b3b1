//! Promises on paper: golden messages against the Rust types, and documents against the code.

#![allow(clippy::unwrap_used)] // Tests fail by panicking.

/// README, ARCHITECTURE, PROTOCOL: paths exist, tables are true, commands run.
mod documents;
/// `tests/wire` as the Rust side reads it.
mod wire;
