//! Every bound of the wire in one place. Each says what happens when it is reached.

use std::time::Duration;

/// Largest message text in bytes. A longer frame is refused before it is read: close code 1009.
pub const MESSAGE_BYTES: usize = 16 * 1024 * 1024;

/// Deepest nesting of arrays and objects in a message, the envelope included. Deeper: -32700.
/// Parsers behind us fail in worse ways (Python at about 1000, JavaScript while printing).
pub const DEPTH: usize = 128;

/// Longest id as JSON text, quotes included. Longer: -32600.
pub const ID_BYTES: usize = 128;

/// Longest method name in bytes. Longer: -32600.
pub const METHOD_BYTES: usize = 128;

/// Members of an envelope that mean nothing to us. More: -32600.
pub const UNKNOWN_MEMBERS: usize = 16;

/// Longest deadline of a request to a host, unless its method says otherwise. A longer `timeout` is shortened to this.
pub const TIMEOUT_MAX: Duration = Duration::from_secs(600);

/// Longest deadline of a request for a tool that works on shells, files, cells or pages: commands take as long
/// as they take.
pub const TOOL_TIMEOUT_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// Deadline of a request that names none, unless its method says otherwise.
pub const TIMEOUT_DEFAULT: Duration = Duration::from_secs(30);

/// Deadline of a request for such a tool that names none: a shell may be slow to start, a tree large to search.
pub const TOOL_TIMEOUT_DEFAULT: Duration = Duration::from_secs(120);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bounds_are_those_of_the_protocol() {
        assert_eq!((MESSAGE_BYTES, DEPTH), (16_777_216, 128));
        assert_eq!((ID_BYTES, METHOD_BYTES, UNKNOWN_MEMBERS), (128, 128, 16));
        assert_eq!((TIMEOUT_MAX.as_secs(), TIMEOUT_DEFAULT.as_secs()), (600, 30));
    }
}
