//! Where output can be cut without damage to characters, escape sequences or lines.

/// The longest escape sequence that is kept whole; a longer one is treated as text.
pub const LONGEST_SEQUENCE: usize = 64;

/// The length of the complete lines at the beginning of unfinished output. If that would omit more than half of the
/// output, the cut is within a line, between characters.
pub fn whole_lines(output: &[u8]) -> usize {
    match memchr::memrchr(b'\n', output) {
        Some(end) if end >= output.len() / 2 => end + 1,
        _ => whole_length(output),
    }
}

/// Where the first complete line begins in output that starts anywhere. If that would omit more than half of the
/// output, the cut is within a line, between characters.
pub fn first_line(output: &[u8]) -> usize {
    match memchr::memchr(b'\n', output) {
        Some(end) if end < output.len() / 2 => end + 1,
        _ => output.iter().take(3).take_while(|&&byte| byte & 0b1100_0000 == 0b1000_0000).count(),
    }
}

/// The length of unfinished output without an incomplete character or escape sequence at its end.
pub fn whole_length(output: &[u8]) -> usize {
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
    // A UTF-8 character has at most four bytes, and all but the first begin with the bits 10.
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

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn cuts_are_between_lines_or_else_characters() {
        assert_eq!(whole_lines(b"ab\r\ncd"), 4);
        assert_eq!(whole_lines("abä".as_bytes().split_last().unwrap().1), 2);
        assert_eq!(first_line(b"ab\r\ncdefgh"), 4);
        assert_eq!(first_line(&"äb".as_bytes()[1..]), 1);
        assert_eq!(first_line(b"ab"), 0);
        // Most of the output is one long line, so the cut is within that line.
        assert_eq!(whole_lines(b"a\nbcdefghij"), 11);
        assert_eq!(first_line(b"abcdefghij\n"), 0);
    }
}
