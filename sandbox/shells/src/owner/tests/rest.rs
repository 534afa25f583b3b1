//! The simulated world after the disturbances have stopped, and its clock.

use super::{
    bash::Mode,
    checks::CLOSE_LIMIT,
    world::{Check, World},
};
use crate::owner::{Event, Owner};

/// How long tmux may take before a closing shell is cleaned up without it, in milliseconds.
const SILENCE: u64 = 200;
/// The time in milliseconds and the number of steps within which the owner must come to rest.
const REST_LIMIT: u64 = 900_000;
const REST_STEPS: u32 = 3000;

impl World {
    /// Stops all disturbances, and checks that the owner comes to rest and that no caller is left waiting.
    pub(super) fn come_to_rest(&mut self) -> Check {
        self.is_disk_full = false;
        // Longer than a caller of `close` may wait, while tmux may be stopped.
        self.pass(CLOSE_LIMIT + 1)?;
        self.check()?;
        self.terminal.is_stopped = false;
        if let Some(bash) = &mut self.terminal.bash
            && bash.mode == Mode::ByHand
        {
            bash.mode = Mode::Prompt;
        }
        self.adopt()?;
        let (limit, mut has_looked) = (self.now + REST_LIMIT, false);
        for _ in 0..REST_STEPS {
            if self.go_on()? {
                has_looked = false;
            } else if !has_looked && self.needs_waiter {
                has_looked = true;
                self.tell(Event::LooksIdle)?;
            } else if let Some(wait) = self.next_deadline() {
                self.pass(wait)?;
            } else {
                return self.check_rest();
            }
            self.check()?;
            if self.now > limit {
                return Err("the owner does not come to rest in time".into());
            }
        }
        Err("the owner does not come to rest".into())
    }

    /// Lets every part make one step. Returns whether any part had something to do.
    pub(super) fn go_on(&mut self) -> Result<bool, String> {
        let mut has_gone_on = self.tmux()?;
        has_gone_on |= self.shell()?;
        has_gone_on |= self.deliver();
        has_gone_on |= self.record();
        has_gone_on |= self.read < self.index.len() && self.owner.is_some();
        self.read_index()?;
        has_gone_on |= self.answer(0)?;
        has_gone_on |= self.notice()?;
        Ok(has_gone_on)
    }

    /// Milliseconds until the next deadline.
    fn next_deadline(&self) -> Option<u64> {
        let owner = self.owner.as_ref().and_then(Owner::next_deadline);
        let owner = owner.map(|time| time.saturating_duration_since(self.base).as_millis());
        let owner = owner.map(|time| u64::try_from(time).unwrap().max(self.now));
        let cleanup = self.cleaning_since.map(|since| (since + SILENCE).max(self.now));
        Some(owner.into_iter().chain(cleanup).min()? - self.now)
    }

    /// Lets time pass and handles every deadline on the way.
    pub(super) fn pass(&mut self, time: u64) -> Check {
        let end = self.now + time;
        // Answers that are on their way arrive sooner than this.
        while time > 100 && self.answer(0)? {}
        for _ in 0..10_000 {
            match self.next_deadline() {
                Some(wait) if self.now + wait <= end => {
                    self.now += wait;
                    if self.cleaning_since.is_some_and(|since| since + SILENCE <= self.now) {
                        self.end_without_tmux()?;
                    } else {
                        self.tell(Event::TimePassed)?;
                    }
                }
                _ => {
                    self.now = end;
                    return Ok(());
                }
            }
        }
        Err("the owner sets deadlines without end".into())
    }
}
