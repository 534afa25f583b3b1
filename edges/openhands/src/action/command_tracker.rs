//! Tracks the commands of an agent in one shell: which command is running, and how much of its
//! output the agent has seen.
//!
//! Usually an action is one tool call: `shell/run` for a command, `shell/wait` for more of its
//! output.

mod current;
#[cfg(test)]
mod tests;

use std::path::PathBuf;

use bridge_protocol::methods::shell::{
    CommandEnding, CommandState, ShellAfterCommand, ShellName, WaitEnd,
};

use super::{
    ActionError, Completion, Grammar, NothingRunning, Outcome, Run, RunObservation, ShellReport,
    Watch,
    agent_shell::{AgentShell, WaitResult},
    commands::Commands,
    error::reason,
    parsed_run::{ParsedRun, WaitLimits, without_echo},
};
use crate::tools::Tools;
use current::{Current, CurrentState};

#[derive(Debug)]
pub(super) struct CommandTracker<T> {
    shell: AgentShell<T>,
    grammar: Grammar,
    /// Whether the shell existed when it was last used.
    is_open: bool,
    /// The command that is running, or has ended without the agent knowing.
    current: Option<Current>,
    /// Number of the last command whose end was reported to the agent.
    last_reported: u64,
    /// The beginning of a command that the agent is still typing. The shell has not received it.
    unfinished: Option<String>,
    exit_code: i32,
    report: Option<ShellReport>,
}

impl<T: Tools> CommandTracker<T> {
    /// Does not start the shell. An existing shell of this name is used.
    pub(super) fn new(tools: T, shell: ShellName, grammar: Grammar) -> Self {
        Self {
            shell: AgentShell { tools, name: shell },
            grammar,
            is_open: false,
            current: None,
            last_reported: 0,
            unfinished: None,
            exit_code: 0,
            report: None,
        }
    }

    /// For a shell that was just created.
    pub(super) fn with_new(tools: T, shell: ShellName, grammar: Grammar) -> Self {
        Self { is_open: true, ..Self::new(tools, shell, grammar) }
    }

    /// Forgets everything about the shell, because it has ended.
    pub(super) fn reset(&mut self) {
        let AgentShell { tools, name } = self.shell.clone();
        *self = Self::new(tools, name, self.grammar.clone());
    }

    /// Gets or creates the shell. The last command of an existing shell can be waited for, even if
    /// it has ended.
    pub(super) async fn open(&mut self) -> Result<(), ActionError> {
        if self.is_open {
            return Ok(());
        }
        self.shell.open().await?;
        self.is_open = true;
        self.current = self.state_of(Current::default()).await?.as_ref().map(Current::of);
        Ok(())
    }

    /// Runs one action. If the shell has ended, nothing was run, so the action is run once more in
    /// a new shell.
    pub(super) async fn run(
        &mut self,
        run: &Run,
        limits: WaitLimits,
        watch: Watch<'_>,
    ) -> Result<RunObservation, ActionError> {
        let parsed = ParsedRun::new(run, limits, watch);
        match self.carry_out(&parsed).await {
            Err(ActionError::NoShell(_)) => {
                self.reset();
                self.carry_out(&parsed).await
            }
            done => done,
        }
    }

    async fn carry_out(&mut self, parsed: &ParsedRun<'_>) -> Result<RunObservation, ActionError> {
        self.open().await?;
        if let Some(beginning) = self.unfinished.take() {
            return self.continue_typing(beginning, parsed).await;
        }
        let is_for_command = parsed.text.is_empty() || parsed.run.input;
        if is_for_command && !self.find_command().await? {
            let wanted = match parsed.text.is_empty() {
                true => NothingRunning::Output,
                false => NothingRunning::Input,
            };
            let parsed = ParsedRun { text: "", ..*parsed };
            return Ok(self.answer(
                &parsed,
                Outcome::NothingRunning(wanted),
                ShownOutput::default(),
            ));
        }
        let commands = self.grammar.commands(parsed.text).await;
        if let Commands::Several(commands) = commands {
            return Err(ActionError::SeveralCommands(commands));
        }
        if is_for_command {
            let is_sent = self.send(parsed).await?;
            return self.wait(parsed, is_sent).await;
        }
        let rest = match self.current_state().await? {
            CurrentState::Running(state) => return Ok(self.busy(parsed, &state)),
            CurrentState::Ended(rest) => rest,
            CurrentState::None => String::new(),
        };
        match (commands, parsed.key) {
            (Commands::None, _) => {
                Ok(self.answer(parsed, self.unchanged(None), ShownOutput::default()))
            }
            (Commands::Unfinished, _) => {
                self.unfinished = Some(parsed.text.to_owned());
                Ok(self.answer(parsed, parsed.unfinished(), ShownOutput::default()))
            }
            (_, None) => self.start(parsed.text, rest, parsed).await,
            (_, Some('c')) => self.interrupt_prompt(rest, parsed).await,
            // At the prompt, Ctrl-D (end of input) ends the shell.
            (_, Some('d')) => self.start("exit", rest, parsed).await,
            // Other keys would only affect an empty command line.
            (_, Some(_)) => {
                Ok(self.answer(parsed, self.unchanged(parsed.key), ShownOutput::default()))
            }
        }
    }

