//! `shell run` and `shell wait`: print a command's output while it runs, and end with its exit code.
//!
//! The printed output has no gaps: see [`Screen`].

use bridge_client::Call;
use bridge_protocol::methods::MethodType;
use bridge_protocol::methods::shell::{
    self, CommandState, OutputProgress, RunState, ShellAfterCommand, ShellName, WaitOptions,
    WaitParams,
};
use serde_json::value::RawValue;
use tokio::signal::unix::{SignalKind, signal};

use crate::cli::shell::{Limits, Run, Wait};
use crate::commands::screen::{Screen, complain_of_lost};
use crate::commands::{Context, GOES_ON, decoded, typed};
use crate::failure::Failure;
use crate::output::{self, Style};
use crate::params;

pub async fn run(context: Context, arguments: Run) -> Result<(), Failure> {
    let command = match &*arguments.command {
        "-" => params::read_stdin()?,
        _ => arguments.command,
    };
    let shell = ShellName(arguments.shell.shell);
    let wait = options(&context, &arguments.limits);
    let params = shell::RunParams { shell: shell.clone(), command, create: true, wait };
    let params = context.route.added_to(&params);
    follow::<shell::Run>(context, shell, None, params, arguments.limits.raw).await
}

pub async fn wait(context: Context, arguments: Wait) -> Result<(), Failure> {
    let shell = ShellName(arguments.shell.shell);
    let wait = options(&context, &arguments.limits);
    let (command, from) = (arguments.command, arguments.from);
    let params = WaitParams { shell: shell.clone(), command, from, wait };
    let params = context.route.added_to(&params);
    follow::<shell::Wait>(context, shell, from, params, arguments.limits.raw).await
}

fn options(context: &Context, limits: &Limits) -> WaitOptions {
    let milliseconds = |time: std::time::Duration| time.as_secs_f64() * 1000.0;
    WaitOptions {
        quiet_ms: limits.quiet.map(milliseconds),
        limit_ms: limits.limit.map(milliseconds),
        return_on_input: limits.return_on_input,
        stream: context.output.style != Style::Json,
        colours: limits.colours,
        ..WaitOptions::default()
    }
}

async fn follow<M: MethodType<Result = CommandState>>(
    mut context: Context,
    shell: ShellName,
    from: Option<u64>,
    params: Box<RawValue>,
    raw: bool,
) -> Result<(), Failure> {
    let client = context.client().await?;
    let mut call = client.call_raw(M::NAME, Some(params), context.timeout);
    let mut screen = Screen::new(&client, &context.route, shell, from, raw, &mut context.output);
    show_pieces(&mut screen, &mut call).await?;
    let result = call.await?;
    let state = typed::<M>(&result)?;
    if screen.output.style == Style::Json {
        screen.output.json(&result).await?;
    } else {
        finish(&mut screen, &state).await?;
        complain_of_lost(state.output.lost, &state.shell);
    }
    client.close().await;
    exit(&state)
}

/// Prints pieces of output until there are no more. Ctrl-C interrupts the command; a second Ctrl-C leaves it running.
async fn show_pieces(
    screen: &mut Screen<'_>,
    call: &mut Call<Box<RawValue>>,
) -> Result<(), Failure> {
    let mut interrupts = signal(SignalKind::interrupt()).map_err(Failure::Start)?;
    let mut interrupted = false;
    loop {
        let piece = tokio::select! {
            piece = call.progress() => piece,
            _ = interrupts.recv() => {
                if std::mem::replace(&mut interrupted, true) {
                    call.cancel();
                    output::note(&goes_on("", &screen.shell));
                    return Err(Failure::Interrupted);
                }
                let keys = vec!["C-c".to_owned()];
                let params = shell::KeysParams { shell: screen.shell.clone(), keys };
                screen.call::<shell::Keys>(&params).await?;
                continue;
            }
        };
        let Some(piece) = piece else { return Ok(()) };
        if let Ok(piece) = serde_json::from_str::<OutputProgress>(piece.get()) {
            let bytes = decoded::<shell::Run>(&piece.base64)?;
            screen.show_at(piece.offset, &bytes, bytes.len() as u64).await?;
        }
    }
}

/// Prints the output that the answer mentions and that has not been printed yet.
async fn finish(screen: &mut Screen<'_>, state: &CommandState) -> Result<(), Failure> {
    let log_is_there = state.ending.as_ref().is_none_or(|ending| {
        matches!(ending.ended, ShellAfterCommand::AtPrompt | ShellAfterCommand::ShellExited)
    });
    if log_is_there {
        screen.next.get_or_insert(state.output.start);
        screen.fill_up_to(state.output.end).await?;
    }
    screen.end().await
}

fn goes_on(asks: &str, shell: &ShellName) -> String {
    format!("(the command goes on{asks}; see `bridge-client shell wait --shell {shell}`)")
}

fn exit(state: &CommandState) -> Result<(), Failure> {
    let shell = &state.shell;
    let Some(ending) = &state.ending else {
        let asks = match state.state {
            RunState::WaitingForInput => " and seems to wait for input",
            RunState::Running | RunState::Finished => "",
        };
        output::note(&goes_on(asks, shell));
        return Err(Failure::Command(GOES_ON));
    };
    match ending.exit_code {
        Some(0) => Ok(()),
        Some(code) => Err(Failure::Command(u8::try_from(code).unwrap_or(1))),
        None => {
            let problem = match ending.ended {
                ShellAfterCommand::AtPrompt => {
                    "its end is not known, or it was interrupted before it began"
                }
                ShellAfterCommand::ShellExited => "its shell has ended before it began",
                ShellAfterCommand::ShellClosed => "its shell was closed",
                ShellAfterCommand::ServerGone => "tmux has ended, and its shell with it",
            };
            output::complain(&format!("the command in shell {shell} has no exit code: {problem}"));
            Err(Failure::Command(1))
        }
    }
}
