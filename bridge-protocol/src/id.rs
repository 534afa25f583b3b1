//! Identifiers. The id of a caller is echoed as the text that the caller sent. Ids that the daemon
//! assigns are small integers, which every JSON library represents exactly.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::limits::ID_BYTES;

/// The id of a request as its sender wrote it: a JSON string or integer, kept as raw text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallId<'a>(Cow<'a, str>);

impl<'a> CallId<'a> {
    /// Checks the raw JSON text of an id. `None` if it is too long, or neither a string nor an integer.
    pub fn from_raw(raw: &'a str) -> Option<Self> {
        if raw.len() > ID_BYTES {
            return None;
        }
        let valid = if raw.starts_with('"') {
            // A string with a lone surrogate has no value by which ids could be compared.
            !raw.as_bytes().contains(&b'\\') || serde_json::from_str::<Cow<'_, str>>(raw).is_ok()
        } else {
            is_integer(raw)
        };
        valid.then_some(Self(Cow::Borrowed(raw)))
    }

    /// The JSON text, as received.
    pub fn raw(&self) -> &str {
        &self.0
    }

    /// This id with a text of its own, which borrows nothing.
    pub fn into_owned(self) -> CallId<'static> {
        CallId(Cow::Owned(self.0.into_owned()))
    }

    /// The key by which ids are compared: two spellings of one string (`"\u0031"` and `"1"`) are equal,
    /// a string and a number (`"1"` and `1`) are not.
    pub fn key(&self) -> Cow<'_, str> {
        if self.0.as_bytes().contains(&b'\\') {
            let text: String = serde_json::from_str(&self.0).expect("checked in from_raw");
            serde_json::to_string(&text).expect("a string always prints").into()
        } else {
            Cow::Borrowed(&self.0)
        }
    }
}

/// The id under which the daemon forwards a request to a host. A daemon never reuses one, so a late or
/// repeated response matches no request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RequestId(pub u64);

impl RequestId {
    /// Reads an id from the raw text of a response. `None` if the daemon cannot have assigned it.
    pub fn from_raw(raw: &str) -> Option<Self> {
        is_integer(raw).then(|| raw.parse().ok().map(Self))?
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Names one session, that is one life of one daemon: `[A-Za-z0-9_-]{1,64}`. Safe in a file name, a URL
/// or a terminal.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SessionId(String);

/// The text is not a valid session id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a session id is 1 to 64 of the characters A-Z a-z 0-9 _ -")]
pub struct InvalidSession;

impl SessionId {
    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for SessionId {
    type Error = InvalidSession;

    fn try_from(text: String) -> Result<Self, InvalidSession> {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        if (1..=64).contains(&text.len()) && text.bytes().all(allowed) {
            Ok(Self(text))
        } else {
            Err(InvalidSession)
        }
    }
}

impl std::str::FromStr for SessionId {
    type Err = InvalidSession;

    fn from_str(text: &str) -> Result<Self, InvalidSession> {
        text.to_owned().try_into()
    }
}

impl From<SessionId> for String {
    fn from(session: SessionId) -> String {
        session.0
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn is_integer(raw: &str) -> bool {
    let digits = raw.strip_prefix('-').unwrap_or(raw);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_strings_or_integers_of_bounded_length() {
        let long = format!("\"{}\"", "x".repeat(ID_BYTES - 2));
        for raw in ["1", "-7", "123456789012345678901", "\"a\"", "\"\"", "\"\\u0031\"", &long] {
            assert!(CallId::from_raw(raw).is_some(), "{raw}");
        }
        let longer = format!("\"{}\"", "x".repeat(ID_BYTES - 1));
        for raw in ["null", "1.0", "1e3", "{}", "[1]", "true", "-", "", "\"\\ud800\"", &longer] {
            assert!(CallId::from_raw(raw).is_none(), "{raw}");
        }
    }

    #[test]
    fn keys_compare_values_not_spellings() {
        let key = |raw| CallId::from_raw(raw).unwrap().key().into_owned();
        assert_eq!(key(r#""\u0031""#), key(r#""1""#));
        assert_ne!(key("1"), key(r#""1""#));
    }

    #[test]
    fn only_ids_that_the_daemon_can_have_assigned_are_read_from_responses() {
        assert_eq!(RequestId::from_raw("42"), Some(RequestId(42)));
        for raw in ["-1", "\"42\"", "4.2", "99999999999999999999", "+1", "null"] {
            assert_eq!(RequestId::from_raw(raw), None, "{raw}");
        }
    }

    #[test]
    fn session_ids_are_safe_everywhere() {
        assert!("run_1-A".parse::<SessionId>().is_ok());
        for text in ["", "a/b", "a b", "ü", "../x", &"a".repeat(65)] {
            assert!(text.parse::<SessionId>().is_err(), "{text}");
        }
        assert!(serde_json::from_str::<SessionId>("\"a/b\"").is_err());
    }

    #[test]
    fn session_ids_are_shown_and_written_as_they_were_read() {
        let session: SessionId = serde_json::from_str("\"run_1-A\"").unwrap();
        assert_eq!((session.as_str(), session.to_string().as_str()), ("run_1-A", "run_1-A"));
        assert_eq!(serde_json::to_string(&session).unwrap(), "\"run_1-A\"");
    }
}
