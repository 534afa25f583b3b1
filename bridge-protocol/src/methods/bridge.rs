//! `bridge/*`: methods that the daemon answers itself.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Empty, RuntimeInfo, methods};
use crate::id::SessionId;
use crate::rights::Rights;
use crate::secret::Secret;

methods! {
    /// `bridge/hello`: negotiates the protocol version. Optional; without it, version 1 is assumed.
    Hello = "bridge/hello": HelloParams => HelloResult { needs: [], time: Reply };
    /// `bridge/ping`: answers at once, and so shows that the connection is alive.
    Ping = "bridge/ping": Empty => Empty { needs: [], time: Reply };
    /// `bridge/shutdown`, by a host: ends the daemon. The program of its run, if there is one, gets SIGTERM.
    Shutdown = "bridge/shutdown": Empty => Empty { needs: [], time: Reply };
    /// `bridge/tail`: subscribes this connection to `bridge/request` notifications. Each request that ends
    /// gives one, with a [`RequestRecord`].
    Tail = "bridge/tail": Empty => Empty { needs: [], time: Reply };
    /// `bridge/createToken`: makes a token, which is valid until the session ends. [`CreateTokenParams`] says what it
    /// can allow.
    CreateToken = "bridge/createToken": CreateTokenParams => CreateTokenResult { needs: [], time: Reply };
    /// `bridge/status`: connections, runtimes, requests in flight and counters of the daemon.
    Status = "bridge/status": Empty => StatusResult { needs: [], time: Reply };
}

/// Parameters of `bridge/hello`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HelloParams {
    /// Protocol version of the caller. If the daemon does not support it, the call fails with -32057 and
    /// `data.supported`.
    pub protocol: u32,
    /// Name of the caller's program, shown by `bridge-client tail`.
    #[serde(default)]
    pub name: String,
    /// Default runtime for requests of this connection that name none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime_id: Option<String>,
    /// Default folder or file for requests of this connection that name no runtime: the runtime that has it
    /// open answers them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
}

/// Result of `bridge/hello`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HelloResult {
    /// Protocol version that both sides use from now on.
    pub protocol: u32,
    /// Version of the daemon.
    pub version: String,
    /// Session that the daemon serves.
    pub session: SessionId,
    /// Role of this connection, `client` or `host`, decided by its token.
    pub role: String,
    /// Rights of the client token. Absent for hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rights: Option<Rights>,
}

/// Parameters of `bridge/createToken`. A new token allows at most what the caller's own token allows, with one exception:
/// the session's own host token can make tokens for any tools.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum CreateTokenParams {
    /// A client token, made by a client.
    Client {
        /// The token can call methods that need these rights.
        rights: Rights,
    },
    /// A host token, made by a host.
    Host {
        /// The token can register these runtime ids.
        runtime_ids: Vec<String>,
        /// The token can register these tools: names of methods, or families such as `file/*`.
        tools: Vec<String>,
    },
}

/// Result of `bridge/createToken`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CreateTokenResult {
    /// The new token. Send it in the upgrade request, as any token.
    pub token: Secret,
}

/// Record of one request that has ended. Never contains parameters or results.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RequestRecord {
    /// Id of the request, assigned by the daemon.
    pub request: u64,
    /// Number of the caller's connection, assigned by the daemon.
    pub client: u64,
    /// Name of the caller, if it sent `bridge/hello`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub client_name: String,
    /// Canonical name of the method.
    pub method: Cow<'static, str>,
    /// The runtime that got the request, if it was forwarded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime_id: Option<String>,
    /// `ok`, the name of an error kind, or `error N` for a host's own error code.
    pub outcome: Cow<'static, str>,
    /// Milliseconds that the request waited for a host.
    pub wait_ms: f64,
    /// Milliseconds that the host worked on the request.
    pub host_ms: f64,
    /// Size of the request in bytes.
    pub request_bytes: usize,
    /// Size of the answer in bytes.
    pub response_bytes: usize,
}

/// Result of `bridge/status`: gauges and counters.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StatusResult {
    /// Version of the daemon.
    pub version: String,
    /// Session that the daemon serves.
    pub session: SessionId,
    /// Process id of the daemon.
    pub pid: u32,
    /// Seconds since the daemon started.
    pub uptime: f64,
    /// Number of client connections.
    pub clients: usize,
    /// All runtimes, that is hosts that have registered.
    pub runtimes: Vec<RuntimeInfo>,
    /// Number of requests that have not been answered yet.
    pub in_flight: usize,
    /// Bytes queued for sending, over all connections.
    pub queued_bytes: usize,
    /// Number of operations (`asyncOperationStarted`) that wait for their `POST /submit`.
    pub operations: usize,
    /// Counters by name, since the daemon started.
    pub counters: BTreeMap<String, u64>,
}
