//! Texts that come from elsewhere, made fit to be shown to a person.

use std::borrow::Cow;

/// Characters of a text that an error message repeats.
const BRIEF_CHARS: usize = 100;

/// The text without what a terminal would obey: escape sequences show as `␛[31m`. Line ends and tabs
/// stay; a carriage return, which would let a text overwrite itself, does not; nor do the controls
/// that make a text read in another order than it is written.
pub fn visible(text: &str) -> Cow<'_, str> {
    if !text.contains(is_obeyed) {
        return Cow::Borrowed(text);
    }
    let picture = |c: char| match c {
        '\r' => None,
        '\u{7f}' => Some('␡'),
        '\0'..='\u{1f}' => char::from_u32(0x2400 + c as u32),
        _ => Some(char::REPLACEMENT_CHARACTER),
    };
    text.chars().filter_map(|c| if is_obeyed(c) { picture(c) } else { Some(c) }).collect()
}

/// The beginning of a text, for error messages: whoever sent a megabyte knows the rest.
pub fn brief(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(BRIEF_CHARS) {
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
        None => Cow::Borrowed(text),
    }
}

fn is_obeyed(c: char) -> bool {
    let changes_order =
        matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}');
    changes_order || (c.is_control() && c != '\n' && c != '\t')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_made_visible() {
        assert!(matches!(visible("plain\ttext\nütf ✓"), Cow::Borrowed(_)));
        assert_eq!(visible("\x1b]0;title\x07\x1b[31mred"), "␛]0;title␇␛[31mred");
        assert_eq!(visible("safe\rEVIL\r\n"), "safeEVIL\n");
        assert_eq!(visible("\u{9b}31m\x7f"), "\u{fffd}31m␡");
        assert_eq!(visible("\u{202e}drow"), "\u{fffd}drow");
    }

    #[test]
    fn long_texts_are_cut_between_characters() {
        assert_eq!(brief("short"), "short");
        let cut = brief(&"ü".repeat(1000)).into_owned();
        assert_eq!(cut.chars().count(), BRIEF_CHARS + 1);
    }
}
