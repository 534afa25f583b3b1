//! A terminal that keeps only its last line.
//!
//! Nearly all output is plain lines, perhaps with colours, tabs, and a carriage return that rewrites the line. That
//! needs no screen. This type does exactly what the emulator would, or refuses and changes nothing; then the emulator
//! takes over with the lines kept here.

use avt::{
    Charset,
    parser::{DecMode, EdScope, ElScope, Function, SgrOp},
};
use unicode_width::UnicodeWidthChar as _;

use super::Colours;

const TAB: usize = 8;

#[derive(Debug)]
pub(super) struct Lines {
    columns: usize,
    colours: Colours,
    /// Complete lines, each with its newline, without spaces before it.
    ended: String,
    count: usize,
    line: Vec<char>,
    /// The column of the next character; equal to `columns` if the next character goes to the next row.
    column: usize,
    /// Set if characters and columns of the line do not correspond one to one.
    uneditable: Option<UneditableLine>,
}

/// A line that is longer than a row or has wide characters: nothing in it can be rewritten here.
#[derive(Debug, Clone, Copy)]
struct UneditableLine {
    width: usize,
    has_wide: bool,
    /// Whether a carriage return followed.
    returned: bool,
}

/// The last line and the cursor, from which the emulator continues.
pub(super) struct LastLine<'a> {
    pub(super) line: &'a [char],
    /// The cursor's column, if the cursor is not at the end of the line.
    pub(super) column: Option<usize>,
}

impl Lines {
    pub(super) fn new(columns: usize, colours: Colours) -> Self {
        Self {
            columns,
            colours,
            ended: String::new(),
            count: 0,
            line: Vec::new(),
            column: 0,
            uneditable: None,
        }
    }

    /// The complete lines.
    pub(super) fn ended(&self) -> &str {
        &self.ended
    }

    /// The number of complete lines.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    pub(super) fn last_line(&self) -> LastLine<'_> {
        let column = match self.uneditable {
            Some(uneditable) => uneditable.returned.then_some(0),
            None => (self.column != self.line.len()).then_some(self.column),
        };
        LastLine { line: &self.line, column }
    }

    /// Returns all lines, including the last one.
    pub(super) fn finish(mut self) -> String {
        self.end_line();
        self.ended
    }

    /// Prints ASCII characters, and returns how many of them it could print.
    pub(super) fn print_ascii(&mut self, run: &str) -> usize {
        let fits = self.column == self.line.len() && self.column + run.len() <= self.columns;
        if fits && self.uneditable.is_none() {
            self.line.extend(run.chars());
            self.column += run.len();
            return run.len();
        }
        run.chars().position(|character| !self.print(character)).unwrap_or(run.len())
    }

    /// Applies the function, or returns false and changes nothing.
    pub(super) fn apply(&mut self, function: &Function) -> bool {
        use Function::*;
        let is_at_end = self.column >= self.columns;
        match function {
            Print(character) => return self.print(*character),
            Cr => match &mut self.uneditable {
                Some(uneditable) => uneditable.returned = true,
                None => self.column = 0,
            },
            Lf => match self.uneditable {
                Some(uneditable) if !uneditable.returned => return false,
                // The spaces would be removed here, but may fill rows on a terminal.
                Some(_) if self.line.last() == Some(&' ') => return false,
                Some(_) => {
                    self.end_line();
                    self.column = 0;
                }
                None if is_at_end => return false,
                // The column stays the same, as on a terminal.
                None => self.end_line(),
            },
            Sgr(operations) => {
                return self.colours == Colours::Strip
                    || operations.as_slice().iter().all(|one| *one == SgrOp::Reset);
            }
            // These have no visible effect here.
            Osc(_) | Xtwinops(_) | Si | Gzd4(Charset::Ascii) => {}
            Decset(modes) | Decrst(modes) => {
                let shows =
                    |mode| !matches!(mode, &DecMode::CursorKeys | &DecMode::TextCursorEnable);
                return !modes.as_slice().iter().any(shows);
            }
            _ if self.uneditable.is_some() || is_at_end => return false,
            Bs => self.column = self.column.saturating_sub(1),
            Ht => self.move_to((self.column / TAB + 1) * TAB),
            Cuf(count) => self.move_to(self.column + at_least_one(*count)),
            Cub(count) => self.column = self.column.saturating_sub(at_least_one(*count)),
            Cha(column) => self.move_to(at_least_one(*column) - 1),
            // Nothing is below this line, so both do the same.
            El(ElScope::ToRight) | Ed(EdScope::Below) => self.line.truncate(self.column),
            El(ElScope::ToLeft) => {
                let end = self.line.len().min(self.column + 1);
                self.line[..end].fill(' ');
            }
            El(ElScope::All) => self.line.clear(),
            _ => return false,
        }
        true
    }

    fn print(&mut self, character: char) -> bool {
        // The same condition as in the emulator.
        let is_wide = character > '~' && character.width() == Some(2);
        if self.uneditable.is_none() {
            if self.line.len() < self.column {
                self.line.resize(self.column, ' ');
            }
            if !is_wide && self.column < self.columns {
                match self.line.get_mut(self.column) {
                    Some(place) => *place = character,
                    None => self.line.push(character),
                }
                self.column += 1;
                return true;
            }
            if self.column < self.line.len() {
                return false;
            }
        }
        let width = self.line.len();
        let mut uneditable =
            self.uneditable.unwrap_or(UneditableLine { width, has_wide: false, returned: false });
        uneditable.has_wide |= is_wide;
        uneditable.width += if is_wide { 2 } else { 1 };
        // A wide character that does not fit leaves a gap at the end of a row.
        if uneditable.returned || uneditable.has_wide && uneditable.width > self.columns {
            return false;
        }
        self.uneditable = Some(uneditable);
        self.line.push(character);
        true
    }

    fn move_to(&mut self, column: usize) {
        self.column = column.min(self.columns - 1);
    }

    fn end_line(&mut self) {
        let used = self.line.iter().rposition(|&character| character != ' ');
        self.ended.extend(&self.line[..used.map_or(0, |last| last + 1)]);
        self.ended.push('\n');
        self.count += 1;
        self.line.clear();
        self.uneditable = None;
    }
}

fn at_least_one(count: u16) -> usize {
    usize::from(count.max(1))
}
