//! The command line: every flag of the program is declared here, and only here.

pub mod act;
pub mod cell;
pub mod file;
pub mod page;
pub mod shell;
pub mod target;

use std::path::PathBuf;
use std::time::Duration;

use bridge_protocol::{Rights, SessionId};
use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell as ShellProgram;

use target::Target;

/// Maximum of `--timeout`. The daemon reduces the timeout of `vscode/*` to ten minutes.
const TIMEOUT_LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

const EXAMPLES: &str = "\
Examples:
  bridge-client chat 'Name three primes'
  git diff | bridge-client chat -
  bridge-client call vscode/chat message='Name three primes' timeout=60000
  bridge-client call show_message '{\"message\": \"Build finished\", \"level\": \"info\"}'
  bridge-client execute-command workbench.action.files.saveAll
  bridge-client --json status | jq .inFlight
  bridge-client host --rules rules.json
  bridge-client shell run 'make test'
  bridge-client file read src/main.rs --lines 1:20
  bridge-client act read src/main.rs

The daemon is found by RUN_BRIDGE_ADDR, RUN_BRIDGE_TOKEN and RUN_BRIDGE_SESSION (or the same three
with EVOLVE_ before them), which a run has in its environment; otherwise by the connection files of
this user. When several daemons run, --session or RUN_BRIDGE_SESSION alone chooses one.

Exit codes:
    0  success
    1  the request failed: the daemon or the host answered with an error
    2  bad usage, or a file that cannot be used
    3  no daemon was found, or several
    4  the daemon cannot be reached, or the connection was lost
    5  the daemon refused the token
    6  timed out
    7  no host is attached, or it went away
    8  blocked: the host refused to answer
  130  interrupted (Ctrl-C); the request was cancelled at the daemon first";

/// Speak to a Run Bridge daemon: ask the editor's language model, run commands, change files.
#[derive(Debug, Parser)]
#[command(name = "bridge-client", version, after_help = EXAMPLES, max_term_width = 100)]
pub struct Cli {
    #[command(flatten)]
    pub global: Global,
    #[command(subcommand)]
    pub command: Command,
}

/// Flags of every subcommand.
#[derive(Args, Debug)]
pub struct Global {
    /// Speak to the daemon of this session (see `bridge-client list`)
    #[arg(long, global = true, value_name = "ID", display_order = 910)]
    pub session: Option<SessionId>,
    /// Print results as JSON, exactly as they came, and errors as {"error": {code, kind, message, data}}
    #[arg(long, global = true, display_order = 911)]
    pub json: bool,
    /// Give up after this time; fractions are allowed. Without it each method has its own limit
    #[arg(long, global = true, value_name = "SECONDS", value_parser = seconds, display_order = 912)]
    pub timeout: Option<Duration>,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Call any method and print its result
    #[command(after_help = CALL_HELP)]
    Call(Call),
    /// Ask the host's language model and print the answer; on a terminal, while it arrives
    #[command(after_help = CHAT_HELP)]
    Chat(Chat),
    /// Show a message to the person at the host
    #[command(after_help = SHOW_MESSAGE_HELP)]
    ShowMessage(ShowMessage),
    /// Run an editor command and print what it returns, if anything
    #[command(after_help = EXECUTE_COMMAND_HELP)]
    ExecuteCommand(ExecuteCommand),
    /// Print the messages of a conversation
    #[command(after_help = HISTORY_HELP)]
    History(History),
    /// Print the daemon's hosts, clients, requests in flight and counters
    Status,
    /// List this user's running daemons, and remove the files of dead ones
    List,
    /// Print each request as it ends, until Ctrl-C or the end of the daemon
    Tail,
    /// Relay newline-delimited JSON-RPC between stdin/stdout and the daemon
    #[command(after_help = STDIO_HELP)]
    Stdio,
    /// Serve requests by the rules in a file, instead of an editor
    #[command(after_help = HOST_HELP)]
    Host(Host),
    /// Make a token for a client with fewer rights, or for a host
    #[command(after_help = TOKEN_HELP)]
    Token(Token),
    /// Run commands in persistent shells
    #[command(after_help = shell::SHELL_HELP)]
    Shell(shell::Shell),
    /// Read, change and search files
    #[command(after_help = file::FILE_HELP)]
    File(file::File),
    /// Run Python code in IPython
    #[command(after_help = cell::CELL_HELP)]
    Cell(cell::Cell),
    /// Show web pages
    #[command(after_help = page::PAGE_HELP)]
    Page(page::Page),
    /// Execute an action of an OpenHands agent and print its observation
    #[command(after_help = act::ACT_HELP)]
    Act(act::Act),
    /// Print completions for a shell
    #[command(after_help = COMPLETIONS_HELP)]
    Completions {
        /// The shell
        shell: ShellProgram,
    },
}

const CALL_HELP: &str = "\
Examples:
  bridge-client call vscode/chat message='Name three primes'
  bridge-client call execute_command command=editor.action.formatDocument args='[1, 2]'
  bridge-client call bridge/status
  jq -n '{message: \"hello\"}' | bridge-client call show_message -

