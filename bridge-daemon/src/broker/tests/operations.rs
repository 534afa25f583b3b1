//! Operations and their events.

use super::*;

fn bridge_event(name: &str, body: Value) -> Value {
    json!({"type": "dapEvent", "event": name, "body": body})
}

fn started(id: u64, token: &str) -> Value {
    let body = json!({"operationId": id, "resumeToken": token, "timeoutMs": 300_000});
    bridge_event("asyncOperationStarted", body)
}

fn submit(id: &str, token: &str, client: Option<u64>) -> Value {
    let body = json!({"operationId": id, "resumeToken": token, "result": 1});
    event("asyncOperationSubmit", body, client)
}

#[test]
fn operations_are_announced_once_and_submitted_to_their_owner() {
    let mut w = world();
    let (host, a, b) = (w.host(1), w.bridge_client(2), w.bridge_client(3));
    w.says(a, started(7, "t7"));
    w.says(a, started(7, "t7"));
    w.says(b, started(8, "t8"));
    let announced = w.take(host);
    assert_eq!(announced.len(), 2);
    assert_eq!(announced[0]["params"]["client"], 2);
    w.says(host, submit("7", "t7", Some(2)));
    assert_eq!(w.take_one(a)["body"]["result"], 1);
    w.says(host, submit("8", "t8", None));
    assert_eq!(w.take_one(b)["event"], "asyncOperationSubmit");
    w.says(a, started(7, "t7"));
    w.says(host, submit("7", "t7", Some(2)));
    assert!(w.take(host).is_empty() && w.take(a).is_empty() && w.take(b).is_empty());
}

#[test]
fn operations_whose_ids_and_tokens_collide_are_told_apart_by_their_connection() {
    let mut w = world();
    let (host, a, b) = (w.host(1), w.bridge_client(2), w.bridge_client(3));
    w.says(a, started(7, "same"));
    w.says(b, started(7, "same"));
    w.says(host, submit("7", "same", None));
    assert!(w.take(a).is_empty() && w.take(b).is_empty(), "it could be either");
    w.says(host, submit("7", "same", Some(3)));
    assert!(w.take(a).is_empty());
    assert_eq!(w.take_one(b)["event"], "asyncOperationSubmit");
}

#[test]
fn events_are_held_back_while_a_bridge_request_is_outstanding() {
    let mut w = world();
    let (host, client) = (w.host(1), w.bridge_client(2));
    w.says(client, started(7, "t7"));
    w.says(client, bridge_call(1, json!({})));
    let asked = w.take(host)[1]["id"].clone();
    w.says(host, submit("7", "t7", Some(2)));
    assert!(w.take(client).is_empty());
    w.says(host, result(&asked, json!({})));
    let got = w.take(client);
    assert_eq!(
        (&got[0]["success"], &got[1]["event"]),
        (&json!(true), &json!("asyncOperationSubmit"))
    );
}

#[test]
fn events_are_held_back_until_the_last_outstanding_answer_and_within_bounds() {
    let body = json!("long enough for the limit to have room for an answer");
    let size = json!({"type": "dapEvent", "event": "e", "body": body}).to_string().len();
    for limits in [
        Limits { queue_messages: 4, ..Limits::default() },
        Limits { queue_bytes: 4 * size, ..Limits::default() },
        Limits { total_bytes: 2 * size, ..Limits::default() },
    ] {
        let mut w = World::new(HostWait::UntilDeadline, limits);
        let (host, client) = (w.host(1), w.bridge_client(2));
        for id in [1, 2] {
            w.says(client, bridge_call(id, json!({})));
        }
        let asked = w.take(host);
        for _ in 0..3 {
            w.says(host, event("e", body.clone(), Some(2)));
        }
        assert_eq!((w.broker.queued_bytes(), w.broker.counters().dropped_events), (2 * size, 1));
        w.says(host, result(&asked[0]["id"], json!({})));
        assert_eq!(w.take(client).len(), 1, "one request is still outstanding");
        w.says(host, result(&asked[1]["id"], json!({})));
        assert_eq!(w.take(client).len(), 3, "the answer and both events");
        assert!(w.closed.is_empty());
        assert_eq!(w.broker.queued_bytes(), 0);
    }
}

#[test]
fn held_back_events_are_not_sent_to_a_client_that_is_being_closed() {
    let limits = Limits { queue_messages: 2, ..Limits::default() };
    let mut w = World::new(HostWait::UntilDeadline, limits);
    let (host, client) = (w.host(1), w.bridge_client(2));
    w.says(client, bridge_call(1, json!({})));
    let asked = w.take_one(host)["id"].clone();
    w.fast = false;
    w.says(host, event("e", json!(1), Some(2)));
    w.says_text(client, "{");
    w.says(host, result(&asked, json!({})));
    assert_eq!(w.closed, [(client, CloseReason::SlowConsumer)]);
    assert_eq!(w.take_one(client)["error"], "Invalid JSON");
}

