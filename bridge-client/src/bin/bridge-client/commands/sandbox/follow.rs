//! `sandbox run` and `sandbox wait`: a command's output as it comes, and its exit code.
//!
//! The pieces that the daemon sends may be dropped when we are slow. Their offsets show what is
//! missing, which is then read from the log: what is printed has no holes.

use bridge_client::{Call, Client};
use bridge_protocol::methods::MethodType;
use bridge_protocol::methods::sandbox::commands::{
    CommandState, HowEnded, OutputProgress, ReadOutput, ReadOutputParams, RunCommand,
    RunCommandParams, RunState, WaitForCommand, WaitOptions, WaitParams,
};
use bridge_protocol::methods::sandbox::shells::{SendKeys, SendKeysParams, ShellName};
use serde_json::value::{RawValue, to_raw_value};
use tokio::signal::unix::{SignalKind, signal};

use super::decoded;
use crate::cli::sandbox::{Limits, Run, Wait};
use crate::commands::{Context, typed};
use crate::failure::Failure;
use crate::output::{self, Output, Style};
use crate::params;

/// The exit code when the command goes on, as `timeout` has it.
const GOES_ON: u8 = 124;
/// Bytes to read at once when some are missing.
const READ: u64 = 1 << 20;

pub async fn run(context: Context, arguments: Run) -> Result<(), Failure> {
    let command = match &*arguments.command {
        "-" => params::read_stdin()?,
        _ => arguments.command,
    };
    let shell = ShellName(arguments.shell.shell);
    let wait = options(&context, &arguments.limits);
    let params = RunCommandParams { shell: shell.clone(), command, create: true, wait };
    let params = to_raw_value(&params).expect("our own types always print");
    follow::<RunCommand>(context, shell, None, params, arguments.limits.raw).await
}

pub async fn wait(context: Context, arguments: Wait) -> Result<(), Failure> {
    let shell = ShellName(arguments.shell.shell);
    let wait = options(&context, &arguments.limits);
    let params = WaitParams { shell: shell.clone(), command: None, from: arguments.from, wait };
    let params = to_raw_value(&params).expect("our own types always print");
    follow::<WaitForCommand>(context, shell, arguments.from, params, arguments.limits.raw).await
}

fn options(context: &Context, limits: &Limits) -> WaitOptions {
    let milliseconds = |time: std::time::Duration| time.as_secs_f64() * 1000.0;
    WaitOptions {
        quiet_ms: limits.quiet.map(milliseconds),
        limit_ms: limits.limit.map(milliseconds),
        return_on_input: limits.return_on_input,
        stream: context.output.style != Style::Json,
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
    let mut screen = Screen {
        client: &client,
        shell,
        next: from,
        // A terminal gets what the command printed for one; a pipe gets lines.
        line_ends: (!raw && context.output.style == Style::Pipe).then(LineEnds::default),
        output: &mut context.output,
    };
    screen.show_pieces(&mut call).await?;
    let result = call.await?;
    let state = typed::<M>(&result)?;
    if screen.output.style == Style::Json {
        screen.output.json(&result).await?;
    } else {
        screen.finish(&state).await?;
    }
    client.close().await;
    exit(&state)
}

/// Where the output goes, and how far it has come.
struct Screen<'a> {
    client: &'a Client,
    shell: ShellName,
    /// The offset of the next byte to show, once there was one.
    next: Option<u64>,
    line_ends: Option<LineEnds>,
    output: &'a mut Output,
}

