//! The Rust library for clients and hosts of a Run Bridge daemon.
//!
//! A [`Client`] calls methods: it asks a language model, shows a message, runs an editor command. A [`Host`] serves
//! methods, as an editor does.
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
//! [`Endpoint`] finds the daemon. [`Connection`] is one WebSocket, which sends and receives texts. [`peer::Peer`] keeps
//! track of calls and requests without I/O; client and host share it. Each of the two owns a connection in one task and
//! decides what happens when it breaks: calls in flight fail at once and are never repeated automatically, because they
//! may have been carried out. A client connects again with its next call, a host at once.
//!
//! # What it guarantees
//!
//! - A call ends with its answer, with an error, or at its timeout. Dropping it cancels it.
//! - Parameters and results given as raw text reach the other end byte for byte.
//! - Tokens appear in no message, log line or `Debug` output, and go to no other machine.
//! - Everything is limited: the size of messages, calls in flight, unread progress, attempts to connect.
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
