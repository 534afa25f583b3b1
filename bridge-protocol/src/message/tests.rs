use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::limits::UNKNOWN_MEMBERS;

fn rejected(text: &str) -> (Option<String>, Option<Dialect>, i32) {
    let rejection = Message::parse(text).expect_err(text);
    (rejection.id.map(|id| id.raw().to_owned()), rejection.dialect, rejection.error.code())
}

#[track_caller]
fn request(text: &str) -> Request<'_> {
    match Message::parse(text) {
        Ok(Message::Request(request)) => request,
        other => panic!("{other:?}"),
    }
}

#[test]
fn both_dialects_become_the_same_request() {
    let json_rpc =
        request(r#"{"jsonrpc":"2.0","id":"a","method":"vscode/chat","params":{"message":"hi"}}"#);
    let bridge = request(r#"{"id":"a","type":"vscode/chat","params":{"message":"hi"}}"#);
    assert_eq!((json_rpc.dialect, bridge.dialect), (Dialect::JsonRpc, Dialect::Bridge));
    assert_eq!(json_rpc.id, bridge.id);
    assert_eq!(json_rpc.method, bridge.method);
    assert_eq!(json_rpc.params.unwrap().get(), bridge.params.unwrap().get());
}

#[test]
fn payloads_keep_every_byte() {
    let payload = r#"{"b":1e400, "a":1.0,"a2":"\u0031\ud800","n":12345678901234567890}"#;
    let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{payload}}}"#);
    assert_eq!(request(&text).params.unwrap().get(), payload);
}

