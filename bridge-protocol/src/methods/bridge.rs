//! `bridge/*`: methods that the daemon answers itself.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Empty, RuntimeInfo, methods};
use crate::id::SessionId;
use crate::rights::Rights;
use crate::secret::Secret;

methods! {
    /// `bridge/hello`: agrees on a protocol version. Optional; version 1 is assumed without it.
    Hello = "bridge/hello": HelloParams => HelloResult { needs: [], within: Talk };
    /// `bridge/ping`: answers at once. Also shows that the connection is alive.
    Ping = "bridge/ping": Empty => Empty { needs: [], within: Talk };
    /// `bridge/shutdown`, by a host: ends the daemon. Its run, if any, is told to end.
    Shutdown = "bridge/shutdown": Empty => Empty { needs: [], within: Talk };
    /// `bridge/tail`: from now on this connection gets a `bridge/request` notification with a
    /// [`RequestRecord`] for each request that ends.
    Tail = "bridge/tail": Empty => Empty { needs: [], within: Talk };
    /// `bridge/createToken`: makes a token with some of the caller's own rights, which ends with the session.
    CreateToken = "bridge/createToken": CreateTokenParams => CreateTokenResult { needs: [], within: Talk };
    /// `bridge/status`: what the daemon is doing.
    Status = "bridge/status": Empty => StatusResult { needs: [], within: Talk };
}

/// Who is calling.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HelloParams {
    /// Version that the caller speaks. Another than ours: -32057 with `data.supported`.
    pub protocol: u32,
    /// Name of the program, shown by `bridge-client tail`.
    #[serde(default)]
    pub name: String,
    /// The runtime for requests of this connection that name none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime_id: Option<String>,
    /// A folder or file for requests of this connection that name no runtime: the runtime that has it open
    /// answers them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
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
    /// What a client's token allows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rights: Option<Rights>,
}

/// What the new token shall allow: a part of what the caller's own allows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum CreateTokenParams {
    /// By a client: call methods that need these rights.
    Client {
        /// The rights.
        rights: Rights,
    },
    /// By a host: register under these ids, with these tools.
    Host {
        /// Runtime ids.
        runtime_ids: Vec<String>,
        /// Names of methods, or families such as `file/*`.
        tools: Vec<String>,
    },
}

/// The new token.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CreateTokenResult {
    /// To be shown in the upgrade request, as any token.
    pub token: Secret,
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
