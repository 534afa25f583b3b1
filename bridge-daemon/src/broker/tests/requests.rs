//! Requests, answers and what travels between them.

use super::*;

#[test]
fn answers_go_to_the_caller_under_its_own_id() {
    let mut w = world();
    let (host, a, b) = (w.host(1), w.client(2), w.client(3));
    w.says(a, call("same", json!({"from": "a"})));
    w.says(b, call("same", json!({"from": "b"})));
    let asked = w.take(host);
    assert_ne!(asked[0]["id"], asked[1]["id"]);
    w.says(host, result(&asked[1]["id"], json!("for b")));
    w.says(host, result(&asked[0]["id"], json!("for a")));
    assert_eq!(w.take_one(a), json!({"jsonrpc": "2.0", "id": "same", "result": "for a"}));
    assert_eq!(w.take_one(b), json!({"jsonrpc": "2.0", "id": "same", "result": "for b"}));
}

#[test]
fn aliases_reach_the_host_under_the_canonical_name() {
    let mut w = world();
    let (host, client) = (w.host(1), w.client(2));
    w.says(client, json!({"id": 1, "type": "show_message", "params": {"message": "x"}}));
    assert_eq!(w.take_one(host)["method"], "vscode/showMessage");
}

#[test]
fn payloads_travel_byte_for_byte_both_ways() {
    let payload = r#"{"b":1e400,"a":1.0,"s":"\u0031\ud800","n":12345678901234567890}"#;
    let mut broker = Broker::new("t".parse().unwrap(), Limits::default(), HostWait::UntilDeadline);
    let now = Instant::now();
    let (client, host) = (PeerId(1), PeerId(2));
    broker.handle(
        Event::Connected {
            peer: client,
            grant: Grant::Client(Rights::ALL),
            dialect: Dialect::JsonRpc,
        },
        now,
    );
    let grant = Grant::Host(general().into());
    broker.handle(Event::Connected { peer: host, grant, dialect: Dialect::JsonRpc }, now);
    let methods = vec!["vscode/chat".to_owned()];
    let params = bridge_protocol::methods::RegisterParams { methods, ..Default::default() };
    broker.register(host, params, now).unwrap();
    let text =
        format!(r#"{{"jsonrpc":"2.0","id":"\u0031","method":"vscode/chat","params":{payload}}}"#);
    let sent = |effects: &[Effect]| match effects {
        [Effect::Send { text, .. }, ..] => text.clone(),
        other => panic!("{other:?}"),
    };
    let forwarded = sent(&broker.handle(Event::Message { peer: client, text: &text }, now));
    assert_eq!(
        forwarded,
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"vscode/chat","params":{payload}}}"#)
    );
    let answer = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{payload}}}"#);
    let returned = sent(&broker.handle(Event::Message { peer: host, text: &answer }, now));
    assert_eq!(returned, format!(r#"{{"jsonrpc":"2.0","id":"\u0031","result":{payload}}}"#));
}

#[test]
fn the_bridge_dialect_is_answered_in_kind() {
    let mut w = world();
    let (host, client) = (w.host(1), w.bridge_client(2));
    for (answer, expected) in [
        (
            json!({"result": {"response": "4"}}),
            json!({"id": 7, "success": true, "result": {"response": "4"}}),
        ),
        (json!({"result": null}), json!({"id": 7, "success": true, "result": {}})),
        (
            json!({"error": {"code": 5, "message": "no", "data": [1]}}),
            json!({"id": 7, "success": false, "error": "no", "code": 5, "data": [1]}),
        ),
    ] {
        w.says(client, bridge_call(7, json!({})));
        let mut answer = answer;
        answer["jsonrpc"] = json!("2.0");
        answer["id"] = w.take_one(host)["id"].clone();
        w.says(host, answer);
        assert_eq!(w.take_one(client), expected);
    }
}

#[test]
fn equal_ids_of_the_bridge_dialect_are_each_answered() {
    let mut w = world();
    let (host, client) = (w.host(1), w.bridge_client(2));
    for n in 0..3 {
        w.says(client, bridge_call(9, json!({"n": n})));
    }
    for asked in w.take(host) {
        w.says(host, result(&asked["id"], asked["params"].clone()));
    }
    let answers: Vec<_> =
        w.take(client).iter().map(|answer| answer["result"]["n"].clone()).collect();
    assert_eq!(answers, [0, 1, 2]);
}

#[test]
fn a_repeated_json_rpc_id_is_refused_under_no_id() {
    let mut w = world();
    let (host, client) = (w.host(1), w.client(2));
    w.says(client, call("1", json!({})));
    w.says_text(client, r#"{"jsonrpc":"2.0","id":"\u0031","method":"vscode/chat"}"#);
    let refused = w.take_one(client);
    assert_eq!((kind(&refused), &refused["id"]), ("InvalidRequest", &Value::Null));
    w.says(client, call(1, json!({})));
    assert_eq!(w.take(host).len(), 2, "the number 1 is not the string \"1\"");
}

#[test]
fn a_host_error_is_passed_on_untouched() {
    let mut w = world();
    let (host, client) = (w.host(1), w.client(2));
    w.says(client, call(1, json!({})));
    let error = json!({"code": 77, "message": "mine", "data": {"own": true}});
    let id = w.take_one(host)["id"].clone();
    w.says(host, json!({"jsonrpc": "2.0", "id": id, "error": error}));
    assert_eq!(w.take_one(client)["error"], error);
    assert_eq!(w.records[0].outcome, "error 77");
}

#[test]
fn a_malformed_answer_fails_that_request_only() {
    let mut w = world();
    let (host, client) = (w.host(1), w.client(2));
    w.says(client, call(1, json!({})));
    w.says(client, call(2, json!({})));
    let asked = w.take(host);
    w.says(host, json!({"jsonrpc": "2.0", "id": asked[0]["id"], "error": "text"}));
    assert_eq!(kind(&w.take_one(client)), "BadHostResponse");
    w.says(host, result(&asked[1]["id"], json!(1)));
    assert_eq!(w.take_one(client)["result"], 1);
}

#[test]
fn late_double_and_foreign_answers_are_dropped_and_counted() {
    let mut w = world();
    let (host, other, client) = (w.host(1), w.host(3), w.client(2));
    w.says(client, call(1, json!({"runtimeId": "h1"})));
    let id = w.take_one(host)["id"].clone();
    w.says(other, result(&id, json!("forged by another host")));
    w.says(client, result(&id, json!("forged by a client")));
    assert!(w.take(client).is_empty());
    w.says(host, result(&id, json!("real")));
    w.says(host, result(&id, json!("again")));
    assert_eq!(w.take_one(client)["result"], "real");
    assert_eq!((w.broker.counters().late_answers, w.broker.counters().forged_answers), (2, 1));
}

#[test]
fn a_wrong_timeout_is_an_error_not_a_default() {
    let mut w = world();
    let (host, client) = (w.host(1), w.client(2));
    w.says(client, call(1, json!({"timeout": "soon"})));
    assert_eq!(kind(&w.take_one(client)), "InvalidParams");
    assert!(w.take(host).is_empty());
}

#[test]
fn progress_reaches_the_one_caller_and_extends_a_default_deadline_only() {
    let mut w = world();
    let (host, other, client, stranger) = (w.host(1), w.host(4), w.client(2), w.client(3));
    w.says(client, call("a", json!({"runtimeId": "h1"})));
    w.says(client, call("b", json!({"runtimeId": "h1", "timeout": 40_000})));
    let asked = w.take(host);
    w.says(other, progress(&asked[0]["id"], json!(0)));
    assert!(w.take(client).is_empty(), "only the host that was asked");
    for n in 1..=2 {
        w.after(seconds(20));
        if n == 1 {
            w.says(host, progress(&asked[0]["id"], json!(n)));
            w.says(host, progress(&asked[1]["id"], json!(n)));
            let ids: Vec<_> =
                w.take(client).iter().map(|note| note["params"]["id"].clone()).collect();
            assert_eq!(ids, ["a", "b"]);
        }
    }
    // 40 s: "b" chose its deadline; "a" has until 50 s, since progress at 20 s renewed its 30 s.
    let ended = w.take_one(client);
    assert_eq!((&ended["id"], kind(&ended)), (&json!("b"), "Timeout"));
    w.after(seconds(10));
    assert_eq!(w.take_one(client)["id"], "a");
    assert!(w.take(stranger).is_empty());
    assert_eq!((w.broker.counters().progress, w.broker.counters().late_answers), (2, 1));
}

#[test]
fn progress_cannot_extend_for_ever() {
    let mut w = world();
    let (host, client) = (w.host(1), w.client(2));
    w.says(client, call(1, json!({})));
    let id = w.take_one(host)["id"].clone();
    for _ in 0..40 {
        w.after(seconds(15));
        w.says(host, progress(&id, json!(1)));
    }
    let last = w.take(client).pop().unwrap();
    assert_eq!(kind(&last), "Timeout", "10 minutes are the end");
}

#[test]
fn requests_are_counted_and_so_are_those_that_fail() {
    let mut w = world();
    let (host, client) = (w.host(1), w.client(2));
    for n in 0..4 {
        w.says(client, call(n, json!({})));
    }
    let asked = w.take(host);
    w.says(host, result(&asked[0]["id"], json!(1)));
    let error = json!({"code": 1, "message": "no"});
    w.says(host, json!({"jsonrpc": "2.0", "id": asked[1]["id"], "error": error}));
    w.says(client, json!({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": 2}}));
    assert_eq!((w.broker.counters().requests, w.broker.counters().failed_requests), (4, 2));
}

#[test]
fn clients_are_no_hosts_and_hosts_no_clients() {
    let mut w = world();
    let (host, client) = (w.host(1), w.client(2));
    w.says(host, call(1, json!({})));
    assert_eq!(kind(&w.take_one(host)), "WrongRole");
    w.says(client, json!({"jsonrpc": "2.0", "id": 1, "method": "runtime/register", "params": {}}));
    let (_, role, method) = w.calls.pop().unwrap();
    assert_eq!(
        (role, method.as_str()),
        (Role::Client, "runtime/register"),
        "the method decides by role"
    );
}

#[test]
fn own_methods_are_called_and_answered_in_kind() {
    let mut w = world();
    let client = w.bridge_client(2);
    w.says(client, json!({"id": 5, "type": "bridge/ping"}));
    let (call, ..) = w.calls.pop().unwrap();
    w.event(Event::Called { call, outcome: Ok(RawValue::from_string("{}".into()).unwrap()) });
    assert_eq!(w.take_one(client), json!({"id": 5, "success": true, "result": {}}));
}

#[test]
fn own_methods_may_be_called_without_wanting_an_answer() {
    let mut w = world();
    let client = w.client(2);
    w.says(client, json!({"jsonrpc": "2.0", "method": "bridge/ping"}));
    let (call, _, method) = w.calls.pop().unwrap();
    assert_eq!(method, "bridge/ping");
    w.event(Event::Called { call, outcome: Ok(RawValue::NULL.to_owned()) });
    assert!(w.take(client).is_empty());
}

#[test]
fn notifications_that_nobody_knows_are_counted_and_do_nothing() {
    let mut w = world();
    let (host, client) = (w.host(1), w.client(2));
    w.says(client, call(1, json!({})));
    let id = w.take_one(host)["id"].clone();
    w.says(client, json!({"jsonrpc": "2.0", "method": "$/other", "params": {"id": 1}}));
    w.says(host, json!({"jsonrpc": "2.0", "method": "$/other", "params": {"id": id, "value": 1}}));
    w.says(host, json!({"jsonrpc": "2.0", "method": "$/progress", "params": {"id": id}}));
    assert!(w.take(client).is_empty() && w.take(host).is_empty());
    assert_eq!(w.broker.counters().ignored_notifications, 3);
    w.says(host, result(&id, json!("still there")));
    assert_eq!(w.take_one(client)["result"], "still there");
}

#[test]
fn the_counts_show_connections_and_requests_in_flight() {
    let mut w = world();
    let (host, client, _) = (w.host(1), w.client(2), w.client(3));
    w.fast = false;
    w.says(client, call(1, json!({})));
    w.says(client, call(2, json!({})));
    let queued: usize = w.take(host).iter().map(|asked| asked.to_string().len()).sum();
    assert_eq!((w.broker.clients(), w.broker.in_flight()), (2, 2));
    assert_eq!(w.broker.queued_bytes(), queued);
}

#[test]
fn one_bad_message_is_answered_and_many_in_a_row_end_the_connection() {
    let mut w = world();
    let (client, bridge) = (w.client(2), w.bridge_client(3));
    w.says_text(bridge, "{oops");
    assert_eq!(w.take_one(bridge)["error"], "Invalid JSON");
    for _ in 0..100 {
        w.says_text(client, "{oops");
    }
    assert!(w.closed.is_empty());
    w.says(client, json!({"jsonrpc": "2.0", "id": 1, "method": "nope"}));
    for _ in 0..101 {
        w.says_text(client, "{oops");
    }
    assert_eq!(w.closed, [(client, CloseReason::Violations)]);
    assert!(w.take(client).iter().all(|answer| answer["error"].is_object()));
    assert_eq!(w.broker.counters().rejected_messages, 1 + 100 + 101);
}

#[test]
fn nan_is_answered_under_its_id() {
    let mut w = world();
    let client = w.bridge_client(2);
    w.says_text(client, r#"{"id":5,"type":"vscode/chat","params":{"message":NaN}}"#);
    let answer = w.take_one(client);
    assert_eq!(answer["id"], 5);
    assert!(answer["error"].as_str().unwrap().contains("NaN"));
}

#[test]
fn tails_hear_of_each_request_without_its_content() {
    let mut w = world();
    let (host, client, tail) = (w.host(1), w.client(2), w.client(3));
    w.broker.set_name(client, "script\u{1b}[31m");
    w.broker.tail(tail);
    w.says(client, call(1, json!({"message": "secret"})));
    w.now += Duration::from_millis(5);
    let id = w.take_one(host)["id"].clone();
    w.says(host, result(&id, json!("also secret")));
    let record = w.take_one(tail);
    assert_eq!(record["method"], "bridge/request");
    assert_eq!(record["params"]["outcome"], "ok");
    assert_eq!(record["params"]["hostMs"], 5.0);
    assert_eq!(record["params"]["clientName"], "script[31m");
    assert!(!record.to_string().contains("secret"));
}
