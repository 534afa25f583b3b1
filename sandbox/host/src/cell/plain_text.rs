//! Removes terminal escape sequences from text.

use vte::{Parser, Perform};

/// The text without escape sequences; all other characters stay.
pub(super) fn without_sequences(text: &str) -> String {
    if !text.contains('\x1b') {
        return text.to_owned();
    }
    let mut plain = Plain::default();
    Parser::new().advance(&mut plain, text.as_bytes());
    plain.0
}

/// Collects printed characters and control characters such as line ends.
#[derive(Default)]
struct Plain(String);

impl Perform for Plain {
    fn print(&mut self, character: char) {
        self.0.push(character);
    }

    fn execute(&mut self, byte: u8) {
        self.0.push(char::from(byte));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_are_left_out() {
        assert_eq!(without_sequences("a\x1b[31mb\x1b[0m\tc\n\x1b]0;t\x07d"), "ab\tc\nd");
        assert_eq!(without_sequences("plain\n"), "plain\n");
        assert_eq!(without_sequences("a\x1b[6nb\x1b[c\x1b]11;?\x07c"), "abc");
    }
}