#[test]
fn held_back_events_are_dropped_with_their_client() {
    let mut w = world();
    let (host, client) = (w.host(1), w.bridge_client(2));
    w.says(client, started(7, "t7"));
    w.says(client, bridge_call(1, json!({})));
    w.fast = false;
    w.says_text(client, "{");
    w.says(host, submit("7", "t7", Some(2)));
    assert!(w.broker.queued_bytes() > 0);
    w.closes(client);
    w.closes(host);
    w.assert_settled();
}

#[test]
fn a_host_that_comes_later_is_told_of_pending_operations() {
    let mut w = world();
    let client = w.bridge_client(2);
    for n in 0..20 {
        w.says(client, started(n, "t"));
    }
    let host = w.host(1);
    let ids: Vec<_> =
        w.take(host).iter().map(|event| event["params"]["body"]["operationId"].clone()).collect();
    assert_eq!(ids, (0..20).collect::<Vec<_>>(), "in the order of their announcement");
}

#[test]
fn operations_end_with_their_time_and_with_their_connection() {
    let mut w = world();
    let (host, client) = (w.host(1), w.bridge_client(2));
    w.says(client, started(7, "t7"));
    w.says(client, started(8, "t8"));
    w.take(host);
    w.after(seconds(299));
    w.says(client, started(9, "t9"));
    w.take(host);
    w.after(seconds(1));
    let ended = w.take(host);
    assert_eq!(ended.len(), 2);
    assert_eq!(ended[0]["params"]["body"]["status"], "cancelled");
    assert_eq!(w.broker.operations(), 1);
    w.closes(client);
    assert_eq!(
        w.take_one(host)["params"]["body"],
        json!({"operationId": "9", "status": "cancelled"})
    );
    w.closes(host);
    w.assert_settled();
}

