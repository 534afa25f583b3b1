//! Terminal output as text, as a terminal would show it.
//!
//! Nearly all output is lines, perhaps with colours, tabs, and a carriage return that rewrites the
//! line. That needs no screen: a parser of escape sequences and the current line are enough, however
//! long the output is. Output that moves about the screen is given to a terminal emulator, and then
//! only its end counts.

use vte::{Params, Parser, Perform};

use crate::shell::{Colours, Size, render_last};

/// Lines that a pane keeps, as agents know it from terminals with a history of about ten thousand
/// lines and a screen. Of more output only the end is told.
const LINES_KEPT: usize = 10_500;
/// Lines above the screen that are kept of output which moves about the screen.
const LINES_ABOVE_SCREEN: usize = 1_000;
/// Bytes that are given to the emulator.
const SCREEN_BYTES: usize = 256 << 10;
/// An escape sequence that is longer than this is not one.
const LONGEST_SEQUENCE: usize = 64;
const TAB: usize = 8;
/// Clears the lines above the screen.
const FORGET: &[u8] = b"\x1b[3J";

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

/// Shows output. Blanks at the end of lines and blank lines at the end are dropped.
pub(super) fn show(output: &[u8], size: Size, extent: Extent) -> Shown {
    let mut lines = Lines::default();
    // What comes after the end of the parsing is for the emulator.
    let _ = Parser::new().advance_until_terminated(&mut lines, output);
    let text = match lines.needs_screen {
        true => {
            let end = &output[output.len().saturating_sub(SCREEN_BYTES)..];
            // `clear` empties the screen and then forgets the history, which the emulator keeps.
            let forgotten = memchr::memmem::rfind(end, FORGET).map_or(0, |at| at + FORGET.len());
            let end = &end[forgotten..];
            render_last(end, size, Colours::Strip, LINES_ABOVE_SCREEN)
        }
        false => lines.finish(),
    };
    match extent {
        Extent::Everything => Shown { text, last_lines: None },
        Extent::LastLines => last_lines(text),
    }
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

/// The length of the part of unfinished output that does not end within a character or an escape
/// sequence.
pub(super) fn whole_length(output: &[u8]) -> usize {
    let mut end = output.len();
    let tail = end.saturating_sub(LONGEST_SEQUENCE);
    if let Some(escape) = memchr::memrchr(0x1b, &output[tail..]) {
        let sequence = &output[tail + escape + 1..];
        let is_open = match sequence.split_first() {
            None => true,
            Some((b'[', rest)) => rest.iter().all(|byte| (0x20..0x40).contains(byte)),
            Some((b']', rest)) => !rest.contains(&0x07),
            Some(_) => false,
        };
        if is_open {
            end = tail + escape;
        }
    }
    // A character has at most four bytes, and all but the first begin with the bits 10.
    for back in 1..=3.min(end) {
        let byte = output[end - back];
        if byte & 0b1100_0000 != 0b1000_0000 {
            let length = match byte {
                0xc0..=0xdf => 2,
                0xe0..=0xef => 3,
                0xf0..=0xf7 => 4,
                _ => 1,
            };
            return if length > back { end - back } else { end };
        }
    }
    end
}

fn last_lines(text: String) -> Shown {
    let ends = memchr::memchr_iter(b'\n', text.as_bytes()).count();
    match (ends + 1).checked_sub(LINES_KEPT) {
        None | Some(0) => Shown { text, last_lines: None },
        Some(dropped) => {
            let start = memchr::memchr_iter(b'\n', text.as_bytes()).nth(dropped - 1);
            let text = text[start.map_or(0, |end| end + 1)..].to_owned();
            Shown { text, last_lines: Some(LINES_KEPT) }
        }
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

/// A terminal that knows only its last line.
#[derive(Default)]
struct Lines {
    done: String,
    line: Vec<char>,
    column: usize,
    needs_screen: bool,
}

impl Lines {
    fn finish(mut self) -> String {
        self.end_line();
        let used = self.done.trim_end_matches([' ', '\n']).len();
        self.done.truncate(used);
        self.done
    }

    fn end_line(&mut self) {
        let used = self.line.iter().rposition(|&character| character != ' ');
        self.done.extend(&self.line[..used.map_or(0, |last| last + 1)]);
        self.done.push('\n');
        self.line.clear();
    }

    fn fill_to(&mut self, column: usize) {
        if self.line.len() < column {
            self.line.resize(column, ' ');
        }
    }
}

impl Perform for Lines {
    fn print(&mut self, character: char) {
        self.fill_to(self.column);
        match self.line.get_mut(self.column) {
            Some(place) => *place = character,
            None => self.line.push(character),
        }
        self.column += 1;
    }

    fn execute(&mut self, byte: u8) {
        match byte {
            // The column stays, as it does on a terminal.
            b'\n' | 0x0b | 0x0c => self.end_line(),
            b'\r' => self.column = 0,
            0x08 => self.column = self.column.saturating_sub(1),
            b'\t' => self.column = (self.column / TAB + 1) * TAB,
            _ => {}
        }
    }

    fn csi_dispatch(&mut self, params: &Params, intermediates: &[u8], _: bool, action: char) {
        let first = params.iter().next().and_then(|group| group.first()).copied().unwrap_or(0);
        let count = usize::from(first.max(1));
        match (action, intermediates) {
            // Colours, modes of the keyboard and the cursor, questions to the terminal.
            ('m' | 'n' | 'c' | 'q' | 't' | 'u', _) => {}
            ('h' | 'l', b"?") if ![47, 1047, 1049].contains(&first) => {}
            ('K', b"") => match first {
                0 => self.line.truncate(self.column),
                1 => {
                    let end = self.line.len().min(self.column + 1);
                    self.line[..end].fill(' ');
                }
                _ => self.line.clear(),
            },
            ('C', b"") => self.column += count,
            ('D', b"") => self.column = self.column.saturating_sub(count),
            ('G', b"") => self.column = count - 1,
            _ => self.needs_screen = true,
        }
    }

    fn esc_dispatch(&mut self, intermediates: &[u8], _: bool, byte: u8) {
        // Character sets and the keypad change nothing here; cursor moves do.
        if intermediates.is_empty() && !matches!(byte, b'=' | b'>' | b'\\') {
            self.needs_screen = true;
        }
    }

    fn terminated(&self) -> bool {
        self.needs_screen
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: Size = Size { columns: 100, rows: 10 };

    fn check(output: &str, expected: &str) {
        let shown = show(output.as_bytes(), SIZE, Extent::LastLines);
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
        let shown = show(output.as_bytes(), SIZE, Extent::LastLines);
        assert_eq!(shown.last_lines, Some(LINES_KEPT));
        assert!(shown.text.starts_with("Line 39501\n"), "{:.20}", shown.text);
        assert!(shown.text.ends_with("\nLine 50000"));
        let everything = show(output.as_bytes(), SIZE, Extent::Everything);
        assert!(everything.text.starts_with("Line 1\n"));
        assert_eq!(everything.last_lines, None);
        let exact = (1..=LINES_KEPT).fold(String::new(), |text, n| text + &format!("{n}\r\n"));
        assert_eq!(show(exact.as_bytes(), SIZE, Extent::LastLines).last_lines, None);
    }

    #[test]
    fn unfinished_output_ends_at_a_whole_character() {
        for (output, whole) in [
            (&b"abc"[..], 3),
            (b"", 0),
            ("ä".as_bytes(), 2),
            (&"aä".as_bytes()[..2], 1),
            (&"日".as_bytes()[..2], 0),
            (&"a🦀".as_bytes()[..4], 1),
            (b"\xff\xff", 2),
            (b"\x80\x80\x80\x80", 4),
            (b"a\x1b", 1),
            (b"a\x1b[3", 1),
            (b"a\x1b[31m", 6),
            (b"a\x1b]0;ti", 1),
            (b"a\x1b]0;ti\x07", 8),
        ] {
            assert_eq!(whole_length(output), whole, "{output:?}");
        }
    }
}
