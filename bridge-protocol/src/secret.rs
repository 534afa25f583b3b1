//! Secrets that cannot be printed by accident and are compared in constant time.

use std::fmt;

use serde::{Deserialize, Serialize};
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

/// Length of a secret as text: 256 bits in hexadecimal.
pub const SECRET_CHARS: usize = 64;

/// A token. `Debug` and `Display` show nothing of it; its memory is wiped when dropped.
#[derive(Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// Wraps a token received from elsewhere.
    pub fn new(text: impl Into<String>) -> Self {
        Self(Zeroizing::new(text.into()))
    }

    /// Encodes 256 random bits. Drawing them is the caller's business, as this crate does no I/O.
    pub fn from_random(bits: [u8; 32]) -> Self {
        use fmt::Write;
        let mut text = Zeroizing::new(String::with_capacity(SECRET_CHARS));
        for byte in bits {
            write!(text, "{byte:02x}").expect("writing to a String cannot fail");
        }
        Self(text)
    }

    /// The token itself, to be put on the wire or in a private file, never in a message or log.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Whether `presented` is this token. A missing token costs the same work as a wrong one, and
    /// the time does not depend on where the first difference is.
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
