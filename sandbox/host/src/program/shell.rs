//! `sandbox shell`: shells that stay when this program ends, with the verbs of `bridge-client shell`.
//!
//! The owner of the shells is this very process, for as long as the verb takes; without an owner they live on for
//! the lease.

use std::io::{self, IsTerminal as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use base64::prelude::{BASE64_STANDARD, Engine as _};
use bridge_protocol::WireError;
use bridge_protocol::methods::shell::{
    self, AttachParams, CommandState, HowEnded, OutputProgress, ResizeParams, RunState, ShellInfo,
    ShellName, ShellRef, ShellState, SignalName, WaitOptions, WaitParams,
};
use clap::{Args, Subcommand};
use sandbox_files::Workspace;
use sandbox_host::{Caller, ShellService};
use sandbox_shells::{Config, ShellArguments, default_root};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

use super::seconds;

pub(super) const HELP: &str = "\
Examples:
  sandbox shell run 'cd src && make'
  sandbox shell run --shell server --limit 5 './serve'
  sandbox shell read --shell server
  sandbox shell keys --shell server C-c

Exit codes of run and wait: that of the command; 124 if it goes on; 125 if it could not be run at all.";

/// The exit code when the command goes on, as `timeout` has it.
const GOES_ON: u8 = 124;
/// Pieces of output that may wait to be written.
const PIECES: usize = 16;

#[derive(Debug, Args)]
pub(super) struct ShellCommand {
    /// The state directory of the shells
    #[arg(long, value_name = "DIR", default_value_os_t = default_root())]
    root: PathBuf,
    /// How long shells live on without anybody using them
    #[arg(long, value_name = "SECONDS", default_value_t = 3600)]
    lease: u64,
    /// What new shells may do; their workspace is the current directory.
    #[command(flatten)]
    shells: ShellArguments,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Start a shell and print its name
    Create(Create),
    /// List the shells
    #[command(visible_alias = "ls")]
    List,
    /// Run a command in a shell, show its output, and end with its exit code
    Run(Run),
    /// Wait for the latest command of a shell, and show what it prints
    Wait(Wait),
    /// Print the output of a shell's latest command, or the shell's log from an offset on
    Read(Read),
    /// Type a text and Enter
    Input {
        #[command(flatten)]
        shell: ShellArgument,
        /// Do not press Enter after the text
        #[arg(long)]
        no_enter: bool,
        /// The text
        text: String,
    },
    /// Press keys: C-c, C-d, UP, ENTER, TAB, ESC, F1 and so on
    Keys {
        #[command(flatten)]
        shell: ShellArgument,
        /// The keys, one after the other
        #[arg(required = true, value_name = "KEY")]
        keys: Vec<String>,
    },
    /// Signal the programs in the foreground: INT, TERM, KILL, QUIT, HUP, CONT, STOP, USR1, USR2
    Signal {
        #[command(flatten)]
        shell: ShellArgument,
        /// The signal, with or without SIG
        #[arg(value_parser = signal_name)]
        signal: SignalName,
    },
    /// Change the size of a shell's terminal
    Resize {
        #[command(flatten)]
        shell: ShellArgument,
        /// Characters in a line
        columns: u16,
        /// Lines on the screen
        rows: u16,
    },
    /// End a shell with all its programs, and remove its log
    Close {
        /// The shell
        #[arg(default_value = "main", value_name = "NAME")]
        shell: String,
    },
    /// Attach this terminal to a shell; leave with Ctrl-B and D. Without a terminal, print the command
    Attach {
        /// The shell
        #[arg(default_value = "main", value_name = "NAME")]
        shell: String,
        /// Watch only
        #[arg(long)]
        read_only: bool,
    },
    /// Close all shells and end the tmux server
    End,
}

#[derive(Debug, Args)]
struct ShellArgument {
    /// The shell
    #[arg(long, value_name = "NAME", default_value = "main")]
    shell: String,
}

#[derive(Debug, Args)]
struct Create {
    /// Its name [default: drawn]
    #[arg(value_name = "NAME")]
    shell: Option<String>,
    /// Where it starts [default: here]
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
    /// Set a variable; may be given several times
    #[arg(long = "env", value_name = "NAME=VALUE", value_parser = variable)]
    environment: Vec<(String, String)>,
    /// Characters in a line
    #[arg(long, value_name = "N")]
    columns: Option<u16>,
    /// Lines on the screen
    #[arg(long, value_name = "N")]
    rows: Option<u16>,
}

/// How long to wait, and how to print.
#[derive(Debug, Args)]
struct Limits {
    /// Stop waiting after this time; the command goes on
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    limit: Option<Duration>,
    /// Stop waiting when nothing was printed for this time
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    quiet: Option<Duration>,
    /// Stop waiting when the command seems to wait for input
    #[arg(long)]
    return_on_input: bool,
    /// Write every byte as it came, carriage returns included
    #[arg(long)]
    raw: bool,
}

#[derive(Debug, Args)]
struct Run {
    #[command(flatten)]
    shell: ShellArgument,
    #[command(flatten)]
    limits: Limits,
    /// The command, of any number of lines, or - to read it from stdin
    command: String,
}

#[derive(Debug, Args)]
struct Wait {
    #[command(flatten)]
    shell: ShellArgument,
    #[command(flatten)]
    limits: Limits,
    /// Only for the command of this number, as `list` shows it [default: the latest]
    #[arg(long, value_name = "NUMBER")]
    command: Option<u64>,
    /// Show the output from this offset on [default: from the command's beginning]
    #[arg(long, value_name = "OFFSET")]
    from: Option<u64>,
}

#[derive(Debug, Args)]
struct Read {
    #[command(flatten)]
    shell: ShellArgument,
    /// Begin at this offset of the shell's log
    #[arg(long, value_name = "OFFSET")]
    from: Option<u64>,
    /// At most so many bytes
    #[arg(long, value_name = "N")]
    bytes: Option<u64>,
    /// Write the bytes as they are, instead of what a terminal would show
    #[arg(long, conflicts_with = "colours")]
    raw: bool,
    /// Keep colours
    #[arg(long)]
    colours: bool,
}

pub(super) async fn run(command: ShellCommand) -> anyhow::Result<ExitCode> {
    let cwd = std::env::current_dir().context("finding the current directory")?;
    let config = command.shells.config(&command.root, command.shells.policy(&cwd))?;
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
            let created = service.create(params).await.map_err(said)?;
            writeln!(io::stdout(), "{}", created.shell)?;
        }
        Verb::List => {
            let mut out = io::stdout().lock();
            for shell in service.list().await.map_err(said)?.shells {
                writeln!(out, "{}", line(&shell))?;
            }
        }
        Verb::Run(arguments) => return run_command(&service, arguments).await,
        Verb::Wait(arguments) => return wait(&service, arguments).await,
        Verb::Read(arguments) => read(&service, arguments).await?,
        Verb::Input { shell, no_enter, text } => {
            let params = shell::InputParams { shell: name(shell), text, enter: !no_enter };
            service.input(params).await.map_err(said)?;
        }
        Verb::Keys { shell, keys } => {
            service.keys(shell::KeysParams { shell: name(shell), keys }).await.map_err(said)?;
        }
        Verb::Signal { shell, signal } => {
            let params = shell::SignalParams { shell: name(shell), signal };
            service.signal(params).await.map_err(said)?;
        }
        Verb::Resize { shell, columns, rows } => {
            service
                .resize(ResizeParams { shell: name(shell), columns, rows })
                .await
                .map_err(said)?;
        }
        Verb::Close { shell } => {
            service.close(ShellRef { shell: ShellName(shell) }).await.map_err(said)?;
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

/// Writes what a call streams, and ends with its command's exit code. Ctrl-C interrupts the command; a second one
/// leaves it running.
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
                // The call is over, and with it its end of the channel.
                None => streams = false,
            },
            answer = &mut call, if state.is_none() => state = Some(answer.map_err(said)?),
            _ = interrupts.recv() => {
                if std::mem::replace(&mut interrupted, true) {
                    eprintln!("sandbox: the command goes on; see `sandbox shell wait --shell {shell}`");
                    return Ok(ExitCode::from(130));
                }
                let keys = vec!["C-c".to_owned()];
                service.keys(shell::KeysParams { shell: shell.clone(), keys }).await.map_err(said)?;
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
            "sandbox: {lost} bytes of output were lost: the log of shell {shell}, or its disk, is full; close the \
             shell to begin a new log"
        );
    }
    let Some(ending) = &state.ending else {
        let asks = match state.state {
            RunState::WaitingForInput => " and seems to wait for input",
            RunState::Running | RunState::Finished => "",
        };
        eprintln!("sandbox: the command goes on{asks}; see `sandbox shell wait --shell {shell}`");
        return Ok(ExitCode::from(GOES_ON));
    };
    let problem = match (ending.exit_code, ending.ended) {
        (Some(code), _) => return Ok(ExitCode::from(u8::try_from(code).unwrap_or(1))),
        (None, HowEnded::AtPrompt) => "its end is not known, or it was interrupted before it began",
        (None, HowEnded::ShellExited) => "its shell has ended before it began",
        (None, HowEnded::ShellClosed) => "its shell was closed",
        (None, HowEnded::ServerGone) => "tmux has ended, and its shell with it",
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
    let read = service.read(params).await.map_err(said)?;
    let mut out = io::stdout().lock();
    match (read.text, read.base64) {
        (Some(text), _) if text.is_empty() => {}
        (Some(text), _) => writeln!(out, "{text}")?,
        (None, base64) => out.write_all(&BASE64_STANDARD.decode(base64.unwrap_or_default())?)?,
    }
    out.flush()?;
    if read.more {
        eprintln!("sandbox: there is more: read on with --from {}", read.end);
    }
    Ok(())
}

