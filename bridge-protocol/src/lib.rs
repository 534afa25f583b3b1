//! The wire protocol of Run Bridge: messages, methods, errors, limits and shared names.
//!
//! Clients, the daemon and hosts exchange JSON text messages. This crate parses a text into a borrowed
//! [`Message`], prints messages, lists the methods and the error codes, and names the environment
//! variables and the connection file. It does no I/O and reads no clock, so every rule here is tested
//! with plain values.
//!
//! Two dialects share one socket: JSON-RPC 2.0, and the *bridge dialect* of the original project
//! (`{id, type, params}` answered by `{id, success, …}`). The dialect is recognised for each message,
//! and the answer uses the dialect of its request. Code that works with a parsed [`Message`] need not
//! know the dialect, except to print an answer.
//!
//! Payloads are never re-encoded. `params`, `result` and `error` stay slices of the text in which they
//! arrived, so `1e400`, `1.0`, key order and lone surrogates reach the other end unchanged.
//!
//! Reading order: [`message`], [`print`], [`id`], [`method`], [`methods`], [`answer`], [`rights`], [`error`], [`limits`],
//! [`timeout`], then the names shared by programs: [`mod@env`], [`connection_file`], [`folders`], [`secret`], [`text`];
//! and [`web_page`], the rule by which every HTTP server of ours refuses web pages.

pub mod message;
pub mod print;

pub mod answer;
pub mod id;
pub mod method;
pub mod methods;
pub mod rights;

pub mod error;
pub mod limits;
pub mod timeout;

pub mod connection_file;
pub mod env;
pub mod folders;
pub mod secret;
pub mod text;
pub mod web_page;

pub use error::{ErrorKind, WireError};
pub use id::{CallId, InvalidSession, RequestId, SessionId};
pub use message::{
    DapEvent, Dialect, Message, Notification, Outcome, Rejection, Request, Response,
};
pub use method::Method;
pub use rights::{Right, Rights};
pub use secret::Secret;

/// Version of the protocol that this crate implements. `bridge/hello` negotiates it.
pub const PROTOCOL_VERSION: u32 = 1;

/// WebSocket subprotocol. The daemon echoes it to clients that offer it in `Sec-WebSocket-Protocol`.
pub const SUBPROTOCOL: &str = "run-bridge.v1";
