//! The limits of the wire protocol. Each says what happens when it is exceeded.

use std::time::Duration;

/// Largest message text in bytes. A larger frame is refused before it is read, with close code 1009.
pub const MESSAGE_BYTES: usize = 16 * 1024 * 1024;

/// Deepest nesting of arrays and objects in a message, including the envelope. Deeper messages fail with
/// -32700. Without this limit, parsers at the other end would fail in worse ways (Python at about 1000
/// levels, JavaScript while printing).
pub const DEPTH: usize = 128;

/// Longest id as JSON text, including quotes. Longer ids fail with -32600.
pub const ID_BYTES: usize = 128;

/// Longest method name in bytes. Longer names fail with -32600.
pub const METHOD_BYTES: usize = 128;

/// Most members of an envelope that the protocol does not define. More members fail with -32700.
pub const UNKNOWN_MEMBERS: usize = 16;

/// Longest timeout of a request to a host, unless its method says otherwise. A longer `timeout` is reduced
/// to this.
pub const TIMEOUT_MAX: Duration = Duration::from_secs(600);

/// Longest timeout of a tool that works on shells, files, cells or pages. It is long because commands may
/// run for hours.
pub const TOOL_TIMEOUT_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// Timeout of a request that names none, unless its method says otherwise.
pub const TIMEOUT_DEFAULT: Duration = Duration::from_secs(30);

/// Timeout of a request for a tool (shells, files, cells, pages) that names none. A shell may be slow to
/// start, and a tree may be large to search.
pub const TOOL_TIMEOUT_DEFAULT: Duration = Duration::from_secs(120);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_those_that_the_protocol_documents() {
        assert_eq!((MESSAGE_BYTES, DEPTH), (16_777_216, 128));
        assert_eq!((ID_BYTES, METHOD_BYTES, UNKNOWN_MEMBERS), (128, 128, 16));
        assert_eq!((TIMEOUT_MAX.as_secs(), TIMEOUT_DEFAULT.as_secs()), (600, 30));
    }
}
