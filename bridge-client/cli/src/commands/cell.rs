//! `cell …`: Python code in IPython.
//!
//! On a terminal, the output appears as it arrives, with its colours. A pipe gets the plain text of the result, which is
//! complete even if pieces were dropped because this program reads slowly.

use bridge_client::Call;
use bridge_protocol::methods::MethodType;
use bridge_protocol::methods::cell::{
    self, CellEnding, CellProgress, NewKernel, RunParams, RunResult,
};
use bridge_protocol::methods::shell::{ShellName, ShellRef};
use serde_json::value::RawValue;
use tokio::signal::unix::{SignalKind, signal};

use super::screen::complain_of_left_out;
use super::{CANCEL_WAIT, Context, GOES_ON, done, typed};
use crate::cli::cell::{Run, Verb};
use crate::failure::Failure;
use crate::output::{self, Output, Style};
use crate::params;

pub async fn run(context: Context, verb: Verb) -> Result<(), Failure> {
    match verb {
        Verb::Run(arguments) => run_cell(context, arguments).await,
        Verb::Restart { shell } => {
            done::<cell::Restart>(context, &ShellRef { shell: ShellName(shell.shell) }).await
        }
    }
}

async fn run_cell(mut context: Context, arguments: Run) -> Result<(), Failure> {
    let code = match &*arguments.code {
        "-" => params::read_stdin()?,
        _ => arguments.code,
    };
    let params = RunParams {
        shell: ShellName(arguments.shell.shell),
        code,
        restart: arguments.restart,
        limit_ms: arguments.limit.map(|limit| limit.as_secs_f64() * 1000.0),
        stream: context.output.style == Style::Terminal,
    };
    let params = context.route.added_to(&params);
    let client = context.client().await?;
    let mut call = client.call_raw(cell::Run::NAME, Some(params), context.timeout);
    let shown = show_pieces(&mut call, &mut context.output).await?;
    let result = call.await?;
    client.close().await;
    let ran = typed::<cell::Run>(&result)?;
    match context.output.style {
        Style::Json => context.output.json(&result).await?,
        Style::Terminal | Style::Pipe => finish(&mut context.output, &shown, &ran).await?,
    }
    exit(ran.ended)
}

/// Prints pieces of output until there are no more, and returns them. Ctrl-C cancels the request, which interrupts the
/// cell.
async fn show_pieces(
    call: &mut Call<Box<RawValue>>,
    output: &mut Output,
) -> Result<String, Failure> {
    let mut interrupts = signal(SignalKind::interrupt()).map_err(Failure::Start)?;
    let mut shown = String::new();
    loop {
        let piece = tokio::select! {
            piece = call.progress() => piece,
            _ = interrupts.recv() => {
                call.cancel();
                let confirmed = async { while call.progress().await.is_some() {} };
                // The cancel has been sent. If the confirmation takes longer, do not wait for it.
                let _ = tokio::time::timeout(CANCEL_WAIT, confirmed).await;
                return Err(Failure::Interrupted);
            }
        };
        let Some(piece) = piece else { return Ok(shown) };
        if let Ok(CellProgress { text }) = serde_json::from_str(piece.get()) {
            output.bytes(text.as_bytes()).await?;
            shown.push_str(&text);
        }
    }
}

async fn finish(output: &mut Output, shown: &str, ran: &RunResult) -> Result<(), Failure> {
    if shown.is_empty() {
        output.text(&ran.text).await?;
    } else if !shown.ends_with('\n') {
        output.line("").await?;
    }
    complain_of_left_out(ran.omitted_bytes);
    match ran.new_kernel {
        Some(NewKernel::WasStuck) => output::note(
            "(this cell ran in a new kernel, without earlier variables: an earlier cell could not be interrupted)",
        ),
        Some(NewKernel::Restarted) | None => {}
    }
    if !ran.pictures.is_empty() {
        output::note(&format!("(pictures: {}; --json prints them)", ran.pictures.len()));
    }
    Ok(())
}

fn exit(ended: CellEnding) -> Result<(), Failure> {
    match ended {
        CellEnding::Finished => Ok(()),
        CellEnding::Raised => Err(Failure::Command(1)),
        CellEnding::TimedOut => {
            output::note("(the cell was interrupted at its limit; give it more time with --limit)");
            Err(Failure::Command(GOES_ON))
        }
        CellEnding::KernelDied => {
            output::complain("the kernel died while the cell ran; the next cell gets a new one");
            Err(Failure::Command(1))
        }
    }
}
