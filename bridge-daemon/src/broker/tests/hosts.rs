//! No host, several hosts, hosts that go and come back.

use super::*;

#[test]
fn without_a_host_requests_wait_and_then_say_how_to_attach_one() {
    let mut w = world();
    let client = w.client(2);
    w.says(client, call(1, json!({"timeout": 30_000})));
    w.after(Duration::from_millis(9_999));
    assert!(w.take(client).is_empty());
    w.after(Duration::from_millis(1));
    let error = w.take_one(client);
    assert_eq!(kind(&error), "HostUnavailable");
    assert!(error["error"]["message"].as_str().unwrap().contains("bridge-daemon run"));
}

#[test]
fn a_run_that_expects_an_editor_waits_until_the_deadline() {
    let mut w = World::new(HostWait::UntilDeadline, Limits::default());
    let client = w.client(2);
    w.says(client, call(1, json!({"timeout": 25_000, "message": "early"})));
    w.after(seconds(20));
    assert!(w.take(client).is_empty());
    let host = w.host(1);
    let asked = w.take_one(host);
    assert_eq!(asked["params"]["message"], "early");
    // The time spent waiting counts.
    w.after(Duration::from_millis(4_999));
    assert!(w.take(client).is_empty());
    w.after(Duration::from_millis(1));
    assert_eq!(kind(&w.take_one(client)), "Timeout");
    assert_eq!(*cancelled(&w.take_one(host)), asked["id"]);
}

#[test]
fn parked_requests_keep_their_order() {
    let mut w = world();
    let client = w.client(2);
    for n in 0..20 {
        w.says(client, call(n, json!({"n": n})));
    }
    let host = w.host(1);
    let order: Vec<_> = w.take(host).iter().map(|asked| asked["params"]["n"].clone()).collect();
    assert_eq!(order, (0..20).collect::<Vec<_>>());
}

#[test]
fn when_the_host_goes_requests_in_flight_fail_and_new_ones_wait_for_its_return() {
    let mut w = world();
    let (host, client) = (w.host(1), w.client(2));
    w.says(client, call(1, json!({})));
    w.closes(host);
    let gone = w.take_one(client);
    assert_eq!(kind(&gone), "HostGone");
    assert_eq!(gone["error"]["data"]["mayHaveExecuted"], true);
    w.says(client, call(2, json!({"runtimeId": "h1"})));
    assert!(w.take(client).is_empty());
    let back = w.stranger(9);
    w.register(back, json!({"runtimeId": "h1", "methods": ALL}));
    let id = w.take_one(back)["id"].clone();
    w.says(back, result(&id, json!("ok")));
    assert_eq!(w.take_one(client)["result"], "ok");
}

#[test]
fn a_host_that_registers_again_elsewhere_replaces_itself() {
    let mut w = world();
    let (host, client) = (w.host(1), w.client(2));
    w.says(client, call(1, json!({})));
    let newer = w.stranger(5);
    w.register(newer, json!({"runtimeId": "h1", "methods": ALL}));
    assert_eq!(w.closed, [(host, CloseReason::Replaced)]);
    assert_eq!(kind(&w.take_one(client)), "HostGone");
    w.closes(host);
    w.says(client, call(2, json!({})));
    assert_eq!(
        w.take(newer).len(),
        1,
        "the end of the old connection must not take the new one off"
    );
}

#[test]
fn unknown_methods_and_runtimes_fail_at_once() {
    let mut w = world();
    let client = w.client(2);
    w.says(client, json!({"jsonrpc": "2.0", "id": 1, "method": "nope"}));
    assert_eq!(kind(&w.take_one(client)), "MethodNotFound");
    let _host = w.host(1);
    w.says(client, json!({"jsonrpc": "2.0", "id": 1, "method": "nope"}));
    assert_eq!(w.take_one(client)["error"]["message"], "Unknown request type: nope");
    w.says(client, call(1, json!({"runtimeId": "never-seen"})));
    let error = w.take_one(client);
    assert_eq!(
        (kind(&error), &error["error"]["data"]["runtimes"]),
        ("HostUnavailable", &json!(["h1"]))
    );
}

