//! Output as a terminal shows it: pieces of any size show the same as the whole, within bounds.

#![no_main]

use libfuzzer_sys::fuzz_target;
use sandbox_shells::{Colours, Renderer, Size, render};

fuzz_target!(|output: &[u8]| {
    let size = Size { columns: 20, rows: 5 };
    for colours in [Colours::Strip, Colours::Keep] {
        let whole = render(output, size, colours);
        let mut renderer = Renderer::new(size, colours);
        for piece in output.chunks(7) {
            renderer.feed(piece);
        }
        assert_eq!(renderer.finish(), whole);
    }
});
