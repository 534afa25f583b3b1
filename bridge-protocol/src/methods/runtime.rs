//! `runtime/*`: which hosts are attached, and what they offer.

use serde::{Deserialize, Serialize};

use super::{Empty, MethodType};

/// `runtime/register`, by a host: says what it serves. Until then nothing is sent to it.
pub struct Register;

impl MethodType for Register {
    const NAME: &'static str = "runtime/register";
    type Params = RegisterParams;
    type Result = RegisterResult;
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
}

/// The name under which it is listed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RegisterResult {
    /// The name.
    pub runtime_id: String,
}

/// `runtime/update`, by a host: something about it changed.
pub struct Update;

impl MethodType for Update {
    const NAME: &'static str = "runtime/update";
    type Params = UpdateParams;
    type Result = Empty;
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

/// `runtime/unregister`, by a host: it serves no more; what it is working on fails at once.
pub struct Unregister;

impl MethodType for Unregister {
    const NAME: &'static str = "runtime/unregister";
    type Params = Empty;
    type Result = Empty;
}

/// `runtime/list`: all hosts that are attached.
pub struct ListRuntimes;

impl MethodType for ListRuntimes {
    const NAME: &'static str = "runtime/list";
    type Params = Empty;
    type Result = Vec<RuntimeInfo>;
}

/// `runtime/get`: one of them.
pub struct GetRuntime;

impl MethodType for GetRuntime {
    const NAME: &'static str = "runtime/get";
    type Params = RuntimeRef;
    type Result = RuntimeInfo;
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
}
