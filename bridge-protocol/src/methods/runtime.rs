//! `runtime/*`: hosts register as runtimes, and clients list them.

use serde::{Deserialize, Serialize};

use super::{Empty, methods};

methods! {
    /// `runtime/register`, by a host: says which methods it serves. A host gets no requests before that.
    Register = "runtime/register": RegisterParams => RegisterResult { needs: [], time: Reply };
    /// `runtime/update`, by a host: changes its title, folders, methods or focus.
    Update = "runtime/update": UpdateParams => Empty { needs: [], time: Reply };
    /// `runtime/unregister`, by a host: it serves nothing any more. Its requests in flight fail at once.
    Unregister = "runtime/unregister": Empty => Empty { needs: [], time: Reply };
    /// `runtime/list`: all runtimes.
    ListRuntimes = "runtime/list": Empty => Vec<RuntimeInfo> { needs: [], time: Reply };
    /// `runtime/get`: one runtime, by its id.
    GetRuntime = "runtime/get": RuntimeRef => RuntimeInfo { needs: [], time: Reply };
}

/// Parameters of `runtime/register`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RegisterParams {
    /// Id that the host chose for itself and keeps when it reconnects. A connection that registers an id
    /// replaces the older connection with that id. When absent, the daemon assigns one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime_id: Option<String>,
    /// Title for people, for instance the window's title.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub title: String,
    /// Folders that are open in the host.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workspace_folders: Vec<String>,
    /// Canonical names of the methods that the host serves; `dapEvent` to receive events.
    pub methods: Vec<String>,
    /// Whether the host's window has the focus.
    #[serde(default)]
    pub focused: bool,
    /// Whether the host is an edge. An edge serves its methods for every runtime: requests for them go to the
    /// edge even if they name another `runtimeId` or a `path`. The edge passes these on to the tools that it
    /// calls.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub edge: bool,
}

/// Result of `runtime/register`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RegisterResult {
    /// Id under which the runtime is listed.
    pub runtime_id: String,
}

/// Parameters of `runtime/update`. Absent members stay unchanged.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UpdateParams {
    /// New title.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// New folders.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace_folders: Option<Vec<String>>,
    /// New list of methods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub methods: Option<Vec<String>>,
    /// Whether the host's window has the focus now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub focused: Option<bool>,
}

/// Parameters of `runtime/get`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RuntimeRef {
    /// Id of the runtime, as `runtime/list` shows it.
    pub runtime_id: String,
}

/// A runtime, as `runtime/list` and `runtime/get` describe it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RuntimeInfo {
    /// Id of the runtime.
    pub runtime_id: String,
    /// Title for people.
    pub title: String,
    /// Folders that are open in the runtime.
    pub workspace_folders: Vec<String>,
    /// Names of the methods that the runtime serves.
    pub methods: Vec<String>,
    /// Whether the runtime's window has the focus.
    pub focused: bool,
    /// Number of requests in flight to the runtime.
    pub in_flight: usize,
    /// Whether the runtime is an edge, which serves its methods for every runtime.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub edge: bool,
}
