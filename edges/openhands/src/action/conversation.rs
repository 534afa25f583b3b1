//! The talk between an agent and one shell: which command runs there and how much of its output the
//! agent has been told.

use std::{ops::Range, path::PathBuf, sync::Arc, time::Duration};

use super::{
    ActionError, Completion, NothingRunning, Outcome, Run, RunObservation, ShellReport, Watch,
    commands::{self, Commands},
    follow::follow,
    screen::{self, Extent, Shown},
};
use sandbox_shells::{
    CommandResult, Ended, Error, Job, Key, Log, Phase, Progress, Shell, ShellId, Wait, Why, aside,
    boundary::{LONGEST_SEQUENCE, whole_length},
};

/// Bytes that are shown without a thread for it, if they are mere lines.
const LITTLE: u64 = 32 << 10;

/// The key that interrupts a command.
const INTERRUPT: &str = "C-c";
/// How long a command may take to heed it before it is pressed again, and in the end before its caller is
/// told that the command was called off. Between two programs of one command a shell may lose the key.
const HEED: [Duration; 3] =
    [Duration::from_millis(300), Duration::from_millis(700), Duration::from_secs(1)];

/// How long a command may take to begin, before a Ctrl-C is pressed all the same.
const START: Duration = Duration::from_secs(2);

/// How long to wait for a command.
#[derive(Debug, Clone, Copy)]
pub(super) struct Patience {
    /// With silence. Not for commands that block.
    pub(super) quiet: Duration,
    /// In any case.
    pub(super) limit: Option<Duration>,
}

#[derive(Debug)]
pub(super) struct Conversation {
    session: Shell,
    /// The program that reads commands.
    bash: PathBuf,
    /// The command that runs, or has ended without the agent's knowing.
    current: Option<Current>,
    /// The beginning of a command that the agent is still typing. The shell knows nothing of it.
    unfinished: Option<String>,
    exit_code: i32,
    shell: Option<ShellReport>,
}

#[derive(Debug)]
struct Current {
    job: Job,
    /// The log's offset up to which the agent was told; none if it does not know of the command.
    told: Option<u64>,
}

impl Conversation {
    /// Begins with a new session, or goes on with one that somebody has left: its last command can
    /// be waited for, be it running or not.
    pub(super) fn new(session: Shell, bash: PathBuf) -> Self {
        let current = session.latest().map(Current::new);
        Self { session, bash, current, unfinished: None, exit_code: 0, shell: None }
    }

    pub(super) fn session(&self) -> &Shell {
        &self.session
    }

    pub(super) async fn run(
        &mut self,
        run: &Run,
        patience: Patience,
        watch: Watch<'_>,
    ) -> Result<RunObservation, ActionError> {
        let text = run.command.trim();
        let ask = Ask { run, text, key: control_key(text), patience, watch };
        self.find_lost_job();
        if let Some(beginning) = self.unfinished.take() {
            return self.go_on_typing(beginning, &ask).await;
        }
        if self.current.is_none() && (text.is_empty() || run.input) {
            let wanted =
                if text.is_empty() { NothingRunning::Output } else { NothingRunning::Input };
            let ask = Ask { text: "", ..ask };
            return Ok(self.answer(&ask, Outcome::NothingRunning(wanted), Told::nothing()));
        }
        let commands = commands::parse_with(&self.bash, text).await;
        if let Commands::Several(commands) = commands {
            return Err(ActionError::SeveralCommands(commands));
        }
        if let Some(current) = &mut self.current {
            let has_ended = current.job.result().is_some();
            if text.is_empty() || run.input {
                if !has_ended {
                    send(&self.session, &ask).await?;
                }
                let unsent = has_ended && !text.is_empty();
                return self.wait(&ask, unsent).await;
            }
            if !has_ended {
                let output = current.job.output()?;
                let told = current.tell(output, Extent::LastLines, End::Open).await?;
                return Ok(self.answer(&ask, Outcome::Busy, told));
            }
        }
        match (commands, ask.key) {
            (Commands::None, _) => Ok(self.answer(&ask, self.unchanged(None), Told::nothing())),
            (Commands::Unfinished, _) => {
                self.unfinished = Some(text.to_owned());
                Ok(self.answer(&ask, ask.unfinished(), Told::nothing()))
            }
            (_, None) => self.start(text, &ask).await,
            (_, Some('c')) => self.interrupt(&ask).await,
            // At the prompt the end of input means the end of the shell.
            (_, Some('d')) => self.start("exit", &ask).await,
            // Others would only disturb the line that nobody is editing.
            (_, Some(_)) => Ok(self.answer(&ask, self.unchanged(ask.key), Told::nothing())),
        }
    }

