//! The format of the files by which programs of the same user find a running daemon. The crate
//! `connection-file` writes, reads and sweeps them.
//!
//! `{session}.json` is for clients. `{session}.host.json` holds the host token, for windows that attach
//! as hosts. The host token has a file of its own so that a client never needs to read it.

use serde::{Deserialize, Serialize};

use crate::id::SessionId;
use crate::secret::Secret;

/// Version of the format. Readers skip files of a version that they do not know.
pub const SCHEMA: u32 = 1;

/// The content of `{session}.json`, the file for clients.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConnectionFile {
    /// Version of the format: [`SCHEMA`].
    pub schema: u32,
    /// The session that the daemon serves. The file is named after it.
    pub session: SessionId,
    /// The daemon's process id.
    pub pid: u32,
    /// When the daemon's process started, in clock ticks since boot. Pid and start time together identify
    /// the process, even if another process gets the same pid later.
    pub process_start: u64,
    /// The daemon's version.
    pub version: String,
    /// Address of the TCP listener, `ws://127.0.0.1:PORT/`.
    pub addr: String,
    /// Path of the Unix socket, if the daemon listens on one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unix: Option<String>,
    /// The client token.
    pub token: Secret,
    /// Directory in which the daemon was started.
    pub directory: String,
    /// The program of the run, without its arguments, which may contain secrets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// Whether the run waits for a window to attach as its host.
    pub wants_editor: bool,
    /// When the daemon started, in milliseconds since 1970.
    pub started_at: u64,
}

/// The content of `{session}.host.json`, the file for hosts.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HostFile {
    /// Version of the format: [`SCHEMA`].
    pub schema: u32,
    /// The session that the daemon serves. The file is named after it.
    pub session: SessionId,
    /// The daemon's process id. Both files have it, so that readers can check each file on its own.
    pub pid: u32,
    /// When the daemon's process started, in clock ticks since boot.
    pub process_start: u64,
    /// The host token.
    pub host_token: Secret,
}

/// File name of a session's [`ConnectionFile`].
pub fn file_name(session: &SessionId) -> String {
    format!("{session}.json")
}

/// File name of a session's Unix socket.
pub fn socket_name(session: &SessionId) -> String {
    format!("{session}.sock")
}

/// File name of a session's [`HostFile`].
pub fn host_file_name(session: &SessionId) -> String {
    format!("{session}.host.json")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn client_file_host_file_and_socket_are_named_after_the_session() {
        let session: SessionId = "run_1-A".parse().unwrap();
        assert_eq!(file_name(&session), "run_1-A.json");
        assert_eq!(host_file_name(&session), "run_1-A.host.json");
        assert_eq!(socket_name(&session), "run_1-A.sock");
    }
}
