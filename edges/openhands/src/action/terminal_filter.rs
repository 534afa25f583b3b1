//! Output on its way to a person's terminal, without what would make that terminal do more than show it.
//!
//! A program may ask its terminal for the cursor's place, its kind or its colours. The terminal has been
//! asked when the program ran; another one would be asked again, and what it answers would be typed where
//! nobody expects it.

use avt::{
    Parser,
    parser::{Function, State},
};

/// A sequence that is longer than this is left out.
const LONGEST: usize = 1024;

/// Passes text and the sequences that the emulator knows to change what is shown. All others are left
/// out, however the text is cut into pieces.
#[derive(Debug, Default)]
pub(super) struct Harmless {
    parser: Parser,
    /// The beginning of a sequence.
    begun: String,
}

impl Harmless {
    pub(super) fn pass(&mut self, text: &str) -> String {
        let mut passed = String::with_capacity(text.len());
        for character in text.chars() {
            let was_within = self.parser.state != State::Ground;
            let function = self.parser.feed(character);
            let is_within = self.parser.state != State::Ground;
            let begins = matches!(character, '\x1b' | '\u{80}'..='\u{9f}');
            if begins || !was_within {
                self.begun.clear();
            }
            match function {
                // Marks of the shell, which show nothing.
                Some(Function::Osc(_)) | None if !is_within => self.begun.clear(),
                Some(Function::Osc(_)) | None => {
                    if self.begun.len() < LONGEST {
                        self.begun.push(character);
                    }
                }
                Some(function) if !is_within && !self.is_about_showing(&function) => {
                    self.begun.clear();
                }
                // A control character counts even within a sequence, which goes on.
                Some(_) if is_within => passed.push(character),
                Some(_) if self.begun.len() < LONGEST => {
                    passed.push_str(&self.begun);
                    passed.push(character);
                    self.begun.clear();
                }
                Some(_) => self.begun.clear(),
            }
        }
        passed
    }

    /// Whether a sequence does nothing else: sizes of windows and modes that the emulator does not know, as those that
    /// let a terminal tell of the mouse, do.
    fn is_about_showing(&self, function: &Function) -> bool {
        match function {
            Function::Xtwinops(_) => false,
            Function::Decset(modes) | Function::Decrst(modes) => {
                modes.as_slice().len() == self.begun.matches(';').count() + 1
            }
            _ => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_shown_passes_and_questions_do_not() {
        for same in [
            "plain\r\n\ttext ä日\x08",
            "\x1b[1;31mred\x1b[0m\x1b[K",
            "\x1b[2A\x1b[10;1Hx\x1b[J",
            "\x1b[?25l\x1b[?7;25h",
        ] {
            assert_eq!(Harmless::default().pass(same), same);
        }
        for question in [
            "\x1b[?1003h",
            "\x1b[?25;1003h",
            "\x1b[?2004l",
            "\x1b[8;24;80t",
            "\x1b[6n",
            "\x1b[?6n",
            "\x1b[5n",
            "\x1b[c",
            "\x1b[>c",
            "\x1b[=c",
            "\x1bZ",
            "\x05",
            "\x1b]11;?\x07",
            "\x1b]11;?\x1b\\",
            "\x1b]4;1;?\x07",
            "\x1b]52;c;?\x07",
            "\x1b[>q",
            "\x1b[?u",
            "\x1b[18t",
            "\x1b[21t",
            "\x1b[?2026$p",
            "\x1bP+q544e\x1b\\",
            "\x1bP$qm\x1b\\",
            "\x1b_Gi=1,a=q;AAAA\x1b\\",
            "\u{9b}6n",
            "\u{9d}11;?\u{9c}",
            "\x1b[6\x18",
        ] {
            let asked = format!("a{question}b");
            assert_eq!(Harmless::default().pass(&asked), "ab", "{asked:?}");
        }
        // A line end within a question is still one.
        assert_eq!(Harmless::default().pass("a\x1b[6\nnb"), "a\nb");
        let long = format!("a\x1b[{}mb\x1b[31mc", "1;".repeat(LONGEST));
        assert_eq!(Harmless::default().pass(&long), "ab\x1b[31mc");
    }

    proptest! {
        #[test]
        fn it_does_not_matter_how_the_text_is_cut(
            pieces in prop::collection::vec("(\u{1b}\\[[?>]?[0-9;]{0,3}[a-zA-Z]?|\u{1b}\\]1?|\u{7}|[a-zä\n\u{1b}\u{9b}])", 0..30)
        ) {
            let whole = Harmless::default().pass(&pieces.concat());
            let mut harmless = Harmless::default();
            let parts = pieces.iter().map(|piece| harmless.pass(piece)).collect::<String>();
            prop_assert_eq!(&parts, &whole);
            prop_assert_eq!(Harmless::default().pass(&whole), whole);
        }
    }
}
