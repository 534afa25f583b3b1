//! Contract tests: compare golden messages with the Rust types, and documents with the code.

#![allow(clippy::unwrap_used)] // Tests fail by panicking.

/// README, ARCHITECTURE, PROTOCOL: paths exist, tables are complete, help texts are up to date.
mod documents;
/// `tests/wire`, compared with the Rust types.
mod wire;
