//! `runtime/*`: which hosts are attached, and what they offer.

use serde::{Deserialize, Serialize};

use super::{Empty, methods};

methods! {
    /// `runtime/register`, by a host: says what it serves. Until then nothing is sent to it.
    Register = "runtime/register": RegisterParams => RegisterResult { needs: [], within: Talk };
    /// `runtime/update`, by a host: something about it changed.
    Update = "runtime/update": UpdateParams => Empty { needs: [], within: Talk };
    /// `runtime/unregister`, by a host: it serves no more; what it is working on fails at once.
    Unregister = "runtime/unregister": Empty => Empty { needs: [], within: Talk };
    /// `runtime/list`: all hosts that are attached.
    ListRuntimes = "runtime/list": Empty => Vec<RuntimeInfo> { needs: [], within: Talk };
    /// `runtime/get`: one of them.
    GetRuntime = "runtime/get": RuntimeRef => RuntimeInfo { needs: [], within: Talk };
}

/// Who the host is.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RegisterParams {
    /// Its own name for itself, kept over reconnections. The same name replaces an older
    /// connection. Drawn by the daemon when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime_id: Option<String>,
    /// For people, for instance the window's title.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub title: String,
    /// Folders that are open there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workspace_folders: Vec<String>,
    /// Methods that it serves, by canonical name; `dapEvent` to receive events.
    pub methods: Vec<String>,
    /// Whether its window has the focus.
    #[serde(default)]
    pub focused: bool,
    /// Whether it is an edge: its methods are for every runtime, so requests for them go to it whatever
    /// `runtimeId` or `path` they name. It passes these on to the tools that it calls.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub edge: bool,
}

/// The name under which it is listed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RegisterResult {
    /// The name.
    pub runtime_id: String,
}

/// What changed; absent members stay as they are.
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
    /// Whether it now has the focus.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub focused: Option<bool>,
}

/// Names a runtime.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RuntimeRef {
    /// As listed.
    pub runtime_id: String,
}

/// What is known of a host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RuntimeInfo {
    /// Its name.
    pub runtime_id: String,
    /// For people.
    pub title: String,
    /// Folders that are open there.
    pub workspace_folders: Vec<String>,
    /// What it serves.
    pub methods: Vec<String>,
    /// Whether it has the focus.
    pub focused: bool,
    /// Requests that it is working on.
    pub in_flight: usize,
    /// Whether it is an edge, which serves its methods for every runtime.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub edge: bool,
}
