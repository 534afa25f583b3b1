//! Renders the output of a shell as text, as a terminal would show it.

use std::mem;
use std::ops::Range;

use sandbox_shells::boundary::{self, LONGEST_SEQUENCE, whole_length};
use sandbox_shells::{
    Colours, Log, Renderer, Result, Shell, render, render_in_background, render_lines,
};

/// Up to this many bytes are rendered on this thread, if they are plain lines: another thread would
/// cost more.
const LITTLE: u64 = 32 << 10;
/// How many bytes are read at a time.
const BLOCK: u64 = 1 << 20;

/// The part of the output to show.
#[derive(Clone, Copy, Debug)]
pub(super) enum Extent {
    /// Up to this many bytes: all of the output, or its beginning and end.
    Ends { bytes: u64 },
    /// The last lines, searched in this many bytes at the end.
    LastLines { lines: usize, bytes: u64 },
}

/// Output as text, and which part of it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Shown {
    pub text: String,
    /// The bytes that the text omits.
    pub omitted: Option<Range<u64>>,
    /// The number of lines in the text, if lines were asked for and there were more.
    pub last_lines: Option<usize>,
}

/// Renders a range of a shell's log. Blanks at the ends of lines and blank lines at the end are
/// dropped.
pub(super) async fn show(
    shell: &Shell,
    range: Range<u64>,
    extent: Extent,
    colours: Colours,
) -> Result<Shown> {
    let length = range.end.saturating_sub(range.start);
    let (Extent::Ends { bytes } | Extent::LastLines { bytes, .. }) = extent;
    if length <= LITTLE.min(bytes) {
        let output = shell.log().read(range.clone())?;
        if let Some(text) = render_lines(&output, shell.size(), colours) {
            return Ok(whole(text, extent));
        }
    }
    let shell = shell.clone();
    render_in_background(move || match extent {
        Extent::Ends { bytes } => ends(&shell, range, bytes, colours),
        Extent::LastLines { lines, bytes } => last_lines(&shell, range, lines, bytes, colours),
    })
    .await
}

/// The largest offset up to `end` that is not within a character or an escape sequence.
pub(super) fn whole_end(log: &Log, end: u64) -> Result<u64> {
    let start = end.saturating_sub(LONGEST_SEQUENCE as u64);
    Ok(start + whole_length(&log.read(start..end)?) as u64)
}

fn ends(shell: &Shell, range: Range<u64>, bytes: u64, colours: Colours) -> Result<Shown> {
    let view = shell.log().view(range, bytes)?;
    let mut text = render(&view.head, shell.size(), colours);
    let omitted = (!view.omitted.is_empty()).then_some(view.omitted);
    if let Some(Range { start, end }) = omitted {
        text.push_str(&format!(
            "\n[{} bytes omitted: get them with shell/read, from {start} to {end}]\n",
            end - start
        ));
        text.push_str(&render(&view.tail, shell.size(), colours));
    }
    Ok(Shown { text, omitted, last_lines: None })
}

fn last_lines(
    shell: &Shell,
    range: Range<u64>,
    lines: usize,
    bytes: u64,
    colours: Colours,
) -> Result<Shown> {
    let is_cut = range.end.saturating_sub(range.start) > bytes;
    let mut skipping = is_cut;
    let mut offset = if is_cut { range.end - bytes } else { range.start };
    let mut first = offset;
    let mut renderer = Renderer::new(shell.size(), colours);
    while offset < range.end {
        let block = shell.log().read(offset..range.end.min(offset + BLOCK))?;
        if block.is_empty() {
            break;
        }
        offset += block.len() as u64;
        let start = if mem::take(&mut skipping) { boundary::first_line(&block) } else { 0 };
        first += start as u64;
        renderer.feed(&block[start..]);
    }
    let mut shown = cut(renderer.finish(), lines, bytes);
    if is_cut {
        shown.omitted = Some(range.start..first);
        shown.last_lines.get_or_insert_with(|| shown.text.lines().count());
    }
    Ok(shown)
}

fn whole(text: String, extent: Extent) -> Shown {
    match extent {
        Extent::Ends { .. } => Shown { text, omitted: None, last_lines: None },
        Extent::LastLines { lines, bytes } => cut(text, lines, bytes),
    }
}

/// The last lines of a text, at most `bytes` bytes: a terminal can show much more than it was sent.
fn cut(text: String, lines: usize, bytes: u64) -> Shown {
    let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
    let ends = || memchr::memchr_iter(b'\n', text.as_bytes());
    let dropped = (ends().count() + 1).saturating_sub(lines);
    let by_lines = match dropped {
        0 => 0,
        dropped => ends().nth(dropped - 1).map_or(text.len(), |end| end + 1),
    };
    let by_bytes = match text.len().checked_sub(bytes) {
        None | Some(0) => 0,
        // Begin at the next line or, within a very long line, at the next character.
        Some(least) => memchr::memchr(b'\n', &text.as_bytes()[least - 1..])
            .map(|end| least + end)
            .or_else(|| (least..text.len()).find(|&at| text.is_char_boundary(at)))
            .unwrap_or(text.len()),
    };
    match by_lines.max(by_bytes) {
        0 => Shown { text, omitted: None, last_lines: None },
        start => {
            let text = text[start..].to_owned();
            let last_lines = Some(memchr::memchr_iter(b'\n', text.as_bytes()).count() + 1);
            Shown { text, omitted: None, last_lines }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, lines: usize, bytes: u64, expected: &str, last_lines: Option<usize>) {
        let expected = Shown { text: expected.into(), omitted: None, last_lines };
        assert_eq!(cut(text.into(), lines, bytes), expected, "{text:?}, {lines}, {bytes}");
    }

    #[test]
    fn of_too_many_lines_the_last_are_shown() {
        check("", 1, 9, "", None);
        check("a\nb\nc", 3, 9, "a\nb\nc", None);
        check("a\nb\nc", 2, 9, "b\nc", Some(2));
        check("a\nb\nc", 1, 9, "c", Some(1));
        check("a\n\nc", 2, 9, "\nc", Some(2));
    }

    #[test]
    fn of_too_many_bytes_the_last_whole_lines_are_shown() {
        check("aaa\nbbb\nccc", 9, 7, "bbb\nccc", Some(2));
        check("aaa\nbbb\nccc", 9, 6, "ccc", Some(1));
        check("aaa\nbbb\nccc", 9, 11, "aaa\nbbb\nccc", None);
        check("äääää", 9, 5, "ää", Some(1));
    }
}