    /// What a shell does that waits for the rest of a command.
    async fn go_on_typing(
        &mut self,
        beginning: String,
        ask: &Ask<'_>,
    ) -> Result<RunObservation, ActionError> {
        let outcome = match ask.key {
            _ if ask.text.is_empty() => ask.unfinished(),
            _ if !ask.run.input => Outcome::Busy,
            Some('c') => return self.interrupt(ask).await,
            // The end of input ends the command as it is, which bash may complain about.
            Some('d') => return self.start(&beginning, ask).await,
            Some(_) => ask.unfinished(),
            None => {
                let text = format!("{beginning}\n{}", ask.run.command.trim_end_matches('\n'));
                match commands::parse_with(&self.bash, &text).await {
                    Commands::Unfinished => self.unfinished = Some(text),
                    _ => return self.start(&text, ask).await,
                }
                let told = Told { continued: true, ..Told::nothing() };
                return Ok(self.answer(ask, ask.unfinished(), told));
            }
        };
        self.unfinished = Some(beginning);
        let told = Told { continued: true, ..Told::nothing() };
        Ok(self.answer(ask, outcome, told))
    }

    /// Ctrl-C at the prompt: nothing ends, but the exit code is that of an interrupted line.
    async fn interrupt(&mut self, ask: &Ask<'_>) -> Result<RunObservation, ActionError> {
        let mut answer = self.start("(exit 130)", ask).await?;
        answer.content.push_str("^C");
        Ok(answer)
    }

    async fn start(&mut self, text: &str, ask: &Ask<'_>) -> Result<RunObservation, ActionError> {
        let rest = self.rest_of_former().await?;
        let job = self.session.run(text).await?;
        self.current = Some(Current::new(job));
        let mut answer = self.wait(ask, false).await?;
        if !rest.is_empty() {
            answer.content = format!("{rest}\n{}", answer.content);
        }
        Ok(answer)
    }

    /// What a command that was seen running has printed since, if it has ended in between.
    async fn rest_of_former(&mut self) -> Result<String, ActionError> {
        let rest = match &mut self.current {
            Some(former) if former.told.is_some() => {
                let output = former.job.output()?;
                former.tell(output, Extent::LastLines, End::Final).await?.shown.text
            }
            _ => String::new(),
        };
        self.current = None;
        Ok(rest)
    }