A value that is JSON is sent as such, anything else as a string: n=1 is a number, n='\"1\"' a string.
The result is indented on a terminal and in one line otherwise; with --json it is left as it came.";

/// `call METHOD …`
#[derive(Args, Debug)]
pub struct Call {
    /// vscode/chat, show_message, execute_command, get_chat_history (with or without vscode/),
    /// bridge/*, runtime/*, shell/*, file/*, cell/*, page/*, action/*, or a host's own
    pub method: String,
    /// The parameters: one JSON object or array, or any number of key=value, or - for JSON on stdin
    #[arg(value_name = "PARAMS-JSON | key=value | -")]
    pub params: Vec<String>,
}

const CHAT_HELP: &str = "\
Examples:
  bridge-client chat 'Name three primes'
  git diff | bridge-client --timeout 120 chat - --model gpt
  bridge-client chat 'And the next one?' --conversation conversation-1

When the host refuses to answer, the reason is printed on stderr and the exit code is 8.";

/// `chat MESSAGE`
#[derive(Args, Debug)]
pub struct Chat {
    #[command(flatten)]
    pub target: Target,
    /// The question, or - to read it from stdin
    pub message: String,
    /// Model to ask, by id or by a part of its name
    #[arg(long)]
    pub model: Option<String>,
    /// Continue this conversation
    #[arg(long, value_name = "ID")]
    pub conversation: Option<String>,
}

const SHOW_MESSAGE_HELP: &str = "\
Examples:
  bridge-client show-message 'Build finished'
  bridge-client --timeout 300 show-message 'Deploy now?' --level warning --button Yes --button No

Prints the button that was pressed, or nothing.";