    /// Handles input while a command is incomplete, like a shell that shows a continuation prompt.
    async fn continue_typing(
        &mut self,
        beginning: String,
        parsed: &ParsedRun<'_>,
    ) -> Result<RunObservation, ActionError> {
        let shown = ShownOutput { continued: true, ..ShownOutput::default() };
        let outcome = match parsed.key {
            _ if parsed.text.is_empty() => parsed.unfinished(),
            _ if !parsed.run.input => Outcome::Busy,
            Some('c') => return self.interrupt_prompt(String::new(), parsed).await,
            // End of input: run the text as it is. Bash may report a syntax error.
            Some('d') => return self.start(&beginning, String::new(), parsed).await,
            Some(_) => parsed.unfinished(),
            None => {
                let text = format!("{beginning}\n{}", parsed.run.command.trim_end_matches('\n'));
                match self.grammar.commands(&text).await {
                    Commands::Unfinished => self.unfinished = Some(text),
                    _ => return self.start(&text, String::new(), parsed).await,
                }
                return Ok(self.answer(parsed, parsed.unfinished(), shown));
            }
        };
        self.unfinished = Some(beginning);
        Ok(self.answer(parsed, outcome, shown))
    }

    /// Ctrl-C at the prompt: nothing is interrupted, but the exit code is that of an interrupted
    /// line.
    async fn interrupt_prompt(
        &mut self,
        rest: String,
        parsed: &ParsedRun<'_>,
    ) -> Result<RunObservation, ActionError> {
        let mut answer = self.start("(exit 130)", rest, parsed).await?;
        answer.content.push_str("^C");
        Ok(answer)
    }

    /// Runs a text in the shell. `rest` is output of the former command that the agent has not
    /// seen.
    async fn start(
        &mut self,
        text: &str,
        rest: String,
        parsed: &ParsedRun<'_>,
    ) -> Result<RunObservation, ActionError> {
        if parsed.watch.cancellation.is_cancelled() {
            return Err(ActionError::Cancelled);
        }
        // Set before the answer comes, because the caller may drop this future.
        self.current = Some(Current::default());
        let result = self.shell.run(text, parsed.wait_options(), parsed.watch).await;
        if let WaitResult::Failed(error) = &result
            && reason(error).as_deref() == Some("busy")
        {
            // Another client is running a command in this shell.
            self.current = None;
            return match self.state_of(Current::default()).await? {
                Some(state) => Ok(self.busy(parsed, &state)),
                None => Err(ActionError::Refused(error.message().to_owned())),
            };
        }
        let mut answer = self.observe(result, true, parsed)?;
        if !rest.is_empty() {
            answer.content = format!("{rest}\n{}", answer.content);
        }
        Ok(answer)
    }

    /// Waits for the current command.
    async fn wait(
        &mut self,
        parsed: &ParsedRun<'_>,
        is_sent: bool,
    ) -> Result<RunObservation, ActionError> {
        let Current { number, shown_to } = self.current.unwrap_or_default();
        let result = self.shell.wait(number, shown_to, parsed.wait_options(), parsed.watch).await;
        self.observe(result, is_sent, parsed)
    }

