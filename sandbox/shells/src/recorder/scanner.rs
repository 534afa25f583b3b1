//! Finds candidate markers in a stream of terminal bytes, however the stream is split into chunks.
//!
//! The scanner does no I/O and does not check nonces: it returns plain bytes and payloads that have the format of a
//! marker. A caller that rejects a payload puts its bytes back into the text; [`Piece::Candidate`] has all that is
//! needed for that.
//!
//! It holds back at most one unfinished candidate of [`LONGEST_PAYLOAD`] bytes, so its memory is bounded. A control
//! character other than the terminator ends a candidate as plain text, and an ESC starts the next one at once: a
//! program that dies in the middle of printing a forged marker cannot hide the genuine one that follows.

use crate::marker::{INTRODUCER, TERMINATOR};

/// The longest payload that is considered. A path may have 4096 bytes, each encoded in three.
pub(crate) const LONGEST_PAYLOAD: usize = 32 * 1024;

/// A part of the stream. Pieces come in the order of the stream.
#[derive(Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    /// Output of programs.
    Text(&'a [u8]),
    /// The payload of a sequence that has the format of a marker.
    Candidate(&'a [u8]),
}

/// The state between two chunks: the bytes held back, which are the beginning of a possible marker.
#[derive(Debug, Default)]
pub struct Scanner {
    held: Vec<u8>,
}

impl Scanner {
    /// Scans the next chunk and passes its pieces to `sink` in order.
    pub fn feed(&mut self, mut chunk: &[u8], mut sink: impl FnMut(Piece<'_>)) {
        while !chunk.is_empty() {
            if self.held.is_empty() {
                let escape = memchr::memchr(INTRODUCER[0], chunk).unwrap_or(chunk.len());
                let (text, rest) = chunk.split_at(escape);
                if !text.is_empty() {
                    sink(Piece::Text(text));
                }
                let Some((&byte, rest)) = rest.split_first() else { return };
                self.held.push(byte);
                chunk = rest;
                continue;
            }
            chunk = self.continue_held(chunk, &mut sink);
        }
    }

    /// Ends the stream: bytes that were held back become text.
    pub fn finish(&mut self, mut sink: impl FnMut(Piece<'_>)) {
        self.give_up(&mut sink);
    }

    /// Whether bytes are held back.
    #[cfg(test)]
    pub(crate) fn is_holding(&self) -> bool {
        !self.held.is_empty()
    }

    /// Consumes at least one byte of `chunk`, or releases the bytes held back as text.
    fn continue_held<'c>(&mut self, chunk: &'c [u8], sink: &mut impl FnMut(Piece<'_>)) -> &'c [u8] {
        if let Some(&wanted) = INTRODUCER.get(self.held.len()) {
            if chunk[0] == wanted {
                self.held.push(wanted);
                return &chunk[1..];
            }
            self.give_up(sink);
            return chunk;
        }
        let end = chunk.iter().position(u8::is_ascii_control).unwrap_or(chunk.len());
        self.held.extend_from_slice(&chunk[..end]);
        let rest = &chunk[end..];
        if self.held.len() > INTRODUCER.len() + LONGEST_PAYLOAD {
            self.give_up(sink);
            return rest;
        }
        match rest.split_first() {
            Some((&TERMINATOR, after)) => {
                sink(Piece::Candidate(&self.held[INTRODUCER.len()..]));
                self.held.clear();
                after
            }
            Some(_) => {
                self.give_up(sink);
                rest
            }
            None => rest,
        }
    }

    fn give_up(&mut self, sink: &mut impl FnMut(Piece<'_>)) {
        if !self.held.is_empty() {
            sink(Piece::Text(&self.held));
            self.held.clear();
        }
    }
}

/// A result of [`scan`], for comparison: adjacent text is joined, so that the split into chunks does not matter.
#[cfg(any(test, fuzzing))]
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scanned {
    /// Output of programs.
    Text(Vec<u8>),
    /// The payload of a sequence that has the format of a marker.
    Candidate(Vec<u8>),
}

/// Scans a whole stream that arrives in these chunks.
#[cfg(any(test, fuzzing))]
pub fn scan<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> Vec<Scanned> {
    let mut seen = Vec::new();
    let mut scanner = Scanner::default();
    let mut sink = |piece: Piece<'_>| match piece {
        Piece::Text(bytes) => match seen.last_mut() {
            Some(Scanned::Text(text)) => text.extend_from_slice(bytes),
            _ => seen.push(Scanned::Text(bytes.to_vec())),
        },
        Piece::Candidate(payload) => seen.push(Scanned::Candidate(payload.to_vec())),
    };
    for chunk in chunks {
        scanner.feed(chunk, &mut sink);
    }
    scanner.finish(&mut sink);
    seen
}

/// Reconstructs the stream from the results of [`scan`].
#[cfg(any(test, fuzzing))]
pub fn joined(seen: impl IntoIterator<Item = Scanned>) -> Vec<u8> {
    let bytes = seen.into_iter().map(|seen| match seen {
        Scanned::Text(text) => text,
        Scanned::Candidate(payload) => [INTRODUCER, &payload, &[TERMINATOR]].concat(),
    });
    bytes.collect::<Vec<_>>().concat()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn text(bytes: &[u8]) -> Scanned {
        Scanned::Text(bytes.to_vec())
    }

    fn candidate(payload: &[u8]) -> Scanned {
        Scanned::Candidate(payload.to_vec())
    }

    #[test]
    fn finds_candidates_between_text() {
        let seen = scan([&b"a\x1b[31mb\x1b]7717;S;1;n\x07c"[..]]);
        assert_eq!(seen, [text(b"a\x1b[31mb"), candidate(b"S;1;n"), text(b"c")]);
    }

    #[test]
    fn an_unfinished_forgery_does_not_hide_the_true_marker() {
        let seen = scan([&b"\x1b]7717;E;1;forged\x1b]7717;E;1;n\x07"[..]]);
        assert_eq!(seen, [text(b"\x1b]7717;E;1;forged"), candidate(b"E;1;n")]);
        let seen = scan([&b"\x1b\x1b]77\x1b]7717;E;1;n\x07\x1b"[..]]);
        assert_eq!(seen, [text(b"\x1b\x1b]77"), candidate(b"E;1;n"), text(b"\x1b")]);
    }

    #[test]
    fn an_endless_candidate_is_let_go() {
        let mut scanner = Scanner::default();
        let mut released = 0;
        scanner.feed(INTRODUCER, |_| ());
        for _ in 0..3 {
            scanner.feed(&[b'x'; LONGEST_PAYLOAD], |piece| match piece {
                Piece::Text(bytes) => released += bytes.len(),
                Piece::Candidate(_) => panic!("nothing ended"),
            });
        }
        assert!(released > LONGEST_PAYLOAD && !scanner.is_holding());
    }

    /// Generates streams from parts of markers, so that the search does not drown in irrelevant bytes.
    fn stream() -> impl Strategy<Value = Vec<u8>> {
        let piece = prop_oneof![
            Just(b"\x1b]7717;".to_vec()),
            Just(b"\x1b]7717;E;3;abc;0;;me;host;/tmp;\x07".to_vec()),
            Just(b"\x1b".to_vec()),
            Just(b"\x1b]77".to_vec()),
            Just(b"\x07".to_vec()),
            Just(b"\r\n".to_vec()),
            proptest::collection::vec(any::<u8>(), 0..40),
        ];
        proptest::collection::vec(piece, 0..20).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn any_chunking_gives_the_same_pieces(
            stream in stream(),
            cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..30),
        ) {
            let whole = scan([stream.as_slice()]);
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(stream.len() + 1)).collect();
            cuts.extend([0, stream.len()]);
            cuts.sort_unstable();
            let chunks = cuts.windows(2).map(|pair| &stream[pair[0]..pair[1]]);
            prop_assert_eq!(&scan(chunks), &whole);
            prop_assert_eq!(&scan(stream.chunks(1)), &whole);
        }

        #[test]
        fn no_byte_is_lost_or_added(stream in stream()) {
            prop_assert_eq!(joined(scan([stream.as_slice()])), stream);
        }
    }
}
