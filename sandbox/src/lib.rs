//! Persistent shells, files and kernels for agents.

pub mod files;
pub mod isolation;
