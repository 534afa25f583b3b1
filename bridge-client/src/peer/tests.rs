use super::*;

type TestPeer = Peer<&'static str, &'static str>;

fn raw(text: &str) -> &RawValue {
    serde_json::from_str(text).unwrap()
}

fn called(peer: &mut TestPeer, kept: &'static str) -> RequestId {
    peer.call("vscode/chat", None, kept).unwrap().0
}

fn request<'t>(peer: &mut TestPeer, text: &'t str) -> Request<'t> {
    match peer.receive(text) {
        Incoming::Request(request) => request,
        other => panic!("not a request: {other:?}"),
    }
}

#[test]
fn a_call_is_printed_with_its_params_as_they_are() {
    let mut peer = TestPeer::default();
    let params = r#"{ "n": 1e400, "t": 1.0, "s": "\u0031" }"#;
    let (id, text) = peer.call("vscode/chat", Some(raw(params)), "a").unwrap();
    assert_eq!(id, RequestId(1));
    let expected =
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"vscode/chat","params":{params}}}"#);
    assert_eq!(text, expected);
}

#[test]
fn answers_find_their_calls_in_any_order_and_only_once() {
    let mut peer = TestPeer::default();
    let (first, second) = (called(&mut peer, "first"), called(&mut peer, "second"));
    assert_ne!(first, second);
    match peer.receive(r#"{"jsonrpc":"2.0","id":2,"result":{"response":"4"}}"#) {
        Incoming::Answer { call, waiting: "second", outcome: Outcome::Success(result) } => {
            assert_eq!((call, result.get()), (second, r#"{"response":"4"}"#));
        }
        other => panic!("{other:?}"),
    }
    match peer.receive(r#"{"jsonrpc":"2.0","id":1,"error":{"code":7,"message":"no"}}"#) {
        Incoming::Answer { call, waiting: "first", outcome: Outcome::Failure(error) } => {
            assert_eq!((call, error.get()), (first, r#"{"code":7,"message":"no"}"#));
        }
        other => panic!("{other:?}"),
    }
    for id in ["1", "2", "3", "null", "\"1\"", "-1"] {
        let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":1}}"#);
        let incoming = peer.receive(&text);
        assert!(matches!(incoming, Incoming::Ignored(Ignored::UnknownCall)), "{id}: {incoming:?}");
    }
}

#[test]
fn an_answer_that_is_none_still_ends_the_call() {
    let mut peer = TestPeer::default();
    called(&mut peer, "a");
    let text = r#"{"jsonrpc":"2.0","id":1,"result":1,"error":{"code":1,"message":"both"}}"#;
    let incoming = peer.receive(text);
    assert!(matches!(incoming, Incoming::Answer { outcome: Outcome::Malformed, .. }));
}

#[test]
fn what_the_daemon_would_refuse_without_naming_the_call_is_not_sent() {
    let mut peer = TestPeer::default();
    let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
    let long = "x".repeat(200);
    for (method, params) in [("m", Some(&*deep)), ("m", Some("\"text\"")), (&*long, None)] {
        let refused = peer.call(method, params.map(raw), "kept");
        let (kept, error) = refused.unwrap_err();
        assert_eq!(kept, "kept");
        assert!([-32700, -32600].contains(&error.code()), "{error:?}");
    }
    assert_eq!(called(&mut peer, "next"), RequestId(1));
}

#[test]
fn progress_belongs_to_a_call_that_waits() {
    let mut peer = TestPeer::default();
    let call = called(&mut peer, "a");
    let text =
        r#"{"jsonrpc":"2.0","method":"$/progress","params":{"id":1,"value":{"text":"\ud800"}}}"#;
    match peer.receive(text) {
        Incoming::Progress { call: found, value } => {
            assert_eq!((found, value.get()), (call, r#"{"text":"\ud800"}"#));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(peer.waiting(call), Some(&mut "a"));
    peer.receive(r#"{"jsonrpc":"2.0","id":1,"result":1}"#);
    assert!(matches!(peer.receive(text), Incoming::Ignored(Ignored::UnknownCall)));
    for params in ["{\"id\":1}", "{}", "[]", "{\"value\":2}"] {
        let text = format!(r#"{{"jsonrpc":"2.0","method":"$/progress","params":{params}}}"#);
        let incoming = peer.receive(&text);
        assert!(matches!(incoming, Incoming::Ignored(Ignored::Unreadable(_))), "{params}");
    }
}

#[test]
fn a_cancel_is_sent_only_while_the_call_waits_and_its_answer_still_counts() {
    let mut peer = TestPeer::default();
    let call = called(&mut peer, "a");
    let cancel = r#"{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":1}}"#;
    assert_eq!(peer.cancel(call).as_deref(), Some(cancel));
    let answer = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32800,"message":"cancelled"}}"#;
    assert!(matches!(peer.receive(answer), Incoming::Answer { waiting: "a", .. }));
    assert_eq!(peer.cancel(call), None);
}

#[test]
fn a_call_that_was_given_up_is_never_answered() {
    let mut peer = TestPeer::default();
    let call = called(&mut peer, "a");
    assert_eq!(peer.find(|kept| *kept == "a"), Some(call));
    assert_eq!(peer.forget(call), Some("a"));
    assert_eq!(peer.find(|kept| *kept == "a"), None);
    let incoming = peer.receive(r#"{"jsonrpc":"2.0","id":1,"result":1}"#);
    assert!(matches!(incoming, Incoming::Ignored(Ignored::UnknownCall)));
}

#[test]
fn a_request_is_answered_once_and_streams_until_then() {
    let mut peer = TestPeer::default();
    let request =
        request(&mut peer, r#"{"jsonrpc":"2.0","id":"x","method":"vscode/chat","params":{"a":1}}"#);
    assert_eq!((&*request.method, request.params.unwrap().get()), ("vscode/chat", r#"{"a":1}"#));
    assert!(peer.serve(&request.id, "kept"));
    assert_eq!(
        peer.progress(&request.id, raw("1e400")).as_deref(),
        Some(r#"{"jsonrpc":"2.0","method":"$/progress","params":{"id":"x","value":1e400}}"#)
    );
    assert_eq!(
        peer.answer(&request.id, Ok(raw("{}"))).as_deref(),
        Some(r#"{"jsonrpc":"2.0","id":"x","result":{}}"#)
    );
    assert_eq!(peer.answer(&request.id, Ok(raw("{}"))), None);
    assert_eq!(peer.progress(&request.id, raw("1")), None);
}

#[test]
fn an_answer_that_the_daemon_could_not_read_becomes_an_error() {
    let mut peer = TestPeer::default();
    let request = request(&mut peer, r#"{"jsonrpc":"2.0","id":5,"method":"m"}"#);
    peer.serve(&request.id, "kept");
    let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
    let answer = peer.answer(&request.id, Ok(raw(&deep))).unwrap();
    assert!(answer.contains("\"id\":5") && answer.contains("-32700"), "{answer}");
}

#[test]
fn a_cancel_names_a_request_that_is_being_served_in_any_spelling() {
    let mut peer = TestPeer::default();
    let request = request(&mut peer, r#"{"jsonrpc":"2.0","id":"1","method":"m"}"#);
    peer.serve(&request.id, "kept");
    let cancel = r#"{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":"\u0031"}}"#;
    match peer.receive(cancel) {
        Incoming::Cancel { request, by_caller: true } => {
            assert_eq!(peer.served(&request), Some(&mut "kept"));
        }
        other => panic!("{other:?}"),
    }
    let number = r#"{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":1}}"#;
    assert!(matches!(peer.receive(number), Incoming::Ignored(Ignored::UnknownRequest)));
    let error = ErrorKind::RequestCancelled.error("cancelled");
    assert!(peer.answer(&request.id, Err(&error)).unwrap().contains("-32800"));
    assert!(matches!(peer.receive(cancel), Incoming::Ignored(Ignored::UnknownRequest)));
}

#[test]
fn an_id_that_is_being_served_is_refused_without_naming_it() {
    let mut peer = TestPeer::default();
    let text = r#"{"jsonrpc":"2.0","id":5,"method":"m"}"#;
    let request = request(&mut peer, text);
    let error = ErrorKind::InvalidRequest.error("again");
    assert!(peer.refuse(&request.id, &error).contains("\"id\":5"));
    assert!(peer.serve(&request.id, "first"));
    assert!(!peer.serve(&request.id, "second"));
    assert!(peer.refuse(&request.id, &error).contains("\"id\":null"));
    assert_eq!(peer.served(&request.id), Some(&mut "first"));
}

#[test]
fn a_lost_connection_ends_everything_but_the_count_of_ids() {
    let mut peer = TestPeer::default();
    called(&mut peer, "a");
    let request = request(&mut peer, r#"{"jsonrpc":"2.0","id":9,"method":"m"}"#);
    peer.serve(&request.id, "s");
    assert_eq!(peer.disconnect(), (vec!["a"], vec!["s"]));
    assert_eq!(peer.answer(&request.id, Ok(raw("1"))), None);
    assert_eq!(called(&mut peer, "b"), RequestId(2));
    let late = peer.receive(r#"{"jsonrpc":"2.0","id":1,"result":1}"#);
    assert!(matches!(late, Incoming::Ignored(Ignored::UnknownCall)));
}

#[test]
fn other_notifications_and_events_are_passed_on_and_nonsense_is_ignored() {
    let mut peer = TestPeer::default();
    let text = r#"{"jsonrpc":"2.0","method":"bridge/request","params":{"request":1}}"#;
    assert!(matches!(
        peer.receive(text),
        Incoming::Notification(notification) if notification.method == "bridge/request"
    ));
    let text = r#"{"jsonrpc":"2.0","method":"dapEvent","params":{"event":"x","client":3}}"#;
    assert!(matches!(
        peer.receive(text),
        Incoming::DapEvent(event) if event.name == "x" && event.client == Some(3)
    ));
    for text in ["", "{", "[]", "{\"id\":1}", "nonsense", "null"] {
        assert!(matches!(peer.receive(text), Incoming::Ignored(Ignored::Unreadable(_))), "{text}");
    }
}