async fn attach(service: &ShellService, shell: String, read_only: bool) -> anyhow::Result<()> {
    let params = AttachParams { shell: ShellName(shell), read_only };
    let attach = service.attach(params).await.map_err(said)?;
    let (Some((program, arguments)), true) =
        (attach.arguments.split_first(), io::stdout().is_terminal())
    else {
        writeln!(io::stdout(), "{}", attach.command)?;
        return Ok(());
    };
    // From here on this terminal is tmux's; it returns only when tmux could not be started.
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

/// Writes output as it comes.
struct Screen {
    /// For a pipe: turns the line ends of a terminal into those of a file. Whether a carriage return is held back.
    line_ends: Option<bool>,
}

impl Screen {
    fn show(&mut self, piece: &OutputProgress) -> anyhow::Result<()> {
        let bytes = BASE64_STANDARD.decode(&piece.base64)?;
        let mut out = io::stdout().lock();
        match &mut self.line_ends {
            Some(held) => out.write_all(&with_plain_ends(&bytes, held))?,
            None => out.write_all(&bytes)?,
        }
        Ok(out.flush()?)
    }

    fn finish(&mut self) -> io::Result<()> {
        match self.line_ends.take() {
            Some(true) => io::stdout().write_all(b"\r"),
            _ => Ok(()),
        }
    }
}

fn with_plain_ends(bytes: &[u8], held: &mut bool) -> Vec<u8> {
    let mut plain = Vec::with_capacity(bytes.len() + 1);
    for &byte in bytes {
        if *held && byte != b'\n' {
            plain.push(b'\r');
        }
        *held = byte == b'\r';
        if !*held {
            plain.push(byte);
        }
    }
    plain
}

fn name(argument: ShellArgument) -> ShellName {
    ShellName(argument.shell)
}

fn said(error: WireError) -> anyhow::Error {
    anyhow!("{}", error.message())
}

fn variable(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("not NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

fn signal_name(text: &str) -> Result<SignalName, String> {
    let name = text.to_ascii_uppercase();
    let name = name.strip_prefix("SIG").unwrap_or(&name);
    serde_json::from_value(serde_json::Value::from(name))
        .map_err(|_| "use INT, TERM, KILL, QUIT, HUP, CONT, STOP, USR1 or USR2".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_ends_become_plain_however_the_bytes_are_cut() {
        let printed = b"a\r\nb\rc\r\r\n\r";
        for cut in 0..=printed.len() {
            let mut held = false;
            let mut plain = with_plain_ends(&printed[..cut], &mut held);
            plain.extend(with_plain_ends(&printed[cut..], &mut held));
            assert!(held);
            assert_eq!(plain, b"a\nb\rc\r\n", "cut at {cut}");
        }
    }

    #[test]
    fn signals_have_two_names() {
        assert_eq!(signal_name("sigterm"), Ok(SignalName::Term));
        assert_eq!(signal_name("KILL"), Ok(SignalName::Kill));
        assert!(signal_name("15").is_err());
    }
}
