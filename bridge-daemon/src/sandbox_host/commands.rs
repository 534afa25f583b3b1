//! Commands: run, await, follow, read what they printed.

use std::sync::Arc;
use std::time::Duration;

use base64::prelude::{BASE64_STANDARD, Engine};
use bridge_protocol::methods::shell::{
    self, AwaitedInput, CommandEnding, CommandOutput, CommandState, HowEnded, OutputProgress,
    RunState, ShellName, Span, WaitOptions, WaitParams, WhyRunning,
};
use bridge_protocol::{ErrorKind, WireError};
use sandbox_shells::{
    Colours, CommandResult, Ended, InputHint, Job, OnInput, Progress, Shell, View, Wait, Why,
    aside, render, render_lines, whole_lines,
};

use super::error::{self, with_reason};
use super::shells::ShellService;
use crate::in_process::{Caller, required};

/// Output that a result shows when the caller does not say.
const SHOWN: u64 = 30_000;
/// Output that one read returns when the caller does not say.
const READ: u64 = 64 << 10;
/// And at most.
const READ_MOST: u64 = 4 << 20;
/// Output in one piece of progress.
const PIECE: usize = 64 << 10;

impl ShellService {
    pub async fn run(
        self: &Arc<Self>,
        params: shell::RunParams,
        caller: &Caller,
    ) -> Result<CommandState, WireError> {
        required(&params.command, "command")?;
        let wait = limits(&params.wait)?;
        let session = self.session_for(&params.shell, params.create).await?;
        let job = session.run(params.command).await.map_err(error::shell)?;
        follow(&job, wait, &params.wait, None, caller).await
    }

    pub async fn wait(
        &self,
        params: WaitParams,
        caller: &Caller,
    ) -> Result<CommandState, WireError> {
        let wait = limits(&params.wait)?;
        let session = self.session(&params.shell).await?;
        let Some(job) = session.latest() else {
            let reason = format!("no command has been run in shell {} yet", session.id());
            return Err(with_reason(ErrorKind::NotFound, reason, "noSuchCommand"));
        };
        match params.command {
            Some(wanted) if wanted != job.seq() => {
                let reason = format!(
                    "the latest command of shell {} is {}, not {wanted}: only the latest can be awaited",
                    session.id(),
                    job.seq()
                );
                Err(with_reason(ErrorKind::NotFound, reason, "noSuchCommand"))
            }
            _ => follow(&job, wait, &params.wait, params.from, caller).await,
        }
    }

    pub async fn read_output(
        &self,
        params: shell::ReadParams,
    ) -> Result<shell::ReadResult, WireError> {
        let session = self.session(&params.shell).await?;
        let range = match (params.from, session.latest()) {
            (Some(from), _) => from..u64::MAX,
            (None, Some(job)) => job.output().map_err(error::shell)?,
            (None, None) => 0..u64::MAX,
        };
        let start = range.start;
        let length = params.bytes.unwrap_or(READ).min(READ_MOST);
        let end = range.end.min(start.saturating_add(length));
        aside(move || {
            let log = session.log();
            let mut bytes = log.read(start..end).map_err(error::shell)?;
            let log_end = log.len().map_err(error::shell)?;
            let whole_end = range.end.min(log_end);
            // Text that goes on is cut between lines, so that it can be read on from there.
            if !params.raw && end < whole_end {
                match whole_lines(&bytes) {
                    0 => {}
                    whole => bytes.truncate(whole),
                }
            }
            let (text, base64) = match params.raw {
                true => (None, Some(BASE64_STANDARD.encode(&bytes))),
                false => (Some(render(&bytes, session.size(), colours(params.colours))), None),
            };
            let end = start + bytes.len() as u64;
            Ok(shell::ReadResult { start, end, log_end, more: end < whole_end, text, base64 })
        })
        .await
    }
}

/// Waits for a command, shows its output on the way if asked to, and tells what it came to.
async fn follow(
    job: &Job,
    wait: Wait,
    options: &WaitOptions,
    from: Option<u64>,
    caller: &Caller,
) -> Result<CommandState, WireError> {
    let progress = match options.stream {
        true => stream(job, wait, from, caller).await,
        false => job.wait(wait).await,
    };
    state(job, progress.map_err(error::shell)?, options).await
}

