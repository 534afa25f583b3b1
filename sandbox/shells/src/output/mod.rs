//! The output of shells: the log and its index, and how they are read and rendered.

pub mod boundary;
pub(crate) mod index;
pub(crate) mod log;
pub(crate) mod render;
pub(crate) mod watch;
