//! The shape of the files by which programs of the same user find a running daemon. Writing,
//! reading and sweeping them is the business of the `connection-file` crate.
//!
//! `{session}.json` is for clients. `{session}.host.json` holds the other secret, for windows that
//! attach as hosts; it lies in a file of its own so that a client need never see it.

use serde::{Deserialize, Serialize};

use crate::id::SessionId;
use crate::secret::Secret;

/// Version of the shape. Readers skip files of a version that they do not know.
pub const SCHEMA: u32 = 1;

/// What `{session}.json` says.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConnectionFile {
    /// [`SCHEMA`].
    pub schema: u32,
    /// The session, also the file's name.
    pub session: SessionId,
    /// The daemon's process.
    pub pid: u32,
    /// When that process started, in the kernel's own unit: with the pid, names it for ever.
    pub process_start: u64,
    /// The daemon's version.
    pub version: String,
    /// Address of the TCP listener, `ws://127.0.0.1:PORT/`.
    pub addr: String,
    /// Path of the Unix socket, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unix: Option<String>,
    /// The client token.
    pub token: Secret,
    /// Directory in which the run was started.
    pub directory: String,
    /// The program that runs, without its arguments (they may hold anything).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// Whether the run waits for a window to attach as its host.
    pub wants_editor: bool,
    /// Milliseconds since 1970.
    pub started_at: u64,
}

/// What `{session}.host.json` says.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HostFile {
    /// [`SCHEMA`].
    pub schema: u32,
    /// The session.
    pub session: SessionId,
    /// The daemon's process, as in [`ConnectionFile`]: each file can be judged on its own.
    pub pid: u32,
    /// When that process started.
    pub process_start: u64,
    /// The host token.
    pub host_token: Secret,
}

/// Name of the client's file.
pub fn file_name(session: &SessionId) -> String {
    format!("{session}.json")
}

/// Name of the Unix socket, when there is one.
pub fn socket_name(session: &SessionId) -> String {
    format!("{session}.sock")
}

/// Name of the host's file.
pub fn host_file_name(session: &SessionId) -> String {
    format!("{session}.host.json")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_session_has_names_of_its_own_for_clients_hosts_and_socket() {
        let session: SessionId = "run_1-A".parse().unwrap();
        assert_eq!(file_name(&session), "run_1-A.json");
        assert_eq!(host_file_name(&session), "run_1-A.host.json");
        assert_eq!(socket_name(&session), "run_1-A.sock");
    }
}
