//! `bridge/*`: methods that the daemon answers itself.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Empty, MethodType, RuntimeInfo};
use crate::id::SessionId;

/// `bridge/hello`: agrees on a protocol version. Optional; version 1 is assumed without it.
pub struct Hello;

impl MethodType for Hello {
    const NAME: &'static str = "bridge/hello";
    type Params = HelloParams;
    type Result = HelloResult;
}

/// Who is calling.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct HelloParams {
    /// Version that the caller speaks. Another than ours: -32057 with `data.supported`.
    pub protocol: u32,
    /// Name of the program, shown by `bridge-client tail`.
    #[serde(default)]
    pub name: String,
}

/// Who answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HelloResult {
    /// Version that both speak.
    pub protocol: u32,
    /// Version of the daemon.
    pub version: String,
    /// Session that this daemon serves.
    pub session: SessionId,
    /// `client` or `host`, by the token that was shown.
    pub role: String,
}

/// `bridge/ping`: answers at once. Also shows that the connection is alive.
pub struct Ping;

impl MethodType for Ping {
    const NAME: &'static str = "bridge/ping";
    type Params = Empty;
    type Result = Empty;
}

/// `bridge/shutdown`, by a host: ends the daemon. Its run, if any, is told to end.
pub struct Shutdown;

impl MethodType for Shutdown {
    const NAME: &'static str = "bridge/shutdown";
    type Params = Empty;
    type Result = Empty;
}

/// `bridge/tail`: from now on this connection gets a `bridge/request` notification with a
/// [`RequestRecord`] for each request that ends.
pub struct Tail;

impl MethodType for Tail {
    const NAME: &'static str = "bridge/tail";
    type Params = Empty;
    type Result = Empty;
}

/// One request that has ended. Never holds parameters or results.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RequestRecord {
    /// The daemon's id of the request.
    pub request: u64,
    /// The daemon's number of the caller's connection.
    pub client: u64,
    /// The caller's name, if it said `bridge/hello`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub client_name: String,
    /// Canonical name of the method.
    pub method: Cow<'static, str>,
    /// The runtime that worked on it, if it came that far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime_id: Option<String>,
    /// `ok`, the name of an error kind, or `error N` for a host's own code.
    pub outcome: Cow<'static, str>,
    /// Time it waited for a host.
    pub wait_ms: f64,
    /// Time the host took.
    pub host_ms: f64,
    /// Size of the request.
    pub request_bytes: usize,
    /// Size of the answer.
    pub response_bytes: usize,
}

/// `bridge/status`: what the daemon is doing.
pub struct Status;

impl MethodType for Status {
    const NAME: &'static str = "bridge/status";
    type Params = Empty;
    type Result = StatusResult;
}

/// Gauges and counters.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StatusResult {
    /// Version of the daemon.
    pub version: String,
    /// Session.
    pub session: SessionId,
    /// Process.
    pub pid: u32,
    /// Seconds since it started.
    pub uptime: f64,
    /// Connections of clients.
    pub clients: usize,
    /// Hosts that are attached and registered.
    pub runtimes: Vec<RuntimeInfo>,
    /// Requests that have not been answered yet.
    pub in_flight: usize,
    /// Bytes that wait to be sent.
    pub queued_bytes: usize,
    /// Operations (`asyncOperationStarted`) that wait for their submit.
    pub operations: usize,
    /// Counters by name, since the start.
    pub counters: BTreeMap<String, u64>,
}
