//! The scanner of terminal output: the division into chunks does not matter, and no byte is lost.
//!
//! The first eight bytes of an input are the sizes of the chunks.

#![no_main]

use libfuzzer_sys::fuzz_target;
use sandbox_shells::{joined, scan};

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
    assert_eq!(scan(chunks), whole, "in chunks of {sizes:?}");
    assert_eq!(joined(whole), stream);
});
