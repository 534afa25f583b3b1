//! Counts, selects and numbers lines of a text.
//!
//! A line ends with `\n`; the last one may lack it. The empty text has no lines. Line numbers begin
//! with 1.

use std::fmt::Write as _;

use memchr::{memchr, memchr_iter};

/// How many lines [`Error::SeveralMatches`] lists at most.
pub const LINES_REPORTED: usize = 1000;

/// Number of lines.
pub fn line_count(text: &str) -> usize {
    line_ends(text) + usize::from(!text.is_empty() && !text.ends_with('\n'))
}

/// Number of line ends.
pub fn line_ends(text: &str) -> usize {
    memchr_iter(b'\n', text.as_bytes()).count()
}

/// The numbers of the lines in which these offsets are, each line once, at most [`LINES_REPORTED`] of them. The
/// offsets ascend.
pub fn distinct_lines(text: &str, starts: impl Iterator<Item = usize>) -> Vec<usize> {
    let (mut line, mut at) = (1, 0);
    let mut lines = Vec::new();
    for start in starts {
        line += line_ends(&text[at..start]);
        at = start;
        if lines.last() != Some(&line) {
            lines.push(line);
        }
        if lines.len() == LINES_REPORTED {
            break;
        }
    }
    lines
}

/// The lines `first` to `last`, both included, with their ends. Lines that do not exist are left
/// out.
pub fn select_lines(text: &str, first: usize, last: usize) -> &str {
    if first == 0 || last < first {
        return "";
    }
    let start = line_start(text, first);
    let length = line_start(&text[start..], last - first + 2);
    &text[start..start + length]
}

/// Puts a number before each line: right-aligned in six columns, then a tab, as `cat -n` does. A
/// final line end counts as the beginning of one more, empty, line; remove it first if that line
/// should not show.
pub fn numbered(text: &str, first: usize) -> String {
    let mut out = String::with_capacity(text.len() + 8 * (line_count(text) + 1));
    for (index, line) in text.split('\n').enumerate() {
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{:6}\t{line}", first + index);
    }
    out
}

/// The offset where line `line` begins; the length of the text if there are fewer lines.
pub(super) fn line_start(text: &str, line: usize) -> usize {
    let mut start = 0;
    for _ in 1..line {
        match memchr(b'\n', &text.as_bytes()[start..]) {
            Some(end) => start += end + 1,
            None => return text.len(),
        }
    }
    start
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_final_line_without_end_counts() {
        for (text, lines) in [("", 0), ("\n", 1), ("a", 1), ("a\n", 1), ("a\nb", 2), ("a\n\n", 2)] {
            assert_eq!(line_count(text), lines, "{text:?}");
        }
    }

    #[test]
    fn selection_is_inclusive_and_clamped() {
        let text = "1\n2\n3\n4";
        for (first, last, expected) in [
            (1, 1, "1\n"),
            (2, 3, "2\n3\n"),
            (3, 9, "3\n4"),
            (1, usize::MAX - 2, text),
            (5, 6, ""),
            (0, 2, ""),
            (3, 2, ""),
        ] {
            assert_eq!(select_lines(text, first, last), expected, "{first}..={last}");
        }
    }

    #[test]
    fn numbers_stand_in_six_columns() {
        assert_eq!(numbered("a\nb", 9), "     9\ta\n    10\tb\n");
        assert_eq!(numbered("", 1), "     1\t\n");
    }
}
