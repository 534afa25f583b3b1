//! The conversation between an agent and one shell: which command runs there, and how much of its output the
//! agent has been told.
//!
//! On the usual path an action is one tool call: `shell/run` for a command, `shell/wait` for more of its output.

use std::path::PathBuf;

use bridge_protocol::methods::shell::{
    CommandEnding, CommandState, HowEnded, ShellName, WhyRunning,
};

use super::{
    ActionError, Completion, NothingRunning, Outcome, Run, RunObservation, ShellReport, Watch,
    agent_shell::{AgentShell, Answered},
    ask::{Ask, Patience, without_echo},
    commands::{self, Commands},
    error::reason,
};
use crate::tools::Tools;

#[cfg(test)]
mod tests;

#[derive(Debug)]
pub(super) struct Conversation<T> {
    shell: AgentShell<T>,
    /// The program that judges whether a text is a whole command.
    bash: PathBuf,
    /// Whether the shell was there when it was last used.
    is_open: bool,
    /// The command that runs, or has ended without the agent's knowing.
    current: Option<Current>,
    /// Number of the last command whose end the agent was told.
    last_told: u64,
    /// The beginning of a command that the agent is still typing. The shell knows nothing of it.
    unfinished: Option<String>,
    exit_code: i32,
    report: Option<ShellReport>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Current {
    /// Its number in the shell; none if the call that started it was given up before its answer came.
    number: Option<u64>,
    /// Offset in the log up to which the agent was told; none if it was told nothing.
    told: Option<u64>,
}

impl Current {
    /// A command of which the agent was told nothing.
    fn of(state: &CommandState) -> Self {
        Self { number: Some(state.command), told: None }
    }
}

/// The state of the current command.
enum Standing {
    /// It runs.
    Running(Box<CommandState>),
    /// It has ended. The text is what the agent has not been told, if it knows of the command.
    Ended(String),
    /// There is none.
    None,
}

impl<T: Tools> Conversation<T> {
    /// Starts nothing yet. A shell of this name that exists is used as it is.
    pub(super) fn new(tools: T, shell: ShellName, bash: PathBuf) -> Self {
        Self {
            shell: AgentShell { tools, name: shell },
            bash,
            is_open: false,
            current: None,
            last_told: 0,
            unfinished: None,
            exit_code: 0,
            report: None,
        }
    }

    /// A conversation with a shell that was just created.
    pub(super) fn with_new(tools: T, shell: ShellName, bash: PathBuf) -> Self {
        Self { is_open: true, ..Self::new(tools, shell, bash) }
    }

    /// Forgets everything about the shell, which has ended.
    pub(super) fn reset(&mut self) {
        let AgentShell { tools, name } = self.shell.clone();
        *self = Self::new(tools, name, std::mem::take(&mut self.bash));
    }

    /// Gets or creates the shell. The last command of one that somebody has left can be waited for, be it running
    /// or not.
    pub(super) async fn open(&mut self) -> Result<(), ActionError> {
        if self.is_open {
            return Ok(());
        }
        self.shell.open().await?;
        self.is_open = true;
        self.current = self.look(Current::default()).await?.as_ref().map(Current::of);
        Ok(())
    }

    /// Carries out one action. A shell that has ended meanwhile is started anew; nothing was run in it.
    pub(super) async fn run(
        &mut self,
        run: &Run,
        patience: Patience,
        watch: Watch<'_>,
    ) -> Result<RunObservation, ActionError> {
        let ask = Ask::new(run, patience, watch);
        match self.carry_out(&ask).await {
            Err(ActionError::NoShell(_)) => {
                self.reset();
                self.carry_out(&ask).await
            }
            done => done,
        }
    }

    async fn carry_out(&mut self, ask: &Ask<'_>) -> Result<RunObservation, ActionError> {
        self.open().await?;
        if let Some(beginning) = self.unfinished.take() {
            return self.go_on_typing(beginning, ask).await;
        }
        let is_for_command = ask.text.is_empty() || ask.run.input;
        if is_for_command && !self.find_command().await? {
            let wanted = match ask.text.is_empty() {
                true => NothingRunning::Output,
                false => NothingRunning::Input,
            };
            let ask = Ask { text: "", ..*ask };
            return Ok(self.answer(&ask, Outcome::NothingRunning(wanted), Told::default()));
        }
        let commands = commands::parse_with(&self.bash, ask.text).await;
        if let Commands::Several(commands) = commands {
            return Err(ActionError::SeveralCommands(commands));
        }
        if is_for_command {
            let is_sent = self.send(ask).await?;
            return self.wait(ask, is_sent).await;
        }
        let rest = match self.standing().await? {
            Standing::Running(state) => return Ok(self.busy(ask, &state)),
            Standing::Ended(rest) => rest,
            Standing::None => String::new(),
        };
        match (commands, ask.key) {
            (Commands::None, _) => Ok(self.answer(ask, self.unchanged(None), Told::default())),
            (Commands::Unfinished, _) => {
                self.unfinished = Some(ask.text.to_owned());
                Ok(self.answer(ask, ask.unfinished(), Told::default()))
            }
            (_, None) => self.start(ask.text, rest, ask).await,
            (_, Some('c')) => self.interrupt_prompt(rest, ask).await,
            // At the prompt the end of input means the end of the shell.
            (_, Some('d')) => self.start("exit", rest, ask).await,
            // Others would only disturb the line that nobody is editing.
            (_, Some(_)) => Ok(self.answer(ask, self.unchanged(ask.key), Told::default())),
        }
    }

