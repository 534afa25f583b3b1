//! The broker's limits. Limits of a single incoming message are in `bridge_protocol::limits`.

use bridge_protocol::limits::MESSAGE_BYTES;

/// The broker's limits. [`Default`] has those of the protocol; tests use smaller ones.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Requests in flight of one client. When it is reached, the daemon stops reading from the client.
    pub client_requests: usize,
    /// Bytes of the requests in flight of one client. Beyond it, the daemon stops reading from the client.
    pub client_bytes: usize,
    /// Requests in flight of all clients together. Beyond it, requests fail with -32009.
    pub total_requests: usize,
    /// Size of an outgoing message. A larger request fails with -32007, a larger answer with -32008. Larger
    /// progress and events are dropped.
    pub message_bytes: usize,
    /// Messages queued for one connection. When a host's queue is full, requests to it fail with -32009. When a
    /// client's queue has no room for an answer, the client is closed with 1013. At half of the limit, the daemon
    /// stops reading from the client, and drops its progress and the events that it would have to hold back.
    pub queue_messages: usize,
    /// Bytes queued for one connection. Reaching it has the same effects as `queue_messages`.
    pub queue_bytes: usize,
    /// Bytes queued for all connections together. Reaching it has the same effects as `queue_messages`, except that
    /// a connection with nothing unread still gets its next message: prompt readers do not pay for slow ones.
    pub total_bytes: usize,
    /// Pending operations that are remembered per client, and as many that have ended. Further ones are passed on
    /// to the host but not remembered.
    pub operations: usize,
    /// Bytes of the operations that are remembered per client. Further ones are passed on but not remembered.
    pub operation_bytes: usize,
    /// Invalid messages in a row. One more closes the connection with 1008.
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
