//! Runs commands, waits for them and reads their output.

use std::sync::Arc;
use std::time::Duration;

use base64::prelude::{BASE64_STANDARD, Engine};
use bridge_protocol::methods::shell::{
    self, AwaitedInput, CommandEnding, CommandOutput, CommandState, RunState, ShellAfterCommand,
    ShellName, Span, WaitOptions, WaitParams,
};
use bridge_protocol::{ErrorKind, WireError};
use sandbox_shells::{
    Colours, CommandResult, Ended, InputHint, Job, OnInput, Progress, Wait, WaitEnd, render,
    render_in_background, whole_lines,
};

use super::ShellService;
use super::follow::follow;
use super::output::{Extent, show, whole_end};
use crate::error::{self, invalid, with_reason};
use crate::{Caller, required};

/// Default for the bytes of output in a result.
const DEFAULT_SHOWN: u64 = 30_000;
/// Default for the bytes that one read returns.
const DEFAULT_READ: u64 = 64 << 10;
/// Limit for the bytes of one result or read.
const MAX_READ: u64 = 4 << 20;
/// Default for the bytes that are searched for the last lines. Their text fits into a message even
/// if every second character must be escaped.
const DEFAULT_SEARCHED: u64 = 7 << 20;
/// Limit for the bytes that are searched for the last lines.
const MAX_SEARCHED: u64 = 64 << 20;

impl ShellService {
    /// `shell/run`. When the future is dropped, the command goes on.
    pub async fn run(
        self: &Arc<Self>,
        params: shell::RunParams,
        caller: &Caller,
    ) -> Result<CommandState, WireError> {
        required(&params.command, "command")?;
        let wait = limits(&params.wait)?;
        let shell = self.get_or_create(&params.shell, params.create).await?;
        let job = shell.run(params.command).await.map_err(error::shell)?;
        wait_for(&job, wait, &params.wait, None, caller).await
    }

    /// `shell/wait`. When the future is dropped, the command goes on.
    pub async fn wait(
        &self,
        params: WaitParams,
        caller: &Caller,
    ) -> Result<CommandState, WireError> {
        let wait = limits(&params.wait)?;
        let shell = self.shell(&params.shell)?;
        let Some(job) = shell.latest() else {
            let reason = format!("no command has been run in shell {} yet", shell.id());
            return Err(with_reason(ErrorKind::NotFound, reason, "noSuchCommand"));
        };
        match params.command {
            Some(wanted) if wanted != job.seq() => {
                let reason = format!(
                    "the latest command of shell {} is {}, not {wanted}: only the latest can be awaited",
                    shell.id(),
                    job.seq()
                );
                Err(with_reason(ErrorKind::NotFound, reason, "noSuchCommand"))
            }
            _ => wait_for(&job, wait, &params.wait, params.from, caller).await,
        }
    }

    /// `shell/read`.
    pub async fn read(&self, params: shell::ReadParams) -> Result<shell::ReadResult, WireError> {
        let shell = self.shell(&params.shell)?;
        let range = match (params.from, shell.latest()) {
            (Some(from), _) => from..u64::MAX,
            (None, Some(job)) => job.output().map_err(error::shell)?,
            (None, None) => 0..u64::MAX,
        };
        let (start, colours) = (range.start, colours(params.colours));
        if let Some(lines) = params.lines {
            if params.raw {
                return Err(invalid("give either raw or lines: lines are text"));
            }
            let log_end = shell.log().len().map_err(error::shell)?;
            let end = range.end.min(log_end).max(start);
            let extent = last_lines(lines, params.bytes);
            let shown = show(&shell, start..end, extent, colours).await.map_err(error::shell)?;
            let (text, last_lines) = (Some(shown.text), shown.last_lines);
            let (more, base64) = (false, None);
            return Ok(shell::ReadResult { start, end, log_end, more, text, base64, last_lines });
        }
        let length = params.bytes.unwrap_or(DEFAULT_READ).min(MAX_READ);
        let end = range.end.min(start.saturating_add(length));
        render_in_background(move || {
            let log = shell.log();
            let mut bytes = log.read(start..end).map_err(error::shell)?;
            let log_end = log.len().map_err(error::shell)?;
            let whole_end = range.end.min(log_end);
            // Cut incomplete text between lines, so that the next read can continue there.
            if !params.raw && end < whole_end {
                match whole_lines(&bytes) {
                    0 => {}
                    whole => bytes.truncate(whole),
                }
            }
            let (text, base64) = match params.raw {
                true => (None, Some(BASE64_STANDARD.encode(&bytes))),
                false => (Some(render(&bytes, shell.size(), colours)), None),
            };
            let end = start + bytes.len() as u64;
            let (more, last_lines) = (end < whole_end, None);
            Ok(shell::ReadResult { start, end, log_end, more, text, base64, last_lines })
        })
        .await
    }
}

