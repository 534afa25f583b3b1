//! Finds the members of the top-level object of a message without parsing their values.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::limits::UNKNOWN_MEMBERS;
use crate::text::brief;

/// The members of a message that the protocol defines, as raw text.
#[derive(Debug, Default)]
pub(super) struct Envelope<'a> {
    pub jsonrpc: Option<&'a str>,
    pub id: Option<&'a str>,
    pub method: Option<&'a str>,
    pub kind: Option<&'a str>,
    pub params: Option<&'a RawValue>,
    pub result: Option<&'a RawValue>,
    pub error: Option<&'a RawValue>,
    pub success: Option<&'a str>,
    pub event: Option<&'a str>,
    pub body: Option<&'a RawValue>,
}

/// The field of an [`Envelope`] for a member.
enum Member<'e, 'a> {
    /// A member of the envelope itself, which this crate reads.
    Header(&'e mut Option<&'a str>),
    /// A member that is passed on unread.
    Payload(&'e mut Option<&'a RawValue>),
}

impl<'a> Envelope<'a> {
    /// Reads an envelope, by the fast path if possible.
    pub fn read(text: &'a str) -> Result<Self, serde_json::Error> {
        Self::read_plain(text).map_or_else(|| serde_json::from_str(text), Ok)
    }

    /// The fast path for almost all messages: only known members, each once, and no escapes in their names
    /// and in header values. It takes half the time of the full parser. `None` means that the full parser
    /// must decide, not that the text is wrong.
    fn read_plain(text: &'a str) -> Option<Self> {
        let mut envelope = Self::default();
        let mut rest = Rest { text, at: 0 };
        rest.expect(b'{')?;
        loop {
            let name = unquoted(rest.plain_string()?);
            rest.expect(b':')?;
            let is_second = match envelope.member(name)? {
                Member::Header(member) => member.replace(rest.plain_value()?).is_some(),
                Member::Payload(member) => member.replace(rest.raw_value()?).is_some(),
            };
            if is_second {
                return None;
            }
            if rest.expect(b',').is_none() {
                rest.expect(b'}')?;
                return rest.is_empty().then_some(envelope);
            }
        }
    }

    fn member<'e>(&'e mut self, name: &str) -> Option<Member<'e, 'a>> {
        Some(match name {
            "jsonrpc" => Member::Header(&mut self.jsonrpc),
            "id" => Member::Header(&mut self.id),
            "method" => Member::Header(&mut self.method),
            "type" => Member::Header(&mut self.kind),
            "params" => Member::Payload(&mut self.params),
            "result" => Member::Payload(&mut self.result),
            "error" => Member::Payload(&mut self.error),
            "success" => Member::Header(&mut self.success),
            "event" => Member::Header(&mut self.event),
            "body" => Member::Payload(&mut self.body),
            _ => return None,
        })
    }
}

impl<'de> Deserialize<'de> for Envelope<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct EnvelopeVisitor;
        impl<'de> Visitor<'de> for EnvelopeVisitor {
            type Value = Envelope<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut envelope = Envelope::default();
                let mut unknown = Vec::new();
                while let Some(Name(name)) = map.next_key()? {
                    let value: &RawValue = map.next_value()?;
                    let is_second = match envelope.member(&name) {
                        Some(Member::Header(member)) => member.replace(value.get()).is_some(),
                        Some(Member::Payload(member)) => member.replace(value).is_some(),
                        None if unknown.contains(&name) => true,
                        None if unknown.len() == UNKNOWN_MEMBERS => {
                            return Err(A::Error::custom("too many members"));
                        }
                        None => {
                            unknown.push(name);
                            continue;
                        }
                    };
                    if is_second {
                        let name = brief(&name);
                        return Err(A::Error::custom(format_args!("duplicate member {name:?}")));
                    }
                }
                Ok(envelope)
            }
        }
        deserializer.deserialize_map(EnvelopeVisitor)
    }
}

/// A string, borrowed unless it contains escapes. (`Deserialize` for a bare `Cow` always copies.)
#[derive(serde::Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

/// The value of a raw JSON string. `None` if the raw text is no string.
pub(super) fn text_of(raw: &str) -> Option<Cow<'_, str>> {
    match raw.starts_with('"') && !raw.as_bytes().contains(&b'\\') {
        true => Some(Cow::Borrowed(unquoted(raw))),
        false => serde_json::from_str::<Name<'_>>(raw).ok().map(|name| name.0),
    }
}

fn unquoted(string: &str) -> &str {
    &string[1..string.len() - 1]
}

/// For each byte, whether it stands for itself in a JSON string. A table lookup is faster than comparisons.
const PLAIN: [bool; 256] = {
    let mut plain = [true; 256];
    let mut control = 0;
    while control < 0x20 {
        plain[control] = false;
        control += 1;
    }
    plain[b'"' as usize] = false;
    plain[b'\\' as usize] = false;
    plain
};