    async fn wait(&mut self, ask: &Ask<'_>, unsent: bool) -> Result<RunObservation, ActionError> {
        let current = self.current.as_mut().expect("there is a command to wait for");
        let quiet = (!ask.run.blocking).then_some(ask.patience.quiet);
        let wait = Wait { quiet, limit: ask.patience.limit, ..Wait::default() };
        let watching = async {
            match ask.watch.output {
                None => Ok(current.job.wait(wait).await?),
                Some(output) => follow(&current.job, current.told, wait, output).await,
            }
        };
        let progress = tokio::select! {
            progress = watching => progress?,
            () = ask.watch.call_off.called_off() => {
                if let Some(result) = interrupt(&current.job).await? {
                    self.take_report(&result);
                    self.current = None;
                }
                return Err(ActionError::Cancelled);
            }
        };
        let extent = if ask.run.hidden { Extent::Everything } else { Extent::LastLines };
        let (outcome, mut told) = match progress {
            Progress::Finished(result) => {
                check_alive(&result, self.session.id())?;
                let mut told = current.tell(result.output.clone(), extent, End::Final).await?;
                told.lost = result.lost;
                let completion = match result.ended {
                    Ended::ShellExited => Completion::ShellReplaced,
                    _ if unsent => Completion::InputNotSent,
                    _ => Completion::Plain,
                };
                self.take_report(&result);
                self.current = None;
                (Outcome::Completed { exit_code: result.exit_code, key: ask.key, completion }, told)
            }
            Progress::Running(running) => {
                let mut told = current.tell(running.output, extent, End::Open).await?;
                told.lost = running.lost;
                let outcome = match (running.why, ask.patience.limit) {
                    (Why::Limit, Some(limit)) => Outcome::TimedOut(limit),
                    _ => Outcome::Quiet(ask.patience.quiet),
                };
                (outcome, told)
            }
        };
        if ask.run.input && ask.key.is_none() {
            told.shown.text = without_echo(told.shown.text, ask.text);
        }
        Ok(self.answer(ask, outcome, told))
    }

    /// A command whose caller went away before it was told of it.
    fn find_lost_job(&mut self) {
        if self.current.is_none() && matches!(self.session.status().phase, Phase::Running(_)) {
            self.current = self.session.latest().map(Current::new);
        }
    }

    fn take_report(&mut self, result: &CommandResult) {
        self.exit_code = result.exit_code;
        let cwd = result.cwd.clone();
        self.shell = match (&result.ended, self.shell.take()) {
            (Ended::AtPrompt, _) if !result.host.is_empty() => Some(ShellReport {
                cwd,
                user: result.user.clone(),
                host: result.host.clone(),
                background_pid: result.background_pid,
                python: result.python.clone(),
            }),
            // There is nobody to ask; what does not depend on the shell is still true.
            (_, former) => former.map(|former| ShellReport { cwd, background_pid: None, ..former }),
        };
    }

    fn unchanged(&self, key: Option<char>) -> Outcome {
        let completion = Completion::Plain;
        Outcome::Completed { exit_code: self.exit_code, key, completion }
    }

    fn answer(&self, ask: &Ask<'_>, outcome: Outcome, told: Told) -> RunObservation {
        let shell = match outcome {
            Outcome::Completed { .. } => self.shell.clone(),
            _ => None,
        };
        RunObservation {
            command: ask.text.to_owned(),
            content: told.shown.text,
            outcome,
            shell,
            continued: told.continued,
            last_lines: told.shown.last_lines,
            lost: told.lost,
            hidden: ask.run.hidden,
        }
    }
}

/// What the agent wants now.
#[derive(Clone, Copy)]
struct Ask<'a> {
    run: &'a Run,
    /// The command without the blanks around it.
    text: &'a str,
    /// The control key that the text means.
    key: Option<char>,
    patience: Patience,
    watch: Watch<'a>,
}

impl Ask<'_> {
    fn unfinished(&self) -> Outcome {
        Outcome::Unfinished((!self.run.blocking).then_some(self.patience.quiet))
    }
}

/// Whether more output can follow.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Open,
    Final,
}

/// A part of the output for the agent.
struct Told {
    shown: Shown,
    /// Whether there was one before.
    continued: bool,
    /// Bytes that are in no part.
    lost: u64,
}

impl Told {
    fn nothing() -> Self {
        Self { shown: Shown { text: String::new(), last_lines: None }, continued: false, lost: 0 }
    }
}

impl Current {
    fn new(job: Job) -> Self {
        Self { job, told: None }
    }

