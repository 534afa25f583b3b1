//! Secrets that cannot be printed by accident and that are compared in constant time.

use std::fmt;

use serde::{Deserialize, Serialize};
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

/// Length of a secret as text: 256 bits in hexadecimal.
pub const SECRET_CHARS: usize = 64;

/// A token. `Debug` shows nothing of it, there is no `Display`, and its memory is wiped when it is dropped.
#[derive(Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// Wraps a token received from elsewhere.
    pub fn new(text: impl Into<String>) -> Self {
        Self(Zeroizing::new(text.into()))
    }

    /// Encodes 256 random bits as text. The caller provides the bits, because this crate does no I/O.
    pub fn from_random(bits: [u8; 32]) -> Self {
        use fmt::Write;
        let mut text = Zeroizing::new(String::with_capacity(SECRET_CHARS));
        for byte in bits {
            write!(text, "{byte:02x}").expect("writing to a String cannot fail");
        }
        Self(text)
    }

    /// The token as text, for the wire or a private file. Never put it into a message or a log.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Whether `presented` is this token, compared in constant time: a missing token takes as long as a
    /// wrong one, and the time does not depend on the position of the first difference.
    pub fn matches(&self, presented: Option<&str>) -> bool {
        fn fixed(text: &str) -> [u8; SECRET_CHARS] {
            let mut bytes = [0; SECRET_CHARS];
            let kept = text.len().min(SECRET_CHARS);
            bytes[..kept].copy_from_slice(&text.as_bytes()[..kept]);
            bytes
        }
        let text = presented.unwrap_or_default();
        let same_bytes = fixed(&self.0).ct_eq(&fixed(text));
        let same_length = (self.0.len() as u64).ct_eq(&(text.len() as u64));
        (same_bytes & same_length).into() && self.0.len() == SECRET_CHARS
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_exact_token_matches() {
        let secret = Secret::from_random([0xab; 32]);
        let text = "ab".repeat(32);
        assert_eq!(secret.expose(), text);
        assert!(secret.matches(Some(&text)));
        let first_wrong = text.replacen('a', "c", 1);
        let last_wrong = format!("{}c", &text[..63]);
        let long = format!("{text}a");
        for wrong in ["", &text[..63], &long, &first_wrong, &last_wrong] {
            assert!(!secret.matches(Some(wrong)), "{wrong}");
        }
        assert!(!secret.matches(None));
    }

    #[test]
    fn an_empty_or_short_secret_matches_nothing() {
        assert!(!Secret::new("").matches(None));
        assert!(!Secret::new("").matches(Some("")));
        assert!(!Secret::new("short").matches(Some("short")));
    }

    #[test]
    fn debug_shows_nothing() {
        let secret = Secret::from_random([0x5a; 32]);
        assert_eq!(format!("{secret:?} {:?}", Some(&secret)), "Secret Some(Secret)");
    }
}
