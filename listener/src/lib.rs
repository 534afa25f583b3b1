//! Accepts connections and reads their request heads, for every listener of ours.
//!
//! Connections that have not passed the gate cost little. Each has 2 s and 8 KiB for its request head. There are at
//! most [`HALF_OPEN`] of them, including those that are being refused, and a new one replaces the oldest, so that they
//! cannot lock others out or use up the file descriptors. A wrong token is answered with a delay. When the system has
//! no more file descriptors, accepting pauses instead of spinning. The gate itself, which decides from the head who
//! comes in, belongs to each server.

mod entrance;
mod half_open;
mod head;

pub use entrance::{Entrance, HEAD_TIME, read_head, refuse};
pub use half_open::{HALF_OPEN, Place};
pub use head::{HEAD_BYTES, HEADERS, Head, Refusal};
