//! Nobody does more than its token allows.

use super::*;

fn rights(text: &str) -> Rights {
    text.parse().unwrap()
}

fn try_register(w: &mut World, host: PeerId, params: Value) -> Result<String, ErrorKind> {
    let registered = w.broker.register(host, serde_json::from_value(params).unwrap(), w.now);
    registered
        .map(|result| result.runtime_id)
        .map_err(|error| ErrorKind::from_code(error.code()).unwrap())
}

#[test]
fn a_client_calls_only_what_its_token_allows() {
    let mut w = world();
    let (sandbox, window) = (w.sandbox(1, "sandbox", "/w"), w.host(2));
    let client = w.client_with(3, rights("read"));
    w.says(client, tool(1, "file/read", json!({})));
    assert_eq!(w.take(sandbox).len(), 1);
    let calls = [
        ("file/write", json!(["write"])),
        ("shell/run", json!(["run"])),
        ("vscode/chat", json!(["chat"])),
        ("chat", json!(["chat"])),
        ("execute_command", json!(["editor"])),
        ("action/execute", json!(["write", "run"])),
        ("my/own", json!(["chat", "write", "run", "editor"])),
    ];
    for (method, missing) in &calls {
        w.says(client, tool(2, method, json!({})));
        let refused = w.take_one(client);
        assert_eq!(kind(&refused), "Forbidden", "{method}");
        assert_eq!(refused["error"]["data"]["needs"], *missing, "{method}");
        let message = refused["error"]["message"].as_str().unwrap();
        assert!(message.contains("bridge-client token --rights"), "{message}");
    }
    assert!(w.take(sandbox).is_empty() && w.take(window).is_empty());
    assert_eq!(w.broker.counters().forbidden, calls.len() as u64);
    w.says(client, json!({"id": 9, "type": "shell/run", "params": {}}));
    assert_eq!(w.take_one(client)["success"], false, "in either dialect");
}

#[test]
fn the_daemons_own_methods_need_no_right() {
    let mut w = world();
    let client = w.client_with(3, Rights::NONE);
    for method in ["bridge/ping", "bridge/status", "runtime/list", "bridge/createToken"] {
        w.says(client, tool(1, method, json!({})));
        assert_eq!(w.calls.pop().unwrap().2, method);
    }
}

#[test]
fn events_belong_to_the_talk_with_the_person() {
    let mut w = world();
    let (window, silent) = (w.host(1), w.client_with(2, rights("read,write,run,editor")));
    w.says(silent, event("asyncOperationStarted", json!({"operationId": 1}), None));
    assert!(w.take(window).is_empty());
    let talker = w.client_with(3, rights("chat"));
    w.says(talker, event("asyncOperationStarted", json!({"operationId": 1}), None));
    assert_eq!(w.take(window).len(), 1);
    let sandbox = w.sandbox(4, "sandbox", "/w");
    w.says(sandbox, event("asyncOperationSubmit", json!({"operationId": 1}), Some(3)));
    assert!(w.take(talker).is_empty(), "a host of tools cannot finish operations");
    assert_eq!(w.broker.counters().forbidden, 2);
    w.says(window, event("asyncOperationSubmit", json!({"operationId": 1}), Some(3)));
    assert_eq!(w.take(talker).len(), 1);
}

