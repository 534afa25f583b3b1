//! The wire of Run Bridge, and nothing but the wire.
//!
//! Programs, the daemon and hosts exchange JSON text messages. This crate knows their shapes: it
//! turns text into a borrowed [`Message`], prints messages back, lists the methods and the error
//! codes, and names the environment variables and the connection file. It does no I/O and knows
//! no clock, so every rule here is tested with plain values.
//!
//! Two dialects share one socket. JSON-RPC 2.0 is the language; the *bridge dialect* of the
//! original project (`{id, type, params}` answered by `{id, success, …}`) is understood message
//! by message and answered in kind. Nobody past [`Message`] sees the difference, except where it
//! decides how to print.
//!
//! Payloads are never re-encoded. `params`, `result` and `error` stay slices of the text they
//! arrived in, so `1e400`, `1.0`, key order and lone surrogates reach the other end unchanged.
//!
//! Reading order: [`message`], [`print`], [`id`], [`method`], [`methods`], [`rights`], [`error`], [`limits`],
//! [`timeout`], then the names shared by programs: [`mod@env`], [`connection_file`], [`secret`], [`text`].

pub mod message;
pub mod print;

pub mod id;
pub mod method;
pub mod methods;
pub mod rights;

pub mod error;
pub mod limits;
pub mod timeout;

pub mod connection_file;
pub mod env;
pub mod secret;
pub mod text;

pub use error::{ErrorKind, WireError};
pub use id::{CallId, InvalidSession, RequestId, SessionId};
pub use message::{Dialect, Event, Message, Notification, Outcome, Rejection, Request, Response};
pub use method::Method;
pub use rights::{Right, Rights};
pub use secret::Secret;

/// Version of the protocol that this crate speaks; `bridge/hello` negotiates it.
pub const PROTOCOL_VERSION: u32 = 1;

/// Offered and echoed in `Sec-WebSocket-Protocol` by clients that send one.
pub const SUBPROTOCOL: &str = "run-bridge.v1";
