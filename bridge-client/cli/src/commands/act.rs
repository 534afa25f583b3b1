//! `act …`: executes actions of an agent and prints their observations.

use bridge_protocol::methods::MethodType;
use bridge_protocol::methods::action::{Execute, ExecuteParams, Extras, Observation, OutputPiece};
use bridge_protocol::methods::shell::{self, ShellName, WaitOptions, WaitParams};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::signal::unix::{SignalKind, signal};

use super::screen::{Screen, complain_of_left_out, complain_of_lost};
use super::{CANCEL_WAIT, Context, GOES_ON, typed};
use crate::cli::act::{AgentShell, EditFile, Place, Read, Run, Verb};
use crate::cli::file::Edit;
use crate::failure::Failure;
use crate::output::{self, Style};
use crate::params;

pub async fn run(context: Context, command: Verb) -> Result<(), Failure> {
    match command {
        Verb::Run(arguments) => run_command(context, arguments).await,
        Verb::Ipython { shell, code } => {
            let code = text_or_stdin(code)?;
            let args = json!({"code": code, "include_extra": false});
            streamed(context, action("run_ipython", &shell, args)).await
        }
        Verb::RestartKernel { shell } => {
            let args = json!({"code": "", "restart": true, "include_extra": false});
            print_line(context, action("run_ipython", &shell, args)).await
        }
        Verb::Read(Read { place, start, end, view }) => {
            let mut args = json!({"path": place.path});
            if view {
                args["impl_source"] = json!("oh_aci");
            }
            for (name, line) in [("start", start), ("end", end)] {
                if let Some(line) = line {
                    args[name] = json!(line);
                }
            }
            print_content(context, action("read", &place.shell, args)).await
        }
        Verb::Write { shell, path, content } => {
            let content = match content {
                Some(content) => content,
                None => {
                    let text = params::read_stdin()?;
                    // The action itself adds a line end.
                    text.strip_suffix('\n').map(str::to_owned).unwrap_or(text)
                }
            };
            done(context, action("write", &shell, json!({"path": path, "content": content}))).await
        }
        Verb::Edit(EditFile { shell, edit }) => {
            print_line(context, action("edit", &shell, edit_args(edit))).await
        }
        Verb::Undo(Place { shell, path }) => {
            let args = json!({"path": path, "command": "undo_edit"});
            print_line(context, action("edit", &shell, args)).await
        }
        Verb::Mkdir(Place { shell, path }) => {
            done(context, action("mkdir", &shell, json!({"path": path}))).await
        }
        Verb::Rmdir(Place { shell, path }) => {
            done(context, action("rmdir", &shell, json!({"path": path}))).await
        }
        Verb::Rm { place: Place { shell, path }, recursive } => {
            let args = json!({"path": path, "recursive": recursive});
            done(context, action("rm", &shell, args)).await
        }
        Verb::Browse { shell, url } => {
            print_line(context, action("browse", &shell, json!({"url": url}))).await
        }
        Verb::Close { shell } => done(context, action("close", &shell, json!({}))).await,
    }
}

async fn run_command(context: Context, arguments: Run) -> Result<(), Failure> {
    let Run { shell, input, fresh, impatient, command } = arguments;
    let command = text_or_stdin(command)?;
    let args = json!({
        "command": command, "is_input": input, "is_static": fresh, "blocking": !impatient,
    });
    streamed(context, action("run", &shell, args)).await
}

fn edit_args(edit: Edit) -> Value {
    let Edit { path, old, insert_after, new } = edit;
    match (old, insert_after) {
        (Some(old), _) => {
            json!({"path": path, "command": "str_replace", "old_str": old, "new_str": new})
        }
        (None, Some(line)) => {
            json!({"path": path, "command": "insert", "insert_line": line, "new_str": new})
        }
        (None, None) => json!({"path": path, "command": "create", "file_text": new}),
    }
}

fn action(kind: &str, shell: &AgentShell, args: Value) -> ExecuteParams {
    let Value::Object(args) = args else { unreachable!("arguments are objects") };
    let shell = ShellName(shell.shell.clone());
    ExecuteParams { action: kind.to_owned(), args, shell, ..ExecuteParams::default() }
}

fn text_or_stdin(text: String) -> Result<String, Failure> {
    match &*text {
        "-" => params::read_stdin(),
        _ => Ok(text),
    }
}

/// Executes an action and prints nothing if it succeeds.
async fn done(mut context: Context, params: ExecuteParams) -> Result<(), Failure> {
    let result = context.call::<Execute>(&params).await?;
    show(&mut context, &result, |_| None).await
}

/// Executes an action and prints the content of its observation.
async fn print_content(mut context: Context, params: ExecuteParams) -> Result<(), Failure> {
    let result = context.call::<Execute>(&params).await?;
    show(&mut context, &result, |observation| Some(observation.content)).await
}