#[test]
fn hosts_may_offer_methods_of_their_own() {
    let mut w = world();
    let client = w.client(2);
    let host = w.stranger(1);
    w.register(host, json!({"methods": ["my/\"odd\" one"]}));
    w.says(client, json!({"jsonrpc": "2.0", "id": 1, "method": "my/\"odd\" one"}));
    assert_eq!(w.take_one(host)["method"], "my/\"odd\" one");
    w.says(client, call(2, json!({})));
    assert_eq!(kind(&w.take_one(client)), "MethodNotFound", "a host is there, but it has no chat");
    w.says(client, call(3, json!({"runtimeId": "runtime-1"})));
    assert_eq!(kind(&w.take_one(client)), "MethodNotFound", "the very host that was asked for");
}

#[test]
fn runtimes_show_what_they_offer_and_how_much_they_work_on() {
    let mut w = world();
    let (_other, client) = (w.host(1), w.client(2));
    let host = w.stranger(3);
    let folders = json!(["/a", "/b"]);
    w.register(
        host,
        json!({"runtimeId": "w", "title": "My\u{7} window", "methods": ["z", "a"],
               "workspaceFolders": folders, "focused": true}),
    );
    w.says(client, json!({"jsonrpc": "2.0", "id": 1, "method": "z"}));
    let all = serde_json::to_value(w.broker.runtimes()).unwrap();
    assert_eq!((&all[0]["runtimeId"], &all[0]["inFlight"]), (&json!("h1"), &json!(0)));
    let expected = json!({"runtimeId": "w", "title": "My window", "methods": ["a", "z"],
                          "workspaceFolders": folders, "focused": true, "inFlight": 1});
    assert_eq!(all[1], expected);
    assert_eq!(serde_json::to_value(w.broker.runtime("w").unwrap()).unwrap(), expected);
    let error = w.broker.runtime("none").unwrap_err();
    assert_eq!(error.code(), ErrorKind::HostUnavailable.code());
}

#[test]
fn registrations_are_checked() {
    let mut w = world();
    let host = w.stranger(1);
    let names = |count: usize| (0..count).map(|n| n.to_string()).collect::<Vec<_>>();
    let mut register = |params: &Value| {
        let parsed = serde_json::from_value(params.clone()).unwrap();
        w.broker.register(host, parsed, w.now).is_ok()
    };
    for params in [
        json!({"methods": ["bridge/status"]}),
        json!({"methods": ["runtime/list"]}),
        json!({"methods": ["$/progress"]}),
        json!({"methods": ["shell/run"]}),
        json!({"methods": ["vscode/chat"], "runtimeId": "sandbox"}),
        json!({"methods": [""]}),
        json!({"methods": names(257)}),
        json!({"methods": ["x".repeat(129)]}),
        json!({"methods": [], "runtimeId": "a b"}),
        json!({"methods": [], "workspaceFolders": names(65)}),
        json!({"methods": [], "workspaceFolders": ["x".repeat(4097)]}),
    ] {
        assert!(!register(&params), "{params}");
    }
    let largest = json!({"methods": names(256), "workspaceFolders": names(64)});
    let longest = json!({"methods": ["x".repeat(128)], "workspaceFolders": ["x".repeat(4096)]});
    for params in [largest, longest] {
        assert!(register(&params), "{params}");
    }
    assert_eq!(w.broker.runtimes().len(), 1);
}

#[test]
fn a_host_that_registers_again_on_its_connection_is_known_by_its_new_name_only() {
    let mut w = world();
    let host = w.host(1);
    w.register(host, json!({"runtimeId": "h1", "methods": ALL}));
    w.register(host, json!({"runtimeId": "new", "methods": ALL}));
    assert!(w.closed.is_empty());
    assert_eq!(names(&w), ["new"]);
}

