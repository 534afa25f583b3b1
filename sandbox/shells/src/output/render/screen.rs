//! The terminal emulator, and the check whether it is still needed.

use avt::{
    Charset, Line, ScreenKind, Terminal,
    parser::{DecMode, EdScope, Function, SgrOp},
};

use super::{Colours, lines::Lines, text::Text};
use crate::ledger::Size;

/// After this many line ends, the renderer checks whether the screen is still needed.
const CHECK_EVERY: usize = 16;

/// A screen without scrollback.
pub(super) struct Screen {
    terminal: Terminal,
    rows: usize,
    colours: Colours,
    settings: Settings,
    line_ends: usize,
}

/// Terminal settings that change how plain lines are shown. If it is not certain that a setting was reset, it counts
/// as set.
#[derive(Debug, Default)]
struct Settings {
    /// Modes and tab stops.
    unusual: bool,
    margins: bool,
    coloured: bool,
    /// Whether colours may have been saved together with the cursor.
    was_coloured: bool,
    /// Whether the first character set is the line-drawing set.
    drawing: bool,
    shifted: bool,
}

impl Screen {
    pub(super) fn new(size: Size, colours: Colours) -> Self {
        let (columns, rows) = (usize::from(size.columns), usize::from(size.rows));
        let terminal = Terminal::new(columns, rows).expect("both dimensions are at least one");
        Self { terminal, rows, colours, settings: Settings::default(), line_ends: 0 }
    }

    /// Applies the function; rows that scroll off the screen go to the text.
    pub(super) fn apply(&mut self, function: Function, text: &mut Text) {
        match &function {
            Function::Sgr(_) if self.colours == Colours::Strip => return,
            Function::Ed(EdScope::SavedLines) if self.is_primary() => text.clear(),
            // A reset clears the screen; keep what was shown there.
            Function::Ris => {
                text.push_rows(self.terminal.primary_screen().visible_lines());
                text.start_line();
            }
            Function::Lf => self.line_ends += 1,
            _ => {}
        }
        self.settings.update(&function, self.rows);
        self.terminal.execute_with(function, text);
    }

    /// Whether the following output can be handled as plain lines, which [`Screen::print_lines`] adds here later.
    pub(super) fn needs_only_lines(&self) -> bool {
        let cursor = self.terminal.cursor();
        let is_blank = |row: &Line| {
            let is_blank = |cell: &avt::Cell| cell.char() == ' ' && cell.pen().is_default();
            !row.is_wrapped() && row.cells().iter().all(is_blank)
        };
        self.line_ends.is_multiple_of(CHECK_EVERY)
            && cursor.col == 0
            && self.is_primary()
            && self.settings.are_usual()
            && self.terminal.screen().visible_lines().skip(cursor.row).all(is_blank)
    }

    /// Prints lines that came in the meantime; those that would have scrolled off go to the text.
    pub(super) fn print_lines(&mut self, lines: &Lines, text: &mut Text) {
        let mut ended = lines.ended();
        // The new lines fill the whole screen.
        if lines.count() >= self.rows {
            self.write_to(text, true);
            self.terminal.execute([Function::Ed(EdScope::All), Function::Cup(1, 1)]);
            let mut ends = memchr::memrchr_iter(b'\n', ended.as_bytes());
            let before = ends.nth(self.rows).map_or(0, |end| end + 1);
            text.push_lines(&ended[..before]);
            ended = &ended[before..];
        }
        for line in ended.split_terminator('\n') {
            self.terminal.execute_with(line.chars().map(Function::Print), &mut *text);
            self.terminal.execute_with([Function::Cr, Function::Lf], &mut *text);
        }
        let rest = lines.last_line();
        self.terminal.execute_with(rest.line.iter().copied().map(Function::Print), &mut *text);
        if let Some(column) = rest.column {
            let column = u16::try_from(column + 1).unwrap_or(u16::MAX);
            self.terminal.execute(Function::Cha(column));
        }
    }

    /// Appends the contents of the screen to the text: all of it, or the part above the cursor.
    pub(super) fn write_to(&self, text: &mut Text, above_cursor: bool) {
        let rows = if above_cursor { self.terminal.cursor().row } else { self.rows };
        text.push_rows(self.terminal.primary_screen().visible_lines().take(rows));
        if !self.is_primary() {
            text.start_line();
            text.push_rows(self.terminal.screen().visible_lines());
        }
    }

    fn is_primary(&self) -> bool {
        self.terminal.active_screen_kind() == ScreenKind::Primary
    }
}

impl Settings {
    fn are_usual(&self) -> bool {
        !(self.unusual || self.margins || self.coloured || self.drawing || self.shifted)
    }

    fn update(&mut self, function: &Function, rows: usize) {
        use Function::*;
        match function {
            Ris => *self = Self::default(),
            Decrst(modes) => {
                self.unusual |= modes.as_slice().contains(&DecMode::AutoWrap);
                // It may restore saved colours.
                self.coloured |= self.was_coloured;
            }
            Decrc | Scorc => self.coloured |= self.was_coloured,
            Sm(modes) => self.unusual |= !modes.as_slice().is_empty(),
            Hts | Tbc(_) | Ctc(_) => self.unusual = true,
            Decstbm(top, bottom) => {
                self.margins = *top > 1 || (*bottom != 0 && usize::from(*bottom) != rows);
            }
            Sgr(operations) => {
                self.coloured = operations.as_slice().last() != Some(&SgrOp::Reset);
                self.was_coloured |= operations.as_slice().iter().any(|one| *one != SgrOp::Reset);
            }
            Gzd4(set) => self.drawing = *set == Charset::Drawing,
            So => self.shifted = true,
            Si => self.shifted = false,
            _ => {}
        }
    }
}
