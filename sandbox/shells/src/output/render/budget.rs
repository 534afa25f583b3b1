//! Bounds the work and the memory of one rendering.
//!
//! A few bytes of output can make a terminal do much: clear the screen, repeat a character 65,535 times, move to the
//! end of each line. The output of a command is hostile input, so what it draws is counted.

use avt::parser::Function;

use crate::ledger::Size;

/// How many cells of the screen one rendering may change, about. This takes some seconds.
const CELLS: u64 = 1 << 30;
/// The longest text of one rendering in bytes. Callers ask for less output than that.
const TEXT_BYTES: usize = 64 << 20;

/// The work that is left to a rendering before it is given up.
#[derive(Debug)]
pub(super) struct Budget {
    cells: u64,
}

impl Budget {
    pub(super) fn new() -> Self {
        Self { cells: CELLS }
    }

    /// A smaller budget, because the usual one takes long in a debug build.
    #[cfg(test)]
    pub(super) fn of_cells(cells: u64) -> Self {
        Self { cells }
    }

    /// Takes the cost of a function on a screen. Returns false if the budget is exhausted.
    pub(super) fn spend(&mut self, function: &Function, size: Size) -> bool {
        match self.cells.checked_sub(cost(function, size)) {
            Some(left) => {
                self.cells = left;
                true
            }
            None => false,
        }
    }

    /// Whether a text of this length may grow.
    pub(super) fn has_room(&self, length: usize) -> bool {
        length < TEXT_BYTES
    }
}

/// How many cells a function may change, at most.
fn cost(function: &Function, size: Size) -> u64 {
    use Function::*;

    let (columns, rows) = (u64::from(size.columns), u64::from(size.rows));
    match function {
        Rep(count) => u64::from(*count).max(1),
        // The row that scrolls in is blank, which is quick; and most output has many lines.
        Lf | Nel => columns.div_ceil(4),
        Ri | El(_) | Ech(_) | Ich(_) | Dch(_) | Cht(_) | Cbt(_) => columns,
        Su(count) | Sd(count) | Il(count) | Dl(count) => columns * u64::from(*count).clamp(1, rows),
        Ed(_) | Decaln | Decset(_) | Decrst(_) | Decstr | Ris => columns * rows,
        _ => 1,
    }
}
