//! The two dialects: a message that is parsed, printed in its own dialect and parsed again is equal.

#![no_main]

use bridge_protocol::{DapEvent, Dialect, Message, Outcome, RequestId, Response, print};
use libfuzzer_sys::fuzz_target;
use serde_json::value::RawValue;

fuzz_target!(|text: &str| match Message::parse(text) {
    Ok(Message::Request(request)) => {
        let printed = print::request(RequestId(7), &request.method, request.params);
        match Message::parse(&printed) {
            Ok(Message::Request(again)) => {
                assert_eq!((again.id.raw(), &again.method), ("7", &request.method));
                assert_eq!(raw(again.params), raw(request.params));
            }
            other => panic!("{printed} became {other:?}"),
        }
        let answer = print::success(request.dialect, &request.id, RawValue::TRUE);
        assert_eq!(id_of(&answer), Some(request.id.raw()), "answers have the caller's own id");
    }
    Ok(Message::Notification(notification)) => {
        let printed = print::notification(&notification.method, notification.params);
        match Message::parse(&printed) {
            Ok(Message::Notification(again)) => {
                assert_eq!(again.method, notification.method);
                assert_eq!(raw(again.params), raw(notification.params));
            }
            other => panic!("{printed} became {other:?}"),
        }
    }
    Ok(Message::DapEvent(event)) => check_event(dialect_of(text), &event),
    Ok(Message::Response(response)) => check_response(dialect_of(text), &response),
    Err(rejection) => {
        let dialect = rejection.dialect.unwrap_or(Dialect::JsonRpc);
        let answer = print::failure(dialect, rejection.id.as_ref(), &rejection.error);
        let id = rejection.id.as_ref().map(|id| id.raw());
        assert_eq!(id_of(&answer).filter(|id| *id != "null"), id);
    }
});

fn check_event(dialect: Dialect, event: &DapEvent<'_>) {
    let printed = print::event(dialect, event);
    match Message::parse(&printed) {
        Ok(Message::DapEvent(again)) => {
            assert_eq!((&again.name, again.client), (&event.name, event.client));
            assert_eq!(raw(again.body), raw(event.body));
        }
        other => panic!("{printed} became {other:?}"),
    }
}

fn check_response(dialect: Dialect, response: &Response<'_>) {
    let Some(id) = response.id.map(|id| id.to_string()) else { return };
    let id = bridge_protocol::CallId::from_raw(&id).expect("our own ids are ids");
    let printed = match response.outcome {
        Outcome::Success(result) => print::success(dialect, &id, result),
        Outcome::Failure(error) => print::failure_raw(dialect, Some(&id), error),
        Outcome::Malformed => return,
    };
    let Ok(Message::Response(again)) = Message::parse(&printed) else {
        panic!("{printed} is no answer")
    };
    assert_eq!(again.id, response.id);
    match (&response.outcome, &again.outcome) {
        // A result in the bridge dialect is never null.
        (Outcome::Success(old), Outcome::Success(_))
            if dialect == Dialect::Bridge && old.get() == "null" => {}
        (Outcome::Success(old), Outcome::Success(new))
        | (Outcome::Failure(old), Outcome::Failure(new)) => assert_eq!(old.get(), new.get()),
        (old, new) => panic!("{old:?} became {new:?}"),
    }
}

fn raw(value: Option<&RawValue>) -> Option<&str> {
    value.map(RawValue::get)
}

fn members(text: &str) -> std::collections::HashMap<String, &RawValue> {
    serde_json::from_str(text).expect("a message is an object")
}

fn id_of(text: &str) -> Option<&str> {
    members(text).get("id").map(|raw| raw.get())
}

fn dialect_of(text: &str) -> Dialect {
    match members(text).contains_key("jsonrpc") {
        true => Dialect::JsonRpc,
        false => Dialect::Bridge,
    }
}