impl Screen<'_> {
    /// Shows pieces until there are no more. Ctrl-C goes to the command; a second one leaves it alone.
    async fn show_pieces(&mut self, call: &mut Call<Box<RawValue>>) -> Result<(), Failure> {
        let mut interrupts = signal(SignalKind::interrupt()).map_err(Failure::Start)?;
        let mut interrupted = false;
        loop {
            let piece = tokio::select! {
                piece = call.progress() => piece,
                _ = interrupts.recv() => {
                    if std::mem::replace(&mut interrupted, true) {
                        call.cancel();
                        output::note("(the command goes on; see `bridge-client sandbox wait`)");
                        return Err(Failure::Interrupted);
                    }
                    let keys = vec!["C-c".to_owned()];
                    let params = SendKeysParams { shell: self.shell.clone(), keys };
                    self.client.call::<SendKeys>(&params, None).await?;
                    continue;
                }
            };
            let Some(piece) = piece else { return Ok(()) };
            if let Ok(piece) = serde_json::from_str::<OutputProgress>(piece.get()) {
                let bytes = decoded::<RunCommand>(&piece.base64)?;
                self.fill_up_to(piece.offset).await?;
                self.show(&bytes).await?;
                self.next = Some(piece.offset + bytes.len() as u64);
            }
        }
    }

    /// Shows what is still missing of what the answer knows of.
    async fn finish(&mut self, state: &CommandState) -> Result<(), Failure> {
        let log_is_there = state.ending.as_ref().is_none_or(|ending| {
            matches!(ending.ended, HowEnded::AtPrompt | HowEnded::ShellExited)
        });
        if log_is_there {
            self.next.get_or_insert(state.output.start);
            self.fill_up_to(state.output.end).await?;
        }
        if let Some(line_ends) = &mut self.line_ends {
            let rest = line_ends.finish();
            self.output.bytes(rest).await?;
        }
        Ok(())
    }

    /// Reads and shows what lies between the last byte shown and this offset.
    async fn fill_up_to(&mut self, offset: u64) -> Result<(), Failure> {
        while let Some(from) = self.next.filter(|next| *next < offset) {
            let params = ReadOutputParams {
                shell: self.shell.clone(),
                from: Some(from),
                bytes: Some(READ.min(offset - from)),
                raw: true,
                colours: false,
            };
            let read = self.client.call::<ReadOutput>(&params, None).await?;
            let bytes = decoded::<ReadOutput>(&read.base64.unwrap_or_default())?;
            if bytes.is_empty() {
                return Ok(());
            }
            self.show(&bytes).await?;
            self.next = Some(from + bytes.len() as u64);
        }
        Ok(())
    }

    async fn show(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        match &mut self.line_ends {
            Some(line_ends) => {
                let bytes = line_ends.plain(bytes);
                self.output.bytes(&bytes).await
            }
            None => self.output.bytes(bytes).await,
        }
    }
}

fn exit(state: &CommandState) -> Result<(), Failure> {
    let shell = &state.shell;
    let Some(ending) = &state.ending else {
        let asks = match state.state {
            RunState::WaitingForInput => " and seems to wait for input",
            RunState::Running | RunState::Finished => "",
        };
        output::note(&format!(
            "(the command goes on{asks}; see `bridge-client sandbox wait --shell {shell}`)"
        ));
        return Err(Failure::Command(GOES_ON));
    };
    match ending.exit_code {
        Some(0) => Ok(()),
        Some(code) => Err(Failure::Command(u8::try_from(code).unwrap_or(1))),
        None => {
            output::complain(&format!("shell {shell} was closed while the command ran"));
            Err(Failure::Command(1))
        }
    }
}

/// Turns the line ends of a terminal into those of a file, however the bytes are cut.
#[derive(Debug, Default)]
struct LineEnds {
    held: bool,
}

impl LineEnds {
    fn plain(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut plain = Vec::with_capacity(bytes.len() + 1);
        for &byte in bytes {
            if self.held && byte != b'\n' {
                plain.push(b'\r');
            }
            self.held = byte == b'\r';
            if !self.held {
                plain.push(byte);
            }
        }
        plain
    }

    fn finish(&mut self) -> &'static [u8] {
        match std::mem::take(&mut self.held) {
            true => b"\r",
            false => b"",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_ends_become_plain_however_the_bytes_are_cut() {
        let printed = b"a\r\nb\rc\r\r\n\r";
        for cut in 0..=printed.len() {
            let mut line_ends = LineEnds::default();
            let mut plain = line_ends.plain(&printed[..cut]);
            plain.extend(line_ends.plain(&printed[cut..]));
            plain.extend(line_ends.finish());
            assert_eq!(plain, b"a\nb\rc\r\n\r", "cut at {cut}");
        }
    }
}
