//! How Rust programs speak to a Run Bridge daemon.
//!
//! A [`Client`] calls methods: it asks a language model, shows a message, runs an editor command. A
//! [`Host`] answers them: it is what an editor is to the daemon, and what tests put in its place.
//!
//! ```no_run
//! use bridge_client::{Client, Endpoint, Options};
//! use bridge_protocol::methods::{Chat, ChatParams, TextProgress};
//!
//! # async fn example() -> Result<(), bridge_client::Error> {
//! let endpoint = Endpoint::find(None, |name| std::env::var(name).ok())?;
//! let client = Client::connect(endpoint, Options::default()).await?;
//! let question = ChatParams { message: "Name three primes".into(), ..ChatParams::default() };
//!
//! let mut call = client.call::<Chat>(&question, None);
//! while let Some(piece) = call.progress().await {
//!     if let Ok(piece) = serde_json::from_str::<TextProgress>(piece.get()) {
//!         eprint!("{}", piece.text);
//!     }
//! }
//! let answer = call.await?;
//! assert!(!answer.response.is_empty());
//! # Ok(())
//! # }
//! ```
//!
//! # How it works
//!
//! [`Endpoint`] finds the daemon. [`Connection`] is one WebSocket: texts in, texts out.
//! [`peer::Peer`] is the bookkeeping of calls and requests, free of I/O, which client and host
//! share. Each of the two owns a connection in one task and decides what happens when it breaks:
//! calls in flight fail at once and are never repeated by themselves, since they may have been
//! carried out; the next call, and a host always, connects again.
//!
//! # What it guarantees
//!
//! - A call ends: with its answer, with an error, or when its time is up. Dropping it cancels it.
//! - Parameters and results given as raw text reach the other end byte for byte.
//! - Tokens appear in no message, log line or `Debug` output, and go to no other machine.
//! - Everything is bounded: messages, calls in flight, progress nobody reads, attempts to connect.
//!
//! Reading order: [`endpoint`], [`connection`], [`peer`], [`client`], [`call`], [`host`],
//! [`error`]. The program `bridge-client` is built on nothing but this library.

pub mod endpoint;

pub mod connection;
mod handshake;

pub mod peer;

mod backoff;
pub mod call;
pub mod client;
pub mod host;

pub mod error;

pub use call::Call;
pub use client::{Client, Notice, Options};
pub use connection::Connection;
pub use endpoint::{Address, Endpoint};
pub use error::Error;
pub use host::{Host, HostHandle};

#[cfg(test)]
mod test_daemon;
