//! Tests of routes, keys and errors.

use std::process::Command;

use serde_json::{Value, json};

use crate::server::{Options, Server, content, keys};

const KEY: &str = "a secret for this test";

#[test]
fn alive_becomes_ok_and_info_has_every_figure() {
    let server = Server::start();
    let alive = server.get("/alive");
    assert_eq!(alive.status, 200);
    assert!(["ok", "not initialized"].contains(&alive.json()["status"].as_str().unwrap()));
    server.output("true");
    assert_eq!(server.get("/alive").text, r#"{"status":"ok"}"#);

    let info = server.get("/server_info").json();
    assert_eq!(keys(&info), ["idle_time", "resources", "uptime"]);
    let resources = &info["resources"];
    assert_eq!(keys(resources), ["cpu_percent", "disk", "io", "memory"]);
    for (part, names) in [
        ("memory", &["percent", "rss", "vms"][..]),
        ("disk", &["free", "percent", "total", "used"]),
        ("io", &["read_bytes", "write_bytes"]),
    ] {
        assert_eq!(keys(&resources[part]), names);
        assert!(resources[part].as_object().unwrap().values().all(Value::is_number), "{info}");
    }
    assert!(resources["memory"]["rss"].as_u64().unwrap() > 0);
    assert!(info["uptime"].as_f64() >= info["idle_time"].as_f64(), "an action was started: {info}");
}

#[test]
fn the_key_is_asked_for_before_anything_else() {
    let server = Server::start_with(&Options { key: Some(KEY), ..Options::default() });
    for headers in [&[][..], &[("X-Session-API-Key", "wrong")], &[("Authorization", KEY)]] {
        for path in ["/execute_action", "/list_files", "/nowhere", "/mcp/sse", "/alive/"] {
            let reply = server.post_with(path, "nonsense", headers);
            assert_eq!((reply.status, &*reply.text), (403, r#"{"detail":"Invalid API Key"}"#));
        }
    }
    assert_eq!(server.get("/alive").status, 200);
    assert_eq!(server.post_with("/alive", "", &[]).status, 405);
    let spelled = server.post_with("/nowhere", "", &[("x-SESSION-api-key", KEY)]);
    assert_eq!((spelled.status, &*spelled.text), (404, r#"{"detail":"Not Found"}"#));
    assert_eq!(server.output("echo in"), "in");
}

#[test]
fn other_paths_and_methods_are_named_as_such() {
    let server = Server::start();
    let reply = server.get("/execute_action");
    assert_eq!((reply.status, &*reply.text), (405, r#"{"detail":"Method Not Allowed"}"#));
    let reply = server.get("/");
    assert_eq!((reply.status, &*reply.text), (404, r#"{"detail":"Not Found"}"#));
}

#[test]
fn bodies_of_another_shape_are_unprocessable() {
    let server = Server::start();
    for body in ["", "nonsense", "[]", "{}", r#"{"action": "run"}"#, "{\"action\": null}"] {
        let reply = server.post("/execute_action", body);
        assert_eq!(reply.status, 422, "{body}");
        let json = reply.json();
        assert_eq!(json["detail"], "Invalid request parameters");
        assert!(json["errors"].is_string(), "{json}");
    }
}

#[test]
fn an_invalid_action_is_an_error_and_the_next_one_works() {
    let server = Server::start();
    for (event, word) in [
        (json!({"action": "dance"}), "dance"),
        (json!({"action": "think", "args": {"thought": "x"}}), "think"),
        (json!({"action": "message", "args": {"content": "x"}}), "message"),
        (json!({"action": "run"}), "command"),
        (json!({"action": "run", "args": {"command": "true", "bogus": 1}}), "bogus"),
        (json!({"action": "write", "args": {"path": "/tmp/x"}}), "content"),
        (json!({"observation": "run", "content": ""}), "Invalid action type"),
        (json!({"id": 3}), "Unknown event type"),
    ] {
        let reply = server.event(&event);
        assert_eq!(reply.status, 400, "{event}: {reply:?}");
        let json = reply.json();
        assert!(json["detail"].as_str().unwrap().contains(word), "{json}");
        assert_eq!(json["kind"], "invalid");
    }
    assert_eq!(server.output("echo still here"), "still here");
}

#[test]
fn extra_members_of_an_event_are_accepted() {
    let server = Server::start();
    let reply = server.event(&json!({
        "id": 12, "timestamp": "2025-11-16T01:32:11.123456", "source": "agent",
        "message": "Running command: ls", "cause": 11, "tool_call_metadata": {"a": 1},
        "llm_metrics": {"b": 2}, "action": "run", "timeout": 120.0,
        "args": {
            "command": "echo x", "is_input": false, "thought": "", "blocking": false,
            "is_static": false, "cwd": null, "hidden": false, "confirmation_state": "confirmed",
            "security_risk": -1, "keep_prompt": false, "task_completed": null,
            "timestamp": "2025-11-16T01:32:11", "translated_ipython_code": "x",
            "image_urls": [], "images_urls": ["y"], "is_confirmed": "confirmed"
        }
    }));
    assert_eq!(reply.status, 200, "{reply:?}");
    assert_eq!(content(&reply.json()), "x");
}

#[test]
fn web_pages_cannot_use_a_server_without_a_key() {
    let arguments = vec!["--without-key".to_owned()];
    let server = Server::start_with(&Options { arguments, ..Options::default() });
    let body = r#"{"action":{"action":"run","args":{"command":"touch broken-in"}}}"#;
    for header in [
        ("Origin", "https://example.org"),
        ("Origin", "null"),
        ("Sec-Fetch-Site", "cross-site"),
        ("Host", "rebound.example.org"),
    ] {
        let reply = server.post_with("/execute_action", body, &[header]);
        assert_eq!(reply.status, 403, "{header:?}");
        assert!(reply.json()["detail"].is_string());
    }
    assert_eq!(server.output("ls"), "");
}

#[test]
fn other_addresses_need_a_key() {
    let work = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_openhands-edge"));
    command.args(["serve", "0", "--host", "0.0.0.0", "--working-dir"]).arg(work.path());
    let output = command.env("SESSION_API_KEY", "").output().unwrap();
    assert!(!output.status.success());
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(message.contains("set SESSION_API_KEY"), "{message}");
}

#[test]
fn an_unknown_plugin_ends_the_program() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_openhands-edge"));
    let output = command.args(["serve", "0", "--plugins", "unheard_of"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn the_debug_flag_adds_a_trace() {
    let plain = Server::start();
    let error = plain.action("read", json!({"path": "missing"}));
    assert_eq!(keys(&error["extras"]), ["error_id"]);
    let arguments = vec!["--debug".to_owned()];
    let talkative = Server::start_with(&Options { arguments, ..Options::default() });
    let error = talkative.action("read", json!({"path": "missing"}));
    assert_eq!(keys(&error["extras"]), ["error_id", "trace"]);
    assert!(error["extras"]["trace"].as_str().unwrap().contains("NotFound"), "{error}");
}

#[test]
fn the_end_is_orderly() {
    let mut server = Server::start();
    server.output("sleep 1000 & echo started");
    assert_eq!(server.end(), Some(0));
    let left = server.state();
    assert!(!left.join("tmux").exists(), "the tmux server has ended");
    assert!(!left.join("shells").exists(), "no shell is left");
}
