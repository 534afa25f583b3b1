//! Counts of what has happened since the start, for `bridge/status` and `/metrics`.

use std::collections::BTreeMap;

/// Counters of the broker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Requests that were accepted.
    pub requests: u64,
    /// Requests that ended with an error.
    pub failed_requests: u64,
    /// Requests refused because too much was under way.
    pub overloaded: u64,
    /// Requests and events that the sender's token does not allow.
    pub forbidden: u64,
    /// Answers that came after the request had ended, twice, or from the wrong host.
    pub late_answers: u64,
    /// Answers sent by clients, which only hosts may send.
    pub forged_answers: u64,
    /// Texts that were not valid messages.
    pub rejected_messages: u64,
    /// Notifications with an unknown method.
    pub ignored_notifications: u64,
    /// Progress notifications that were passed on.
    pub progress: u64,
    /// Progress notifications that were dropped because the caller reads too slowly.
    pub dropped_progress: u64,
    /// Events that were passed on.
    pub events: u64,
    /// Events that were dropped, because they had no receiver or its queue had no room.
    pub dropped_events: u64,
    /// Connections that were closed because they read too slowly.
    pub slow_consumers: u64,
}

impl Counters {
    /// The name and value of each counter.
    pub fn named(&self) -> BTreeMap<&'static str, u64> {
        BTreeMap::from([
            ("requests", self.requests),
            ("failedRequests", self.failed_requests),
            ("overloaded", self.overloaded),
            ("forbidden", self.forbidden),
            ("lateAnswers", self.late_answers),
            ("forgedAnswers", self.forged_answers),
            ("rejectedMessages", self.rejected_messages),
            ("ignoredNotifications", self.ignored_notifications),
            ("progress", self.progress),
            ("droppedProgress", self.dropped_progress),
            ("events", self.events),
            ("droppedEvents", self.dropped_events),
            ("slowConsumers", self.slow_consumers),
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_counter_is_shown_under_its_own_name() {
        let counters = Counters {
            requests: 1,
            failed_requests: 2,
            overloaded: 3,
            late_answers: 4,
            forged_answers: 5,
            rejected_messages: 6,
            ignored_notifications: 7,
            progress: 8,
            dropped_progress: 9,
            events: 10,
            dropped_events: 11,
            slow_consumers: 12,
            forbidden: 13,
        };
        let shown = counters.named();
        let mut values: Vec<_> = shown.values().copied().collect();
        values.sort_unstable();
        assert_eq!(values, (1..=13).collect::<Vec<_>>());
        assert_eq!((shown["requests"], shown["slowConsumers"]), (1, 12));
    }
}