#[test]
fn names_are_borrowed_unless_they_contain_escapes() {
    let method = |name: &str| match request(&format!(r#"{{"id":1,"type":"{name}"}}"#)).method {
        Cow::Borrowed(name) => ("borrowed", name.to_owned()),
        Cow::Owned(name) => ("copied", name),
    };
    assert_eq!(method("chat"), ("borrowed", "chat".to_owned()));
    assert_eq!(method(r"\u0063hat"), ("copied", "chat".to_owned()));
}

#[test]
fn a_message_with_both_jsonrpc_and_type_is_json_rpc() {
    let text = r#"{"jsonrpc":"2.0","id":1,"type":"x","method":"m"}"#;
    assert_eq!(request(text).dialect, Dialect::JsonRpc);
}

#[test]
fn events_are_read_in_both_dialects() {
    for (text, client) in [
        (r#"{"type":"dapEvent","event":"e","body":{"a":1}}"#, None),
        (
            r#"{"jsonrpc":"2.0","method":"dapEvent","params":{"event":"e","body":{"a":1},"client":3}}"#,
            Some(3),
        ),
    ] {
        let Ok(Message::DapEvent(event)) = Message::parse(text) else { panic!("{text}") };
        assert_eq!(
            (&*event.name, event.body.unwrap().get(), event.client),
            ("e", r#"{"a":1}"#, client)
        );
    }
    assert_eq!(rejected(r#"{"type":"dapEvent"}"#).2, -32600);
    assert_eq!(rejected(r#"{"jsonrpc":"2.0","method":"dapEvent","params":[]}"#).2, -32600);
}

#[test]
fn responses_are_success_failure_or_malformed_by_their_members() {
    let outcome = |text: &'static str| match Message::parse(text) {
        Ok(Message::Response(response)) => match response.outcome {
            Outcome::Success(raw) => format!("{:?} ok {raw}", response.id.map(|id| id.0)),
            Outcome::Failure(raw) => format!("{:?} failed {raw}", response.id.map(|id| id.0)),
            Outcome::Malformed => format!("{:?} malformed", response.id.map(|id| id.0)),
        },
        other => panic!("{other:?}"),
    };
    assert_eq!(outcome(r#"{"jsonrpc":"2.0","id":7,"result":null}"#), "Some(7) ok null");
    assert_eq!(
        outcome(r#"{"jsonrpc":"2.0","id":7,"error":{"code":1,"message":"x"}}"#),
        r#"Some(7) failed {"code":1,"message":"x"}"#
    );
    assert_eq!(outcome(r#"{"id":7,"success":true,"result":{}}"#), "Some(7) ok {}");
    for malformed in [
        r#"{"jsonrpc":"2.0","id":7,"error":"text"}"#,
        r#"{"jsonrpc":"2.0","id":7,"error":{"code":"1","message":"x"}}"#,
        r#"{"jsonrpc":"2.0","id":7,"error":{"code":1}}"#,
        r#"{"jsonrpc":"2.0","id":7,"result":1,"error":{"code":1,"message":"x"}}"#,
        r#"{"id":7,"success":false,"error":"x"}"#,
        r#"{"id":7,"success":false,"result":{}}"#,
    ] {
        assert_eq!(outcome(malformed), "Some(7) malformed", "{malformed}");
    }
    assert_eq!(outcome(r#"{"jsonrpc":"2.0","id":"7","result":1}"#), "None ok 1");
}

#[test]
fn rejections_say_under_which_id_and_in_which_dialect() {
    use Dialect::{Bridge, JsonRpc};
    let one = || Some("1".to_owned());
    for (text, expected) in [
        ("", (None, None, -32700)),
        ("{", (None, None, -32700)),
        ("nonsense", (None, None, -32700)),
        ("1", (None, None, -32700)),
        (r#"{"id":1} x"#, (None, None, -32700)),
        (r#"{"id":1,"id":2,"type":"a"}"#, (None, None, -32700)),
        (r#"{"x":1,"x":2,"type":"a"}"#, (None, None, -32700)),
        (r#"{"id":1,"\u0069d":2,"type":"a"}"#, (None, None, -32700)),
        ("[]", (None, None, -32005)),
        (r#"[{"jsonrpc":"2.0","id":1,"method":"m"}]"#, (None, None, -32005)),
        ("[1,", (None, None, -32700)),
        (r#"{"id":1}"#, (one(), Some(JsonRpc), -32600)),
        (r#"{"jsonrpc":"1.0","id":1,"method":"m"}"#, (one(), Some(JsonRpc), -32600)),
        (r#"{"jsonrpc":2.0,"id":1,"method":"m"}"#, (one(), Some(JsonRpc), -32600)),
        (r#"{"jsonrpc":"2.0","id":1}"#, (one(), Some(JsonRpc), -32600)),
        (r#"{"jsonrpc":"2.0","id":1,"method":7}"#, (one(), Some(JsonRpc), -32600)),
        (r#"{"jsonrpc":"2.0","id":1,"method":"m","params":"x"}"#, (one(), Some(JsonRpc), -32600)),
        (r#"{"jsonrpc":"2.0","id":{},"method":"m"}"#, (None, Some(JsonRpc), -32600)),
        (r#"{"jsonrpc":"2.0","id":null,"method":"m"}"#, (None, Some(JsonRpc), -32600)),
        (r#"{"id":1.5,"type":"m"}"#, (None, Some(Bridge), -32600)),
        (r#"{"id":1,"type":7}"#, (one(), Some(Bridge), -32600)),
        (r#"{"id":1,"type":"m","params":{"x":NaN}}"#, (one(), Some(Bridge), -32700)),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"m","params":[-Infinity,"NaN"]}"#,
            (one(), Some(JsonRpc), -32700),
        ),
        (r#"{"id":1,"type":"m","params":{"x":Nope}}"#, (None, None, -32700)),
    ] {
        assert_eq!(rejected(text), expected, "{text}");
    }
}

#[test]
fn method_names_and_unknown_members_are_limited() {
    let named = |length| format!(r#"{{"id":1,"type":"{}"}}"#, "m".repeat(length));
    assert_eq!(request(&named(METHOD_BYTES)).method.len(), METHOD_BYTES);
    assert_eq!(rejected(&named(METHOD_BYTES + 1)).2, -32600);
    let members = |count| {
        let extra: String = (0..count).map(|n| format!(r#","x{n}":0"#)).collect();
        format!(r#"{{"id":1,"type":"m"{extra}}}"#)
    };
    request(&members(UNKNOWN_MEMBERS));
    assert_eq!(rejected(&members(UNKNOWN_MEMBERS + 1)).2, -32700);
}

#[test]
fn depth_is_limited_and_strings_do_not_count() {
    let nested = |levels: usize| {
        format!(r#"{{"id":1,"type":"m","params":{}{}}}"#, "[".repeat(levels), "]".repeat(levels))
    };
    request(&nested(DEPTH - 1));
    assert_eq!(rejected(&nested(DEPTH)), (Some("1".into()), Some(Dialect::Bridge), -32700));
    assert_eq!(rejected(&nested(200_000)).2, -32700);
    let brackets = "[".repeat(1000);
    request(&format!(r#"{{"id":1,"type":"m","params":["\"{brackets}"]}}"#));
    let flat = "[],".repeat(1000);
    request(&format!(r#"{{"id":1,"type":"m","params":[{flat}1]}}"#));
    // At the limit of depth, with so many brackets that counting them is not enough.
    let wide_and = |levels: usize| nested(levels).replacen("[]", &format!("[{flat}1]"), 1);
    request(&wide_and(DEPTH - 2));
    assert_eq!(rejected(&wide_and(DEPTH - 1)).2, -32700);
}

#[test]
fn the_error_for_a_text_that_is_no_object_says_what_was_expected() {
    let rejection = Message::parse("1").unwrap_err();
    let reason = rejection.error.message();
    assert!(reason.contains("expected an object"), "{reason}");
}

/// JSON text from a random value, then damaged at random places.
fn damaged_json() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "\\PC{0,12}".prop_map(Value::from),
    ];
    let value = leaf.prop_recursive(4, 24, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map("[a-z\"\\\\]{0,6}", inner, 0..6)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    });
    let damage = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..4u8), 0..3);
    (prop::collection::btree_map("id|type|method|params|jsonrpc|x", value, 0..6), damage).prop_map(
        |(members, damage)| {
            let mut text = serde_json::to_string(&members).unwrap().into_bytes();
            for (index, byte, kind) in damage {
                let at = index.index(text.len());
                match kind {
                    0 => text[at] = byte & 0x7f,
                    1 => text.insert(at, byte & 0x7f),
                    2 => _ = text.remove(at),
                    _ => text.truncate(at.max(1)),
                }
                if text.is_empty() {
                    text.push(b'{');
                }
            }
            String::from_utf8_lossy(&text).into_owned()
        },
    )
}

/// Whether the parser accepted the text as JSON, even if it rejected the envelope.
fn accepted_as_json(text: &str) -> bool {
    match Message::parse(text) {
        Ok(_) => true,
        Err(rejection) => rejection.error.code() != ErrorKind::ParseError.code(),
    }
}

proptest! {
    /// We accept the same texts as a full parser, except that we pass numbers out of range and lone
    /// surrogates on unread, on purpose.
    #[test]
    fn accepts_what_a_full_parser_accepts(text in damaged_json()) {
        let full = serde_json::from_str::<Value>(&text);
        let top_level_is_structured = !matches!(full, Ok(ref value) if !value.is_object() && !value.is_array());
        match full {
            Ok(_) if top_level_is_structured => {
                let duplicate = matches!(Message::parse(&text),
                    Err(ref rejection) if rejection.error.message().contains("duplicate"));
                prop_assert!(accepted_as_json(&text) || duplicate, "refused: {text}");
            }
            Ok(_) => prop_assert!(!accepted_as_json(&text)),
            Err(error) => {
                let reason = error.to_string();
                let passed_on = ["out of range", "surrogate", "hex escape"].iter().any(|known| reason.contains(known));
                prop_assert!(passed_on || !accepted_as_json(&text), "accepted: {text} ({reason})");
            }
        }
    }

    /// No text that a peer can send makes the parser panic.
    #[test]
    fn never_panics(text in "\\PC{0,200}") {
        let _ = Message::parse(&text);
    }
}