    /// Turns the result of a call into an observation.
    fn observe(
        &mut self,
        result: WaitResult,
        is_sent: bool,
        parsed: &ParsedRun<'_>,
    ) -> Result<RunObservation, ActionError> {
        let state = match result {
            WaitResult::State(state) => state,
            WaitResult::Cancelled(state) => {
                if let Some(CommandState { command, ending: Some(ending), .. }) = state {
                    self.record_ending(command, &ending);
                }
                return Err(ActionError::Cancelled);
            }
            WaitResult::Failed(error) => {
                if reason(&error).is_some() {
                    self.current = None;
                }
                return Err(ActionError::of_shell(error));
            }
            WaitResult::Lost(error) => return Err(error),
        };
        let mut shown = self.mark_shown(&state);
        let outcome = match &state.ending {
            Some(ending) => {
                self.record_ending(state.command, ending);
                check_alive(ending.ended, &self.shell.name).inspect_err(|_| self.reset())?;
                let completion = match ending.ended {
                    ShellAfterCommand::ShellExited => Completion::ShellReplaced,
                    _ if !is_sent => Completion::InputNotSent,
                    _ => Completion::Plain,
                };
                Outcome::Completed { exit_code: self.exit_code, key: parsed.key, completion }
            }
            None => match (state.why, parsed.limits.limit) {
                (Some(WaitEnd::Limit), Some(limit)) => Outcome::TimedOut(limit),
                _ => Outcome::Quiet(parsed.limits.quiet),
            },
        };
        if parsed.run.input && parsed.key.is_none() {
            shown.text = without_echo(shown.text, parsed.text);
        }
        Ok(self.answer(parsed, outcome, shown))
    }

    /// Records that the agent has seen this output.
    fn mark_shown(&mut self, state: &CommandState) -> ShownOutput {
        let output = &state.output;
        let current = self.current.get_or_insert_default();
        current.number = Some(state.command);
        ShownOutput {
            text: output.text.clone(),
            last_lines: output.last_lines,
            continued: current.shown_to.replace(output.end).is_some(),
            lost: output.lost,
        }
    }

    fn busy(&mut self, parsed: &ParsedRun<'_>, state: &CommandState) -> RunObservation {
        let shown = ShownOutput { lost: 0, ..self.mark_shown(state) };
        self.answer(parsed, Outcome::Busy, shown)
    }

    /// Types the text for the current command. Returns whether it was sent: a command that has
    /// ended gets no input.
    async fn send(&self, parsed: &ParsedRun<'_>) -> Result<bool, ActionError> {
        if parsed.text.is_empty() {
            return Ok(true);
        }
        let current = self.current.unwrap_or_default();
        if self.state_of(current).await?.is_none_or(|state| state.ending.is_some()) {
            return Ok(false);
        }
        match parsed.key {
            Some(key) => self.shell.press(&format!("C-{key}")).await?,
            None => self.shell.type_text(parsed.text).await?,
        }
        Ok(true)
    }

    /// Records the shell's report at the end of a command.
    fn record_ending(&mut self, command: u64, ending: &CommandEnding) {
        self.current = None;
        self.last_reported = command;
        self.exit_code = ending.exit_code.unwrap_or(-1);
        let cwd = PathBuf::from(&ending.cwd);
        self.report = match (ending.ended, self.report.take()) {
            (ShellAfterCommand::AtPrompt, _) if !ending.machine.is_empty() => Some(ShellReport {
                cwd,
                user: ending.user.clone(),
                machine: ending.machine.clone(),
                background_pid: ending.background_pid,
                python: ending.python.clone().map(PathBuf::from),
            }),
            // The shell has not reported. Keep what does not depend on it.
            (_, former) => former.map(|former| ShellReport { cwd, background_pid: None, ..former }),
        };
    }

    fn unchanged(&self, key: Option<char>) -> Outcome {
        let completion = Completion::Plain;
        Outcome::Completed { exit_code: self.exit_code, key, completion }
    }

    fn answer(
        &self,
        parsed: &ParsedRun<'_>,
        outcome: Outcome,
        shown: ShownOutput,
    ) -> RunObservation {
        let shell = match outcome {
            Outcome::Completed { .. } => self.report.clone(),
            _ => None,
        };
        RunObservation {
            command: parsed.text.to_owned(),
            content: shown.text,
            outcome,
            shell,
            continued: shown.continued,
            last_lines: shown.last_lines,
            lost: shown.lost,
            hidden: parsed.run.hidden,
        }
    }
}

/// A part of the output for the agent.
#[derive(Default)]
struct ShownOutput {
    text: String,
    /// The number of lines in the text, if there were more.
    last_lines: Option<usize>,
    /// Whether the agent has seen an earlier part.
    continued: bool,
    /// Bytes of the output that were lost.
    lost: u64,
}

fn check_alive(ended: ShellAfterCommand, shell: &ShellName) -> Result<(), ActionError> {
    match ended {
        ShellAfterCommand::AtPrompt | ShellAfterCommand::ShellExited => Ok(()),
        ShellAfterCommand::ShellClosed => Err(ActionError::Gone(format!(
            "the shell {shell} was closed: run the command again in a new one"
        ))),
        ShellAfterCommand::ServerGone => Err(ActionError::Gone(
            "the tmux server has ended, and the command with it: run it again".into(),
        )),
    }
}