#[test]
fn hosts_without_a_name_get_one_that_is_free() {
    let mut w = world();
    for (number, id) in [(1, Some("runtime-2")), (2, None), (3, None)] {
        let host = w.stranger(number);
        w.register(host, json!({"runtimeId": id, "methods": ALL}));
    }
    assert_eq!(names(&w), ["runtime-2", "runtime-1", "runtime-3"]);
}

#[test]
fn updates_change_what_they_name_and_nothing_else() {
    let mut w = world();
    let host = w.host(1);
    w.update(host, json!({"title": "T", "methods": ["m"], "focused": true}));
    w.update(host, json!({"workspaceFolders": ["/f"]}));
    let mut expected = json!({"runtimeId": "h1", "title": "T", "methods": ["m"],
                              "workspaceFolders": ["/f"], "focused": true, "inFlight": 0});
    assert_eq!(serde_json::to_value(w.broker.runtimes()).unwrap(), json!([expected]));
    w.update(host, json!({"focused": false}));
    expected["focused"] = json!(false);
    assert_eq!(serde_json::to_value(w.broker.runtimes()).unwrap(), json!([expected]));
    let stranger = w.stranger(9);
    assert!(w.broker.update(stranger, Default::default(), w.now).is_err());
}

/// Whether a request for this runtime, which is not there, waits for its return.
fn is_remembered(w: &mut World, client: PeerId, runtime: &str) -> bool {
    w.says(client, call(runtime, json!({"runtimeId": runtime})));
    w.take(client).is_empty()
}

#[test]
fn the_newest_64_runtimes_that_left_are_remembered() {
    let mut w = world();
    let client = w.client(1000);
    for number in 1..=65 {
        let host = w.host(number);
        w.closes(host);
    }
    assert!(!is_remembered(&mut w, client, "h1"));
    assert!(is_remembered(&mut w, client, "h2") && is_remembered(&mut w, client, "h65"));
}

#[test]
fn a_runtime_that_comes_and_goes_does_not_push_out_the_others() {
    let mut w = world();
    let client = w.client(1000);
    let other = w.host(1);
    w.closes(other);
    for number in 2..100 {
        let host = w.stranger(number);
        w.register(host, json!({"runtimeId": "again", "methods": ALL}));
        w.closes(host);
    }
    assert!(is_remembered(&mut w, client, "h1") && is_remembered(&mut w, client, "again"));
}

fn names(w: &World) -> Vec<String> {
    w.broker.runtimes().into_iter().map(|runtime| runtime.runtime_id).collect()
}

#[test]
fn focus_decides_between_windows() {
    let mut w = world();
    let (first, second, client) = (w.host(1), w.host(3), w.client(2));
    let ask = |w: &mut World, n: u64| {
        w.says(client, call(n, json!({})));
        (w.take(first).len(), w.take(second).len())
    };
    assert_eq!(ask(&mut w, 1), (0, 1), "nobody had the focus: the newest");
    w.update(first, json!({"focused": true}));
    assert_eq!(ask(&mut w, 2), (1, 0));
    w.update(second, json!({"focused": true}));
    assert_eq!(ask(&mut w, 3), (0, 1));
    w.update(second, json!({"focused": false}));
    assert_eq!(ask(&mut w, 4), (0, 1), "the one that had it last");
    w.says(client, call(5, json!({"runtimeId": "h1"})));
    assert_eq!(w.take(first).len(), 1, "unless one is named");
}