#[test]
fn hosts_register_only_what_their_token_allows() {
    let mut w = world();
    let window = w.stranger(1);
    for params in [
        json!({"runtimeId": "sandbox", "methods": ["vscode/chat"]}),
        json!({"runtimeId": "w", "methods": ["vscode/chat", "shell/run"]}),
        json!({"runtimeId": "w", "methods": ["action/execute"]}),
        json!({"runtimeId": "w", "methods": ["my/own"], "edge": true}),
    ] {
        assert_eq!(
            try_register(&mut w, window, params.clone()),
            Err(ErrorKind::Forbidden),
            "{params}"
        );
    }
    assert!(w.broker.runtimes().is_empty());
    let registered = try_register(&mut w, window, json!({"runtimeId": "w", "methods": ["my/own"]}));
    assert_eq!(registered, Ok("w".to_owned()));
    let update = serde_json::from_value(json!({"title": "T", "methods": ["file/read"]})).unwrap();
    let error = w.broker.update(window, update, w.now).unwrap_err();
    assert_eq!(error.code(), ErrorKind::Forbidden.code());
    assert!(error.data().unwrap().get().contains(r#""tools":["file/read"]"#), "{error:?}");
    let info = w.broker.runtime("w").unwrap();
    assert_eq!(
        (info.title.as_str(), info.methods),
        ("", vec!["my/own".to_owned()]),
        "nothing changed"
    );
    let client = w.client(9);
    assert_eq!(try_register(&mut w, client, json!({"methods": []})), Err(ErrorKind::WrongRole));
}

#[test]
fn nobody_else_can_take_the_place_of_a_child() {
    let mut w = world();
    let sandbox = w.sandbox(1, "sandbox", "/w");
    let window = w.stranger(2);
    let params = json!({"runtimeId": "sandbox", "methods": []});
    assert_eq!(try_register(&mut w, window, params.clone()), Err(ErrorKind::Forbidden));
    w.closes(sandbox);
    assert_eq!(
        try_register(&mut w, window, params),
        Err(ErrorKind::Forbidden),
        "not while it is away"
    );
}

#[test]
fn an_id_that_a_token_names_is_not_taken_over_with_the_sessions_own_host_token() {
    let mut w = world();
    let window = w.host(1);
    let wanted = json!({"role": "host", "runtimeIds": ["h1", "box"], "tools": ["file/*"]});
    let made = w.broker.narrowed(window, serde_json::from_value(wanted).unwrap()).unwrap();
    let as_box = json!({"runtimeId": "box", "methods": []});
    let first = w.connect(2, made.clone(), Dialect::JsonRpc);
    assert_eq!(try_register(&mut w, first, as_box.clone()), Ok("box".into()));
    let intruder = w.stranger(3);
    assert_eq!(try_register(&mut w, intruder, as_box.clone()), Err(ErrorKind::Forbidden));
    w.update(first, json!({"title": "mine"}));
    assert_eq!(w.broker.runtime("box").unwrap().title, "mine", "the sandbox keeps its place");
    let again = w.connect(4, made, Dialect::JsonRpc);
    assert_eq!(try_register(&mut w, again, as_box.clone()), Ok("box".into()), "it reconnects");
    let as_window = json!({"runtimeId": "h1", "methods": []});
    assert_eq!(try_register(&mut w, intruder, as_window.clone()), Ok("h1".into()), "a window does");
    assert_eq!(try_register(&mut w, again, as_window), Ok("h1".into()), "its token names this id");
    let late = w.stranger(5);
    assert_eq!(try_register(&mut w, late, as_box), Ok("box".into()), "nobody has it now");
}

#[test]
fn hosts_without_a_name_get_one_that_their_token_allows() {
    let mut w = world();
    let taken = HostGrant::general(["runtime-1".to_owned()], &[]);
    let window = w.host_with(1, taken.clone());
    assert_eq!(try_register(&mut w, window, json!({"methods": []})), Ok("runtime-2".into()));
    let child = w.host_with(2, HostGrant::child("only", &["file"], false));
    assert_eq!(try_register(&mut w, child, json!({"methods": []})), Ok("only".into()));
    let wanted = json!({"role": "host", "runtimeIds": ["a", "b"], "tools": ["file/*"]});
    let made = w.broker.narrowed(window, serde_json::from_value(wanted).unwrap()).unwrap();
    let several = w.connect(3, made, Dialect::JsonRpc);
    assert_eq!(
        try_register(&mut w, several, json!({"methods": []})),
        Err(ErrorKind::InvalidParams)
    );
    let named = json!({"runtimeId": "b", "methods": ["file/read"]});
    assert_eq!(try_register(&mut w, several, named), Ok("b".into()));
}
