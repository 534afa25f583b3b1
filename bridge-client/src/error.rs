//! The errors of this library.
//!
//! Every message names the cause and, after the colon, what to do. Errors can be cloned, because one lost connection fails
//! many calls.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bridge_protocol::{ErrorKind, SessionId, WireError};
use serde::Deserialize;

use crate::endpoint::{Address, Candidate};

/// An error of this library.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// Neither the environment nor a connection file leads to a daemon. Start one.
    #[error(
        "no running bridge daemon was found: start your program with `bridge-daemon run -- PROGRAM`, or run it from VS Code"
    )]
    NoDaemon,
    /// More than one daemon runs and nothing says which is meant. Ask the person, or name one.
    #[error(
        "{} bridge daemons are running: choose one with --session ID, or set RUN_BRIDGE_SESSION{}",
        .0.len(),
        listed(.0)
    )]
    SeveralDaemons(Vec<Candidate>),
    /// No running daemon has the session that was named. Choose one that runs.
    #[error("no running bridge daemon has session {0}: `bridge-client list` shows those that run")]
    UnknownSession(SessionId),
    /// The host token cannot be read. Run as the user who started the daemon, or give a token file.
    #[error(
        "the host token of session {0} cannot be read: run as the user who started its daemon, or give --token-file FILE"
    )]
    NoHostToken(SessionId),
    /// A setting in the environment or in a file cannot be used. Correct or remove it.
    #[error("{what} cannot be used: {remedy}")]
    BadSetting {
        /// The setting. Never contains the value of a secret.
        what: String,
        /// What it should be.
        remedy: &'static str,
    },
    /// The directory of connection files cannot be used. The message says why, and what to do.
    #[error(transparent)]
    ConnectionFiles(Arc<connection_file::Error>),

    /// Nobody answers at the address. The daemon has ended, so start another run. A retry helps only if the daemon is just
    /// being started.
    #[error(
        "no bridge daemon answers at {address} ({}): its run has ended; start a new one, and unset RUN_BRIDGE_* if they are left from the old one",
        without_number(.cause)
    )]
    Unreachable {
        /// The address.
        address: Address,
        /// The error of the operating system.
        cause: Arc<io::Error>,
    },
    /// The daemon refused the token, which belongs to another run. A retry cannot help.
    #[error(
        "the daemon at {address} refused the token: it belongs to another run; unset RUN_BRIDGE_* or choose a session with --session ID"
    )]
    Unauthorized {
        /// The address.
        address: Address,
    },
    /// The daemon refused the connection for another reason. With 503 it is full: try later.
    #[error("the daemon at {address} refused the connection with HTTP {status}: {reason}")]
    Refused {
        /// The address.
        address: Address,
        /// The HTTP status.
        status: u16,
        /// The daemon's message, or the meaning of the status.
        reason: String,
    },
    /// The program at this address is not a bridge daemon. Correct the address.
    #[error("{address} is no bridge ({reason}): check RUN_BRIDGE_ADDR, or start a new run")]
    NotABridge {
        /// The address.
        address: Address,
        /// How that was found out.
        reason: String,
    },

    /// The connection ended. Requests in flight may have been carried out: check before you repeat them. The next call
    /// connects again.
    #[error(
        "the connection to the daemon ended ({reason}): requests in flight may have been carried out; check before you repeat them"
    )]
    Lost {
        /// The code of the close frame, if there was one.
        code: Option<u16>,
        /// The reason in the close frame, or the error.
        reason: String,
    },
    /// Another host registered the same runtime id. Stop one of the two.
    #[error(
        "another host took the runtime id {0}: stop one of the two, or give them different ids"
    )]
    Replaced(String),

    /// The daemon or the host answered with an error. Look at its [kind](Error::kind).
    #[error("{}", .0.message())]
    Rejected(WireError),
    /// No answer came in time, not even the daemon's own *Timeout*. The request was cancelled, and may have been carried
    /// out.
    #[error(
        "{method} was not answered within {:.1} s: give it more time with --timeout, or see `bridge-client status`",
        .after.as_secs_f64()
    )]
    TimedOut {
        /// The method.
        method: String,
        /// How long the call waited.
        after: Duration,
    },
    /// The answer does not have the type of the method's result. The host has another version.
    #[error("the answer to {method} is not what was expected ({reason}): update the host")]
    BadAnswer {
        /// The method.
        method: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The parameters cannot be written as JSON. Correct them.
    #[error("the parameters of {method} cannot be sent ({reason}): correct them")]
    BadParams {
        /// The method.
        method: String,
        /// What is wrong with them.
        reason: String,
    },
    /// The request is larger than the daemon accepts. Pass a file name instead of the content.
    #[error(
        "a message of {bytes} bytes is too big, the limit is {}: send less, or pass a file's name instead of its content",
        bridge_protocol::limits::MESSAGE_BYTES
    )]
    TooBig {
        /// The size of the message.
        bytes: usize,
    },
    /// This client has reached the limit of calls in flight. Wait for some to end.
    #[error(
        "{} calls are in flight already: wait for some of them to end",
        crate::client::CALLS_IN_FLIGHT
    )]
    TooManyCalls,
    /// The client was closed while the call waited. Make a new client.
    #[error("the client was closed: make a new one for further calls")]
    Closed,
}

