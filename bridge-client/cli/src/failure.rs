//! Failures of the program: their messages and exit codes.
//!
//! | code | meaning |
//! | --- | --- |
//! | 0 | success |
//! | 1 | the request failed: the daemon or the host answered with an error |
//! | 2 | bad usage, or a file that cannot be used |
//! | 3 | no daemon was found, or several |
//! | 4 | the daemon cannot be reached, or the connection was lost |
//! | 5 | the daemon refused the token |
//! | 6 | timed out |
//! | 7 | no host is attached, or it went away |
//! | 8 | blocked: the host refused to answer |
//! | any | of a command that `shell run`, `shell wait` or `act run` has seen end |
//! | 130 | interrupted (Ctrl-C); the request was cancelled at the daemon first |
//!
//! The same table is in `--help`. If the reader of stdout goes away, the program ends with 0 and without a message.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use bridge_client::Error;
use bridge_client::error::without_number;
use bridge_protocol::ErrorKind;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::output;
use crate::verbs;

/// Why a subcommand did not succeed.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The library says what happened and what to do. In an error that came over the wire, methods and
    /// params are replaced by subcommands and flags of this program, and advice for its user is added.
    #[error("{text}{advice}", text = verbs::in_place_of_methods(&.0.to_string()), advice = advice(.0))]
    Bridge(#[from] Error),
    /// The command line is wrong.
    #[error("{0}")]
    Usage(String),
    /// A file cannot be used.
    #[error("cannot use {path}: {reason}")]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it, and what to do.
        reason: String,
    },
    /// Stdin cannot be read.
    #[error("cannot read stdin ({}): give the text as an argument instead of -", without_number(.0))]
    Input(io::Error),
    /// A chat was answered with a refusal. The sentence says why.
    #[error("{0}")]
    Blocked(String),
    /// Some requests of a relay got no answer within their deadlines.
    #[error("{0} requests were not answered in time: give them more with --timeout")]
    Unanswered(usize),
    /// A command in a shell has ended with this code. No message is printed beside its output.
    #[error("the command ended with code {0}")]
    Command(u8),
    /// Ctrl-C.
    #[error("interrupted")]
    Interrupted,
    /// Stdout cannot be written to.
    #[error("cannot write to stdout ({}): check where it leads", without_number(.0))]
    Output(io::Error),
    /// The tokio runtime did not start.
    #[error("cannot start ({}): the system has too few resources, try again later", without_number(.0))]
    Start(io::Error),
}

impl Failure {
    /// Prints the failure to stderr, with `--json` also to stdout, and returns the exit code.
    pub fn report(&self, json: bool) -> ExitCode {
        match self {
            Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                return ExitCode::SUCCESS;
            }
            Self::Command(code) => return ExitCode::from(*code),
            Self::Interrupted => {}
            // The only message with more than one line.
            Self::Bridge(Error::SeveralDaemons(_)) => output::complain(&self.to_string()),
            _ => output::complain(&self.to_string().replace('\n', " ")),
        }
        if json && !matches!(self, Self::Output(_) | Self::Blocked(_)) {
            // The line on stderr says the same to people.
            let _ = writeln!(io::stdout(), "{}", self.as_json());
        }
        ExitCode::from(self.code())
    }

    fn code(&self) -> u8 {
        match self {
            Self::Bridge(error) => code_of(error),
            Self::Usage(_) | Self::File { .. } | Self::Input(_) => 2,
            Self::Unanswered(_) => 6,
            Self::Blocked(_) => 8,
            Self::Interrupted => 130,
            Self::Command(code) => *code,
            Self::Output(_) | Self::Start(_) => 1,
        }
    }

    fn as_json(&self) -> Value {
        let kind = match self {
            Self::Bridge(error) => error.kind(),
            Self::Usage(_) => "Usage".to_owned(),
            Self::File { .. } => "File".to_owned(),
            Self::Input(_) => "Input".to_owned(),
            Self::Blocked(_) => "Blocked".to_owned(),
            Self::Unanswered(_) => "Timeout".to_owned(),
            Self::Interrupted => "Interrupted".to_owned(),
            Self::Command(_) => "Command".to_owned(),
            Self::Output(_) => "Output".to_owned(),
            Self::Start(_) => "Start".to_owned(),
        };
        let wire = match self {
            Self::Bridge(error) => error.wire(),
            _ => None,
        };
        let data = wire.and_then(|error| error.data()).map(RawValue::get);
        let data: Option<Value> = data.and_then(|data| serde_json::from_str(data).ok());
        let code = wire.map(bridge_protocol::WireError::code);
        // Programs get the message of the wire unchanged.
        let message = wire.map_or_else(|| self.to_string(), |error| error.message().to_owned());
        json!({"error": {"code": code, "kind": kind, "message": message, "data": data}})
    }
}

