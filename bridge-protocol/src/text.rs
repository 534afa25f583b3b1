//! Prepares untrusted texts for showing them to a person.

use std::borrow::Cow;

/// Most characters of a foreign text that an error message quotes.
const BRIEF_CHARS: usize = 100;

/// The text without control characters that a terminal would act on. Escape sequences show as `␛[31m`, and
/// line feeds and tabs stay. Carriage returns are removed, because a text could overwrite itself with them.
/// Bidirectional controls, which change the order of reading, become `�`.
pub fn visible(text: &str) -> Cow<'_, str> {
    if !text.contains(is_control) {
        return Cow::Borrowed(text);
    }
    let picture = |c: char| match c {
        '\r' => None,
        '\u{7f}' => Some('␡'),
        '\0'..='\u{1f}' => char::from_u32(0x2400 + c as u32),
        _ => Some(char::REPLACEMENT_CHARACTER),
    };
    text.chars().filter_map(|c| if is_control(c) { picture(c) } else { Some(c) }).collect()
}

/// The first 100 characters of a text, for error messages: quoting a megabyte helps nobody.
pub fn brief(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(BRIEF_CHARS) {
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
        None => Cow::Borrowed(text),
    }
}

/// The text with its middle left out, so that it has at most this many characters. Beginning and end stay, because
/// a message often says at its end what to do.
pub fn shortened(text: &str, chars: usize) -> Cow<'_, str> {
    if text.len() <= chars || text.chars().count() <= chars {
        return Cow::Borrowed(text);
    }
    let half = chars / 2;
    let start: String = text.chars().take(half).collect();
    let end = text.char_indices().rev().take(chars - half - 1).last();
    let end = end.map_or("", |(at, _)| &text[at..]);
    Cow::Owned(format!("{start}…{end}"))
}

fn is_control(c: char) -> bool {
    let changes_order =
        matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}');
    changes_order || (c.is_control() && c != '\n' && c != '\t')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_become_visible() {
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

    #[test]
    fn shortened_texts_keep_their_ends() {
        assert_eq!(shortened("üüüü", 4), "üüüü");
        assert_eq!(shortened("abüdefghi", 5), "ab…hi");
        assert_eq!(shortened("abcdüü", 4), "ab…ü");
    }
}