    /// Answers as a shell does that waits for the rest of a command.
    async fn go_on_typing(
        &mut self,
        beginning: String,
        ask: &Ask<'_>,
    ) -> Result<RunObservation, ActionError> {
        let told = Told { continued: true, ..Told::default() };
        let outcome = match ask.key {
            _ if ask.text.is_empty() => ask.unfinished(),
            _ if !ask.run.input => Outcome::Busy,
            Some('c') => return self.interrupt_prompt(String::new(), ask).await,
            // The end of input ends the command as it is, which bash may complain about.
            Some('d') => return self.start(&beginning, String::new(), ask).await,
            Some(_) => ask.unfinished(),
            None => {
                let text = format!("{beginning}\n{}", ask.run.command.trim_end_matches('\n'));
                match commands::parse_with(&self.bash, &text).await {
                    Commands::Unfinished => self.unfinished = Some(text),
                    _ => return self.start(&text, String::new(), ask).await,
                }
                return Ok(self.answer(ask, ask.unfinished(), told));
            }
        };
        self.unfinished = Some(beginning);
        Ok(self.answer(ask, outcome, told))
    }

    /// Ctrl-C at the prompt: nothing ends, but the exit code is that of an interrupted line.
    async fn interrupt_prompt(
        &mut self,
        rest: String,
        ask: &Ask<'_>,
    ) -> Result<RunObservation, ActionError> {
        let mut answer = self.start("(exit 130)", rest, ask).await?;
        answer.content.push_str("^C");
        Ok(answer)
    }

    /// Runs a text in the shell. `rest` is the output of the former command that the agent has not been told.
    async fn start(
        &mut self,
        text: &str,
        rest: String,
        ask: &Ask<'_>,
    ) -> Result<RunObservation, ActionError> {
        if ask.watch.cancellation.is_cancelled() {
            return Err(ActionError::Cancelled);
        }
        // Known before the answer comes: the caller may give up the wait.
        self.current = Some(Current::default());
        let answered = self.shell.run(text, ask.wait_options(), ask.watch).await;
        if let Answered::Failed(error) = &answered
            && reason(error).as_deref() == Some("busy")
        {
            // Another client has started a command here.
            self.current = None;
            return match self.look(Current::default()).await? {
                Some(state) => Ok(self.busy(ask, &state)),
                None => Err(ActionError::Refused(error.message().to_owned())),
            };
        }
        let mut answer = self.observe(answered, true, ask)?;
        if !rest.is_empty() {
            answer.content = format!("{rest}\n{}", answer.content);
        }
        Ok(answer)
    }

    /// Waits for the current command.
    async fn wait(&mut self, ask: &Ask<'_>, is_sent: bool) -> Result<RunObservation, ActionError> {
        let Current { number, told } = self.current.unwrap_or_default();
        let answered = self.shell.wait(number, told, ask.wait_options(), ask.watch).await;
        self.observe(answered, is_sent, ask)
    }

    /// Makes an observation of what a call has answered.
    fn observe(
        &mut self,
        answered: Answered,
        is_sent: bool,
        ask: &Ask<'_>,
    ) -> Result<RunObservation, ActionError> {
        let state = match answered {
            Answered::State(state) => state,
            Answered::Cancelled(state) => {
                if let Some(CommandState { command, ending: Some(ending), .. }) = state {
                    self.take_ending(command, &ending);
                }
                return Err(ActionError::Cancelled);
            }
            Answered::Failed(error) => {
                if reason(&error).is_some() {
                    self.current = None;
                }
                return Err(ActionError::of_shell(error));
            }
            Answered::Lost(error) => return Err(error),
        };
        let mut told = self.tell(&state);
        let outcome = match &state.ending {
            Some(ending) => {
                self.take_ending(state.command, ending);
                check_alive(ending.ended, &self.shell.name).inspect_err(|_| self.reset())?;
                let completion = match ending.ended {
                    HowEnded::ShellExited => Completion::ShellReplaced,
                    _ if !is_sent => Completion::InputNotSent,
                    _ => Completion::Plain,
                };
                Outcome::Completed { exit_code: self.exit_code, key: ask.key, completion }
            }
            None => match (state.why, ask.patience.limit) {
                (Some(WhyRunning::Limit), Some(limit)) => Outcome::TimedOut(limit),
                _ => Outcome::Quiet(ask.patience.quiet),
            },
        };
        if ask.run.input && ask.key.is_none() {
            told.text = without_echo(told.text, ask.text);
        }
        Ok(self.answer(ask, outcome, told))
    }