/// Waits for a command, streams its output meanwhile if `stream` is set, and returns its state.
async fn wait_for(
    job: &Job,
    wait: Wait,
    options: &WaitOptions,
    from: Option<u64>,
    caller: &Caller,
) -> Result<CommandState, WireError> {
    let progress = match options.stream {
        true => follow(job, wait, from, caller).await?,
        false => job.wait(wait).await.map_err(error::shell)?,
    };
    state(job, progress, options, from).await
}

async fn state(
    job: &Job,
    progress: Progress,
    options: &WaitOptions,
    from: Option<u64>,
) -> Result<CommandState, WireError> {
    let (range, lost) = match &progress {
        Progress::Finished(result) => (result.output.clone(), result.lost),
        Progress::Running(running) => (running.output.clone(), running.lost),
    };
    let shell = job.shell();
    // Before a command has begun, the start of its output is not known, and an earlier result may
    // end before it.
    let start = from.map_or(range.start, |from| from.clamp(range.start, range.end));
    let end = match &progress {
        Progress::Finished(_) => range.end,
        Progress::Running(_) => start.max(whole_end(shell.log(), range.end).map_err(error::shell)?),
    };
    let extent = match options.output_lines {
        Some(lines) => last_lines(lines, options.output_bytes),
        None => Extent::Ends { bytes: options.output_bytes.unwrap_or(DEFAULT_SHOWN).min(MAX_READ) },
    };
    let shown = show(shell, start..end, extent, colours(options.colours)).await;
    let shown = shown.map_err(error::shell)?;
    let output = CommandOutput {
        text: shown.text,
        start,
        end,
        omitted: shown.omitted.map(|range| Span { start: range.start, end: range.end }),
        last_lines: shown.last_lines,
        lost,
    };
    let (state, why, input, ending) = match &progress {
        Progress::Finished(result) => (RunState::Finished, None, None, Some(ending(result))),
        Progress::Running(running) => {
            let input = match running.input {
                InputHint::None => None,
                InputHint::Line => Some(AwaitedInput::Line),
                InputHint::Hidden => Some(AwaitedInput::Hidden),
                InputHint::Keys => Some(AwaitedInput::Keys),
            };
            let why = match running.reason {
                WaitEnd::Quiet => shell::WaitEnd::Quiet,
                WaitEnd::Limit => shell::WaitEnd::Limit,
                WaitEnd::Input => shell::WaitEnd::Input,
            };
            let state = match input {
                Some(_) => RunState::WaitingForInput,
                None => RunState::Running,
            };
            (state, Some(why), input, None)
        }
    };
    let shell = ShellName(shell.id().to_string());
    Ok(CommandState { shell, command: job.seq(), state, output, why, input, ending })
}

fn ending(result: &CommandResult) -> CommandEnding {
    let ended = match result.ended {
        Ended::AtPrompt => ShellAfterCommand::AtPrompt,
        Ended::ShellExited => ShellAfterCommand::ShellExited,
        Ended::ShellClosed => ShellAfterCommand::ShellClosed,
        Ended::ServerGone => ShellAfterCommand::ServerGone,
    };
    CommandEnding {
        exit_code: (result.exit_code >= 0).then_some(result.exit_code),
        ended,
        cwd: result.cwd.to_string_lossy().into_owned(),
        duration_ms: result.duration.as_micros() as f64 / 1000.0,
        background_pid: result.background_pid,
        python: result.python.as_ref().map(|path| path.to_string_lossy().into_owned()),
        user: result.user.clone(),
        machine: result.machine.clone(),
    }
}

fn last_lines(lines: usize, bytes: Option<u64>) -> Extent {
    Extent::LastLines { lines, bytes: bytes.unwrap_or(DEFAULT_SEARCHED).min(MAX_SEARCHED) }
}

fn limits(options: &WaitOptions) -> Result<Wait, WireError> {
    let duration = |ms: Option<f64>, name: &str| match ms {
        None => Ok(None),
        Some(ms) => Duration::try_from_secs_f64(ms / 1000.0)
            .map(Some)
            .map_err(|_| invalid(format!("{name} must be a number of milliseconds, 0 or more"))),
    };
    Ok(Wait {
        quiet: duration(options.quiet_ms, "quietMs")?,
        limit: duration(options.limit_ms, "limitMs")?,
        on_input: if options.return_on_input { OnInput::Return } else { OnInput::Wait },
    })
}

fn colours(keep: bool) -> Colours {
    if keep { Colours::Keep } else { Colours::Strip }
}
