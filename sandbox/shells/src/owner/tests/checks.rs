//! The properties that must hold in the simulated world.

use super::{
    bash::{Kind as TextKind, Program},
    world::{Check, UNKNOWN_END, World},
};
use crate::{
    Error,
    marker::Seq,
    owner::CallId,
    state::{Ended, JobStatus, Phase},
};

/// How long a caller of `close` may wait, in milliseconds.
pub(super) const CLOSE_LIMIT: u64 = 1000;

impl World {
    pub(super) fn answered(&mut self, call: CallId, reply: Result<(), Error>) -> Check {
        let Some(asked) = self.calls.remove(&call) else {
            return Err(format!("{call:?} is answered twice"));
        };
        if asked.is_close
            && let Err(error) = reply
        {
            return Err(format!("closing fails: {error}"));
        }
        if asked.is_close && self.now - asked.since > CLOSE_LIMIT {
            return Err(format!("closing took {} ms", self.now - asked.since));
        }
        Ok(())
    }

    pub(super) fn published(&mut self, seq: Seq, status: JobStatus) -> Check {
        let before = self.jobs.insert(seq, status.clone());
        if before.is_some_and(|before| before.result.is_some()) {
            return Err(format!("command {seq} has more than one result"));
        }
        if status.started.is_some_and(|started| started.offset == UNKNOWN_END) {
            return Err(format!("command {seq} starts where nobody knows"));
        }
        let Some(result) = status.result else { return Ok(()) };
        if result.output.end == UNKNOWN_END {
            return Err(format!("command {seq} ends where nobody knows"));
        }
        if let Some((code, ended)) = self.told.get(&seq) {
            // A known code must not change, and an unknown one must stay unknown.
            let is_other = *code != result.exit_code && result.exit_code >= 0;
            if is_other && *ended == Ended::AtPrompt {
                return Err(format!("command {seq} had code {code}, now {}", result.exit_code));
            }
        }
        self.told.insert(seq, (result.exit_code, result.ended.clone()));
        let Some(text) = self.handed_over.get(&seq).copied() else { return Ok(()) };
        let code = Program { id: text, kind: TextKind::Nothing }.code();
        let truth = self.texts.entry(text).or_default();
        truth.is_told = true;
        if result.ended == Ended::AtPrompt && result.exit_code >= 0 {
            if truth.evaluated != 1 {
                return Err(format!("command {seq} has a code and was not evaluated"));
            }
            if result.exit_code != code && result.exit_code != 130 {
                return Err(format!("command {seq} has the code of another: {result:?}"));
            }
        }
        Ok(())
    }

    pub(super) fn began(&mut self, program: Program) -> Check {
        let truth = self.texts.entry(program.id).or_default();
        truth.evaluated += 1;
        if truth.evaluated > 1 {
            return Err(format!("text {} is evaluated twice", program.id));
        }
        if truth.is_told {
            return Err(format!("text {} is evaluated after its result was told", program.id));
        }
        Ok(())
    }

    /// Checks the properties that must hold at any time.
    pub(super) fn check(&self) -> Check {
        let too_late = self
            .calls
            .iter()
            .find(|(_, call)| call.is_close && self.now - call.since > CLOSE_LIMIT);
        match too_late {
            Some((call, _)) => Err(format!("{call:?} waits for the end of the shell")),
            None => Ok(()),
        }
    }

    pub(super) fn check_rest(&self) -> Check {
        if let Some(call) = self.calls.keys().next() {
            let is_run = self.calls[call].is_run;
            return Err(format!("{call:?} was never answered (runs a command: {is_run})"));
        }
        let Some(owner) = &self.owner else { return Ok(()) };
        if let Some((seq, _)) = self.jobs.iter().find(|(_, job)| job.result.is_none()) {
            return Err(format!("command {seq} has no result: {owner:?}"));
        }
        match owner.status().phase {
            Phase::Idle | Phase::Closed | Phase::Lost => Ok(()),
            phase => Err(format!("the machine rests in {phase:?}: {owner:?}")),
        }
    }
}
