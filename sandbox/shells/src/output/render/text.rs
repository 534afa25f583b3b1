//! Converts rows of a screen to text.

use std::fmt::Write as _;

use avt::{Cell, Color, Line, Observation, Observer, Pen};

use super::Colours;

/// Text that grows by rows and lines. Rows that the terminal wrapped are joined, spaces at the end of lines are
/// removed.
#[derive(Debug)]
pub(super) struct Text {
    text: String,
    /// The start of the line that a wrapped row has left unfinished.
    line_start: usize,
    colours: Colours,
}

impl Text {
    pub(super) fn new(colours: Colours) -> Self {
        Self { text: String::new(), line_start: 0, colours }
    }

    pub(super) fn push_rows<'a>(&mut self, rows: impl Iterator<Item = &'a Line>) {
        rows.for_each(|row| self.push_row(row));
    }

    /// Appends complete lines.
    pub(super) fn push_lines(&mut self, lines: &str) {
        // The first line may continue a wrapped row.
        let Some(first_end) = memchr::memchr(b'\n', lines.as_bytes()) else { return };
        self.text.push_str(&lines[..first_end]);
        self.end_line();
        self.text.push_str(&lines[first_end + 1..]);
        self.line_start = self.text.len();
    }

    /// Removes blank lines at the end, and makes sure that the next row begins a new line.
    pub(super) fn start_line(&mut self) {
        self.text.truncate(self.text.trim_end_matches([' ', '\n']).len());
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.line_start = self.text.len();
    }

    /// The length in bytes.
    pub(super) fn len(&self) -> usize {
        self.text.len()
    }

    pub(super) fn clear(&mut self) {
        self.text.clear();
        self.line_start = 0;
    }

    /// Returns the text without blank lines at the end.
    pub(super) fn finish(mut self) -> String {
        self.text.truncate(self.text.trim_end_matches([' ', '\n']).len());
        self.text
    }

    fn push_row(&mut self, row: &Line) {
        match self.colours {
            // Most of a row is blank, and spaces at its end are removed.
            Colours::Strip if !row.is_wrapped() => {
                let used = row.cells().iter().rposition(|cell| cell.char() != ' ');
                let cells = &row.cells()[..used.map_or(0, |last| last + 1)];
                self.text.extend(cells.iter().filter(|cell| cell.width() > 0).map(Cell::char));
            }
            Colours::Strip => self.text.extend(row.chars()),
            Colours::Keep => write_with_colours(row, &mut self.text),
        }
        if !row.is_wrapped() {
            self.end_line();
        }
    }

    fn end_line(&mut self) {
        let used = self.text[self.line_start..].trim_end_matches(' ').len();
        self.text.truncate(self.line_start + used);
        self.text.push('\n');
        self.line_start = self.text.len();
    }
}

/// Receives the rows that scroll off the top of the screen.
impl Observer for Text {
    type Output = ();

    fn evicted(&mut self, _: &mut Observation<'_>, row: &Line) {
        self.push_row(row);
    }

    fn end(&mut self, _: &mut Observation<'_>) {}
}

fn write_with_colours(line: &Line, text: &mut String) {
    let mut current: Option<Pen> = None;
    // Blank cells at the end would put a reset sequence after them and hide where the text ends.
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
            // Writing to a string cannot fail, here and below.
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