/// Executes an action and prints the content of its observation with a line end, for content that is not that of a file.
async fn print_line(mut context: Context, params: ExecuteParams) -> Result<(), Failure> {
    let result = context.call::<Execute>(&params).await?;
    let lines =
        |observation: Observation| observation.content.trim_end_matches('\n').to_owned() + "\n";
    show(&mut context, &result, |observation| Some(lines(observation))).await
}

/// Prints an observation: unchanged with `--json`, otherwise its content. Errors go to stderr.
async fn show(
    context: &mut Context,
    result: &RawValue,
    words: impl FnOnce(Observation) -> Option<String>,
) -> Result<(), Failure> {
    let observation = typed::<Execute>(result)?;
    let is_error = observation.observation == "error";
    match (context.output.style, is_error) {
        (Style::Json, _) => context.output.json(result).await?,
        (_, true) => output::complain(&observation.content),
        (_, false) => {
            if let Some(text) = words(observation) {
                context.output.text(&text).await?;
            }
        }
    }
    match is_error {
        true => Err(Failure::Command(1)),
        false => Ok(()),
    }
}

/// Executes a command or a cell and prints its output. Ctrl-C interrupts it.
async fn streamed(mut context: Context, mut params: ExecuteParams) -> Result<(), Failure> {
    params.stream = context.output.style != Style::Json;
    let raw = context.route.added_to(&params);
    let client = context.client().await?;
    let mut call = client.call_raw(Execute::NAME, Some(raw), context.timeout);
    let shell = params.shell.clone();
    let mut screen =
        Screen::new(&client, &context.route, params.shell, None, false, &mut context.output);
    let mut shown = Shown::Nothing;
    let mut interrupts = signal(SignalKind::interrupt()).map_err(Failure::Start)?;
    loop {
        let piece = tokio::select! {
            piece = call.progress() => piece,
            _ = interrupts.recv() => {
                call.cancel();
                // Whatever the answer is, the person has interrupted the action.
                let _ = tokio::time::timeout(CANCEL_WAIT, call.answer()).await;
                return Err(Failure::Interrupted);
            }
        };
        let Some(piece) = piece else { break };
        let Ok(piece) = serde_json::from_str::<OutputPiece>(piece.get()) else { continue };
        match (piece.start, piece.end) {
            (Some(start), Some(end)) => {
                screen.show_at(start, piece.text.as_bytes(), end.saturating_sub(start)).await?;
            }
            _ => screen.show(piece.text.as_bytes()).await?,
        }
        shown = match piece.text.as_bytes().last() {
            None => shown,
            Some(b'\n') => Shown::Lines,
            Some(_) => Shown::PartOfALine,
        };
    }
    let result = call.await?;
    show_the_rest(&mut screen).await?;
    screen.end().await?;
    client.close().await;
    let observation = typed::<Execute>(&result)?;
    let has_failed = observation.success == Some(false);
    let (exit_code, suffix, lost) = match observation.extras {
        Extras::Run { metadata, lost, .. } => (Some(metadata.exit_code), metadata.suffix, lost),
        Extras::Cell { lost, .. } => (None, String::new(), lost),
        _ => (None, String::new(), None),
    };
    let lost = lost.unwrap_or(0);
    show(&mut context, &result, |observation| match shown {
        // Earlier output of a command that is still running may have been shown already. The content has the new output.
        Shown::Nothing if exit_code == Some(-1) => Some(observation.content),
        Shown::PartOfALine if exit_code.is_none() => Some("\n".to_owned()),
        _ => None,
    })
    .await?;
    if context.output.style != Style::Json {
        match exit_code {
            Some(_) => complain_of_lost(lost, &shell),
            None => complain_of_left_out(lost),
        }
    }
    match exit_code {
        None if has_failed => Err(Failure::Command(1)),
        None | Some(0) => Ok(()),
        Some(-1) => {
            output::note(suffix.trim());
            Err(Failure::Command(GOES_ON))
        }
        Some(code) => Err(Failure::Command(u8::try_from(code).unwrap_or(1))),
    }
}

/// Reads the last pieces of output from the log, because they may have been dropped. If another command has been started
/// in the shell since, nothing is shown.
async fn show_the_rest(screen: &mut Screen<'_>) -> Result<(), Failure> {
    let Some(next) = screen.next else { return Ok(()) };
    let wait = WaitOptions { limit_ms: Some(0.0), output_bytes: Some(0), ..WaitOptions::default() };
    let params = WaitParams { shell: screen.shell.clone(), wait, ..WaitParams::default() };
    let output = screen.call::<shell::Wait>(&params).await?.output;
    match (output.start..=output.end).contains(&next) {
        true => screen.fill_up_to(output.end).await,
        false => Ok(()),
    }
}

/// How much of the output has been shown.
#[derive(Clone, Copy)]
enum Shown {
    Nothing,
    PartOfALine,
    Lines,
}
