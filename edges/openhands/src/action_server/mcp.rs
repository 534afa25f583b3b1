//! Answers requests for MCP servers. This server runs none, and says so where clients look.

use axum::{Json, body::Bytes};
use serde::Deserialize;
use serde_json::{Value, json};

use super::failure::Failure;

/// A program that a client wants to run as an MCP server.
#[derive(Debug, Deserialize)]
struct ToolServer {
    name: String,
    #[serde(rename = "command")]
    _command: String,
    #[serde(default, rename = "args")]
    _args: Vec<String>,
    #[serde(default, rename = "env")]
    _env: std::collections::BTreeMap<String, String>,
}

pub(super) async fn update_mcp_server(body: Bytes) -> Result<Json<Value>, Failure> {
    let Ok(Value::Array(wanted)) = serde_json::from_slice(&body) else {
        return Err(Failure::invalid("Request must be a list of MCP tools to sync"));
    };
    let mut names = Vec::new();
    for item in wanted {
        let server = serde_json::from_value::<ToolServer>(item).map_err(|error| {
            Failure::invalid(&format!("an MCP server is not described correctly: {error}"))
        })?;
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        if server.name.is_empty() || !server.name.chars().all(fits) {
            return Err(Failure::invalid(&format!(
                "{:?} is not a valid name of an MCP server: use letters, digits, `_` and `-`",
                server.name
            )));
        }
        names.push(server.name);
    }
    let log = match names.as_slice() {
        [] => String::new(),
        names => format!(
            "this server does not run MCP servers, so these were not started: {}",
            names.join(", ")
        ),
    };
    Ok(Json(json!({"detail": "MCP server updated successfully", "router_error_log": log})))
}
