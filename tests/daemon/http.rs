use harness::{Daemon, http};
use serde_json::{Value, json};

fn bearer(daemon: &Daemon) -> String {
    format!("Authorization: Bearer {}", daemon.text("token"))
}

#[test]
fn health_needs_no_token_and_says_nothing_else() {
    let daemon = Daemon::start();
    let answer = http(daemon.port(), "GET /healthz", &[], "");
    assert_eq!((answer.status, answer.body.as_str()), (200, "ok\n"));
}

#[test]
fn status_and_metrics_need_the_token() {
    let daemon = Daemon::start();
    let _host = daemon.host("h");
    let bearer = bearer(&daemon);
    for path in ["GET /status", "GET /metrics"] {
        assert_eq!(http(daemon.port(), path, &[], "").status, 401);
    }
    let status: Value =
        serde_json::from_str(&http(daemon.port(), "GET /status", &[&bearer], "").body).unwrap();
    assert_eq!(status["session"], daemon.ready["session"]);
    assert_eq!(status["runtimes"][0]["runtimeId"], "h");
    let metrics = http(daemon.port(), "GET /metrics", &[&bearer], "").body;
    assert!(metrics.contains("run_bridge_runtimes 1"), "{metrics}");
    assert!(metrics.contains("run_bridge_counter_refused_connections_total 2"), "{metrics}");
    assert!(metrics.ends_with("# EOF\n"));
}

#[test]
fn metrics_count_requests_by_method_and_outcome() {
    let daemon = Daemon::start();
    let mut host = daemon.host("h");
    let mut client = daemon.client();
    client.send_request("vscode/chat", json!({}));
    let request = host.request();
    host.answer(&request, json!({}));
    client.receive();
    let metrics = http(daemon.port(), "GET /metrics", &[&bearer(&daemon)], "").body;
    assert!(
        metrics.contains(r#"run_bridge_requests_total{method="vscode/chat",outcome="ok"} 1"#),
        "{metrics}"
    );
}

#[test]
fn a_second_request_on_a_connection_does_not_slip_past_the_gate() {
    let daemon = Daemon::start();
    let first = harness::http_request(daemon.port(), "GET /healthz", &[], "");
    let second = harness::http_request(daemon.port(), "GET /status", &[], "");
    let answer = harness::raw_exchange(daemon.port(), format!("{first}{second}").as_bytes());
    assert_eq!((answer.status, answer.body.as_str()), (200, "ok\n"));
}

#[test]
fn submit_finishes_an_operation() {
    let daemon = Daemon::start();
    let mut client = daemon.client();
    let body = json!({"operationId": 5, "resumeToken": "evo_5"});
    client.send(&json!({"jsonrpc": "2.0", "method": "dapEvent", "params": {"event": "asyncOperationStarted", "body": body}}));
    client.call("bridge/ping", Value::Null);
    let bearer = bearer(&daemon);
    let submit = |headers: &[&str], body: &str| {
        let answer = http(daemon.port(), "POST /submit", headers, body);
        (answer.status, serde_json::from_str::<Value>(&answer.body).unwrap())
    };
    let good = r#"{"resumeToken": "evo_5", "result": {"n": 1e400}}"#;
    let evolve_token = format!("x-evolve-run-bridge-token: {}", daemon.text("token"));
    let other_session = "x-evolve-run-bridge-session: other";
    assert_eq!(submit(&[], good).0, 401);
    assert_eq!(submit(&[&evolve_token, other_session], good).0, 401);
    assert_eq!(submit(&[&bearer], r#"{"resumeToken": "evo_5", "sessionId": "other"}"#).0, 401);
    for bad in ["{", "[]", "{}", r#"{"resumeToken": ""}"#, r#"{"resumeToken": 5}"#] {
        let (status, body) = submit(&[&bearer], bad);
        assert_eq!(status, 400, "{bad}");
        assert!(body["error"].is_string());
    }
    assert_eq!(submit(&[&bearer], r#"{"resumeToken": "unknown"}"#).0, 404);
    assert_eq!(submit(&[&evolve_token], good), (200, json!({"ok": true, "operationId": "5"})));
    let event = client.receive_text();
    assert!(event.contains("asyncOperationSubmit") && event.contains(r#""n": 1e400"#), "{event}");
    assert_eq!(submit(&[&bearer], good).0, 409);
    let long = format!(r#"{{"resumeToken": "{}"}}"#, "x".repeat(17 << 20));
    assert_eq!(submit(&[&bearer], &long).0, 413);
}
