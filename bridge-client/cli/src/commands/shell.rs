//! `shell …`: persistent shells, and the commands that run in them.

mod follow;

use std::io::{IsTerminal, stdout};
use std::os::unix::process::CommandExt;

use bridge_protocol::methods::MethodType;
use bridge_protocol::methods::shell::{
    self, AttachParams, ResizeParams, ShellInfo, ShellName, ShellRef, ShellState,
};
use serde_json::json;
use serde_json::value::RawValue;

use super::{Context, answer, decoded, done, shown, typed};
use crate::cli::shell::{self as cli, Verb};
use crate::failure::Failure;
use crate::output::{self, Style};

pub async fn run(context: Context, verb: Verb) -> Result<(), Failure> {
    match verb {
        Verb::Create(arguments) => create(context, arguments).await,
        Verb::List => list(context).await,
        Verb::Run(arguments) => follow::run(context, arguments).await,
        Verb::Wait(arguments) => follow::wait(context, arguments).await,
        Verb::Read(arguments) => read(context, arguments).await,
        Verb::Input { shell, no_enter, text } => {
            let params =
                shell::InputParams { shell: ShellName(shell.shell), text, enter: !no_enter };
            done::<shell::Input>(context, &params).await
        }
        Verb::Keys { shell, keys } => {
            let params = shell::KeysParams { shell: ShellName(shell.shell), keys };
            done::<shell::Keys>(context, &params).await
        }
        Verb::Signal { shell, signal } => self::signal(context, shell.shell, &signal).await,
        Verb::Resize { shell, columns, rows } => {
            let params = ResizeParams { shell: ShellName(shell.shell), columns, rows };
            done::<shell::Resize>(context, &params).await
        }
        Verb::Close { shell } => {
            done::<shell::Close>(context, &ShellRef { shell: ShellName(shell) }).await
        }
        Verb::Attach { shell, read_only } => attach(context, shell, read_only).await,
    }
}

/// Sends the name of the signal unchecked: the runtime knows the signals, and lists them in its error.
async fn signal(mut context: Context, shell: String, signal: &str) -> Result<(), Failure> {
    let name = signal.to_ascii_uppercase();
    let name = name.strip_prefix("SIG").unwrap_or(&name);
    let params = context.route.added_to(&json!({"shell": shell, "signal": name}));
    let client = context.client().await?;
    let answered =
        answer(client.call_raw(shell::Signal::NAME, Some(params), context.timeout)).await;
    client.close().await;
    let result: Box<RawValue> = answered?;
    match context.output.style {
        Style::Json => context.output.json(&result).await,
        Style::Terminal | Style::Pipe => Ok(()),
    }
}

async fn list(context: Context) -> Result<(), Failure> {
    shown::<shell::List>(context, &Default::default(), |result| {
        result.shells.iter().map(line).collect::<Vec<_>>().join("\n")
    })
    .await
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

async fn create(context: Context, arguments: cli::Create) -> Result<(), Failure> {
    let variable = |pair: &String| match pair.split_once('=') {
        Some((name, value)) => Ok((name.to_owned(), value.to_owned())),
        None => Err(Failure::Usage(format!("--env {pair:?} is no NAME=VALUE"))),
    };
    let params = shell::CreateParams {
        shell: arguments.shell.map(ShellName),
        cwd: arguments.cwd.map(|cwd| context.route.file(&cwd)),
        environment: arguments.environment.iter().map(variable).collect::<Result<_, _>>()?,
        columns: arguments.columns,
        rows: arguments.rows,
        ..shell::CreateParams::default()
    };
    shown::<shell::Create>(context, &params, |shell| shell.shell.0).await
}

async fn read(mut context: Context, arguments: cli::Read) -> Result<(), Failure> {
    let params = shell::ReadParams {
        shell: ShellName(arguments.shell.shell),
        from: arguments.from,
        bytes: arguments.bytes,
        raw: arguments.raw,
        colours: arguments.colours,
        ..shell::ReadParams::default()
    };
    let result = context.call::<shell::Read>(&params).await?;
    if context.output.style == Style::Json {
        return context.output.json(&result).await;
    }
    let read = typed::<shell::Read>(&result)?;
    match read.text {
        // The runtime has removed all escape sequences but colours.
        Some(text) if arguments.colours => {
            context.output.bytes(format!("{text}\n").as_bytes()).await?;
        }
        Some(text) if text.is_empty() => {}
        Some(text) => context.output.line(&text).await?,
        None => {
            let base64 = read.base64.unwrap_or_default();
            context.output.bytes(&decoded::<shell::Read>(&base64)?).await?;
        }
    }
    if read.more {
        output::note(&format!("(there is more: read on with --from {})", read.end));
    }
    Ok(())
}

async fn attach(mut context: Context, shell: String, read_only: bool) -> Result<(), Failure> {
    let params = AttachParams { shell: ShellName(shell), read_only };
    let result = context.call::<shell::Attach>(&params).await?;
    if context.output.style == Style::Json {
        return context.output.json(&result).await;
    }
    let attach = typed::<shell::Attach>(&result)?;
    let (Some((program, arguments)), true) =
        (attach.arguments.split_first(), stdout().is_terminal())
    else {
        return context.output.line(&attach.command).await;
    };
    // tmux takes over this terminal. `exec` returns only if tmux could not be started.
    let error = std::process::Command::new(program).args(arguments).env_remove("TMUX").exec();
    Err(Failure::File { path: program.into(), reason: format!("{error}: install tmux here") })
}
