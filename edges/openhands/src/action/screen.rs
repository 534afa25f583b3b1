//! Terminal output as text, as a terminal would show it.

use std::{mem, ops::Range};

use vte::{Parser, Perform};

use sandbox_shells::{Colours, Renderer, Result, Shell, Size, boundary, render_lines};

/// Lines that a pane keeps, as agents know it from terminals with a history of about ten thousand
/// lines and a screen. Of more output only the end is told.
const LINES_KEPT: usize = 10_500;
/// Bytes of output that are looked at for one answer; of more, the last lines. The log has everything.
const ANSWER_BYTES: u64 = 8 << 20;
/// The same where all of it was asked for.
const WHOLE_ANSWER_BYTES: u64 = 64 << 20;
/// Bytes that are read at once.
const BLOCK: u64 = 1 << 20;

/// Output as text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Shown {
    pub(super) text: String,
    /// The number of last lines that the text is, if there were more.
    pub(super) last_lines: Option<usize>,
}

/// How much of it is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    /// What a terminal keeps.
    LastLines,
    /// All of it.
    Everything,
}

/// Shows a range of a session's output. Blanks at the end of lines and blank lines at the end are
/// dropped.
pub(super) fn show(session: &Shell, range: Range<u64>, extent: Extent) -> Result<Shown> {
    let limit = match extent {
        Extent::LastLines => ANSWER_BYTES,
        Extent::Everything => WHOLE_ANSWER_BYTES,
    };
    let mut skipping = range.end - range.start > limit;
    let is_cut = skipping;
    let mut offset = if is_cut { range.end - limit } else { range.start };
    let mut renderer = Renderer::new(session.size(), Colours::Strip);
    while offset < range.end {
        let block = session.log().read(offset..range.end.min(offset + BLOCK))?;
        if block.is_empty() {
            break;
        }
        offset += block.len() as u64;
        let start = if mem::take(&mut skipping) { boundary::first_line(&block) } else { 0 };
        renderer.feed(&block[start..]);
    }
    let mut shown = cut(renderer.finish(), extent);
    if is_cut && shown.last_lines.is_none() {
        shown.last_lines = Some(shown.text.lines().count());
    }
    Ok(shown)
}

/// Shows output, if that takes little time. It should be short.
pub(super) fn show_lines(output: &[u8], size: Size, extent: Extent) -> Option<Shown> {
    render_lines(output, size, Colours::Strip).map(|text| cut(text, extent))
}

/// A text without its escape sequences: colours go, everything else stays.
pub(super) fn without_sequences(text: &str) -> String {
    if !text.contains('\x1b') {
        return text.to_owned();
    }
    let mut plain = Plain::default();
    Parser::new().advance(&mut plain, text.as_bytes());
    plain.0
}

fn cut(text: String, extent: Extent) -> Shown {
    let ends = || memchr::memchr_iter(b'\n', text.as_bytes());
    match (ends().count() + 1).checked_sub(LINES_KEPT) {
        Some(dropped @ 1..) if extent == Extent::LastLines => {
            let start = ends().nth(dropped - 1).map_or(0, |end| end + 1);
            Shown { text: text[start..].to_owned(), last_lines: Some(LINES_KEPT) }
        }
        _ => Shown { text, last_lines: None },
    }
}

/// Keeps characters and line ends.
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
    use sandbox_shells::render;

    const SIZE: Size = Size { columns: 100, rows: 10 };

    fn show(output: &str, extent: Extent) -> Shown {
        cut(render(output.as_bytes(), SIZE, Colours::Strip), extent)
    }

    fn check(output: &str, expected: &str) {
        let shown = show(output, Extent::LastLines);
        assert_eq!(shown, Shown { text: expected.into(), last_lines: None }, "{output:?}");
    }

    #[test]
    fn lines_are_shown_as_a_terminal_would() {
        check("", "");
        check("a\r\nb\r\n", "a\nb");
        check("\r\n  a  \r\n\r\n", "\n  a");
        check("10%\r100%\r\n", "100%");
        check("100%\r10%\r\n", "10%%");
        check("a\tb\r\n", "a       b");
        check("abc\x08\x08X\r\n", "aXc");
        check("\x1b[1;31mred\x1b[0m\x1b[K plain\x1b]0;title\x07!", "red plain!");
        check("old text\r\x1b[Knew\r\n", "new");
        check("ab\x1b[3Cc\x1b[1Gx", "xb   c");
        check("日本\r\n", "日本");
        check("stair\nstep", "stair\n     step");
        check("\x1b[?2004l\x1b[?25hq", "q");
    }

    #[test]
    fn what_moves_about_the_screen_is_shown_as_the_screen() {
        check("1\r\n\x1b[?1049h\x1b[Hfull", "1\nfull");
        check("gone\r\n\x1b[H\x1b[2J\x1b[3Jleft\r\n", "left");
        check("one\r\ntwo\x1b[1A\rONE\r\n", "ONE\ntwo");
        check("\x1b[?1049hfull\x1b[?1049lback", "back");
    }

    #[test]
    fn sequences_are_left_out() {
        assert_eq!(without_sequences("a\x1b[31mb\x1b[0m\tc\n\x1b]0;t\x07d"), "ab\tc\nd");
        assert_eq!(without_sequences("plain\n"), "plain\n");
        assert_eq!(without_sequences("a\x1b[6nb\x1b[c\x1b]11;?\x07c"), "abc");
    }

    #[test]
    fn long_lines_are_not_wrapped() {
        let line = "x".repeat(5000);
        check(&format!("{line}\r\n"), &line);
    }

    #[test]
    fn of_too_many_lines_the_last_are_told() {
        let output = (1..=50_000).fold(String::new(), |text, n| text + &format!("Line {n}\r\n"));
        let shown = show(&output, Extent::LastLines);
        assert_eq!(shown.last_lines, Some(LINES_KEPT));
        assert!(shown.text.starts_with("Line 39501\n"), "{:.20}", shown.text);
        assert!(shown.text.ends_with("\nLine 50000"));
        let everything = show(&output, Extent::Everything);
        assert!(everything.text.starts_with("Line 1\n"));
        assert_eq!(everything.last_lines, None);
        let exact = (1..=LINES_KEPT).fold(String::new(), |text, n| text + &format!("{n}\r\n"));
        assert_eq!(show(&exact, Extent::LastLines).last_lines, None);
    }
}
