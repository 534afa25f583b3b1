//! The current command of a shell: the one that is running, or has ended without the agent knowing.

use bridge_protocol::methods::shell::CommandState;

use super::CommandTracker;
use crate::action::ActionError;
use crate::tools::Tools;

/// The command that an agent can wait for in a shell.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Current {
    /// Its number in the shell; `None` if the call that started it was dropped before its answer
    /// came.
    pub(super) number: Option<u64>,
    /// Offset in the log up to which the agent has seen the output; `None` if it has seen nothing.
    pub(super) shown_to: Option<u64>,
}

impl Current {
    /// A command of which the agent has seen nothing.
    pub(super) fn of(state: &CommandState) -> Self {
        Self { number: Some(state.command), shown_to: None }
    }
}

/// The state of the current command.
pub(super) enum CurrentState {
    /// It is running.
    Running(Box<CommandState>),
    /// It has ended. The text is the output that the agent has not seen, if it knows of the
    /// command.
    Ended(String),
    /// There is no current command.
    None,
}

impl<T: Tools> CommandTracker<T> {
    /// Whether there is a command to wait for. A running command of another client counts.
    pub(super) async fn find_command(&mut self) -> Result<bool, ActionError> {
        match self.current {
            Some(Current { number: Some(_), .. }) => return Ok(true),
            Some(_) => {
                self.resolve().await?;
            }
            None => {
                let state = self.state_of(Current::default()).await?;
                self.current =
                    state.filter(|state| state.ending.is_none()).as_ref().map(Current::of);
            }
        }
        Ok(self.current.is_some())
    }

    /// Finds the number of a command whose call was dropped. Forgets the command if it was never
    /// run.
    async fn resolve(&mut self) -> Result<Option<CommandState>, ActionError> {
        let state = self.state_of(Current::default()).await?;
        let state = state.filter(|state| state.command > self.last_reported);
        self.current = state.as_ref().map(Current::of);
        Ok(state)
    }

    /// Asks for the state of the current command.
    pub(super) async fn current_state(&mut self) -> Result<CurrentState, ActionError> {
        let state = match self.current {
            None => return Ok(CurrentState::None),
            Some(Current { number: None, .. }) => self.resolve().await?,
            Some(current) => self.state_of(current).await?,
        };
        Ok(match state {
            None => CurrentState::None,
            Some(state) if state.ending.is_none() => CurrentState::Running(Box::new(state)),
            Some(state) => {
                let is_known = self.current.is_some_and(|current| current.shown_to.is_some());
                CurrentState::Ended(if is_known { state.output.text } else { String::new() })
            }
        })
    }

    /// The present state of a command, with the output that the agent has not seen.
    pub(super) async fn state_of(
        &self,
        command: Current,
    ) -> Result<Option<CommandState>, ActionError> {
        self.shell.command_state(command.number, command.shown_to).await
    }
}
