//! Reformats JSON text without parsing its values.
//!
//! Only the space between tokens changes. A parser that builds values would lose some of them (`1e400`, 20-digit
//! integers, lone surrogates, the order of members).

use std::borrow::Cow;

/// The space between tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// One line, no spaces: for a pipe.
    Compact,
    /// One member or element per line: for a terminal.
    Indented,
}

/// Reformats valid JSON text.
pub fn reformat(text: &str, layout: Layout) -> String {
    let mut out = String::with_capacity(text.len());
    let mut depth = 0;
    let mut pieces = pieces(text).peekable();
    while let Some(piece) = pieces.next() {
        match piece {
            Piece::Inside(c) => out.push(c),
            Piece::Between(open @ ('{' | '[')) => {
                out.push(open);
                if matches!(pieces.peek(), Some(Piece::Between('}' | ']'))) {
                    continue;
                }
                depth += 1;
                new_line(&mut out, depth, layout);
            }
            Piece::Between(close @ ('}' | ']')) => {
                if !out.ends_with(['{', '[']) {
                    depth -= 1;
                    new_line(&mut out, depth, layout);
                }
                out.push(close);
            }
            Piece::Between(',') => {
                out.push(',');
                new_line(&mut out, depth, layout);
            }
            Piece::Between(':') if layout == Layout::Indented => out.push_str(": "),
            Piece::Between(c) => out.push(c),
        }
    }
    out
}

/// The JSON text with control characters escaped that a terminal would act on. JSON itself escapes most of them, but not
/// U+007F to U+009F, one of which starts an escape sequence.
pub fn without_controls(text: &str) -> Cow<'_, str> {
    let is_obeyed = |c: char| matches!(c, '\u{7f}'..='\u{9f}');
    if !text.contains(is_obeyed) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match is_obeyed(c) {
            true => out.push_str(&format!("\\u{:04x}", c as u32)),
            false => out.push(c),
        }
    }
    Cow::Owned(out)
}

fn new_line(out: &mut String, depth: usize, layout: Layout) {
    if layout == Layout::Indented {
        out.push('\n');
        out.extend(std::iter::repeat_n("  ", depth));
    }
}

/// A character within a string (its quotes included), or one outside.
enum Piece {
    Inside(char),
    Between(char),
}

/// Splits the text into characters, without the space between tokens.
fn pieces(text: &str) -> impl Iterator<Item = Piece> {
    let (mut inside, mut escaped) = (false, false);
    text.chars().filter_map(move |c| {
        if !inside {
            inside = c == '"';
            return match c {
                ' ' | '\t' | '\n' | '\r' => None,
                '"' => Some(Piece::Inside(c)),
                c => Some(Piece::Between(c)),
            };
        }
        match c {
            '\\' if !escaped => escaped = true,
            '"' if !escaped => inside = false,
            _ => escaped = false,
        }
        Some(Piece::Inside(c))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indented_for_people_and_compact_for_pipes() {
        let text = r#" { "a" : [ 1e400, {} , [ ] ],"b": "x, \"{y}\\" ,"c":null } "#;
        let indented = "{\n  \"a\": [\n    1e400,\n    {},\n    []\n  ],\n  \"b\": \"x, \\\"{y}\\\\\",\n  \"c\": null\n}";
        assert_eq!(reformat(text, Layout::Indented), indented);
        let compact = r#"{"a":[1e400,{},[]],"b":"x, \"{y}\\","c":null}"#;
        assert_eq!(reformat(text, Layout::Compact), compact);
        assert_eq!(reformat(indented, Layout::Compact), compact);
    }

    #[test]
    fn scalars_and_empty_values_stay_as_they_are() {
        for text in ["{}", "[]", "\"\"", "12345678901234567890", "null", "\"\\ud800\"", "\"[\""] {
            assert_eq!(reformat(text, Layout::Indented), text);
            assert_eq!(reformat(text, Layout::Compact), text);
        }
        assert_eq!(reformat("[\"[\"]", Layout::Indented), "[\n  \"[\"\n]");
        assert_eq!(reformat("[[],\"]\"]", Layout::Indented), "[\n  [],\n  \"]\"\n]");
    }

    #[test]
    fn terminals_get_no_control_characters() {
        assert_eq!(without_controls("[\"\u{9b}31m \u{7f}ü\"]"), "[\"\\u009b31m \\u007fü\"]");
        assert!(matches!(without_controls("[\n\"ü\"]"), Cow::Borrowed(_)));
    }
}