#[test]
fn commands_are_not_run_in_a_guessed_window() {
    let mut w = world();
    let (first, second, client) = (w.host(1), w.host(3), w.client(2));
    let command = |id: u64, params: Value| json!({"jsonrpc": "2.0", "id": id, "method": "execute_command", "params": params});
    w.says(client, command(1, json!({})));
    let error = w.take_one(client);
    assert_eq!(
        (kind(&error), &error["error"]["data"]["runtimes"]),
        ("AmbiguousRuntime", &json!(["h1", "h3"]))
    );
    w.says(client, command(2, json!({"runtimeId": "h1"})));
    assert_eq!((w.take(first).len(), w.take(second).len()), (1, 0));
    w.update(first, json!({"focused": true}));
    w.says(client, command(3, json!({})));
    assert_eq!((w.take(first).len(), w.take(second).len()), (1, 0), "the one with the focus");
    w.closes(first);
    w.take(client);
    w.says(client, command(4, json!({})));
    assert_eq!(w.take(second).len(), 1, "the only one is no guess");
}

#[test]
fn a_host_that_is_being_closed_gets_no_more_requests() {
    let mut w = World::new(HostWait::UntilDeadline, Limits { violations: 1, ..Limits::default() });
    let (host, client) = (w.host(1), w.client(2));
    w.says(client, call(1, json!({})));
    w.take(host);
    w.says_text(host, "{");
    w.says_text(host, "{");
    assert_eq!(w.closed, [(host, CloseReason::Violations)]);
    assert_eq!(kind(&w.take_one(client)), "HostGone", "before its connection has ended");
    w.says(client, call(2, json!({})));
    w.take(host);
    let other = w.host(3);
    assert_eq!(w.take(other).len(), 1, "the call waited for another");
}

#[test]
fn an_answer_that_is_no_message_fails_the_request_that_it_names() {
    let mut w = world();
    let (host, client) = (w.host(1), w.client(2));
    let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
    for answer in ["NaN", &deep] {
        w.says(client, call(1, json!({})));
        let id = w.take_one(host)["id"].clone();
        w.says_text(host, &format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{answer}}}"#));
        assert_eq!(kind(&w.take_one(client)), "BadHostResponse");
        w.take(host);
    }
}

#[test]
fn a_sandbox_is_no_window() {
    let mut w = world();
    let client = w.client(3);
    w.says(client, tool(1, "file/read", json!({})));
    let refused = w.take_one(client);
    assert_eq!(kind(&refused), "MethodNotFound");
    assert!(refused["error"]["message"].as_str().unwrap().contains("--sandbox DIR"), "{refused}");
    w.says(client, tool(1, "action/execute", json!({})));
    let refused = w.take_one(client);
    assert!(refused["error"]["message"].as_str().unwrap().contains("openhands-edge"), "{refused}");

    let sandbox = w.sandbox(1, "sandbox", "/w");
    w.says(client, call(2, json!({})));
    assert!(w.take(client).is_empty(), "a chat waits for a window, as if nobody was there");
    let window = w.host(2);
    assert_eq!(w.take_one(window)["method"], "vscode/chat");
    w.update(window, json!({"focused": true, "methods": ["vscode/chat", "file/read"]}));
    for id in [3, 4] {
        w.says(client, tool(id, "file/read", json!({})));
        assert_eq!(w.take_one(sandbox)["method"], "file/read");
        w.update(window, json!({"focused": true}));
    }
    w.says(client, tool(5, "file/dance", json!({})));
    assert_eq!(w.take_one(client)["error"]["message"], "Unknown request type: file/dance");
}

#[test]
fn a_command_may_take_longer_than_ten_minutes() {
    let mut w = world();
    let client = w.client(2);
    let sandbox = w.sandbox(1, "sandbox", "/w");
    w.says(client, tool(1, "shell/run", json!({})));
    let request = w.take_one(sandbox);
    for _ in 0..3 {
        w.after(Duration::from_secs(3600));
        let params = json!({"id": request["id"], "value": {}});
        w.says(sandbox, json!({"jsonrpc": "2.0", "method": "$/progress", "params": params}));
        assert_eq!(w.take_one(client)["method"], "$/progress");
    }
    w.after(Duration::from_secs(22 * 3600));
    assert_eq!(kind(&w.take_one(client)), "Timeout", "but not for ever");
}
