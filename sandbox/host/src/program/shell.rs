//! `sandbox shell`: shells that stay when this program ends, with the same subcommands as
//! `bridge-client shell`.
//!
//! This process is the owner of the shells while the subcommand runs; without an owner they live on
//! for the lease.

mod arguments;
mod screen;

use std::io::{self, IsTerminal as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use base64::prelude::{BASE64_STANDARD, Engine as _};
use bridge_protocol::WireError;
use bridge_protocol::methods::shell::{
    self, AttachParams, CommandState, ResizeParams, RunState, ShellAfterCommand, ShellInfo,
    ShellName, ShellRef, ShellState, WaitOptions, WaitParams,
};
use sandbox_files::Workspace;
use sandbox_host::{Caller, ShellService};
use sandbox_shells::Config;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

use arguments::{Limits, Read, Run, ShellArgument, Verb, Wait};
use screen::Screen;

pub(super) use arguments::ShellCommand;

pub(super) const HELP: &str = "\
Examples:
  sandbox shell run 'cd src && make'
  sandbox shell run --shell server --limit 5 './serve'
  sandbox shell read --shell server
  sandbox shell keys --shell server C-c

Exit codes of run and wait: the exit code of the command; 124 if it is still running; 125 if it could not be run.";

/// Exit code if the command is still running, like that of `timeout`.
const STILL_RUNNING: u8 = 124;
/// Capacity of the queue of output pieces.
const PIECES: usize = 16;

pub(super) async fn run(command: ShellCommand) -> anyhow::Result<ExitCode> {
    let cwd = std::env::current_dir().context("finding the current directory")?;
    let config = command.shells.config(&command.root()?, command.shells.policy(&cwd))?;
    let config = Config { lease: Duration::from_secs(command.lease), ..config };
    let service = ShellService::open(config, cwd.clone(), Workspace::whole_file_system()).await?;
    let service = Arc::new(service);
    match command.verb {
        Verb::Create(arguments) => {
            let cwd = arguments.cwd.map(|directory| cwd.join(directory));
            let params = shell::CreateParams {
                shell: arguments.shell.map(ShellName),
                cwd: cwd.map(|cwd| cwd.to_string_lossy().into_owned()),
                environment: arguments.environment.into_iter().collect(),
                columns: arguments.columns,
                rows: arguments.rows,
                ..shell::CreateParams::default()
            };
            let created = service.create(params).await.map_err(into_anyhow)?;
            writeln!(io::stdout(), "{}", created.shell)?;
        }
        Verb::List => {
            let mut out = io::stdout().lock();
            for shell in service.list().await.map_err(into_anyhow)?.shells {
                writeln!(out, "{}", line(&shell))?;
            }
        }
        Verb::Run(arguments) => return run_command(&service, arguments).await,
        Verb::Wait(arguments) => return wait(&service, arguments).await,
        Verb::Read(arguments) => read(&service, arguments).await?,
        Verb::Input { shell, no_enter, text } => {
            let params = shell::InputParams { shell: name(shell), text, enter: !no_enter };
            service.input(params).await.map_err(into_anyhow)?;
        }
        Verb::Keys { shell, keys } => {
            service
                .keys(shell::KeysParams { shell: name(shell), keys })
                .await
                .map_err(into_anyhow)?;
        }
        Verb::Signal { shell, signal } => {
            let params = shell::SignalParams { shell: name(shell), signal };
            service.signal(params).await.map_err(into_anyhow)?;
        }
        Verb::Resize { shell, columns, rows } => {
            service
                .resize(ResizeParams { shell: name(shell), columns, rows })
                .await
                .map_err(into_anyhow)?;
        }
        Verb::Close { shell } => {
            service.close(ShellRef { shell: ShellName(shell) }).await.map_err(into_anyhow)?;
        }
        Verb::Attach { shell, read_only } => attach(&service, shell, read_only).await?,
        Verb::End => service.shut_down().await,
    }
    Ok(ExitCode::SUCCESS)
}

async fn run_command(service: &Arc<ShellService>, arguments: Run) -> anyhow::Result<ExitCode> {
    let command = match &*arguments.command {
        "-" => io::read_to_string(io::stdin()).context("reading the command from stdin")?,
        _ => arguments.command,
    };
    let (sender, pieces) = mpsc::channel(PIECES);
    let caller = Caller::new(sender);
    let shell = name(arguments.shell);
    let wait = options(&arguments.limits);
    let params = shell::RunParams { shell: shell.clone(), command, create: true, wait };
    let call = async move { service.run(params, &caller).await };
    follow(service, shell, call, pieces, arguments.limits.raw).await
}

async fn wait(service: &Arc<ShellService>, arguments: Wait) -> anyhow::Result<ExitCode> {
    let (sender, pieces) = mpsc::channel(PIECES);
    let caller = Caller::new(sender);
    let shell = name(arguments.shell);
    let (command, from) = (arguments.command, arguments.from);
    let wait = options(&arguments.limits);
    let params = WaitParams { shell: shell.clone(), command, from, wait };
    let call = async move { service.wait(params, &caller).await };
    follow(service, shell, call, pieces, arguments.limits.raw).await
}

fn options(limits: &Limits) -> WaitOptions {
    let milliseconds = |time: Duration| time.as_secs_f64() * 1000.0;
    WaitOptions {
        quiet_ms: limits.quiet.map(milliseconds),
        limit_ms: limits.limit.map(milliseconds),
        return_on_input: limits.return_on_input,
        stream: true,
        output_bytes: Some(0),
        ..WaitOptions::default()
    }
}

/// Writes the streamed output of a call, and exits with the exit code of its command. Ctrl-C
/// interrupts the command; a second Ctrl-C leaves it running.
async fn follow(
    service: &ShellService,
    shell: ShellName,
    call: impl Future<Output = Result<CommandState, WireError>>,
    mut pieces: mpsc::Receiver<Box<serde_json::value::RawValue>>,
    raw: bool,
) -> anyhow::Result<ExitCode> {
    let mut interrupts = signal(SignalKind::interrupt())?;
    let mut screen = Screen { line_ends: (!raw && !io::stdout().is_terminal()).then_some(false) };
    let mut interrupted = false;
    let mut call = Box::pin(call);
    let mut state = None;
    let mut streams = true;
    while streams || state.is_none() {
        tokio::select! {
            piece = pieces.recv(), if streams => match piece {
                Some(piece) => screen.show(&serde_json::from_str(piece.get())?)?,
                // The call has ended and closed its end of the channel.
                None => streams = false,
            },
            answer = &mut call, if state.is_none() => state = Some(answer.map_err(into_anyhow)?),
            _ = interrupts.recv() => {
                if std::mem::replace(&mut interrupted, true) {
                    eprintln!("sandbox: the command is still running: wait for it with `sandbox shell wait --shell {shell}`");
                    return Ok(ExitCode::from(130));
                }
                let keys = vec!["C-c".to_owned()];
                service.keys(shell::KeysParams { shell: shell.clone(), keys }).await.map_err(into_anyhow)?;
            }
        }
    }
    screen.finish()?;
    exit(&state.context("the command has no state")?)
}

fn exit(state: &CommandState) -> anyhow::Result<ExitCode> {
    let (shell, lost) = (&state.shell, state.output.lost);
    if lost > 0 {
        eprintln!(
            "sandbox: {lost} bytes of output were lost, because the log of shell {shell} or its disk is full: \
             close the shell to begin a new log"
        );
    }
    let Some(ending) = &state.ending else {
        let asks = match state.state {
            RunState::WaitingForInput => " and seems to wait for input",
            RunState::Running | RunState::Finished => "",
        };
        eprintln!(
            "sandbox: the command is still running{asks}: wait for it with `sandbox shell wait --shell {shell}`"
        );
        return Ok(ExitCode::from(STILL_RUNNING));
    };
    let problem = match (ending.exit_code, ending.ended) {
        (Some(code), _) => return Ok(ExitCode::from(u8::try_from(code).unwrap_or(1))),
        (None, ShellAfterCommand::AtPrompt) => {
            "its end is unknown, or it was interrupted before it began"
        }
        (None, ShellAfterCommand::ShellExited) => "its shell ended before it began",
        (None, ShellAfterCommand::ShellClosed) => "its shell was closed",
        (None, ShellAfterCommand::ServerGone) => "tmux ended, and its shell with it",
    };
    eprintln!("sandbox: the command in shell {shell} has no exit code: {problem}");
    Ok(ExitCode::FAILURE)
}

async fn read(service: &ShellService, arguments: Read) -> anyhow::Result<()> {
    let params = shell::ReadParams {
        shell: name(arguments.shell),
        from: arguments.from,
        bytes: arguments.bytes,
        raw: arguments.raw,
        colours: arguments.colours,
        ..shell::ReadParams::default()
    };
    let read = service.read(params).await.map_err(into_anyhow)?;
    let mut out = io::stdout().lock();
    match (read.text, read.base64) {
        (Some(text), _) if text.is_empty() => {}
        (Some(text), _) => writeln!(out, "{text}")?,
        (None, base64) => out.write_all(&BASE64_STANDARD.decode(base64.unwrap_or_default())?)?,
    }
    out.flush()?;
    if read.more {
        eprintln!("sandbox: there is more output: continue with --from {}", read.end);
    }
    Ok(())
}

async fn attach(service: &ShellService, shell: String, read_only: bool) -> anyhow::Result<()> {
    let params = AttachParams { shell: ShellName(shell), read_only };
    let attach = service.attach(params).await.map_err(into_anyhow)?;
    let (Some((program, arguments)), true) =
        (attach.arguments.split_first(), io::stdout().is_terminal())
    else {
        writeln!(io::stdout(), "{}", attach.command)?;
        return Ok(());
    };
    // tmux takes over this terminal. `exec` returns only if tmux could not be started.
    let error = std::process::Command::new(program).args(arguments).env_remove("TMUX").exec();
    Err(error).with_context(|| format!("starting {program}"))
}

fn line(shell: &ShellInfo) -> String {
    let state = match (shell.state, shell.command) {
        (ShellState::Running, Some(command)) => format!("running {command}"),
        (ShellState::Running, None) => "running".to_owned(),
        (ShellState::Starting, _) => "starting".to_owned(),
        (ShellState::Idle, _) => "idle".to_owned(),
        (ShellState::Closed, _) => "closed".to_owned(),
    };
    format!("{:<16}  {state:<12}  {:>8}  {}", shell.shell, shell.pid, shell.cwd)
}

fn name(argument: ShellArgument) -> ShellName {
    ShellName(argument.shell)
}

fn into_anyhow(error: WireError) -> anyhow::Error {
    anyhow!("{}", error.message())
}