/// Advice for the user of this program about an error of the daemon or the host. Empty if the message itself says what to
/// do, or nothing can be done.
fn advice(error: &Error) -> &'static str {
    match error.wire().and_then(|wire| ErrorKind::from_code(wire.code())) {
        Some(ErrorKind::Timeout) => "; give it more time with --timeout SECONDS",
        Some(ErrorKind::MethodNotFound) => {
            "; `bridge-client call runtime/list` shows what hosts offer"
        }

        _ => "",
    }
}

/// The exit code of an error.
fn code_of(error: &Error) -> u8 {
    match error {
        Error::NoDaemon
        | Error::SeveralDaemons(_)
        | Error::UnknownSession(_)
        | Error::ConnectionFiles(_) => 3,
        Error::BadSetting { .. } | Error::BadParams { .. } | Error::TooBig { .. } => 2,
        Error::Unreachable { .. } | Error::Lost { .. } | Error::NotABridge { .. } => 4,
        Error::Refused { .. } => 4,
        Error::Unauthorized { .. } | Error::NoHostToken(_) => 5,
        Error::TimedOut { .. } => 6,
        Error::Rejected(wire) => match ErrorKind::from_code(wire.code()) {
            Some(ErrorKind::Timeout) => 6,
            Some(ErrorKind::HostUnavailable | ErrorKind::HostGone) => 7,
            Some(ErrorKind::BlockedByUser) => 8,
            Some(ErrorKind::ShuttingDown) => 4,
            _ => 1,
        },
        Error::Replaced(_) | Error::BadAnswer { .. } | Error::TooManyCalls | Error::Closed => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rejected(kind: ErrorKind) -> Failure {
        Error::Rejected(kind.error("what happened: what to do")).into()
    }

    #[test]
    fn codes_tell_the_cases_apart() {
        let address = "ws://127.0.0.1:1/".parse().map_err(|_| ()).unwrap();
        let table = [
            (Failure::Usage("x".into()), 2),
            (Error::NoDaemon.into(), 3),
            (Error::SeveralDaemons(Vec::new()).into(), 3),
            (Error::UnknownSession("s".parse().unwrap()).into(), 3),
            (Error::Lost { code: None, reason: String::new() }.into(), 4),
            (rejected(ErrorKind::ShuttingDown), 4),
            (Error::Unauthorized { address }.into(), 5),
            (rejected(ErrorKind::Timeout), 6),
            (Failure::Unanswered(1), 6),
            (rejected(ErrorKind::HostUnavailable), 7),
            (rejected(ErrorKind::HostGone), 7),
            (Failure::Blocked("x".into()), 8),
            (rejected(ErrorKind::BlockedByUser), 8),
            (rejected(ErrorKind::NotAllowed), 1),
            (rejected(ErrorKind::MethodNotFound), 1),
            (Failure::Interrupted, 130),
        ];
        for (failure, code) in table {
            assert_eq!(failure.code(), code, "{failure:?}");
        }
    }

    #[test]
    fn people_are_told_what_they_can_do_here() {
        let told = rejected(ErrorKind::Timeout).to_string();
        assert_eq!(told, "what happened: what to do; give it more time with --timeout SECONDS");
        assert_eq!(rejected(ErrorKind::NotAllowed).to_string(), "what happened: what to do");
        let ambiguous = ErrorKind::AmbiguousRuntime
            .error("two serve it: choose one with params.runtimeId or params.path: a, b");
        let told = Failure::from(Error::Rejected(ambiguous)).to_string();
        assert_eq!(told, "two serve it: choose one with --runtime ID or --in DIR: a, b");
        let error = ErrorKind::NotFound.error("there is no shell a: see shell/list");
        let told = Failure::from(Error::Rejected(error.clone())).to_string();
        assert_eq!(told, "there is no shell a: see `bridge-client shell list`");
        let json = Failure::from(Error::Rejected(error)).as_json();
        assert_eq!(json["error"]["message"], "there is no shell a: see shell/list");
    }

    #[test]
    fn json_has_always_the_same_four_members() {
        assert_eq!(
            rejected(ErrorKind::Timeout).as_json(),
            json!({"error": {
                "code": -32052, "kind": "Timeout", "message": "what happened: what to do",
                "data": {"kind": "Timeout", "retryable": false},
            }})
        );
        let local = Failure::from(Error::Closed).as_json();
        assert_eq!(local["error"]["kind"], "Closed");
        assert_eq!(
            (&local["error"]["code"], &local["error"]["data"]),
            (&Value::Null, &Value::Null)
        );
    }
}
