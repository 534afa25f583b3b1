//! Runs an editor in the browser, if one is installed.

use std::{
    fs, io,
    path::{Path, PathBuf},
    process::Stdio,
    sync::Arc,
};

use axum::{Json, extract::State};
use serde_json::{Value, json};
use tokio::process::{Child, Command};
use uuid::Uuid;

use super::server::Server;

/// The settings of the editor.
#[derive(Debug, Clone)]
pub struct EditorSettings {
    /// The server program of an editor that takes the options of OpenVSCode Server.
    pub program: PathBuf,
    /// Its port.
    pub port: u16,
    /// The directory that it opens.
    pub folder: PathBuf,
    /// The path under which it is served, if not `/`.
    pub base_path: Option<String>,
    /// The state directory, which has the file with the token.
    pub state: PathBuf,
}

/// The name of the file with the token.
const TOKEN_FILE: &str = "editor-token";

/// Runs a program until standard input ends, then kills the whole process group. The program is
/// often a script that starts another one, which would otherwise keep the port and the token.
const RUN_UNTIL_EOF: &str = r#""$@" </dev/null & read -r _; kill -KILL 0"#;

/// A running editor. It ends with the server, even if the server is killed, because its standard
/// input is a pipe from the server.
#[derive(Debug)]
pub(super) struct Editor {
    token: String,
    _process: Child,
}

/// Removes the token of an editor from a state directory, also that of a server that was killed.
pub(super) fn remove_token(state: &Path) {
    match fs::remove_file(state.join(TOKEN_FILE)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            tracing::warn!(%error, "the file with the editor's token could not be removed");
        }
        _ => {}
    }
}

impl Editor {
    pub(super) fn start(settings: &EditorSettings) -> io::Result<Self> {
        rustix::fs::access(&settings.program, rustix::fs::Access::EXEC_OK)?;
        let token = Uuid::new_v4().to_string();
        let file = settings.state.join(TOKEN_FILE);
        private_files::replace(&file, token.as_bytes())?;
        let mut command = Command::new("/bin/sh");
        command.args(["-c", RUN_UNTIL_EOF, "editor"]).arg(&settings.program);
        // Not as an argument, which all users can see.
        command.arg("--connection-token-file").arg(&file);
        command.args(["--host", "0.0.0.0", "--port", &settings.port.to_string()]);
        command.arg("--disable-workspace-trust");
        if let Some(base) = &settings.base_path {
            command.args(["--server-base-path", base]);
        }
        command.current_dir(&settings.folder).process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        Ok(Self { token, _process: command.spawn()? })
    }
}

/// The token with which a browser opens the editor; null if there is none.
pub(super) async fn connection_token(State(server): State<Arc<Server>>) -> Json<Value> {
    server.executor().await;
    Json(json!({ "token": server.editor.get().map(|editor| &editor.token) }))
}
