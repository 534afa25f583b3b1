//! Everything that is bounded, when the bound is met.

use bridge_protocol::RequestId;

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
    let size = call(1, json!({})).to_string().len();
    let limits = Limits { client_bytes: 2 * size, ..Limits::default() };
    let mut w = World::new(HostWait::UntilDeadline, limits);
    let (_host, client) = (w.host(1), w.client(2));
    w.says(client, call(1, json!({})));
    assert_eq!(w.reading.get(&client), None);
    w.says(client, call(2, json!({})));
    assert!(!w.reading[&client]);
}

/// Size in bytes of the answer to a text that is no message. This answer needs no host.
fn refusal_bytes() -> usize {
    let mut w = world();
    let client = w.client(2);
    w.says_text(client, "{");
    w.take_one(client).to_string().len()
}

#[test]
fn a_client_with_half_a_queue_of_unread_answers_is_not_read() {
    for limits in [
        Limits { queue_messages: 4, ..Limits::default() },
        Limits { queue_bytes: 4 * refusal_bytes(), ..Limits::default() },
    ] {
        let mut w = World::new(HostWait::UntilDeadline, limits);
        let client = w.client(2);
        w.fast = false;
        w.says_text(client, "{");
        assert_eq!(w.reading.get(&client), None);
        w.says_text(client, "{");
        assert!(!w.reading[&client]);
        w.flush(client);
        assert!(w.reading[&client]);
    }
}

#[test]
fn answers_are_queued_up_to_the_limit_and_then_their_reader_is_cut() {
    let size = refusal_bytes();
    for limits in [
        Limits { queue_messages: 3, ..Limits::default() },
        Limits { queue_bytes: 3 * size, ..Limits::default() },
        Limits { total_bytes: 3 * size, ..Limits::default() },
    ] {
        let mut w = World::new(HostWait::UntilDeadline, limits);
        let client = w.client(2);
        w.fast = false;
        for _ in 0..3 {
            w.says_text(client, "{");
        }
        assert!(w.closed.is_empty());
        w.says_text(client, "{");
        assert_eq!(w.closed, [(client, CloseReason::SlowConsumer)]);
        assert_eq!(w.take(client).len(), 3);
    }
}

#[test]
fn a_prompt_reader_gets_its_answers_but_no_progress_when_all_queues_are_full() {
    let mut w = World::new(HostWait::UntilDeadline, Limits { total_bytes: 0, ..Limits::default() });
    let (host, client) = (w.host(1), w.client(2));
    w.says(client, call(1, json!({})));
    let id = w.take_one(host)["id"].clone();
    w.says(host, progress(&id, json!(1)));
    assert!(w.take(client).is_empty());
    w.says(host, result(&id, json!("done")));
    assert_eq!(w.take_one(client)["result"], "done");
}

#[test]
fn progress_takes_at_most_half_a_queue() {
    let value = progress(&json!(1), json!(1));
    let size = value.to_string().len();
    for limits in [
        Limits { queue_messages: 4, ..Limits::default() },
        Limits { queue_bytes: 4 * size, ..Limits::default() },
        Limits { total_bytes: 2 * size, ..Limits::default() },
    ] {
        let mut w = World::new(HostWait::UntilDeadline, limits);
        let (host, client) = (w.host(1), w.client(2));
        w.says(client, call(1, json!({})));
        w.take(host);
        w.fast = false;
        for _ in 0..5 {
            w.says(host, value.clone());
        }
        assert_eq!(w.take(client).len(), 2, "{limits:?}");
        assert_eq!(w.broker.counters().dropped_progress, 3);
    }
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
    // Larger than what a refused caller is told.
    let params = json!({"x": "y".repeat(300)});
    let text = RawValue::from_string(params.to_string()).unwrap();
    let size = print::request(RequestId(1), "vscode/chat", Some(&text)).len();
    for limits in [
        Limits { queue_messages: 3, ..Limits::default() },
        Limits { queue_bytes: 3 * size, ..Limits::default() },
        Limits { queue_bytes: 4 * size - 1, ..Limits::default() },
        Limits { total_bytes: 3 * size, ..Limits::default() },
        Limits { total_bytes: 4 * size - 1, ..Limits::default() },
    ] {
        let mut w = World::new(HostWait::UntilDeadline, limits);
        let (host, client) = (w.host(1), w.client(2));
        w.fast = false;
        for n in 0..9 {
            w.says(client, call(n, params.clone()));
            w.flush(client);
        }
        assert_eq!(w.take(host).len(), 3, "{limits:?}");
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
    let size = call(1, json!({})).to_string().len();
    for (total_bytes, fits) in [(size, true), (size - 1, false)] {
        let limits = Limits { total_bytes, ..Limits::default() };
        let mut w = World::new(HostWait::UntilDeadline, limits);
        let client = w.client(2);
        w.says(client, call(1, json!({})));
        assert_eq!(w.take(client).is_empty(), fits, "{total_bytes}");
    }
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
        w.says(host, progress(&asked[0]["id"], json!(1)));
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

/// The size of the largest message that arrives when ever larger ones are tried.
fn largest(send: impl FnMut(String) -> Option<Value>) -> usize {
    let arrived = (0..200).map(|n| "x".repeat(n)).filter_map(send);
    arrived.map(|message| message.to_string().len()).max().unwrap()
}

#[test]
fn requests_and_answers_too_large_to_be_passed_on_fail() {
    let mut w =
        World::new(HostWait::UntilDeadline, Limits { message_bytes: 200, ..Limits::default() });
    let (host, client) = (w.host(1), w.client(2));
    let request = largest(|pad| {
        w.says(client, call(1, json!({ "pad": pad })));
        let asked = w.take(host).pop();
        match &asked {
            Some(asked) => w.says(host, result(&asked["id"], json!(1))),
            None => assert_eq!(kind(&w.take_one(client)), "OversizedRequest"),
        }
        w.take(client);
        asked
    });
    let answer = largest(|pad| {
        w.says(client, call(1, json!({})));
        let id = w.take_one(host)["id"].clone();
        w.says(host, result(&id, json!(pad)));
        let answer = w.take_one(client);
        assert!(answer["result"].is_string() || kind(&answer) == "OversizedResponse");
        answer["result"].is_string().then_some(answer)
    });
    assert_eq!((request, answer), (200, 200));
}

#[test]
fn progress_and_events_too_large_to_be_passed_on_are_dropped() {
    let mut w =
        World::new(HostWait::UntilDeadline, Limits { message_bytes: 200, ..Limits::default() });
    let (host, client) = (w.host(1), w.client(2));
    let to_host = largest(|pad| {
        w.says(client, event("e", json!(pad), None));
        w.take(host).pop()
    });
    let to_client = largest(|pad| {
        w.says(host, event("e", json!(pad), Some(2)));
        w.take(client).pop()
    });
    w.says(client, call(1, json!({})));
    let id = w.take_one(host)["id"].clone();
    let progressed = largest(|pad| {
        w.says(host, progress(&id, json!(pad)));
        w.take(client).pop()
    });
    assert_eq!((to_host, to_client, progressed), (200, 200, 200));
    let counted = *w.broker.counters();
    assert_eq!(counted.events + counted.dropped_events, 400);
    assert_eq!(counted.progress + counted.dropped_progress, 200);
}
