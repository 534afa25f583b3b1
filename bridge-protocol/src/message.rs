//! Parses a text into a [`Message`]: one scan, no copies, strict limits.
//!
//! The parser reads the envelope (the members of the top-level object). It checks that `params`, `result`
//! and `error` are JSON and keeps them as raw text. A duplicate member, nesting beyond
//! [`DEPTH`](crate::limits::DEPTH), or an id or method name beyond its limit gives a [`Rejection`], which
//! says under which id and in which dialect to answer. A rejection never ends a connection.

mod envelope;

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::error::{ErrorKind, WireError};
use crate::id::{CallId, RequestId};
use crate::limits::{DEPTH, METHOD_BYTES};

use envelope::{Envelope, text_of};

/// The format of a message. An answer uses the dialect of its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// JSON-RPC 2.0: `{"jsonrpc":"2.0",…}`.
    JsonRpc,
    /// The dialect of the original project: `{"id":…,"type":…,"params":…}`, answered by
    /// `{"id":…,"success":…,…}`.
    Bridge,
}

/// One message, in either dialect.
#[derive(Debug)]
pub enum Message<'a> {
    /// A call that gets exactly one answer.
    Request(Request<'a>),
    /// A message that gets no answer.
    Notification(Notification<'a>),
    /// A `dapEvent`, sent between a client and a host. It gets no answer.
    DapEvent(DapEvent<'a>),
    /// An answer to a request that the daemon sent.
    Response(Response<'a>),
}

/// A call that gets exactly one answer.
#[derive(Debug)]
pub struct Request<'a> {
    /// The dialect to answer in.
    pub dialect: Dialect,
    /// The caller's id, echoed in the answer.
    pub id: CallId<'a>,
    /// Name of the method as sent, perhaps an alias; [`Method::from_name`](crate::Method::from_name)
    /// resolves aliases.
    pub method: Cow<'a, str>,
    /// The parameters, an object or an array. `None` if absent or `null`.
    pub params: Option<&'a RawValue>,
}

/// A message that gets no answer.
#[derive(Debug)]
pub struct Notification<'a> {
    /// Name of the method as sent.
    pub method: Cow<'a, str>,
    /// The parameters, an object or an array. `None` if absent or `null`.
    pub params: Option<&'a RawValue>,
}

/// A `dapEvent`, sent between a client and a host.
#[derive(Debug)]
pub struct DapEvent<'a> {
    /// Name of the event, for instance `asyncOperationStarted`.
    pub name: Cow<'a, str>,
    /// Content of the event, if it has any.
    pub body: Option<&'a RawValue>,
    /// The daemon's number of the client that sent or receives the event. Only in JSON-RPC, and only
    /// between the daemon and a host.
    pub client: Option<u64>,
}

/// An answer from a host.
#[derive(Debug)]
pub struct Response<'a> {
    /// Id of the request. `None` if the daemon cannot have assigned the id in the answer.
    pub id: Option<RequestId>,
    /// Result or error.
    pub outcome: Outcome<'a>,
}

/// How a request ended at the host.
#[derive(Debug)]
pub enum Outcome<'a> {
    /// The result, any JSON value.
    Success(&'a RawValue),
    /// An error object with a numeric `code` and a string `message`.
    Failure(&'a RawValue),
    /// Neither result nor error, or both, or an error object without code and message.
    Malformed,
}

/// Why a text is no valid message, and how to answer it.
#[derive(Debug)]
pub struct Rejection<'a> {
    /// The id for the answer, if the text has a valid one.
    pub id: Option<CallId<'a>>,
    /// The dialect of the text, if it could be recognised.
    pub dialect: Option<Dialect>,
    /// The error to answer with.
    pub error: WireError,
}

