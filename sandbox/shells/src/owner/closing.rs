//! The end of a shell: by a caller, because no other shell can be started, or with the tmux server.

use std::mem;

use super::{
    CallId, Effect, Moment, Owner, Reply, keeps,
    state::{
        Booting, Burying, Closing, Corpse, Launching, Recorder, Running, State, Tidying, Unreported,
    },
};
use crate::state::Ended;

impl Owner {
    /// Begins to end everything that belongs to the shell. Callers that wait for a prompt are told that there is none.
    pub(super) fn close(&mut self, ended: Ended, caller: Option<CallId>, reason: &str) {
        if let State::Closing(_) | State::Over(_) = &self.state {
            return;
        }
        let phase = self.phase();
        let turned_away = Self::callers_without_prompt(&mut self.state);
        let recorder = match self.recorder {
            Recorder::Recording(recorder) => Some(recorder),
            Recorder::Ordered { .. } | Recorder::Missing => None,
        };
        let unknown = |command| Unreported { command, exit_code: -1 };
        let closing = |unreported| {
            State::Closing(Closing {
                ended,
                phase,
                unreported,
                callers: caller.into_iter().collect(),
                progress: Tidying::Awaited,
            })
        };
        let from = self.state.name();
        let before = mem::replace(&mut self.state, State::Over(Ended::ShellClosed));
        self.state = closing(match before {
            State::Running(Running { command, .. }) => Some(unknown(command)),
            State::Launching(Launching { start, .. }) | State::Booting(Booting { start, .. }) => {
                start.predecessor
            }
            State::Burying(Burying { corpse, .. }) => match corpse {
                Corpse::Running(command) => Some(unknown(command)),
                Corpse::Starting { predecessor, .. } => predecessor,
                Corpse::Idle => None,
            },
            _ => None,
        });
        self.trace_stage(from, reason);
        if keeps!(self, CloseAnswersTheWaiting) {
            for call in turned_away {
                let error = self.closed_error();
                self.answer(call, Err(error));
            }
        }
        self.effects.push(Effect::Tidy { recorder });
    }

    /// tmux does not answer: callers do not wait for it. What is left is ended in the background.
    pub(super) fn close_in_background(&mut self, at: Moment) {
        if let State::Closing(Closing { progress: Tidying::Awaited, .. }) = &self.state
            && keeps!(self, CloseDoesNotWaitForTmux)
        {
            self.warn("tmux does not answer; the shell is ended in the background", None);
            self.conclude(at);
        }
    }

    pub(super) fn tidied(&mut self, at: Moment) {
        let State::Closing(closing) = &self.state else { return };
        let ended = closing.ended.clone();
        if closing.progress == Tidying::Awaited {
            self.conclude(at);
        }
        self.go(State::Over(ended), "nothing is left of it");
        self.publish();
        self.effects.push(Effect::Finish);
    }

    /// Reports the command that was running, and answers the callers that wait for the end.
    fn conclude(&mut self, at: Moment) {
        let State::Closing(closing) = &mut self.state else { return };
        closing.progress = Tidying::InBackground;
        let callers = mem::take(&mut closing.callers);
        let (unreported, ended) = (closing.unreported.take(), closing.ended.clone());
        if let Some(Unreported { command, exit_code }) = unreported {
            self.report_without_shell(command, exit_code, ended, at.log_end, at.wall);
        }
        self.publish();
        for call in callers {
            self.answer(call, Ok(Reply::Done));
        }
    }
}