#[test]
fn a_submit_from_outside_finishes_an_operation_once() {
    let mut w = world();
    let (host, a, b) = (w.host(1), w.bridge_client(2), w.bridge_client(3));
    w.says(a, started(7, "t7"));
    w.says(a, started(8, "twice"));
    w.says(b, started(8, "twice"));
    w.take(host);
    let value = RawValue::from_string("1e400".into()).unwrap();
    assert_eq!(w.broker.submit("t7", &value), Ok("7".into()));
    let effects = w.broker.take_effects();
    let [Effect::Send { peer, text }, Effect::Send { peer: told, .. }] = &effects[..] else {
        panic!("{effects:?}")
    };
    assert_eq!((*peer, *told), (a, host));
    assert!(text.contains(r#""result":1e400"#), "{text}");
    assert_eq!(w.broker.submit("t7", &value), Err(SubmitError::Finished));
    assert_eq!(w.broker.submit("none", &value), Err(SubmitError::Unknown));
    assert_eq!(w.broker.submit("twice", &value), Err(SubmitError::Ambiguous));
}

#[test]
fn operations_are_bounded() {
    let body_bytes = started(0, "t0")["body"].to_string().len();
    for limits in [
        Limits { operations: 2, ..Limits::default() },
        Limits { operation_bytes: 2 * body_bytes, ..Limits::default() },
        Limits { operation_bytes: 3 * body_bytes - 1, ..Limits::default() },
    ] {
        let mut w = World::new(HostWait::UntilDeadline, limits);
        let client = w.bridge_client(2);
        for n in 0..5 {
            w.says(client, started(n, &format!("t{n}")));
        }
        assert_eq!(w.broker.operations(), 2);
    }
}

#[test]
fn a_run_may_start_any_number_of_operations_one_after_the_other() {
    let mut w = World::new(HostWait::UntilDeadline, Limits { operations: 3, ..Limits::default() });
    let (host, client) = (w.host(1), w.bridge_client(2));
    for n in 0..20 {
        w.says(client, started(n, &format!("t{n}")));
        w.says(client, started(n, &format!("t{n}")));
        assert_eq!(w.take(host).len(), 1, "announced once");
        w.says(host, submit(&n.to_string(), &format!("t{n}"), Some(2)));
        assert_eq!(w.take_one(client)["event"], "asyncOperationSubmit");
    }
    assert_eq!(w.broker.operations(), 0);
}

#[test]
fn the_window_that_was_told_hears_of_the_end_and_another_takes_over_when_it_leaves() {
    let mut w = world();
    let (first, client) = (w.host(1), w.bridge_client(2));
    w.says(client, started(7, "t7"));
    assert_eq!(w.take(first).len(), 1);
    let second = w.host(3);
    assert!(w.take(second).is_empty(), "the first has it in its care");
    w.closes(first);
    assert_eq!(w.take_one(second)["params"]["body"]["operationId"], 7);
    w.closes(client);
    assert_eq!(w.take_one(second)["params"]["body"]["status"], "cancelled");
}

#[test]
fn a_submit_that_cannot_be_delivered_leaves_the_operation_pending() {
    let limits = Limits { queue_messages: 1, ..Limits::default() };
    let mut w = World::new(HostWait::UntilDeadline, limits);
    let client = w.bridge_client(2);
    w.says(client, started(7, "t7"));
    w.fast = false;
    w.says_text(client, "{");
    let value = RawValue::from_string("1".into()).unwrap();
    assert_eq!(w.broker.submit("t7", &value), Err(SubmitError::Overloaded));
    w.flush(client);
    assert_eq!(w.broker.submit("t7", &value), Ok("7".into()));
}

#[test]
fn events_that_mean_nothing_here_travel_both_ways() {
    let mut w = world();
    let (host, client) = (w.host(1), w.bridge_client(2));
    w.says(client, bridge_event("custom", json!(1)));
    let expected = json!({"event": "custom", "body": 1, "client": 2});
    assert_eq!(w.take_one(host)["params"], expected);
    w.says(host, event("custom", json!(2), Some(2)));
    assert_eq!(w.take_one(client), json!({"type": "dapEvent", "event": "custom", "body": 2}));
    // To nobody, to a host, to everybody.
    for client in [Some(9), Some(1), None] {
        w.says(host, event("custom", json!(2), client));
    }
    assert!(w.take(client).is_empty() && w.take(host).is_empty());
    assert_eq!((w.broker.counters().events, w.broker.counters().dropped_events), (2, 3));
}

#[test]
fn an_operation_is_over_when_its_owner_says_so() {
    let mut w = world();
    let (host, client) = (w.host(1), w.bridge_client(2));
    w.says(client, started(7, "t7"));
    for (status, pending) in [("pending", 1), ("completed", 0)] {
        let body = json!({"operationId": 7, "status": status});
        w.says(client, bridge_event("asyncOperationUpdated", body));
        assert_eq!(w.broker.operations(), pending, "{status}");
    }
    assert_eq!(w.take(host).len(), 3, "the host hears all of it");
    assert_eq!(w.broker.next_deadline(), None);
}

#[test]
fn operations_with_long_names_are_passed_on_but_not_remembered() {
    let mut w = world();
    let (host, client) = (w.host(1), w.bridge_client(2));
    for (id, token, remembered) in [(256, 256, 1), (257, 1, 1), (1, 257, 1)] {
        let body = json!({"operationId": "i".repeat(id), "resumeToken": "t".repeat(token)});
        w.says(client, bridge_event("asyncOperationStarted", body));
        assert_eq!(w.take(host).len(), 1);
        assert_eq!(w.broker.operations(), remembered);
    }
}

#[test]
fn only_a_sensible_timeout_ends_an_operation() {
    for (timeout, ends) in [(0.0, false), (-1.0, false), (1e12, false), (1.0, true), (9e11, true)] {
        let mut w = world();
        let client = w.bridge_client(2);
        let body = json!({"operationId": 7, "timeoutMs": timeout});
        w.says(client, bridge_event("asyncOperationStarted", body));
        assert_eq!(w.broker.next_deadline().is_some(), ends, "{timeout}");
    }
}

#[test]
fn as_many_operations_are_remembered_after_their_end_as_may_be_pending() {
    let mut w = World::new(HostWait::UntilDeadline, Limits { operations: 2, ..Limits::default() });
    let (host, client) = (w.host(1), w.bridge_client(2));
    for n in 1..=3 {
        w.says(client, started(n, "t"));
        w.says(host, submit(&n.to_string(), "t", Some(2)));
    }
    w.says(client, started(4, "t"));
    w.take(host);
    for n in [4, 3, 2] {
        w.says(client, started(n, "t"));
        assert!(w.take(host).is_empty(), "{n} is known");
    }
    w.says(client, started(1, "t"));
    assert_eq!(w.take(host).len(), 1, "the oldest was forgotten");
}

#[test]
fn events_that_name_no_operation_are_passed_on_and_not_remembered() {
    let mut w = world();
    let (host, client) = (w.host(1), w.bridge_client(2));
    for _ in 0..2 {
        w.says(client, bridge_event("asyncOperationStarted", json!({"note": "no id"})));
        assert_eq!(w.take_one(host)["params"]["body"]["note"], "no id");
    }
    assert_eq!(w.broker.operations(), 0);
    w.says(host, event("asyncOperationSubmit", json!({"result": 1}), Some(2)));
    w.says(host, submit("7", "t7", Some(2)));
    assert!(w.take(client).is_empty(), "there is nothing to submit to");
    assert_eq!(w.broker.submit("t7", RawValue::NULL), Err(SubmitError::Unknown));
}