/// A reader over the part of a text that has not been read yet.
struct Rest<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Rest<'a> {
    /// Skips whitespace and peeks at the next byte.
    fn next(&mut self) -> Option<u8> {
        let bytes = self.text.as_bytes();
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = bytes.get(self.at) {
            self.at += 1;
        }
        bytes.get(self.at).copied()
    }

    fn is_empty(&mut self) -> bool {
        self.next().is_none()
    }

    fn expect(&mut self, byte: u8) -> Option<()> {
        (self.next()? == byte).then(|| self.at += 1)
    }

    /// Takes the text up to `end`. `end` is a character boundary, because it is next to an ASCII character.
    fn up_to(&mut self, end: usize) -> &'a str {
        let start = std::mem::replace(&mut self.at, end);
        &self.text[start..end]
    }

    /// Takes a string without escapes, including its quotes.
    fn plain_string(&mut self) -> Option<&'a str> {
        if self.next()? != b'"' {
            return None;
        }
        let inside = &self.text.as_bytes()[self.at + 1..];
        let end = inside.iter().position(|byte| !PLAIN[usize::from(*byte)])?;
        (inside[end] == b'"').then(|| self.up_to(self.at + end + 2))
    }

    /// Takes a string without escapes, or an integer that is not negative.
    fn plain_value(&mut self) -> Option<&'a str> {
        if self.next()? == b'"' {
            return self.plain_string();
        }
        let number = &self.text.as_bytes()[self.at..];
        let digits = number.iter().position(|byte| !byte.is_ascii_digit())?;
        (digits == 1 || (digits > 1 && number[0] != b'0')).then(|| self.up_to(self.at + digits))
    }

    /// Takes any JSON value.
    fn raw_value(&mut self) -> Option<&'a RawValue> {
        let mut values = serde_json::Deserializer::from_str(&self.text[self.at..]).into_iter();
        let value = values.next()?.ok()?;
        self.at += values.byte_offset();
        Some(value)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn usual_messages_take_the_fast_path() {
        for text in [
            r#"{"jsonrpc":"2.0","id":7,"method":"vscode/chat","params":{"message":"\n"}}"#,
            r#"{"id": "a-1", "type": "chat", "params": {"timeout": 1.5}}"#,
            "{\n\t\"jsonrpc\": \"2.0\",\r\n \"id\": 0, \"result\": null\n}\n",
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"ü"}}"#,
        ] {
            assert!(Envelope::read_plain(text).is_some(), "{text}");
        }
    }

    #[test]
    fn the_fast_path_leaves_unusual_messages_to_the_full_parser() {
        for text in [
            r#"{}"#,
            r#"{"id":1,"id":2}"#,
            r#"{"id":01}"#,
            r#"{"id":1.5}"#,
            r#"{"id":1e5}"#,
            r#"{"id":-1}"#,
            r#"{"id":1"#,
            r#"{"id":"a"#,
            r#"{"id":1,}"#,
            r#"{"id":1}}"#,
            r#"{"id":1} x"#,
            "{\"id\":\u{c}1}",
            "{\"id\":\"\n\"}",
            r#"{"i\u0064":1}"#,
            r#"{"id":1,"other":2}"#,
            r#"{"id":1,"params":{"a":}}"#,
            r#"{"params":1x}"#,
            r#"{"params":01}"#,
            r#"[1]"#,
        ] {
            assert!(Envelope::read_plain(text).is_none(), "{text}");
        }
    }

    proptest! {
        /// For every text that the fast path accepts, the full parser gives an equal envelope.
        #[test]
        fn fast_path_and_full_parser_agree(
            pieces in prop::collection::vec(prop::sample::select(vec![
                "{", "}", "[", "]", ",", ":", " ", "\n", "\u{c}", "\"", "\\", "\"id\":", "\"jsonrpc\":\"2.0\"",
                "\"method\":\"m\"", "\"params\":", "\"result\":", "\"error\":", "\"type\":\"t\"", "\"success\":true",
                "\"event\":\"e\"", "\"body\":", "\"other\":1", "1", "0", "-", ".5", "e1", "null", "true", "{}", "[]",
                "\"a\"", "\"\\n\"", "\"\\ud800\"", "ü", "{\"a\":[1,\"b\"]}",
            ]), 0..12),
            commas in any::<bool>(),
        ) {
            let inside = pieces.join(if commas { "," } else { "" });
            for text in [inside.clone(), format!("{{{inside}}}")] {
                if let Some(fast) = Envelope::read_plain(&text) {
                    let full: Envelope<'_> = serde_json::from_str(&text).expect("the full parser reads it, too");
                    prop_assert_eq!(format!("{fast:?}"), format!("{full:?}"));
                }
            }
        }
    }
}
