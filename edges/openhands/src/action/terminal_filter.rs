//! Filters output for a person's terminal, so that the terminal only shows it.
//!
//! A program may query its terminal for the cursor position, its type or its colours. The shell's
//! own terminal has already answered such queries. The person's terminal would answer them again,
//! and its answer would be typed as input.

use avt::{
    Parser,
    parser::{Function, State},
};

/// Longer escape sequences are dropped.
const LONGEST: usize = 1024;

/// Passes text and the escape sequences that the emulator knows to change only what is shown. All
/// others are dropped, however the text is split into pieces.
#[derive(Debug, Default)]
pub(super) struct TerminalFilter {
    parser: Parser,
    /// The beginning of a sequence.
    begun: String,
}

impl TerminalFilter {
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
                // Operating system commands, such as titles and shell marks, show nothing.
                Some(Function::Osc(_)) | None if !is_within => self.begun.clear(),
                Some(Function::Osc(_)) | None => {
                    if self.begun.len() < LONGEST {
                        self.begun.push(character);
                    }
                }
                Some(function) if !is_within && !self.only_changes_display(&function) => {
                    self.begun.clear();
                }
                // A control character within a sequence takes effect; the sequence goes on.
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

    /// Whether a sequence changes only what is shown. Window sizes do more, and so do modes that
    /// the emulator does not know, such as mouse reports.
    fn only_changes_display(&self, function: &Function) -> bool {
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
    fn text_passes_and_terminal_queries_do_not() {
        for same in [
            "plain\r\n\ttext ä日\x08",
            "\x1b[1;31mred\x1b[0m\x1b[K",
            "\x1b[2A\x1b[10;1Hx\x1b[J",
            "\x1b[?25l\x1b[?7;25h",
        ] {
            assert_eq!(TerminalFilter::default().pass(same), same);
        }
        for query in [
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
            let text = format!("a{query}b");
            assert_eq!(TerminalFilter::default().pass(&text), "ab", "{text:?}");
        }
        // A line end within a query is passed, and the query is still dropped.
        assert_eq!(TerminalFilter::default().pass("a\x1b[6\nnb"), "a\nb");
        let long = format!("a\x1b[{}mb\x1b[31mc", "1;".repeat(LONGEST));
        assert_eq!(TerminalFilter::default().pass(&long), "ab\x1b[31mc");
    }

    proptest! {
        #[test]
        fn it_does_not_matter_how_the_text_is_cut(
            pieces in prop::collection::vec("(\u{1b}\\[[?>]?[0-9;]{0,3}[a-zA-Z]?|\u{1b}\\]1?|\u{7}|[a-zä\n\u{1b}\u{9b}])", 0..30)
        ) {
            let whole = TerminalFilter::default().pass(&pieces.concat());
            let mut filter = TerminalFilter::default();
            let parts = pieces.iter().map(|piece| filter.pass(piece)).collect::<String>();
            prop_assert_eq!(&parts, &whole);
            prop_assert_eq!(TerminalFilter::default().pass(&whole), whole);
        }
    }
}
