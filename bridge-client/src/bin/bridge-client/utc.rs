//! Moments as people read them, in UTC: the standard library knows no time zones.

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

/// Milliseconds since 1970. Prints as `2026-11-16 03:25:01Z`; `{:#}` leaves the date out.
#[derive(Clone, Copy, Debug)]
pub struct Utc(pub u64);

impl Utc {
    pub fn now() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    }
}

impl fmt::Display for Utc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0 / 1000;
        if !f.alternate() {
            let (year, month, day) = date(seconds / 86_400);
            write!(f, "{year:04}-{month:02}-{day:02} ")?;
        }
        let second = seconds % 86_400;
        write!(f, "{:02}:{:02}:{:02}Z", second / 3600, second / 60 % 60, second % 60)
    }
}

/// The date of a day since 1970. Counts in cycles of 400 years, each of which begins on a first of
/// March, so that the leap day is the last of its year.
fn date(day: u64) -> (u64, u64, u64) {
    const DAYS_BEFORE: u64 = 719_468;
    const CYCLE: u64 = 146_097;
    let day = day + DAYS_BEFORE;
    let (cycle, day) = (day / CYCLE, day % CYCLE);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let march_month = (5 * day + 2) / 153;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    let year = cycle * 400 + year + u64::from(month <= 2);
    (year, month, day - (153 * march_month + 2) / 5 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (seconds, expected) in [
            (0, "1970-01-01 00:00:00Z"),
            (951_782_399, "2000-02-28 23:59:59Z"),
            (951_782_400, "2000-02-29 00:00:00Z"),
            (951_868_800, "2000-03-01 00:00:00Z"),
            (1_735_689_599, "2024-12-31 23:59:59Z"),
            (4_107_542_400, "2100-03-01 00:00:00Z"),
        ] {
            assert_eq!(Utc(seconds * 1000).to_string(), expected);
        }
        assert_eq!(format!("{:#}", Utc(3_661_999)), "01:01:01Z");
    }
}