impl<'a> Message<'a> {
    /// Parses one message.
    pub fn parse(text: &'a str) -> Result<Self, Rejection<'a>> {
        match Envelope::read(text) {
            Ok(envelope) if too_deep(text) => {
                let reason = format!("message is nested deeper than {DEPTH} levels");
                Err(envelope.reject(ErrorKind::ParseError.error(reason)))
            }
            Ok(envelope) => envelope.into_message(),
            Err(error) => Err(Rejection::of_unparsable(text, &error)),
        }
    }
}

impl<'a> Rejection<'a> {
    fn unnamed(error: WireError) -> Self {
        Self { id: None, dialect: None, error }
    }

    fn of_unparsable(text: &'a str, error: &serde_json::Error) -> Self {
        if text.trim_start().starts_with('[') && serde_json::from_str::<&RawValue>(text).is_ok() {
            let reason = "batches are not supported: send the requests one by one";
            return Self::unnamed(ErrorKind::BatchNotSupported.error(reason));
        }
        // Python prints NaN and Infinity as bare words.
        if let Some(repaired) = with_bare_words_as_null(text)
            && let Ok(envelope) = Envelope::read(&repaired)
        {
            let reason = "NaN and Infinity are not JSON: send null or a string instead";
            let rejection = envelope.reject(ErrorKind::ParseError.error(reason));
            return Rejection { id: rejection.id.map(CallId::into_owned), ..rejection };
        }
        Self::unnamed(ErrorKind::ParseError.error(format!("not a JSON message: {error}")))
    }
}

impl<'a> Envelope<'a> {
    fn dialect(&self) -> Dialect {
        if self.jsonrpc.is_none() && (self.kind.is_some() || self.success.is_some()) {
            Dialect::Bridge
        } else {
            Dialect::JsonRpc
        }
    }

    /// A rejection under the id of the text, so that its sender gets the error instead of a timeout.
    fn reject(&self, error: WireError) -> Rejection<'a> {
        let id = self.id.and_then(CallId::from_raw);
        Rejection { id, dialect: Some(self.dialect()), error }
    }

    fn into_message(self) -> Result<Message<'a>, Rejection<'a>> {
        let dialect = self.dialect();
        let id = self.id.and_then(CallId::from_raw);
        let invalid = |reason: &str| Rejection {
            id: id.clone(),
            dialect: Some(dialect),
            error: ErrorKind::InvalidRequest.error(reason),
        };
        if dialect == Dialect::JsonRpc && self.jsonrpc != Some("\"2.0\"") {
            return Err(invalid("no message: \"jsonrpc\" must be \"2.0\" (or use \"type\")"));
        }
        let name = match dialect {
            Dialect::JsonRpc => self.method,
            Dialect::Bridge => self.kind,
        };
        let Some(name) = name else {
            let answered = self.result.is_some() || self.error.is_some() || self.success.is_some();
            return match answered {
                true => Ok(Message::Response(self.into_response(dialect))),
                false => Err(invalid("no message: \"method\" is missing")),
            };
        };
        let name = match text_of(name) {
            Some(name) if name.len() <= METHOD_BYTES => name,
            Some(_) => return Err(invalid("the method name is too long")),
            None => return Err(invalid("the method name must be a string")),
        };
        let params = self.params.filter(|raw| raw.get() != "null");
        if params.is_some_and(|raw| !raw.get().starts_with(['{', '['])) {
            return Err(invalid("\"params\" must be an object or an array"));
        }
        if name == DapEvent::NAME {
            let event = match dialect {
                Dialect::Bridge => DapEvent::from_members(self.event, self.body, None),
                Dialect::JsonRpc => params.and_then(DapEvent::from_params),
            };
            return event
                .map(Message::DapEvent)
                .ok_or_else(|| invalid("dapEvent without an event name"));
        }
        match (self.id, id.clone()) {
            (None, _) => Ok(Message::Notification(Notification { method: name, params })),
            (Some(_), None) => {
                Err(invalid("the id must be an integer or a string of at most 128 bytes"))
            }
            (Some(_), Some(id)) => {
                Ok(Message::Request(Request { dialect, id, method: name, params }))
            }
        }
    }