/// Every piece of output goes out before the answer, which tells where the output ends.
async fn stream(
    job: &Job,
    wait: Wait,
    from: Option<u64>,
    caller: &Caller,
) -> sandbox_shells::Result<Progress> {
    let waiting = job.wait(wait);
    tokio::pin!(waiting);
    let mut ended = None;
    tokio::select! {
        progress = &mut waiting => match progress? {
            running @ Progress::Running(_) => return Ok(running),
            finished @ Progress::Finished(_) => ended = Some(finished),
        },
        started = job.started() => started?,
    }
    let mut offset = match from {
        Some(offset) => offset,
        None => job.output()?.start,
    };
    let mut output = job.follow_from(offset)?;
    let mut buffer = vec![0; PIECE];
    loop {
        let read = tokio::select! {
            read = output.next(&mut buffer) => read,
            progress = &mut waiting, if ended.is_none() => {
                match progress? {
                    running @ Progress::Running(_) => return Ok(running),
                    finished @ Progress::Finished(_) => ended = Some(finished),
                }
                continue;
            }
        };
        match read? {
            0 => break,
            read => {
                let base64 = BASE64_STANDARD.encode(&buffer[..read]);
                caller.progress(&OutputProgress { offset, base64 });
                offset += read as u64;
            }
        }
    }
    match ended {
        Some(ended) => Ok(ended),
        None => waiting.await,
    }
}

async fn state(
    job: &Job,
    progress: Progress,
    options: &WaitOptions,
) -> Result<CommandState, WireError> {
    let (range, lost) = match &progress {
        Progress::Finished(result) => (result.output.clone(), result.lost),
        Progress::Running(running) => (running.output.clone(), running.lost),
    };
    let shown = options.output_bytes.unwrap_or(SHOWN).min(READ_MOST);
    let session = job.shell().clone();
    let view = session.log().view(range.clone(), shown).map_err(error::shell)?;
    let omitted = (!view.omitted.is_empty())
        .then_some(Span { start: view.omitted.start, end: view.omitted.end });
    let text = text(&session, view, colours(options.colours)).await;
    let output = CommandOutput { text, start: range.start, end: range.end, omitted, lost };
    let (state, why, input, ending) = match &progress {
        Progress::Finished(result) => (RunState::Finished, None, None, Some(ending(result))),
        Progress::Running(running) => {
            let input = match running.input {
                InputHint::None => None,
                InputHint::Line => Some(AwaitedInput::Line),
                InputHint::Hidden => Some(AwaitedInput::Hidden),
                InputHint::Keys => Some(AwaitedInput::Keys),
            };
            let why = match running.why {
                Why::Quiet => WhyRunning::Quiet,
                Why::Limit => WhyRunning::Limit,
                Why::Input => WhyRunning::Input,
            };
            let state = match input {
                Some(_) => RunState::WaitingForInput,
                None => RunState::Running,
            };
            (state, Some(why), input, None)
        }
    };
    let shell = ShellName(job.shell().id().to_string());
    Ok(CommandState { shell, command: job.seq(), state, output, why, input, ending })
}

fn ending(result: &CommandResult) -> CommandEnding {
    let ended = match result.ended {
        Ended::AtPrompt => HowEnded::AtPrompt,
        Ended::ShellExited => HowEnded::ShellExited,
        Ended::ShellClosed => HowEnded::ShellClosed,
        Ended::ServerGone => HowEnded::ServerGone,
    };
    CommandEnding {
        exit_code: (result.exit_code >= 0).then_some(result.exit_code),
        ended,
        cwd: result.cwd.to_string_lossy().into_owned(),
        duration_ms: result.duration.as_micros() as f64 / 1000.0,
        background_pid: result.background_pid,
        python: result.python.as_ref().map(|path| path.to_string_lossy().into_owned()),
        user: result.user.clone(),
        machine: result.host.clone(),
    }
}

/// What a terminal would show, with a line for what was left out.
async fn text(session: &Shell, view: View, colours: Colours) -> String {
    let size = session.size();
    // A thread costs more than showing a little, and much would hold everybody up.
    if view.omitted.is_empty()
        && view.head.len() as u64 <= SHOWN
        && let Some(text) = render_lines(&view.head, size, colours)
    {
        return text;
    }
    aside(move || {
        let mut text = render(&view.head, size, colours);
        if !view.omitted.is_empty() {
            let (start, end) = (view.omitted.start, view.omitted.end);
            text.push_str(&format!(
                "\n[{} bytes left out: shell/read has them, from {start} to {end}]\n",
                end - start
            ));
            text.push_str(&render(&view.tail, size, colours));
        }
        text
    })
    .await
}

fn limits(options: &WaitOptions) -> Result<Wait, WireError> {
    let duration = |ms: Option<f64>, name: &str| match ms {
        None => Ok(None),
        Some(ms) => Duration::try_from_secs_f64(ms / 1000.0).map(Some).map_err(|_| {
            let reason = format!("{name} must be a number of milliseconds, 0 or more");
            with_reason(ErrorKind::InvalidParams, reason, "invalid")
        }),
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
