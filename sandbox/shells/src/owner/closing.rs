//! Closing a shell: on request, because no replacement can be started, or because the tmux server has ended.

use std::mem;

use super::{
    CallId, Effect, Moment, Owner, Reply, in_force,
    state::{
        AwaitingExitCode, Booting, Cleanup, Closing, LastActivity, Launching, Recorder, Running,
        State, Unreported,
    },
};
use crate::state::Ended;

impl Owner {
    /// Starts the cleanup of the shell. Callers that wait for a prompt get an error.
    pub(super) fn close(&mut self, ended: Ended, caller: Option<CallId>, reason: &str) {
        if let State::Closing(_) | State::Closed(_) = &self.state {
            return;
        }
        let phase = self.phase();
        let turned_away = Self::callers_without_prompt(&mut self.state);
        let recorder = match self.recorder {
            Recorder::Recording(recorder) => Some(recorder),
            Recorder::Starting { .. } | Recorder::Missing => None,
        };
        let unknown = |command| Unreported { command, exit_code: -1 };
        let closing = |unreported| {
            State::Closing(Closing {
                ended,
                phase,
                unreported,
                callers: caller.into_iter().collect(),
                progress: Cleanup::Awaited,
            })
        };
        let from = self.state.name();
        let before = mem::replace(&mut self.state, State::Closed(Ended::ShellClosed));
        self.state = closing(match before {
            State::Running(Running { command, .. }) => Some(unknown(command)),
            State::Launching(Launching { start, .. }) | State::Booting(Booting { start, .. }) => {
                start.predecessor
            }
            State::AwaitingExitCode(AwaitingExitCode { activity, .. }) => match activity {
                LastActivity::Running(command) => Some(unknown(command)),
                LastActivity::Starting { predecessor, .. } => predecessor,
                LastActivity::Idle => None,
            },
            _ => None,
        });
        self.trace_transition(from, reason);
        if in_force!(self, CloseAnswersTheWaiting) {
            for call in turned_away {
                let error = self.closed_error();
                self.answer(call, Err(error));
            }
        }
        self.effects.push(Effect::CleanUp { recorder });
    }

    /// Answers the callers because tmux does not respond. The cleanup continues in the background.
    pub(super) fn close_in_background(&mut self, at: Moment) {
        if let State::Closing(Closing { progress: Cleanup::Awaited, .. }) = &self.state
            && in_force!(self, CloseDoesNotWaitForTmux)
        {
            self.warn("tmux does not answer; closing the shell in the background", None);
            self.conclude(at);
        }
    }

    pub(super) fn cleaned_up(&mut self, at: Moment) {
        let State::Closing(closing) = &self.state else { return };
        let ended = closing.ended.clone();
        if closing.progress == Cleanup::Awaited {
            self.conclude(at);
        }
        self.transition(State::Closed(ended), "the cleanup is complete");
        self.publish();
        self.effects.push(Effect::Finish);
    }

    /// Reports the command that was running, and answers the callers that wait for the shell to close.
    fn conclude(&mut self, at: Moment) {
        let State::Closing(closing) = &mut self.state else { return };
        closing.progress = Cleanup::InBackground;
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