    fn into_response(self, dialect: Dialect) -> Response<'a> {
        let outcome = match (dialect, self.result, self.error) {
            (Dialect::JsonRpc, Some(result), None) => Outcome::Success(result),
            (Dialect::JsonRpc, None, Some(error)) if is_error_object(error) => {
                Outcome::Failure(error)
            }
            (Dialect::Bridge, Some(result), _) if self.success == Some("true") => {
                Outcome::Success(result)
            }
            _ => Outcome::Malformed,
        };
        Response { id: self.id.and_then(RequestId::from_raw), outcome }
    }
}

impl<'a> DapEvent<'a> {
    /// Method of an event in JSON-RPC, and its `type` in the bridge dialect.
    pub const NAME: &'static str = "dapEvent";

    fn from_params(params: &'a RawValue) -> Option<Self> {
        #[derive(serde::Deserialize)]
        struct Params<'a> {
            #[serde(borrow)]
            event: Option<&'a RawValue>,
            #[serde(borrow)]
            body: Option<&'a RawValue>,
            client: Option<u64>,
        }
        let params: Params<'a> = serde_json::from_str(params.get()).ok()?;
        Self::from_members(params.event.map(RawValue::get), params.body, params.client)
    }

    fn from_members(
        name: Option<&'a str>,
        body: Option<&'a RawValue>,
        client: Option<u64>,
    ) -> Option<Self> {
        let name = text_of(name?)?;
        (name.len() <= METHOD_BYTES).then_some(Self { name, body, client })
    }
}

fn is_error_object(raw: &RawValue) -> bool {
    serde_json::from_str::<crate::print::ErrorParts<'_>>(raw.get()).is_ok()
}

/// Whether the text is nested deeper than [`DEPTH`]. `serde_json` skips raw values without a limit on depth,
/// so the limit is checked here. Two shortcuts keep this cheap: a level takes two bytes, and a vectorised
/// search shows that most messages have fewer opening brackets than levels allowed.
fn too_deep(text: &str) -> bool {
    let bytes = text.as_bytes();
    if bytes.len() <= 2 * DEPTH {
        return false;
    }
    if memchr::memchr2_iter(b'[', b'{', bytes).take(DEPTH + 1).count() <= DEPTH {
        return false;
    }
    let mut depth = 0usize;
    let mut rest = bytes.iter();
    while let Some(byte) = rest.next() {
        match byte {
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.saturating_sub(1),
            b'"' => skip_string(&mut rest),
            _ => {}
        }
        if depth > DEPTH {
            return true;
        }
    }
    false
}

/// Moves past the closing quote of a string whose opening quote has been read.
fn skip_string(rest: &mut std::slice::Iter<'_, u8>) {
    while let Some(byte) = rest.next() {
        match byte {
            b'"' => return,
            b'\\' => _ = rest.next(),
            _ => {}
        }
    }
}

/// The text with each bare `NaN`, `Infinity` and `-Infinity` outside strings replaced by `null`,
/// or `None` if there is none.
fn with_bare_words_as_null(text: &str) -> Option<String> {
    let mut repaired = String::new();
    let mut copied = 0;
    let mut rest = text.as_bytes().iter();
    loop {
        let at = text.len() - rest.as_slice().len();
        match rest.next() {
            None => break,
            Some(b'"') => skip_string(&mut rest),
            Some(b'N' | b'I' | b'-') => {
                let word = ["NaN", "Infinity", "-Infinity"]
                    .into_iter()
                    .find(|word| text[at..].starts_with(word));
                if let Some(word) = word {
                    repaired.push_str(&text[copied..at]);
                    repaired.push_str("null");
                    copied = at + word.len();
                    rest = text.as_bytes()[copied..].iter();
                }
            }
            Some(_) => {}
        }
    }
    if copied == 0 {
        return None;
    }
    repaired.push_str(&text[copied..]);
    Some(repaired)
}

#[cfg(test)]
mod tests;