/// `show-message TEXT`
#[derive(Args, Debug)]
pub struct ShowMessage {
    #[command(flatten)]
    pub target: Target,
    /// The message
    pub text: String,
    /// Severity of the message
    #[arg(long, value_enum, default_value_t = Level::Info)]
    pub level: Level,
    /// Offer this button, wait, and print the one that is pressed; may be given several times
    #[arg(long = "button", value_name = "TEXT")]
    pub buttons: Vec<String>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Level {
    Info,
    Warning,
    Error,
}

const EXECUTE_COMMAND_HELP: &str = "\
Examples:
  bridge-client execute-command workbench.action.files.saveAll
  bridge-client execute-command vscode.open https://example.org
  bridge-client execute-command my.command 42 text '{\"a\": 1}' -- -x

A string is printed as text, anything else as JSON; with --json the whole result is printed.";

/// `execute-command COMMAND …`
#[derive(Args, Debug)]
pub struct ExecuteCommand {
    #[command(flatten)]
    pub target: Target,
    /// The command's id, for instance workbench.action.files.saveAll
    pub command: String,
    /// Its arguments: JSON values; anything else is a string. Put -- before arguments that begin with -
    #[arg(value_name = "ARG")]
    pub args: Vec<String>,
}

const HISTORY_HELP: &str = "\
Example:
  bridge-client history conversation-1 --limit 3";

/// `history CONVERSATION`
#[derive(Args, Debug)]
pub struct History {
    #[command(flatten)]
    pub target: Target,
    /// The id of the conversation, as `chat` prints it
    pub conversation: String,
    /// Print this many of the newest messages [default: 10]
    #[arg(long, value_name = "N")]
    pub limit: Option<usize>,
}

const STDIO_HELP: &str = "\
For programs without a WebSocket library. Each line of stdin is sent as one message, unchanged; each
message of the daemon is printed as one line. At the end of stdin the relay waits for outstanding
answers, as long as their requests' own deadlines (or --timeout) allow.

Example:
  echo '{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"bridge/ping\"}' | bridge-client stdio";

const HOST_HELP: &str = "\
The file is JSON:
  {\"runtimeId\": \"scripted\", \"title\": \"CI\", \"rules\": [
    {\"method\": \"vscode/chat\", \"when\": {\"message\": \"2+2?\"},
     \"progress\": [{\"text\": \"4\"}], \"result\": {\"response\": \"4\", \"conversationId\": \"c1\"}},
    {\"method\": \"vscode/chat\", \"result\": {\"response\": \"You said: ${message}\"}},
    {\"method\": \"vscode/executeCommand\", \"error\": {\"code\": -32054, \"message\": \"not here\"}},
    {\"method\": \"*\", \"silent\": true}]}

The first rule applies whose method (or *) matches and whose `when` members equal those of the params:
  progress  values sent first, in order
  fifo      a FIFO to open and read to its end before going on
  delayMs   milliseconds to wait
then exactly one of
  result    the answer; ${name} in its strings is replaced by that member of the params
  error     an error object: code, message, data
  silent    true: never answer
  exit      true: end this process at once
Without a rule the answer is -32601. The host registers the methods that its rules name; a rule
for * adds the four vscode/ methods, and \"methods\": [\"my/own\"] beside \"rules\" any others.
\"workspaceFolders\", \"focused\" and \"edge\" are registered as they are.

Once registered, it prints {\"runtimeId\": …} and serves until it is killed or the daemon ends.";

/// `host --rules FILE`
#[derive(Args, Debug)]
pub struct Host {
    /// The file with the rules
    #[arg(long, value_name = "FILE")]
    pub rules: PathBuf,
    /// Append a JSON line to this file for each request, cancel and answer
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,
    /// Read the host token from this file instead of the session's own
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// Use this open descriptor, inherited from the daemon that started this program, instead of connecting
    #[arg(long, value_name = "NUMBER", conflicts_with = "token_file")]
    pub connection_fd: Option<i32>,
}

const TOKEN_HELP: &str = "\
The token is printed alone on stdout. Whoever reads it can do what it allows until the session ends, so
put it into a variable or, with --output, into a private file, never into a log, the arguments of a
program, or a URL.

A client token gives only rights that the token used to make it has. The session's own host token can
make tokens for any tools; a host token made here can make only narrower ones.

Examples:
  RUN_BRIDGE_TOKEN=$(bridge-client token --rights chat,read) ./my_agent
  bridge-client token --host --runtime box --tools 'file/*,shell/*' --output box.token
      For `sandbox host --id box --token-file box.token` in a container or behind a tunnel.";

/// `token …`
#[derive(Args, Debug)]
pub struct Token {
    /// Rights of the client token: chat, read, write, run and editor, separated by commas
    #[arg(long, value_name = "RIGHTS", required_unless_present = "host")]
    pub rights: Option<Rights>,
    /// Make a token for a host instead of a client
    #[arg(long, conflicts_with = "rights", requires_all = ["runtime", "tools", "output"])]
    pub host: bool,
    /// The runtime ids under which the host may register
    #[arg(long, value_name = "ID", value_delimiter = ',', requires = "host")]
    pub runtime: Vec<String>,
    /// The tools that it may serve: names of methods, or families such as file/*
    #[arg(long, value_name = "TOOLS", value_delimiter = ',', requires = "host")]
    pub tools: Vec<String>,
    /// Write the token to this new file, which only you can read
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

const COMPLETIONS_HELP: &str = "\
Examples:
  bridge-client completions bash > ~/.local/share/bash-completion/completions/bridge-client
  bridge-client completions fish > ~/.config/fish/completions/bridge-client.fish";

fn seconds(text: &str) -> Result<Duration, String> {
    let number = text.parse::<f64>().ok().filter(|number| *number > 0.0);
    let duration = number.and_then(|number| Duration::try_from_secs_f64(number).ok());
    duration
        .filter(|duration| !duration.is_zero() && *duration <= TIMEOUT_LONGEST)
        .ok_or_else(|| "give a number of seconds greater than 0, for instance 2.5".to_owned())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn parse(arguments: &[&str]) -> Result<Cli, clap::Error> {
        Cli::try_parse_from([&["bridge-client"], arguments].concat())
    }

    #[test]
    fn the_declaration_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn global_flags_may_stand_anywhere() {
        for arguments in [
            ["--json", "--timeout", "2.5", "--session", "s1", "status"],
            ["status", "--json", "--timeout", "2.5", "--session", "s1"],
        ] {
            let cli = parse(&arguments).unwrap();
            assert!(cli.global.json);
            assert_eq!(cli.global.timeout, Some(Duration::from_millis(2500)));
            assert_eq!(cli.global.session.unwrap().as_str(), "s1");
        }
    }

    #[test]
    fn timeouts_are_positive_seconds() {
        for good in ["1", "0.5", "600", "1e3", "0.000001"] {
            assert!(seconds(good).is_ok(), "{good}");
        }
        for bad in ["0", "-1", "abc", "", "NaN", "inf", "1e300", "1e-12", "2m", "86401"] {
            assert!(seconds(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_dash_is_a_value_where_stdin_makes_sense() {
        assert!(matches!(
            parse(&["call", "m", "-"]).unwrap().command,
            Command::Call(Call { params, .. }) if params == ["-"]
        ));
        assert!(matches!(
            parse(&["chat", "-"]).unwrap().command,
            Command::Chat(Chat { message, .. }) if message == "-"
        ));
    }

    #[test]
    fn wrong_usage_is_refused() {
        for arguments in [
            &["chat"][..],
            &["nonsense"],
            &["history", "c1", "--limit", "many"],
            &["show-message", "x", "--level", "loud"],
            &["--session", "a/b", "status"],
            &["host"],
            &["token"],
            &["token", "--rights", "fly"],
            &["token", "--host", "--runtime", "a", "--tools", "file/*"],
            &["token", "--rights", "read", "--tools", "file/*"],
            &["host", "--rules", "r", "--connection-fd", "x"],
        ] {
            assert_eq!(parse(arguments).unwrap_err().exit_code(), 2, "{arguments:?}");
        }
    }
}