    /// What the agent has not been told of this output.
    async fn tell(
        &mut self,
        output: Range<u64>,
        extent: Extent,
        end: End,
    ) -> Result<Told, ActionError> {
        let session = self.job.shell().clone();
        // Who asked before it was known where the output begins was told up to a place before that.
        let start = self.told.map_or(output.start, |told| told.max(output.start));
        let end = match end {
            End::Open => start.max(whole_end(session.log(), output.end)?),
            End::Final => output.end,
        };
        let little = match end.saturating_sub(start) {
            ..=LITTLE => {
                let bytes = session.log().read(start..end)?;
                screen::show_lines(&bytes, session.size(), extent)
            }
            _ => None,
        };
        let shown = match little {
            Some(shown) => shown,
            None => aside(move || screen::show(&session, start..end, extent)).await?,
        };
        // Not before somebody has the text: who is dropped here has told nothing.
        let continued = self.told.replace(end).is_some();
        Ok(Told { shown, continued, lost: 0 })
    }
}

/// The end of the part that does not end within a character or an escape sequence.
fn whole_end(log: &Log, end: u64) -> Result<u64, Error> {
    let start = end.saturating_sub(LONGEST_SEQUENCE as u64);
    Ok(start + whole_length(&log.read(start..end)?) as u64)
}

/// `C-c` and the like: exactly three characters.
fn control_key(text: &str) -> Option<char> {
    let mut rest = text.strip_prefix("C-")?.chars();
    rest.next()
        .filter(|key| key.is_ascii_alphabetic() && rest.next().is_none())
        .map(|key| key.to_ascii_lowercase())
}

async fn send(session: &Shell, ask: &Ask<'_>) -> Result<(), ActionError> {
    match ask.key {
        _ if ask.text.is_empty() => Ok(()),
        Some(key) => Ok(session.press([format!("C-{key}").parse::<Key>()?]).await?),
        // What the Enter key sends.
        None => Ok(session.type_bytes(ask.text.replace('\n', "\r") + "\r").await?),
    }
}

/// Presses Ctrl-C for a command, and returns its result if it heeds that.
async fn interrupt(job: &Job) -> Result<Option<Arc<CommandResult>>, ActionError> {
    // Before that, nobody would be there to hear it; but it may never be heard.
    if let Ok(started) = tokio::time::timeout(START, job.started()).await {
        started?;
    }
    for patience in HEED {
        job.shell().press([INTERRUPT.parse::<Key>()?]).await?;
        let wait = Wait { limit: Some(patience), ..Wait::default() };
        if let Progress::Finished(result) = job.wait(wait).await? {
            return Ok(Some(result));
        }
    }
    Ok(None)
}

/// The terminal shows what was typed; the agent knows it already.
fn without_echo(content: String, input: &str) -> String {
    match content.trim_start().strip_prefix(input) {
        Some(rest) if !input.is_empty() => rest.trim_start_matches([' ', '\n']).to_owned(),
        _ => content,
    }
}

fn check_alive(result: &Arc<CommandResult>, session: &ShellId) -> Result<(), ActionError> {
    match result.ended {
        Ended::AtPrompt | Ended::ShellExited => Ok(()),
        Ended::ShellClosed => Err(ActionError::Gone(format!(
            "the shell {session} was closed; run it again in a new one"
        ))),
        Ended::ServerGone => Err(ActionError::Gone(
            "the tmux server has ended, and the command with it; run it again".into(),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_three_characters_are_a_key() {
        assert_eq!(control_key("C-c"), Some('c'));
        assert_eq!(control_key("C-Z"), Some('z'));
        for text in ["C-", "C-cc", "c-c", "C-1", "Enter", "Up", "C- "] {
            assert_eq!(control_key(text), None, "{text}");
        }
    }

    #[test]
    fn the_echo_is_removed_if_it_comes_first() {
        assert_eq!(without_echo("John\nHello John".into(), "John"), "Hello John");
        assert_eq!(without_echo("Name: John\nHello".into(), "John"), "Name: John\nHello");
        assert_eq!(without_echo("  x".into(), ""), "  x");
    }
}
