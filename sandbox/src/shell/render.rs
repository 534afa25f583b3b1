//! What a terminal would show after some output: carriage returns, cursor moves and colours applied.
//!
//! The work is done by a terminal emulator library; here its screen only becomes text again. Lines
//! that the terminal had to wrap are joined, blanks at the end of lines and blank lines at the end
//! are dropped. A full-screen program that is still running is shown as its screen.

use std::fmt::Write as _;

use avt::{Color, Line, Pen, Terminal};

use super::ledger::Size;

/// Lines that are kept while rendering; of more output only the last lines remain.
const LINES: usize = 20_000;

/// What becomes of colours and other attributes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colours {
    /// Plain text.
    Strip,
    /// Kept, as the shortest sequences that produce them.
    Keep,
}

/// Renders output as a terminal of this size would show it, from an empty screen.
pub fn render(output: &[u8], size: Size, colours: Colours) -> String {
    render_last(output, size, colours, LINES)
}

/// The same, with at most so many lines above the screen. A line costs memory for all its columns.
pub fn render_last(output: &[u8], size: Size, colours: Colours, lines: usize) -> String {
    let (columns, rows) = (usize::from(size.columns.max(1)), usize::from(size.rows.max(1)));
    let mut terminal = Terminal::with_scrollback(columns, rows, Some(lines))
        .expect("both dimensions are at least one");
    terminal.feed(String::from_utf8_lossy(output).as_ref());
    let mut text = String::new();
    let mut line_start = 0;
    for line in terminal.screen().all_lines() {
        match colours {
            Colours::Strip => text.extend(line.chars()),
            Colours::Keep => write_with_colours(line, &mut text),
        }
        if !line.is_wrapped() {
            let end = line_start + text[line_start..].trim_end_matches(' ').len();
            text.truncate(end);
            text.push('\n');
            line_start = text.len();
        }
    }
    text.truncate(text.trim_end_matches([' ', '\n']).len());
    text
}

fn write_with_colours(line: &Line, text: &mut String) {
    let mut current: Option<Pen> = None;
    // Blank cells at the end would hide the end of the text behind a reset sequence.
    let used = line.cells().iter().rposition(|cell| cell.char() != ' ' || !cell.pen().is_default());
    for cell in line.cells().iter().take(used.map_or(0, |last| last + 1)) {
        if cell.width() == 0 {
            continue;
        }
        let pen = cell.pen();
        if current.as_ref().is_none_or(|current| current != pen) {
            if current.is_some() || !pen.is_default() {
                write_pen(pen, text);
            }
            current = Some(*pen);
        }
        text.push(cell.char());
    }
    if current.is_some_and(|pen| !pen.is_default()) {
        text.push_str("\x1b[0m");
    }
    if line.is_wrapped() {
        let width = line.cells().len();
        let written = used.map_or(0, |last| last + 1);
        text.extend(std::iter::repeat_n(' ', width - written));
    }
}

fn write_pen(pen: &Pen, text: &mut String) {
    text.push_str("\x1b[0");
    for (set, code) in [
        (pen.is_bold(), 1),
        (pen.is_faint(), 2),
        (pen.is_italic(), 3),
        (pen.is_underline(), 4),
        (pen.is_blink(), 5),
        (pen.is_inverse(), 7),
        (pen.is_strikethrough(), 9),
    ] {
        if set {
            let _ = write!(text, ";{code}");
        }
    }
    for (colour, base) in [(pen.foreground(), 38), (pen.background(), 48)] {
        match colour {
            None => {}
            Some(Color::Indexed(index @ 0..8)) => {
                let _ = write!(text, ";{}", base - 8 + i32::from(index));
            }
            Some(Color::Indexed(index)) => {
                let _ = write!(text, ";{base};5;{index}");
            }
            Some(Color::RGB(rgb)) => {
                let _ = write!(text, ";{base};2;{};{};{}", rgb.r, rgb.g, rgb.b);
            }
        }
    }
    text.push('m');
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: Size = Size { columns: 10, rows: 4 };

    fn check(output: &str, plain: &str) {
        assert_eq!(render(output.as_bytes(), SIZE, Colours::Strip), plain, "{output:?}");
    }

    #[test]
    fn shows_what_a_terminal_would() {
        check("a\r\nb\r\n", "a\nb");
        check("10%\r50%\r100%\r\ndone", "100%\ndone");
        check("abc\x1b[2DX", "aXc");
        check("\x1b[31mred\x1b[0m plain", "red plain");
        check("0123456789abcde\r\nx", "0123456789abcde\nx");
        check("1\r\n2\r\n3\r\n4\r\n5\r\n6\r\n", "1\n2\n3\n4\n5\n6");
        check("  indented  \r\n\r\n", "  indented");
        check("日本\r\n", "日本");
        // Questions to the terminal: for its cursor, its kind, its colours.
        check("a\x1b[6nb\x1b[c\x1b]11;?\x07c\x1b[>q", "abc");
    }

    #[test]
    fn colours_are_kept_on_request() {
        let output = b"a\x1b[1;31mred\x1b[0m b\r\n\x1b[38;5;200mx";
        let text = render(output, SIZE, Colours::Keep);
        assert_eq!(text, "a\x1b[0;1;31mred\x1b[0m b\n\x1b[0;38;5;200mx\x1b[0m");
    }
}