impl Error {
    /// The name of the error for programs: `data.kind` of a wire error, otherwise the name of the variant.
    pub fn kind(&self) -> String {
        let name = match self {
            Self::NoDaemon => "NoDaemon",
            Self::SeveralDaemons(_) => "SeveralDaemons",
            Self::UnknownSession(_) => "UnknownSession",
            Self::NoHostToken(_) => "NoHostToken",
            Self::BadSetting { .. } => "BadSetting",
            Self::ConnectionFiles(_) => "ConnectionFiles",
            Self::Unreachable { .. } => "Unreachable",
            Self::Unauthorized { .. } => "Unauthorized",
            Self::Refused { .. } => "Refused",
            Self::NotABridge { .. } => "NotABridge",
            Self::Lost { .. } => "Lost",
            Self::Replaced(_) => "Replaced",
            Self::Rejected(error) => return kind_of(error),
            Self::TimedOut { .. } => "Timeout",
            Self::BadAnswer { .. } => "BadAnswer",
            Self::BadParams { .. } => "BadParams",
            Self::TooBig { .. } => "OversizedRequest",
            Self::TooManyCalls => "TooManyCalls",
            Self::Closed => "Closed",
        };
        name.to_owned()
    }

    /// The error object that came over the wire, with its code and data.
    pub fn wire(&self) -> Option<&WireError> {
        match self {
            Self::Rejected(error) => Some(error),
            _ => None,
        }
    }

    /// Whether this is a wire error of this kind.
    pub fn is(&self, kind: ErrorKind) -> bool {
        self.wire().is_some_and(|error| error.code() == kind.code())
    }

    /// Whether the request may have been carried out in spite of the error. Then do not repeat it without a check.
    pub fn may_have_executed(&self) -> bool {
        match self {
            Self::Lost { .. } | Self::TimedOut { .. } | Self::BadAnswer { .. } => true,
            Self::Rejected(error) => data_of(error).may_have_executed,
            _ => false,
        }
    }

    /// Whether another attempt to connect may help. After a refused token, it cannot.
    pub(crate) fn may_pass(&self) -> bool {
        matches!(
            self,
            Self::Unreachable { .. } | Self::Lost { .. } | Self::Refused { status: 503, .. }
        )
    }

    /// Whether the daemon has closed the connection because it ended.
    pub fn is_goodbye(&self) -> bool {
        matches!(self, Self::Lost { code: Some(1000 | 1001), .. })
    }
}

/// The members of `data` that every error of the daemon has.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ErrorData {
    kind: Option<String>,
    may_have_executed: bool,
}

fn data_of(error: &WireError) -> ErrorData {
    error.data().and_then(|data| serde_json::from_str(data.get()).ok()).unwrap_or_default()
}

fn kind_of(error: &WireError) -> String {
    let known = || ErrorKind::from_code(error.code()).map(|kind| kind.name().to_owned());
    data_of(error).kind.or_else(known).unwrap_or_else(|| "HostError".to_owned())
}

/// The message of the operating system, without "(os error 111)", which does not help people.
pub fn without_number(cause: &io::Error) -> String {
    let text = cause.to_string();
    text.split_once(" (os error").map_or(text.clone(), |(words, _)| words.to_owned())
}

fn listed(candidates: &[Candidate]) -> String {
    candidates.iter().map(|candidate| format!("\n  {candidate}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn kinds_come_from_the_data_then_from_the_code() {
        let kind = |code, data| Error::Rejected(WireError::owned(code, "m", data)).kind();
        assert_eq!(kind(-32054, None), "NotAllowed");
        assert_eq!(kind(-32054, Some(json!({"kind": "Special"}))), "Special");
        assert_eq!(kind(-32054, Some(json!("text"))), "NotAllowed");
        assert_eq!(kind(17, None), "HostError");
        assert_eq!(Error::NoDaemon.kind(), "NoDaemon");
    }

    #[test]
    fn callers_learn_whether_the_work_may_have_been_done() {
        let gone = ErrorKind::HostGone
            .error_with("gone", json!({"mayHaveExecuted": true}).as_object().unwrap().clone());
        assert!(Error::Rejected(gone).may_have_executed());
        assert!(!Error::Rejected(ErrorKind::HostUnavailable.error("none")).may_have_executed());
        assert!(Error::Lost { code: None, reason: "reset".into() }.may_have_executed());
        assert!(!Error::NoDaemon.may_have_executed());
    }

    #[test]
    fn a_wrong_token_is_not_worth_another_try() {
        let address: Address = "ws://127.0.0.1:1/".parse().unwrap();
        let refused =
            |status| Error::Refused { address: address.clone(), status, reason: String::new() };
        assert!(!Error::Unauthorized { address: address.clone() }.may_pass());
        assert!(refused(503).may_pass());
        assert!(!refused(403).may_pass());
    }
}
