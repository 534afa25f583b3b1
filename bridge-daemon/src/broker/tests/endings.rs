//! Cancel, deadline, departure, the end of the daemon: one answer, and the host is told.

use super::*;

/// Why a host is told to stop.
fn reason(cancel: &Value) -> &str {
    cancel["params"]["reason"].as_str().unwrap_or_else(|| panic!("no reason: {cancel}"))
}

#[test]
fn cancel_answers_once_and_tells_the_host() {
    let mut w = world();
    let (host, client) = (w.host(1), w.client(2));
    w.says(client, call("a", json!({})));
    let id = w.take_one(host)["id"].clone();
    w.says_text(client, r#"{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":"\u0061"}}"#);
    assert_eq!(kind(&w.take_one(client)), "RequestCancelled");
    let told = w.take_one(host);
    assert_eq!((cancelled(&told), reason(&told)), (&id, "RequestCancelled"));
    w.says(host, result(&id, json!("late")));
    w.says(client, json!({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": "a"}}));
    assert!(w.take(client).is_empty() && w.take(host).is_empty());
}

#[test]
fn nobody_can_cancel_for_somebody_else() {
    let mut w = world();
    let (host, client, other) = (w.host(1), w.client(2), w.client(3));
    w.says(client, call("a", json!({})));
    w.take(host);
    w.says(other, json!({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": "a"}}));
    assert!(w.take(host).is_empty() && w.take(client).is_empty());
}

#[test]
fn when_the_caller_goes_the_host_is_told() {
    let mut w = world();
    let (host, client) = (w.host(1), w.client(2));
    w.says(client, call(1, json!({})));
    let id = w.take_one(host)["id"].clone();
    w.closes(client);
    let told = w.take_one(host);
    assert_eq!((cancelled(&told), reason(&told)), (&id, "CallerGone"));
    assert_eq!(w.records[0].outcome, "CallerGone");
}

#[test]
fn deadlines_name_method_and_duration_and_tell_the_host() {
    let mut w = world();
    let (host, client) = (w.host(1), w.client(2));
    w.says(client, call(1, json!({"timeout": 1500.5})));
    let id = w.take_one(host)["id"].clone();
    w.after(Duration::from_millis(1500));
    assert!(w.take(client).is_empty());
    w.after(Duration::from_millis(1));
    let error = w.take_one(client);
    assert_eq!(kind(&error), "Timeout");
    assert_eq!(
        error["error"]["message"],
        "vscode/chat timed out: the host did not answer within 1.5 s; give it a longer timeout, or look at \
         what it is waiting for"
    );
    let told = w.take_one(host);
    assert_eq!((cancelled(&told), reason(&told)), (&id, "Timeout"));
}

#[test]
fn bridge_dialect_callers_hear_of_a_deadline_before_their_own() {
    let mut w = world();
    let (_host, client) = (w.host(1), w.bridge_client(2));
    w.says(client, bridge_call(1, json!({"timeout": 10_000})));
    w.after(Duration::from_millis(9_499));
    assert!(w.take(client).is_empty());
    w.after(Duration::from_millis(1));
    let answer = w.take_one(client);
    assert_eq!((&answer["success"], &answer["code"]), (&json!(false), &json!(-32052)));
}

#[test]
fn draining_fails_what_is_in_flight_and_closes_everybody() {
    let mut w = world();
    let (host, client) = (w.host(1), w.client(2));
    w.says(client, call(1, json!({})));
    w.take(host);
    w.event(Event::Drain);
    assert_eq!(kind(&w.take_one(client)), "ShuttingDown");
    assert_eq!(reason(&w.take_one(host)), "ShuttingDown");
    assert_eq!(w.closed, [(host, CloseReason::Ending), (client, CloseReason::Ending)]);
    w.says(client, call(2, json!({})));
    assert_eq!(kind(&w.take_one(client)), "ShuttingDown", "what was on its way is answered");
    assert!(w.take(host).is_empty());
}

#[test]
fn while_draining_only_requests_are_answered() {
    let mut w = world();
    let (host, client) = (w.host(1), w.client(2));
    w.event(Event::Drain);
    w.says(client, event("anything", json!({}), None));
    assert!(w.take(client).is_empty() && w.take(host).is_empty());
}

#[test]
fn messages_of_unknown_connections_are_ignored() {
    let mut w = world();
    let (host, stranger) = (w.host(1), PeerId(9));
    w.says(stranger, call(1, json!({})));
    w.event(Event::Sent { peer: stranger, messages: 1, bytes: 10 });
    w.closes(stranger);
    assert!(w.take(stranger).is_empty() && w.take(host).is_empty());
    w.closes(host);
    w.assert_settled();
}

#[test]
fn a_cancel_without_params_cancels_nothing() {
    let mut w = world();
    let (host, client) = (w.host(1), w.client(2));
    w.says(client, call(1, json!({})));
    w.take(host);
    w.says(client, json!({"jsonrpc": "2.0", "method": "$/cancelRequest"}));
    assert!(w.take(client).is_empty() && w.take(host).is_empty());
}