    /// Remembers that the agent is told this output.
    fn tell(&mut self, state: &CommandState) -> Told {
        let output = &state.output;
        let current = self.current.get_or_insert_default();
        current.number = Some(state.command);
        Told {
            text: output.text.clone(),
            last_lines: output.last_lines,
            continued: current.told.replace(output.end).is_some(),
            lost: output.lost,
        }
    }

    fn busy(&mut self, ask: &Ask<'_>, state: &CommandState) -> RunObservation {
        let told = Told { lost: 0, ..self.tell(state) };
        self.answer(ask, Outcome::Busy, told)
    }

    /// Whether there is a command that can be waited for. One that another client runs here counts.
    async fn find_command(&mut self) -> Result<bool, ActionError> {
        match self.current {
            Some(Current { number: Some(_), .. }) => return Ok(true),
            Some(_) => {
                self.resolve().await?;
            }
            None => {
                let state = self.look(Current::default()).await?;
                self.current =
                    state.filter(|state| state.ending.is_none()).as_ref().map(Current::of);
            }
        }
        Ok(self.current.is_some())
    }

    /// Finds the number of a command whose call was given up, and forgets it if it was never run.
    async fn resolve(&mut self) -> Result<Option<CommandState>, ActionError> {
        let state = self.look(Current::default()).await?;
        let state = state.filter(|state| state.command > self.last_told);
        self.current = state.as_ref().map(Current::of);
        Ok(state)
    }

    /// Asks for the state of the current command.
    async fn standing(&mut self) -> Result<Standing, ActionError> {
        let state = match self.current {
            None => return Ok(Standing::None),
            Some(Current { number: None, .. }) => self.resolve().await?,
            Some(current) => self.look(current).await?,
        };
        Ok(match state {
            None => Standing::None,
            Some(state) if state.ending.is_none() => Standing::Running(Box::new(state)),
            Some(state) => {
                let is_known = self.current.is_some_and(|current| current.told.is_some());
                Standing::Ended(if is_known { state.output.text } else { String::new() })
            }
        })
    }

    /// The state of a command now, with the output that the agent has not been told.
    async fn look(&self, command: Current) -> Result<Option<CommandState>, ActionError> {
        self.shell.look(command.number, command.told).await
    }

    /// Types the text for the current command. Returns whether it was sent: a command that has ended gets nothing.
    async fn send(&self, ask: &Ask<'_>) -> Result<bool, ActionError> {
        if ask.text.is_empty() {
            return Ok(true);
        }
        let current = self.current.unwrap_or_default();
        if self.look(current).await?.is_none_or(|state| state.ending.is_some()) {
            return Ok(false);
        }
        match ask.key {
            Some(key) => self.shell.press(&format!("C-{key}")).await?,
            None => self.shell.type_text(ask.text).await?,
        }
        Ok(true)
    }

    /// Takes what a shell says of itself when a command has ended.
    fn take_ending(&mut self, command: u64, ending: &CommandEnding) {
        self.current = None;
        self.last_told = command;
        self.exit_code = ending.exit_code.unwrap_or(-1);
        let cwd = PathBuf::from(&ending.cwd);
        self.report = match (ending.ended, self.report.take()) {
            (HowEnded::AtPrompt, _) if !ending.machine.is_empty() => Some(ShellReport {
                cwd,
                user: ending.user.clone(),
                host: ending.machine.clone(),
                background_pid: ending.background_pid,
                python: ending.python.clone().map(PathBuf::from),
            }),
            // There is no shell to ask. What does not depend on it is still true.
            (_, former) => former.map(|former| ShellReport { cwd, background_pid: None, ..former }),
        };
    }

    fn unchanged(&self, key: Option<char>) -> Outcome {
        let completion = Completion::Plain;
        Outcome::Completed { exit_code: self.exit_code, key, completion }
    }

    fn answer(&self, ask: &Ask<'_>, outcome: Outcome, told: Told) -> RunObservation {
        let shell = match outcome {
            Outcome::Completed { .. } => self.report.clone(),
            _ => None,
        };
        RunObservation {
            command: ask.text.to_owned(),
            content: told.text,
            outcome,
            shell,
            continued: told.continued,
            last_lines: told.last_lines,
            lost: told.lost,
            hidden: ask.run.hidden,
        }
    }
}

/// A part of the output for the agent.
#[derive(Default)]
struct Told {
    text: String,
    /// The number of last lines that the text is, if there were more.
    last_lines: Option<usize>,
    /// Whether the agent was told a part before.
    continued: bool,
    /// Bytes that are in no part.
    lost: u64,
}

fn check_alive(ended: HowEnded, shell: &ShellName) -> Result<(), ActionError> {
    match ended {
        HowEnded::AtPrompt | HowEnded::ShellExited => Ok(()),
        HowEnded::ShellClosed => Err(ActionError::Gone(format!(
            "the shell {shell} was closed; run it again in a new one"
        ))),
        HowEnded::ServerGone => Err(ActionError::Gone(
            "the tmux server has ended, and the command with it; run it again".into(),
        )),
    }
}
