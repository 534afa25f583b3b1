//! Every flag of the program.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use bridge_protocol::{Rights, SessionId};
use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::broker::HostWait;
use crate::sandboxes::SandboxArgs;
use crate::terminal_host::AllowedCommand;

const EXAMPLES: &str = "\
Examples:
  bridge-daemon run -- python3 my_workflow.py
      Messages are printed here; chat asks you on the terminal.
  bridge-daemon run --chat-command 'llm -m small' -- python3 my_workflow.py
      Chat is answered by a program: the question on its stdin, the answer from its stdout.
  bridge-daemon run --host editor -- python3 my_workflow.py
      Calls wait for a VS Code window to attach.
  bridge-daemon run --sandbox . -- python3 my_agent.py
      The program may run commands and change files here; see `bridge-client shell` and `bridge-client file`.
  bridge-daemon run --rights chat,read -- python3 my_report.py
      The program may ask and look, but change and run nothing.
  bridge-daemon serve
      For programs that embed the bridge: one JSON line on stdout says how to connect.

Exit codes of `run`: those of the program; 128+N if signal N ended it; 125 if the bridge could not
start; 126 if the program could not be executed; 127 if it was not found.
Exit codes of `serve`: 0 ended as asked, 2 wrong usage, 125 could not start.";

/// Connects running code to a real VS Code, or to the terminal.
#[derive(Debug, Parser)]
#[command(name = "bridge-daemon", version, about, after_help = EXAMPLES, propagate_version = true)]
pub struct Cli {
    /// The subcommand.
    #[command(subcommand)]
    pub command: Command,
}

/// The subcommands of the program.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a program with a bridge of its own, which lives exactly as long as the program
    #[command(after_help = EXAMPLES)]
    Run(RunArgs),
    /// Offer a bridge to the program that started this one, until stdin closes
    #[command(after_help = EXAMPLES)]
    Serve(ServeArgs),
}

/// Flags of `run`.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// Flags of the bridge.
    #[command(flatten)]
    pub bridge: BridgeArgs,

    /// The host that answers: this terminal, or a VS Code window that attaches
    #[arg(long, value_enum, default_value_t = HostKind::Terminal)]
    pub host: HostKind,

    /// Shell command that answers chat: it reads the question from stdin and prints the answer
    ///
    /// It gets the variables CHAT_MODEL and CHAT_CONVERSATION if the caller has set a model or a
    /// conversation. Without this flag the person at the terminal is asked; without a terminal,
    /// chat is answered as blocked.
    #[arg(long, value_name = "COMMAND")]
    pub chat_command: Option<String>,

    /// Run the shell command PROGRAM for the editor command NAME, with its arguments appended
    ///
    /// May be repeated. Editor commands that are not named here are refused.
    #[arg(long, value_name = "NAME=PROGRAM")]
    pub allow_command: Vec<AllowedCommand>,

    /// Rights of the program: chat, read, write, run and editor, separated by commas
    /// [default: all of them]
    ///
    /// This limits the token of the program. The connection file of the session still has a token
    /// with all rights.
    #[arg(long, value_name = "RIGHTS")]
    pub rights: Option<Rights>,

    /// Seconds that the program may take to end after SIGTERM or SIGHUP, before it is killed
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = seconds)]
    pub grace: Duration,

    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "PROGRAM")]
    pub program: Vec<OsString>,
}

/// Flags of `serve`.
#[derive(Debug, Args)]
pub struct ServeArgs {
    /// Flags of the bridge.
    #[command(flatten)]
    pub bridge: BridgeArgs,

    /// End when nobody has been connected for this many seconds
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub idle_timeout: Option<Duration>,
}

/// Flags that `run` and `serve` share.
#[derive(Debug, Args)]
pub struct BridgeArgs {
    /// TCP port on 127.0.0.1; 0 takes a free one
    #[arg(long, default_value_t = 0)]
    pub port: u16,

    /// Listen on a private Unix socket as well
    #[arg(long)]
    pub unix: bool,

    /// Id of the session: 1 to 64 of the characters A-Z a-z 0-9 _ - [default: a random one]
    #[arg(long, value_name = "ID")]
    pub session: Option<SessionId>,

