//! `status`: prints the daemon's hosts, clients, requests in flight and counters.

use std::fmt::Write;
use std::time::Duration;

use bridge_client::endpoint::Age;
use bridge_protocol::methods::{RuntimeInfo, Status, StatusResult};

use super::{Context, typed};
use crate::failure::Failure;
use crate::output::Style;

pub async fn run(mut context: Context) -> Result<(), Failure> {
    let result = context.call::<Status>(&Default::default()).await?;
    match context.output.style {
        Style::Json => context.output.json(&result).await,
        _ => context.output.line(&shown(&typed::<Status>(&result)?)).await,
    }
}

fn shown(status: &StatusResult) -> String {
    let age = Age(Duration::try_from_secs_f64(status.uptime).unwrap_or_default());
    let mut text = format!(
        "session   {}\n\
         daemon    version {}, process {}, for {age}\n\
         clients   {}\n\
         requests  {} in flight, {} bytes queued, {} operations pending\n",
        status.session,
        status.version,
        status.pid,
        status.clients,
        status.in_flight,
        status.queued_bytes,
        status.operations,
    );
    if status.runtimes.is_empty() {
        text.push_str("hosts     none attached");
    }
    for (n, runtime) in status.runtimes.iter().enumerate() {
        let label = if n == 0 { "hosts   " } else { "\n        " };
        // Writing to a String cannot fail.
        let _ = write!(text, "{label}  {}", host(runtime));
    }
    for (n, (name, count)) in status.counters.iter().filter(|(_, count)| **count > 0).enumerate() {
        let label = if n == 0 { "\ncounters" } else { "\n        " };
        // Writing to a String cannot fail.
        let _ = write!(text, "{label}  {name} {count}");
    }
    text
}

fn host(runtime: &RuntimeInfo) -> String {
    let RuntimeInfo { runtime_id, title, workspace_folders, methods, focused, in_flight, edge } =
        runtime;
    // Writing to a String cannot fail.
    let mut text = runtime_id.clone();
    if !title.is_empty() && title != runtime_id {
        let _ = write!(text, " ({title})");
    }
    let _ = write!(text, ": {} methods, {in_flight} in flight", methods.len());
    if *focused {
        text.push_str(", focused");
    }
    if *edge {
        text.push_str(", edge");
    }
    if !workspace_folders.is_empty() {
        let _ = write!(text, ", {}", workspace_folders.join(", "));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_is_told_in_a_few_lines() {
        let status: StatusResult = serde_json::from_value(serde_json::json!({
            "version": "0.1.0", "session": "s1", "pid": 4711, "uptime": 130.5, "clients": 2,
            "runtimes": [{
                "runtimeId": "w1", "title": "orders", "workspaceFolders": ["/home/ada/orders"],
                "methods": ["vscode/chat"], "focused": true, "inFlight": 1,
            }, {
                "runtimeId": "openhands", "title": "", "workspaceFolders": [],
                "methods": ["action/execute"], "focused": false, "inFlight": 0, "edge": true,
            }],
            "inFlight": 1, "queuedBytes": 0, "operations": 0,
            "counters": {"requests": 7, "errors": 0},
        }))
        .unwrap();
        assert_eq!(
            shown(&status),
            "session   s1\n\
             daemon    version 0.1.0, process 4711, for 2 min\n\
             clients   2\n\
             requests  1 in flight, 0 bytes queued, 0 operations pending\n\
             hosts     w1 (orders): 1 methods, 1 in flight, focused, /home/ada/orders\n\
             \u{20}         openhands: 1 methods, 0 in flight, edge\n\
             counters  requests 7"
        );
    }
}
