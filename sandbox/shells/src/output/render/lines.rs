//! A terminal that knows only its last line.
//!
//! Nearly all output is lines, perhaps with colours, tabs, and a carriage return that rewrites the
//! line. That needs no screen. It does exactly what the emulator would, or nothing: what it cannot
//! do, it refuses, and then the emulator is told what is here.

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
    /// Lines that have ended, each with its end, without blanks before it.
    ended: String,
    count: usize,
    line: Vec<char>,
    /// Where the next character goes; all columns if that would be the next row.
    column: usize,
    /// Set where characters and columns of the line are not one and the same.
    appended: Option<Appended>,
}

/// A line that is longer than a row or has wide characters: nothing in it can be rewritten here.
#[derive(Debug, Clone, Copy)]
struct Appended {
    width: usize,
    has_wide: bool,
    /// Whether a carriage return followed.
    returned: bool,
}

/// What the last line is, for somebody who goes on with it.
pub(super) struct Rest<'a> {
    pub(super) line: &'a [char],
    /// The cursor's column, where it is not that after the line.
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
            appended: None,
        }
    }

    /// The lines that have ended.
    pub(super) fn ended(&self) -> &str {
        &self.ended
    }

    /// Their number.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    pub(super) fn rest(&self) -> Rest<'_> {
        let column = match self.appended {
            Some(appended) => appended.returned.then_some(0),
            None => (self.column != self.line.len()).then_some(self.column),
        };
        Rest { line: &self.line, column }
    }

    /// All lines, the last one too.
    pub(super) fn finish(mut self) -> String {
        self.end_line();
        self.ended
    }

    /// Prints ASCII characters, and returns how many of them it could.
    pub(super) fn print_ascii(&mut self, run: &str) -> usize {
        let fits = self.column == self.line.len() && self.column + run.len() <= self.columns;
        if fits && self.appended.is_none() {
            self.line.extend(run.chars());
            self.column += run.len();
            return run.len();
        }
        run.chars().position(|character| !self.print(character)).unwrap_or(run.len())
    }

    /// Does this, or returns false and does nothing.
    pub(super) fn apply(&mut self, function: &Function) -> bool {
        use Function::*;
        let is_at_end = self.column >= self.columns;
        match function {
            Print(character) => return self.print(*character),
            Cr => match &mut self.appended {
                Some(appended) => appended.returned = true,
                None => self.column = 0,
            },
            Lf => match self.appended {
                Some(appended) if !appended.returned => return false,
                // The blanks are dropped, but may fill rows.
                Some(_) if self.line.last() == Some(&' ') => return false,
                Some(_) => {
                    self.end_line();
                    self.column = 0;
                }
                None if is_at_end => return false,
                // The column stays, as it does on a terminal.
                None => self.end_line(),
            },
            Sgr(operations) => {
                return self.colours == Colours::Strip
                    || operations.as_slice().iter().all(|one| *one == SgrOp::Reset);
            }
            // What is so already, or does not show.
            Osc(_) | Xtwinops(_) | Si | Gzd4(Charset::Ascii) => {}
            Decset(modes) | Decrst(modes) => {
                let shows =
                    |mode| !matches!(mode, &DecMode::CursorKeys | &DecMode::TextCursorEnable);
                return !modes.as_slice().iter().any(shows);
            }
            _ if self.appended.is_some() || is_at_end => return false,
            Bs => self.column = self.column.saturating_sub(1),
            Ht => self.move_to((self.column / TAB + 1) * TAB),
            Cuf(count) => self.move_to(self.column + at_least_one(*count)),
            Cub(count) => self.column = self.column.saturating_sub(at_least_one(*count)),
            Cha(column) => self.move_to(at_least_one(*column) - 1),
            // There is nothing below.
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
        // As the emulator sees it.
        let is_wide = character > '~' && character.width() == Some(2);
        if self.appended.is_none() {
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
        let mut appended =
            self.appended.unwrap_or(Appended { width, has_wide: false, returned: false });
        appended.has_wide |= is_wide;
        appended.width += if is_wide { 2 } else { 1 };
        // A wide character that does not fit leaves a gap at the end of a row.
        if appended.returned || appended.has_wide && appended.width > self.columns {
            return false;
        }
        self.appended = Some(appended);
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
        self.appended = None;
    }
}

fn at_least_one(count: u16) -> usize {
    usize::from(count.max(1))
}
