//! Operations and their events.

use super::*;

fn started(id: u64, token: &str) -> Value {
    json!({"type": "dapEvent", "event": "asyncOperationStarted",
           "body": {"operationId": id, "resumeToken": token, "timeoutMs": 300_000}})
}

fn submit(id: &str, token: &str, client: Option<u64>) -> Value {
    json!({"jsonrpc": "2.0", "method": "dapEvent", "params": {"event": "asyncOperationSubmit", "client": client,
           "body": {"operationId": id, "resumeToken": token, "result": 1}}})
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
fn a_host_that_comes_later_is_told_of_pending_operations() {
    let mut w = world();
    let client = w.bridge_client(2);
    w.says(client, started(7, "t7"));
    w.says(client, started(8, "t8"));
    let host = w.host(1);
    let ids: Vec<_> =
        w.take(host).iter().map(|event| event["params"]["body"]["operationId"].clone()).collect();
    assert_eq!(ids, [7, 8]);
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
    for limits in [
        Limits { operations: 2, ..Limits::default() },
        Limits { operation_bytes: 150, ..Limits::default() },
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
