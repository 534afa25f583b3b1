//! [`Message`](crate::Message) to text. The only place that puts JSON together from pieces: raw
//! slices are copied as they are, everything else goes through a JSON printer.

use std::borrow::Cow;
use std::fmt::Write;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::error::WireError;
use crate::id::{CallId, RequestId};
use crate::message::{Dialect, Event};

/// The parts of a host's error object, borrowed.
#[derive(Debug, Deserialize)]
pub struct ErrorParts<'a> {
    /// A number of the table, or the host's own.
    pub code: i32,
    /// A sentence for people.
    #[serde(borrow)]
    pub message: Cow<'a, str>,
    /// Whatever the host adds.
    #[serde(borrow, default)]
    pub data: Option<&'a RawValue>,
}

/// A request to a host.
pub fn request(id: RequestId, method: &str, params: Option<&RawValue>) -> String {
    let mut text = start(method.len() + raw_len(params));
    write!(text, "\"id\":{id},").expect(INFALLIBLE);
    push_call(&mut text, method, params);
    text
}

/// A notification.
pub fn notification(method: &str, params: Option<&RawValue>) -> String {
    let mut text = start(method.len() + raw_len(params));
    push_call(&mut text, method, params);
    text
}

/// Tells a host that nobody waits for the answer any more.
pub fn cancel(id: RequestId) -> String {
    format!("{{\"jsonrpc\":\"2.0\",\"method\":\"$/cancelRequest\",\"params\":{{\"id\":{id}}}}}")
}

/// Passes a piece of an answer on to the caller.
pub fn progress(id: &CallId<'_>, value: &RawValue) -> String {
    let mut text = start(64 + id.raw().len() + value.get().len());
    let (id, value) = (id.raw(), value.get());
    write!(text, "\"method\":\"$/progress\",\"params\":{{\"id\":{id},\"value\":{value}}}}}")
        .expect(INFALLIBLE);
    text
}

/// An answer that tells of success. In the bridge dialect a result is never null, since the
/// original client looks things up in it without checking.
pub fn success(dialect: Dialect, id: &CallId<'_>, result: &RawValue) -> String {
    match dialect {
        Dialect::JsonRpc => {
            let mut text = start(24 + id.raw().len() + result.get().len());
            push_members(&mut text, &["\"id\":", id.raw(), ",\"result\":", result.get(), "}"]);
            text
        }
        Dialect::Bridge => {
            let result = if result.get() == "null" { "{}" } else { result.get() };
            let mut text = String::with_capacity(40 + id.raw().len() + result.len());
            push_members(
                &mut text,
                &["{\"id\":", id.raw(), ",\"success\":true,\"result\":", result, "}"],
            );
            text
        }
    }
}

/// An answer that tells of failure. In the bridge dialect the error is a plain sentence; code and
/// data stand beside it for those who look.
pub fn failure(dialect: Dialect, id: Option<&CallId<'_>>, error: &WireError) -> String {
    let raw = serde_json::value::to_raw_value(error).expect("an error object always prints");
    failure_raw(dialect, id, &raw)
}

/// The same for an error object that came from a host and is passed on as it is.
pub fn failure_raw(dialect: Dialect, id: Option<&CallId<'_>>, error: &RawValue) -> String {
    let id = id.map_or("null", CallId::raw);
    match dialect {
        Dialect::JsonRpc => {
            let mut text = start(24 + id.len() + error.get().len());
            push_members(&mut text, &["\"id\":", id, ",\"error\":", error.get(), "}"]);
            text
        }
        Dialect::Bridge => {
            let parts: ErrorParts<'_> =
                serde_json::from_str(error.get()).expect("checked when the message was parsed");
            let mut text = String::with_capacity(64 + id.len() + error.get().len());
            push_members(&mut text, &["{\"id\":", id, ",\"success\":false,\"error\":"]);
            push_string(&mut text, &parts.message);
            write!(text, ",\"code\":{}", parts.code).expect(INFALLIBLE);
            if let Some(data) = parts.data {
                push_members(&mut text, &[",\"data\":", data.get()]);
            }
            text.push('}');
            text
        }
    }
}

/// An event, for a client in the dialect it speaks or for a host in JSON-RPC.
pub fn event(dialect: Dialect, event: &Event<'_>) -> String {
    let mut text = match dialect {
        Dialect::JsonRpc => start(64 + raw_len(event.body)),
        Dialect::Bridge => String::with_capacity(64 + raw_len(event.body)),
    };
    text.push_str(match dialect {
        Dialect::JsonRpc => "\"method\":\"dapEvent\",\"params\":{\"event\":",
        Dialect::Bridge => "{\"type\":\"dapEvent\",\"event\":",
    });
    push_string(&mut text, &event.name);
    if let Some(body) = event.body {
        push_members(&mut text, &[",\"body\":", body.get()]);
    }
    if let (Dialect::JsonRpc, Some(client)) = (dialect, event.client) {
        write!(text, ",\"client\":{client}").expect(INFALLIBLE);
    }
    text.push_str(match dialect {
        Dialect::JsonRpc => "}}",
        Dialect::Bridge => "}",
    });
    text
}

const INFALLIBLE: &str = "writing to a String cannot fail";

fn start(room: usize) -> String {
    let mut text = String::with_capacity(64 + room);
    text.push_str("{\"jsonrpc\":\"2.0\",");
    text
}

fn push_call(text: &mut String, method: &str, params: Option<&RawValue>) {
    text.push_str("\"method\":");
    push_string(text, method);
    if let Some(params) = params {
        push_members(text, &[",\"params\":", params.get()]);
    }
    text.push('}');
}

fn push_members(text: &mut String, pieces: &[&str]) {
    for piece in pieces {
        text.push_str(piece);
    }
}

fn push_string(text: &mut String, value: &str) {
    text.push_str(&serde_json::to_string(value).expect("a string always prints"));
}

fn raw_len(raw: Option<&RawValue>) -> usize {
    raw.map_or(0, |raw| raw.get().len())
}
