//! The scanner of terminal output: any chunking gives the same pieces, and no byte is lost.
//!
//! The first eight bytes of an input say how the rest is cut.

#![no_main]

use libfuzzer_sys::fuzz_target;
use sandbox::shell::{Piece, Scanner};

/// Text joined where it touches, so that only what matters is compared.
#[derive(Debug, PartialEq, Eq)]
enum Seen {
    Text(Vec<u8>),
    Candidate(Vec<u8>),
}

fuzz_target!(|bytes: &[u8]| {
    let Some((sizes, stream)) = bytes.split_first_chunk::<8>() else { return };
    let whole = scan([stream]);
    assert_eq!(scan(stream.chunks(1)), whole, "byte by byte");
    let mut rest = stream;
    let chunks = sizes.iter().cycle().map_while(|size| {
        let (chunk, after) =
            rest.split_at_checked(usize::from(*size).max(1)).unwrap_or((rest, &[]));
        rest = after;
        (!chunk.is_empty()).then_some(chunk)
    });
    assert_eq!(scan(chunks), whole, "cut by {sizes:?}");
    let joined = whole.into_iter().flat_map(|seen| match seen {
        Seen::Text(text) => text,
        Seen::Candidate(payload) => [b"\x1b]7717;", &payload[..], b"\x07"].concat(),
    });
    assert_eq!(joined.collect::<Vec<u8>>(), stream);
});

fn scan<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> Vec<Seen> {
    let mut scanner = Scanner::default();
    let mut seen = Vec::new();
    let mut sink = |piece: Piece<'_>| match piece {
        Piece::Text(bytes) => match seen.last_mut() {
            Some(Seen::Text(text)) => text.extend_from_slice(bytes),
            _ => seen.push(Seen::Text(bytes.to_vec())),
        },
        Piece::Candidate(payload) => seen.push(Seen::Candidate(payload.to_vec())),
    };
    for chunk in chunks {
        scanner.feed(chunk, &mut sink);
    }
    scanner.finish(&mut sink);
    seen
}
