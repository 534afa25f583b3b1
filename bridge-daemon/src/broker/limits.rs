//! The broker's bounds. What a message that comes in may hold is in `bridge_protocol::limits`.

use bridge_protocol::limits::MESSAGE_BYTES;

/// Bounds with their defaults; tests use smaller ones.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Requests in flight of one client. At this many the daemon stops reading from it.
    pub client_requests: usize,
    /// Size of the requests in flight of one client. Beyond it the daemon stops reading from it.
    pub client_bytes: usize,
    /// Requests in flight in all. Beyond it: -32009.
    pub total_requests: usize,
    /// Size of a message that goes out. A larger request: -32007; answer: -32008. Larger progress and
    /// events are dropped.
    pub message_bytes: usize,
    /// Messages queued for one connection. A request to a full host: -32009; an answer to a full
    /// client: it is closed with 1013. At half of it the daemon stops reading from the client and
    /// drops its progress, and drops events that it would have to hold back.
    pub queue_messages: usize,
    /// Bytes queued for one connection; as above.
    pub queue_bytes: usize,
    /// Bytes queued in all; as above. Beyond it a connection with nothing unread still gets its next
    /// message, so that whoever reads promptly does not pay for those who do not.
    pub total_bytes: usize,
    /// Operations pending per client, and as many that have ended. Further pending ones are passed on
    /// but not remembered.
    pub operations: usize,
    /// Size of the operations remembered per client; as above.
    pub operation_bytes: usize,
    /// Messages in a row that were none. One more: close 1008.
    pub violations: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            client_requests: 256,
            client_bytes: 32 << 20,
            total_requests: 4096,
            message_bytes: MESSAGE_BYTES,
            queue_messages: 1024,
            queue_bytes: 32 << 20,
            total_bytes: 128 << 20,
            operations: 256,
            operation_bytes: 4 << 20,
            violations: 100,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_those_of_the_protocol() {
        let limits = Limits::default();
        assert_eq!((limits.client_requests, limits.total_requests), (256, 4096));
        assert_eq!((limits.queue_messages, limits.queue_bytes), (1024, 32 * 1024 * 1024));
        assert_eq!(
            (limits.client_bytes, limits.total_bytes),
            (32 * 1024 * 1024, 128 * 1024 * 1024)
        );
        assert_eq!((limits.operations, limits.operation_bytes), (256, 4 * 1024 * 1024));
        assert_eq!((limits.message_bytes, limits.violations), (16 * 1024 * 1024, 100));
    }
}
