//! Detects whether the other end of a connection still lives. A plain value: takes ticks and signs of life, returns
//! what to do.

use std::time::{Duration, Instant};

/// After this many unanswered pings in a row, the connection is closed.
const MISSED: u32 = 2;

/// The action on a tick of the heartbeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beat {
    /// Send an empty ping.
    Ping,
    /// Close the connection.
    Dead,
}

/// The state of one connection.
#[derive(Debug)]
pub struct Heartbeat {
    interval: Duration,
    unanswered: u32,
    last_tick: Instant,
}

impl Heartbeat {
    /// Creates the state of a connection that has just shown a sign of life.
    pub fn new(interval: Duration, now: Instant) -> Self {
        Self { interval, unanswered: 0, last_tick: now }
    }

    /// Records a sign of life.
    pub fn alive(&mut self) {
        self.unanswered = 0;
    }

    /// Called after each interval. If the timer itself is late by half an interval, the machine was asleep and no peer
    /// could answer, so the missing pong does not count.
    pub fn tick(&mut self, now: Instant) -> Beat {
        let slept = now - self.last_tick >= self.interval * 3 / 2;
        self.last_tick = now;
        if slept {
            self.unanswered = 0;
        }
        if self.unanswered >= MISSED {
            return Beat::Dead;
        }
        self.unanswered += 1;
        Beat::Ping
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: Duration = Duration::from_secs(20);

    fn ticks(late: Duration, alive_at: Option<usize>) -> Vec<Beat> {
        let mut now = Instant::now();
        let mut heartbeat = Heartbeat::new(INTERVAL, now);
        (0..4)
            .map(|n| {
                now += INTERVAL + if n == 2 { late } else { Duration::ZERO };
                if alive_at == Some(n) {
                    heartbeat.alive();
                }
                heartbeat.tick(now)
            })
            .collect()
    }

    #[test]
    fn two_missed_pongs_are_the_end() {
        assert_eq!(ticks(Duration::ZERO, None)[..3], [Beat::Ping, Beat::Ping, Beat::Dead]);
    }

    #[test]
    fn a_sign_of_life_resets_the_count() {
        assert_eq!(ticks(Duration::ZERO, Some(2)), [Beat::Ping; 4]);
    }

    #[test]
    fn missed_pongs_do_not_count_while_the_machine_sleeps() {
        assert_eq!(ticks(INTERVAL / 2, None)[2], Beat::Ping);
        assert_eq!(ticks(Duration::from_secs(3600), None), [Beat::Ping; 4]);
        assert_eq!(
            ticks(Duration::from_secs(9), None)[2],
            Beat::Dead,
            "a little late is not sleep"
        );
    }
}
