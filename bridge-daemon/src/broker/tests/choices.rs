//! Which runtime a request goes to, one rule at a time.

use super::*;

/// Who gets a request with these params: one of the hosts, nobody yet, or an error.
fn asks(w: &mut World, client: PeerId, method: &str, params: Value) -> String {
    w.says(client, tool(1, method, params));
    let hosts: Vec<_> = w.broker.runtimes.iter().map(|runtime| runtime.peer).collect();
    for host in hosts {
        if let Some(request) = w.take(host).pop() {
            w.says(host, result(&request["id"], json!(1)));
            w.take(client);
            return w.broker.runtimes.get(host).unwrap().offer.id.clone();
        }
    }
    match w.take(client).pop() {
        Some(refused) => kind(&refused).to_owned(),
        None => {
            let cancel =
                json!({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": 1}});
            w.says(client, cancel);
            assert_eq!(kind(&w.take_one(client)), "RequestCancelled");
            "waits".to_owned()
        }
    }
}

fn edge(w: &mut World, number: u64) -> PeerId {
    let peer = w.host_with(number, HostGrant::child("edge", &["action"], true));
    w.register(peer, json!({"methods": ["action/execute"], "edge": true}));
    peer
}

#[test]
fn the_only_one_is_no_guess_and_with_two_one_must_be_named() {
    let mut w = world();
    let client = w.client(9);
    w.sandbox(1, "a", "/a");
    assert_eq!(asks(&mut w, client, "shell/run", json!({})), "a");
    w.sandbox(2, "b", "/b");
    for method in SERVED {
        assert_eq!(asks(&mut w, client, method, json!({})), "AmbiguousRuntime", "{method}");
        assert_eq!(asks(&mut w, client, method, json!({"runtimeId": "b"})), "b");
        assert_eq!(asks(&mut w, client, method, json!({"path": "/a/x"})), "a");
    }
    w.says(client, tool(1, "shell/run", json!({})));
    let refused = w.take_one(client);
    assert_eq!(refused["error"]["data"]["runtimes"], json!(["a", "b"]));
    let second = json!({"runtimeId": "b", "title": "", "workspaceFolders": ["/b"]});
    assert_eq!(refused["error"]["data"]["candidates"][1], second);
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(message.contains("a (/a), b (/b)") && message.contains("runtimeId"), "{message}");
}

#[test]
fn the_longest_folder_that_holds_the_path_decides() {
    let mut w = world();
    let client = w.client(9);
    w.sandbox(1, "a", "/w");
    w.sandbox(2, "b", "/w/inner");
    for (path, chosen) in [
        ("/w", "a"),
        ("/w/x", "a"),
        ("/w/innermost", "a"),
        ("/w/inner", "b"),
        ("/w/inner/x", "b"),
        ("/w/inner/../x", "AmbiguousRuntime"),
        ("inner/x", "AmbiguousRuntime"),
        ("/elsewhere", "HostUnavailable"),
    ] {
        assert_eq!(asks(&mut w, client, "shell/run", json!({"path": path})), chosen, "{path}");
        assert_eq!(asks(&mut w, client, "file/read", json!({"path": path})), chosen, "{path}");
    }
    let named = json!({"path": "/w/inner/x", "runtimeId": "a"});
    assert_eq!(asks(&mut w, client, "shell/run", named), "a", "an id comes before a path");
}

#[test]
fn two_runtimes_with_the_same_folder_are_ambiguous_even_if_others_are_shorter() {
    let mut w = world();
    let client = w.client(9);
    w.sandbox(1, "a", "/w/x");
    w.sandbox(2, "b", "/w/x/");
    w.sandbox(3, "sandbox", "/w");
    let mut ask = |path: &str| asks(&mut w, client, "shell/run", json!({"path": path}));
    assert_eq!(ask("/w/x/y"), "AmbiguousRuntime");
    assert_eq!(ask("/w/y"), "sandbox");
}

#[test]
fn a_path_in_no_folder_reaches_only_a_single_server_of_files() {
    let mut w = world();
    let client = w.client(9);
    assert_eq!(asks(&mut w, client, "file/read", json!({"path": "/x"})), "MethodNotFound");
    w.sandbox(1, "a", "/a");
    assert_eq!(asks(&mut w, client, "file/read", json!({"path": "/x"})), "a", "it says why not");
    w.says(client, tool(1, "shell/run", json!({"path": "/x"})));
    let refused = w.take_one(client);
    assert_eq!(kind(&refused), "HostUnavailable");
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(message.contains("\"/x\"") && message.contains("a (/a)"), "{message}");
    w.sandbox(2, "b", "/b");
    assert_eq!(asks(&mut w, client, "file/read", json!({"path": "/x"})), "HostUnavailable");
}

#[test]
fn an_edge_takes_its_methods_whatever_is_named() {
    let mut w = world();
    let client = w.client(9);
    w.sandbox(1, "a", "/a");
    w.sandbox(2, "b", "/b");
    let first = edge(&mut w, 3);
    w.broker.set_defaults(client, Some("b".into()), Some("/b".into()));
    for params in
        [json!({}), json!({"runtimeId": "a"}), json!({"path": "/b/x"}), json!({"path": "/x"})]
    {
        assert_eq!(asks(&mut w, client, "action/execute", params.clone()), "edge", "{params}");
    }
    w.closes(first);
    assert_eq!(asks(&mut w, client, "action/execute", json!({"runtimeId": "a"})), "waits");
    edge(&mut w, 4);
    assert_eq!(asks(&mut w, client, "action/execute", json!({"runtimeId": "a"})), "edge");
    assert!(w.broker.runtime("edge").unwrap().edge && !w.broker.runtime("a").unwrap().edge);
}

#[test]
fn a_method_has_one_edge() {
    let mut w = world();
    edge(&mut w, 1);
    let second = w.host_with(2, HostGrant::child("other", &["action"], true));
    let register =
        |methods: Value| serde_json::from_value(json!({"methods": methods, "edge": true}));
    let params = register(json!(["action/execute"])).unwrap();
    let error = w.broker.register(second, params, w.now).unwrap_err();
    assert_eq!(error.code(), ErrorKind::Conflict.code());
    w.broker.register(second, register(json!(["action/cancel"])).unwrap(), w.now).unwrap();
    let update = serde_json::from_value(json!({"methods": ["action/execute"]})).unwrap();
    assert_eq!(
        w.broker.update(second, update, w.now).unwrap_err().code(),
        ErrorKind::Conflict.code()
    );
}

#[test]
fn a_connection_chooses_for_requests_that_name_nothing() {
    let mut w = world();
    let client = w.client(9);
    w.sandbox(1, "a", "/a");
    w.sandbox(2, "b", "/b");
    w.host(3);
    w.broker.set_defaults(client, Some("a".into()), None);
    assert_eq!(asks(&mut w, client, "shell/run", json!({})), "a");
    assert_eq!(asks(&mut w, client, "shell/run", json!({"path": "/b/x"})), "b", "unless they do");
    assert_eq!(
        asks(&mut w, client, "file/read", json!({"path": "x"})),
        "a",
        "a relative path is none"
    );
    assert_eq!(asks(&mut w, client, "vscode/chat", json!({})), "h3", "for what it serves");
    w.broker.set_defaults(client, None, Some("/b/deep".into()));
    assert_eq!(asks(&mut w, client, "shell/run", json!({})), "b");
    assert_eq!(asks(&mut w, client, "vscode/chat", json!({})), "h3");
    w.broker.set_defaults(client, None, Some("/elsewhere".into()));
    assert_eq!(asks(&mut w, client, "shell/run", json!({})), "HostUnavailable");
    w.broker.set_defaults(client, Some("never-seen".into()), None);
    assert_eq!(asks(&mut w, client, "shell/run", json!({})), "HostUnavailable", "no guess");
    w.broker.set_defaults(client, Some("h3".into()), Some("/a".into()));
    assert_eq!(
        asks(&mut w, client, "shell/run", json!({})),
        "a",
        "the path for what h3 does not serve"
    );
    let other = w.client(10);
    assert_eq!(asks(&mut w, other, "shell/run", json!({})), "AmbiguousRuntime", "others have not");
}

#[test]
fn a_child_that_is_away_counts_as_if_it_was_there() {
    let mut w = world();
    let client = w.client(9);
    w.sandbox(1, "a", "/w");
    let inner = w.sandbox(2, "b", "/w/inner");
    w.closes(inner);
    assert_eq!(asks(&mut w, client, "shell/run", json!({})), "AmbiguousRuntime");
    assert_eq!(asks(&mut w, client, "shell/run", json!({"path": "/w/inner"})), "waits");
    assert_eq!(asks(&mut w, client, "shell/run", json!({"path": "/w/x"})), "a");
    assert_eq!(asks(&mut w, client, "shell/run", json!({"runtimeId": "b"})), "waits");
    assert_eq!(asks(&mut w, client, "shell/other", json!({"runtimeId": "b"})), "MethodNotFound");
    w.says(client, tool(2, "shell/run", json!({"path": "/w/inner"})));
    let back = w.sandbox(3, "b", "/w/inner");
    assert_eq!(w.take_one(back)["method"], "shell/run", "what waited is served");
}

#[test]
fn a_window_that_has_gone_is_waited_for_only_if_nobody_else_fits() {
    let mut w = world();
    let client = w.client(9);
    let grant = || HostGrant::general([], &[]);
    let window = |w: &mut World, number: u64, folder: &str| {
        let peer = w.host_with(number, grant());
        let id = format!("w{number}");
        let params =
            json!({"runtimeId": id, "methods": ["shell/run"], "workspaceFolders": [folder]});
        w.register(peer, params);
        peer
    };
    let first = window(&mut w, 1, "/w/x");
    w.closes(first);
    assert_eq!(asks(&mut w, client, "shell/run", json!({})), "waits");
    assert_eq!(asks(&mut w, client, "shell/run", json!({"path": "/w/x/y"})), "waits");
    assert_eq!(asks(&mut w, client, "shell/run", json!({"runtimeId": "w1"})), "waits");
    window(&mut w, 2, "/w");
    assert_eq!(asks(&mut w, client, "shell/run", json!({})), "w2");
    assert_eq!(asks(&mut w, client, "shell/run", json!({"path": "/w/x/y"})), "w2");
    assert_eq!(asks(&mut w, client, "shell/run", json!({"runtimeId": "w1"})), "waits");
}

#[test]
fn children_are_remembered_however_many_windows_have_come_and_gone() {
    let mut w = world();
    let client = w.client(1000);
    let sandbox = w.sandbox(1, "a", "/a");
    w.closes(sandbox);
    for number in 2..100 {
        let window = w.host(number);
        w.closes(window);
    }
    assert_eq!(asks(&mut w, client, "shell/run", json!({})), "waits");
}

#[test]
fn methods_of_a_hosts_own_are_not_guessed_either() {
    let mut w = world();
    let client = w.client(9);
    for number in [1, 2] {
        let host = w.stranger(number);
        let id = format!("w{number}");
        w.register(
            host,
            json!({"runtimeId": id, "methods": ["my/own", "vscode/custom"], "focused": true}),
        );
    }
    assert_eq!(asks(&mut w, client, "my/own", json!({})), "AmbiguousRuntime");
    assert_eq!(asks(&mut w, client, "my/own", json!({"runtimeId": "w1"})), "w1");
    assert_eq!(asks(&mut w, client, "vscode/custom", json!({})), "w2", "the window with the focus");
}

#[test]
fn a_folder_chooses_among_windows_before_the_focus_does() {
    let mut w = world();
    let client = w.client(9);
    let first = w.host(1);
    w.update(first, json!({"workspaceFolders": ["/w"]}));
    let second = w.host(2);
    w.update(second, json!({"focused": true}));
    assert_eq!(asks(&mut w, client, "vscode/chat", json!({})), "h2");
    w.broker.set_defaults(client, None, Some("/w/x".into()));
    assert_eq!(asks(&mut w, client, "vscode/chat", json!({})), "h1");
    w.broker.set_defaults(client, None, Some("/elsewhere".into()));
    assert_eq!(asks(&mut w, client, "vscode/chat", json!({})), "h2");
}

#[test]
fn a_request_that_waits_for_a_child_in_vain_says_that_it_went_away() {
    let mut w = world();
    let client = w.client(9);
    let sandbox = w.sandbox(1, "a", "/a");
    w.says(client, tool(1, "shell/run", json!({})));
    w.closes(sandbox);
    let gone = w.take_one(client);
    assert_eq!(
        (kind(&gone), &gone["error"]["data"]["mayHaveExecuted"]),
        ("HostGone", &json!(true))
    );
    w.says(client, tool(2, "shell/run", json!({})));
    w.after(seconds(10));
    let refused = w.take_one(client);
    assert_eq!(kind(&refused), "HostUnavailable");
    assert!(refused["error"]["message"].as_str().unwrap().contains("went away"), "{refused}");
}
