//! Computes the effect of an edit on a text. The runtime makes the same change to the file; the
//! observation shows these texts.

use memchr::memmem;
use sandbox_files::{distinct_lines, line_ends, select_lines};

use super::FileProblem;

/// How many lines are shown before and after a change.
const SNIPPET_CONTEXT: usize = 4;

/// One change of a text whose lines end with `\n`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TextEdit {
    /// The text that is replaced; `None` for an insertion.
    pub(super) old: Option<String>,
    /// The line after which text is inserted.
    pub(super) insert_after: Option<usize>,
    /// The new text.
    pub(super) new: String,
    /// The whole text before.
    pub(super) before: String,
    /// The whole text after.
    pub(super) after: String,
    /// Line ends before the change.
    lines_before: usize,
    /// Line ends in the new text.
    lines_added: usize,
}

impl TextEdit {
    /// The lines around the change, and the number of the first of them.
    pub(super) fn snippet(&self) -> (String, usize) {
        // A replacement shows one line more, because it may end within a line.
        let at = self.lines_before + usize::from(self.old.is_some());
        let first = at.saturating_sub(SNIPPET_CONTEXT) + 1;
        let last = at + SNIPPET_CONTEXT + self.lines_added;
        (select_lines(&self.after, first, last).to_owned(), first)
    }
}

/// Replaces the only occurrence of a text that is not empty.
pub(super) fn replace_once(text: &str, old: &str, new: &str) -> Result<TextEdit, FileProblem> {
    let (old, new) = (with_newlines(old), with_newlines(new));
    if old == new {
        return Err(FileProblem::SameText);
    }
    let mut matches = memmem::find_iter(text.as_bytes(), old.as_bytes());
    let start = matches.next().ok_or(FileProblem::NoMatch)?;
    if let Some(second) = matches.next() {
        let starts = [start, second].into_iter().chain(matches);
        return Err(FileProblem::SeveralMatches(distinct_lines(text, starts)));
    }
    Ok(TextEdit {
        after: [&text[..start], &new, &text[start + old.len()..]].concat(),
        lines_before: line_ends(&text[..start]),
        lines_added: line_ends(&new),
        before: text.to_owned(),
        old: Some(old),
        insert_after: None,
        new,
    })
}

/// Inserts lines after a line that exists; 0 is before the first.
pub(super) fn insert_after(text: &str, line: usize, lines: &str) -> TextEdit {
    let new = with_newlines(lines) + "\n";
    let head = if line == 0 { "" } else { select_lines(text, 1, line) };
    let joint = if head.is_empty() || head.ends_with('\n') { "" } else { "\n" };
    TextEdit {
        after: [head, joint, &new, &text[head.len()..]].concat(),
        lines_before: line,
        lines_added: line_ends(&new),
        before: text.to_owned(),
        old: None,
        insert_after: Some(line),
        new,
    }
}

fn with_newlines(text: &str) -> String {
    text.replace("\r\n", "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_occurrence_is_replaced() {
        let edit = replace_once("a\nb\nc\n", "b", "x\r\ny").unwrap();
        assert_eq!((&*edit.after, &*edit.new), ("a\nx\ny\nc\n", "x\ny"));
        assert_eq!(edit.snippet(), ("a\nx\ny\nc\n".to_owned(), 1));
        for (old, new, problem) in [
            ("b", "b", FileProblem::SameText),
            ("z", "y", FileProblem::NoMatch),
            ("\n", "", FileProblem::SeveralMatches(vec![1, 2, 3])),
        ] {
            assert_eq!(replace_once("a\nb\nc\n", old, new), Err(problem), "{old:?}");
        }
    }

    #[test]
    fn inserted_lines_are_whole() {
        assert_eq!(insert_after("1\n2", 2, "3\n4").after, "1\n2\n3\n4\n");
        assert_eq!(insert_after("1\n2", 1, "x").after, "1\nx\n2");
        assert_eq!(insert_after("", 0, "x").after, "x\n");
        assert_eq!(insert_after("1\n", 0, "0").snippet(), ("0\n1\n".to_owned(), 1));
    }

    #[test]
    fn a_snippet_shows_four_lines_on_both_sides() {
        let text = (1..=20).map(|line| format!("{line}\n")).collect::<String>();
        let (snippet, first) = replace_once(&text, "10\n", "x\ny\n").unwrap().snippet();
        assert_eq!((&*snippet, first), ("7\n8\n9\nx\ny\n11\n12\n13\n14\n15\n", 7));
        let (snippet, first) = insert_after(&text, 10, "x").snippet();
        assert_eq!((&*snippet, first), ("7\n8\n9\n10\nx\n11\n12\n13\n14\n", 7));
    }
}
