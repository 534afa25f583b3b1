//! How long to wait before a child is restarted.

use std::time::Duration;

/// The pause before the second restart; the first comes at once. Each further pause is twice as long.
const FIRST: Duration = Duration::from_millis(100);
/// The longest pause.
const LONGEST: Duration = Duration::from_secs(5);
/// After a child has run for this long, the next restart comes at once again.
const STEADY: Duration = Duration::from_secs(10);

/// Pauses that grow while a child keeps ending early.
#[derive(Debug, Default)]
pub struct Pauses {
    next: Duration,
}

impl Pauses {
    /// The pause after a child has run for this long: none after the first end, and none after a long run.
    pub fn after(&mut self, life: Duration) -> Duration {
        if life >= STEADY {
            self.next = Duration::ZERO;
        }
        let pause = self.next;
        self.next = (pause * 2).clamp(FIRST, LONGEST);
        pause
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_restart_comes_at_once_and_the_pauses_grow_to_a_bound() {
        let mut pauses = Pauses::default();
        let seen: Vec<_> = (0..9).map(|_| pauses.after(FIRST).as_millis()).collect();
        assert_eq!(seen, [0, 100, 200, 400, 800, 1600, 3200, 5000, 5000]);
        assert_eq!(pauses.after(STEADY), Duration::ZERO, "a long life");
        assert_eq!(pauses.after(FIRST), FIRST);
    }
}
