//! Pauses between attempts to connect: none before the first, then doubling up to one second, until a time limit.
//! They are short because the daemon is on this machine: it comes back soon or never.

use std::time::Duration;

use tokio::time::Instant;

const FIRST: Duration = Duration::from_millis(25);
const LONGEST: Duration = Duration::from_secs(1);

/// A time limit that is longer than any program runs, but does not overflow when it is added to an [`Instant`].
pub(crate) const FOREVER: Duration = Duration::from_secs(365 * 24 * 60 * 60);

#[derive(Debug)]
pub(crate) struct Backoff {
    until: Instant,
    next: Duration,
}

impl Backoff {
    /// Allows attempts for this long from now on.
    pub fn new(now: Instant, window: Duration) -> Self {
        Self { until: now + window.min(FOREVER), next: Duration::ZERO }
    }

    /// The pause before the next attempt.
    pub fn pause(&mut self) -> Duration {
        let pause = self.next;
        self.next = (pause * 2).clamp(FIRST, LONGEST);
        pause
    }

    /// Whether the time for attempts is over.
    pub fn is_over(&self, now: Instant) -> bool {
        now + self.next > self.until
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_second_and_end_in_time() {
        let now = Instant::now();
        let mut backoff = Backoff::new(now, Duration::from_secs(3));
        let pauses: Vec<u128> = (0..9).map(|_| backoff.pause().as_millis()).collect();
        assert_eq!(pauses, [0, 25, 50, 100, 200, 400, 800, 1000, 1000]);
        assert!(!backoff.is_over(now + Duration::from_secs(2)));
        assert!(backoff.is_over(now + Duration::from_millis(2001)));
    }

    #[test]
    fn without_time_there_is_one_attempt() {
        let now = Instant::now();
        let mut backoff = Backoff::new(now, Duration::ZERO);
        assert_eq!(backoff.pause(), Duration::ZERO);
        assert!(backoff.is_over(now));
    }

    #[test]
    fn there_is_no_window_too_long() {
        let now = Instant::now();
        assert!(!Backoff::new(now, Duration::MAX).is_over(now + FOREVER / 2));
    }
}