    /// Flags of sandboxes.
    #[command(flatten)]
    pub sandboxes: SandboxArgs,

    /// Seconds that a call waits for a host when none is attached [default: 10; with --host editor
    /// until the call's own deadline]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub host_wait: Option<Duration>,

    /// Let web pages of this origin connect (they need the token too); may be repeated
    #[arg(long, value_name = "ORIGIN")]
    pub allow_origin: Vec<String>,

    /// Refuse tokens in the URL, which the original evolve client sends
    #[arg(long)]
    pub no_query_token: bool,

    /// Maximum number of connections
    #[arg(long, value_name = "COUNT", default_value_t = 2048)]
    pub max_connections: usize,

    /// Seconds between two pings; a connection that does not answer two is closed. Clients that
    /// send their token in the URL get no pings, because the original client does not answer them
    #[arg(long, value_name = "SECONDS", default_value = "20", value_parser = interval)]
    pub ping_interval: Duration,

    /// What to log [default: error for run, info for serve]
    #[arg(long, value_enum, value_name = "LEVEL", env = "RUN_BRIDGE_LOG")]
    pub log: Option<LogLevel>,

    /// How to log
    #[arg(long, value_enum, default_value_t = LogFormat::Human)]
    pub log_format: LogFormat,

    /// Append the log to this file instead of stderr
    #[arg(long, value_name = "FILE")]
    pub log_file: Option<PathBuf>,
}

impl BridgeArgs {
    /// How long calls wait for a host. `expected` says that the run expects a window.
    pub fn host_wait(&self, expected: bool) -> HostWait {
        match self.host_wait {
            Some(limit) => HostWait::UpTo(limit),
            None if expected => HostWait::UntilDeadline,
            None => HostWait::UpTo(Duration::from_secs(10)),
        }
    }
}

/// The host that answers the calls of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum HostKind {
    /// The built-in terminal host
    Terminal,
    /// A VS Code window
    Editor,
}

/// How much to log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogLevel {
    /// Nothing
    Off,
    /// Errors of the daemon
    Error,
    /// Also warnings
    Warn,
    /// Also one line for each request
    Info,
    /// Also connections
    Debug,
    /// Everything
    Trace,
}

/// How to log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// For people
    Human,
    /// One JSON object a line
    Json,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let number: f64 = text.parse().map_err(|_| "not a number of seconds".to_owned())?;
    Duration::try_from_secs_f64(number)
        .ok()
        .filter(|duration| *duration <= Duration::from_secs(365 * 24 * 3600))
        .ok_or_else(|| "must be between 0 and a year".to_owned())
}

fn interval(text: &str) -> Result<Duration, String> {
    seconds(text).and_then(|interval| match interval.is_zero() {
        true => Err("must be more than 0".to_owned()),
        false => Ok(interval),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn flags_after_the_dashes_belong_to_the_program() {
        let cli = Cli::parse_from(["bridge-daemon", "run", "--", "python3", "--port", "5"]);
        let Command::Run(run) = cli.command else { panic!() };
        assert_eq!(run.program, ["python3", "--port", "5"]);
        assert_eq!(run.bridge.port, 0);
    }

    #[test]
    fn the_defaults_are_those_of_the_protocol() {
        let cli = Cli::parse_from(["bridge-daemon", "run", "--", "true"]);
        let Command::Run(run) = cli.command else { panic!() };
        assert_eq!((run.bridge.port, run.bridge.max_connections), (0, 2048));
        assert_eq!(run.bridge.ping_interval, Duration::from_secs(20));
        assert_eq!(run.bridge.host_wait(false), HostWait::UpTo(Duration::from_secs(10)));
        assert_eq!(run.bridge.host_wait(true), HostWait::UntilDeadline);
        assert_eq!(run.grace, Duration::from_secs(10));
    }

    #[test]
    fn bad_values_are_refused() {
        for flags in [
            ["--session", "a/b"],
            ["--grace", "-1"],
            ["--grace", "soon"],
            ["--port", "70000"],
            ["--allow-command", "x"],
            ["--rights", "fly"],
        ] {
            let words = ["bridge-daemon", "run", flags[0], flags[1], "--", "true"];
            assert!(Cli::try_parse_from(words).is_err(), "{flags:?}");
        }
    }
}
