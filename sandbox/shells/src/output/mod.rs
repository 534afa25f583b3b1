//! What shells have printed: the log and its index, and how they are read and shown.

pub mod boundary;
pub(crate) mod index;
pub(crate) mod log;
pub(crate) mod render;
pub(crate) mod watch;
