//! Everything that is bounded, when the bound is met.

use super::*;

#[test]
fn a_client_at_its_limit_is_not_read_until_answers_go_out() {
    let limits = Limits { client_requests: 2, ..Limits::default() };
    let mut w = World::new(HostWait::UntilDeadline, limits);
    let (host, client) = (w.host(1), w.client(2));
    w.says(client, call(1, json!({})));
    assert_eq!(w.reading.get(&client), None);
    w.says(client, call(2, json!({})));
    assert!(!w.reading[&client]);
    let asked = w.take(host);
    w.says(host, result(&asked[0]["id"], json!(1)));
    assert!(w.reading[&client]);
}

#[test]
fn large_requests_in_flight_stop_reading_too() {
    let limits = Limits { client_bytes: 1000, ..Limits::default() };
    let mut w = World::new(HostWait::UntilDeadline, limits);
    let (_host, client) = (w.host(1), w.client(2));
    w.says(client, call(1, json!({"x": "y".repeat(1000)})));
    assert!(!w.reading[&client]);
}

#[test]
fn too_many_requests_in_all_are_refused_as_overload() {
    let limits = Limits { total_requests: 1, ..Limits::default() };
    let mut w = World::new(HostWait::UntilDeadline, limits);
    let (_host, a, b) = (w.host(1), w.client(2), w.client(3));
    w.says(a, call(1, json!({})));
    w.says(b, call(1, json!({})));
    let error = w.take_one(b);
    assert_eq!(kind(&error), "Overloaded");
    assert!(error["error"]["data"]["retryAfterMs"].is_u64());
    assert_eq!(w.broker.counters().overloaded, 1);
}

#[test]
fn a_host_that_does_not_read_makes_its_callers_wait_not_the_daemon() {
    for limits in [
        Limits { queue_messages: 4, ..Limits::default() },
        Limits { queue_bytes: 300, ..Limits::default() },
        Limits { total_bytes: 300, ..Limits::default() },
    ] {
        let mut w = World::new(HostWait::UntilDeadline, limits);
        let (host, client) = (w.host(1), w.client(2));
        w.fast = false;
        for n in 0..10 {
            w.says(client, call(n, json!({})));
            w.flush(client);
        }
        assert!(w.take(host).len() <= 5, "bounded");
        let refused = w.take(client);
        assert!(w.closed.is_empty(), "a client that reads does not pay for the host");
        assert!(!refused.is_empty() && refused.iter().all(|error| kind(error) == "Overloaded"));
        w.flush(host);
        w.says(client, call(99, json!({})));
        assert_eq!(w.take(host).len(), 1, "room again");
    }
}

#[test]
fn parked_requests_are_bounded_too() {
    let limits = Limits { total_bytes: 1000, ..Limits::default() };
    let mut w = World::new(HostWait::UntilDeadline, limits);
    let client = w.client(2);
    for n in 0..3 {
        w.says(client, call(n, json!({"x": "y".repeat(400)})));
    }
    assert_eq!(kind(&w.take_one(client)), "Overloaded");
    w.closes(client);
    w.assert_settled();
}

#[test]
fn a_client_that_leaves_answers_unread_is_closed_and_loses_progress_first() {
    let limits = Limits { queue_messages: 4, ..Limits::default() };
    let mut w = World::new(HostWait::UntilDeadline, limits);
    let (host, client) = (w.host(1), w.client(2));
    for n in 0..6 {
        w.says(client, call(n, json!({})));
    }
    w.fast = false;
    let asked = w.take(host);
    for _ in 0..5 {
        w.says(host, json!({"jsonrpc": "2.0", "method": "$/progress", "params": {"id": asked[0]["id"], "value": 1}}));
    }
    assert_eq!((w.take(client).len(), w.broker.counters().dropped_progress), (2, 3));
    assert!(!w.reading[&client], "half full: not read");
    for asked in &asked {
        w.says(host, result(&asked["id"], json!(1)));
    }
    assert_eq!(w.closed, [(client, CloseReason::SlowConsumer)]);
    assert_eq!(w.broker.counters().slow_consumers, 1);
    w.closes(client);
    w.closes(host);
    w.assert_settled();
}
