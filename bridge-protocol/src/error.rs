//! The table of errors. Codes that JSON-RPC, LSP or jsonrpsee define keep their meaning; codes of Run
//! Bridge lie between -32050 and -32065. Every error that the daemon makes has `data.kind` (the name of
//! the [`ErrorKind`]) and `data.retryable`, so programs need not parse messages. A host's own error
//! object is passed on unchanged.

use jsonrpsee_types::ErrorObjectOwned;
use jsonrpsee_types::error as standard;
use serde_json::{Map, Value, json};

use crate::text::shortened;

/// Most characters of a message. Errors quote texts of callers, and no answer may become long by them.
const MESSAGE_CHARS: usize = 2000;

/// An error object on the wire: `code`, `message`, `data`.
pub type WireError = ErrorObjectOwned;

/// Why a request failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The text is not JSON, has a duplicate member, or is nested too deeply.
    ParseError,
    /// The text is JSON, but no valid request: a bad envelope or id, or an id that is already in flight.
    InvalidRequest,
    /// No host serves this method.
    MethodNotFound,
    /// The method exists, but its parameters are wrong.
    InvalidParams,
    /// A bug in the bridge.
    InternalError,
    /// Batches are not supported: send the requests one by one.
    BatchNotSupported,
    /// The request is larger than the limit.
    OversizedRequest,
    /// The answer is larger than the limit.
    OversizedResponse,
    /// Too many requests are in flight or too many bytes are queued. Wait, then retry.
    Overloaded,
    /// The editor command itself failed.
    CommandFailed,
    /// No host is attached. Open the run in an editor, or start one with a terminal host.
    HostUnavailable,
    /// The host disconnected while it worked on the request, which may have been carried out.
    HostGone,
    /// The deadline passed. The request may have been carried out.
    Timeout,
    /// The host sent an invalid response.
    BadHostResponse,
    /// The host's policy, or the permissions of a file, forbid the request.
    NotAllowed,
    /// The person at the host refused the request.
    BlockedByUser,
    /// The daemon is shutting down.
    ShuttingDown,
    /// No common protocol version.
    VersionMismatch,
    /// Several runtimes fit equally well: name one by `runtimeId` or by a `path` in its folders.
    AmbiguousRuntime,
    /// The token does not allow the request. Make a token that does: `bridge-client token`.
    Forbidden,
    /// A client called a method that is for hosts only, or the reverse.
    WrongRole,
    /// There is no such shell, command, file or line.
    NotFound,
    /// The state of the shell or file does not allow the request: it already exists, is busy, or has been
    /// changed in the meantime.
    Conflict,
    /// The path leads out of the workspace.
    OutsideWorkspace,
    /// The disk is full, or a limit on the number of things (such as shells) is reached.
    NoSpace,
    /// The caller cancelled the request.
    RequestCancelled,
}

impl ErrorKind {
    /// Every kind, in the order of the table in PROTOCOL.md.
    pub const ALL: [Self; 26] = [
        Self::ParseError,
        Self::InvalidRequest,
        Self::MethodNotFound,
        Self::InvalidParams,
        Self::InternalError,
        Self::BatchNotSupported,
        Self::OversizedRequest,
        Self::OversizedResponse,
        Self::Overloaded,
        Self::CommandFailed,
        Self::HostUnavailable,
        Self::HostGone,
        Self::Timeout,
        Self::BadHostResponse,
        Self::NotAllowed,
        Self::BlockedByUser,
        Self::ShuttingDown,
        Self::VersionMismatch,
        Self::AmbiguousRuntime,
        Self::Forbidden,
        Self::WrongRole,
        Self::NotFound,
        Self::Conflict,
        Self::OutsideWorkspace,
        Self::NoSpace,
        Self::RequestCancelled,
    ];

    /// The error code on the wire.
    pub const fn code(self) -> i32 {
        match self {
            Self::ParseError => standard::PARSE_ERROR_CODE,
            Self::InvalidRequest => standard::INVALID_REQUEST_CODE,
            Self::MethodNotFound => standard::METHOD_NOT_FOUND_CODE,
            Self::InvalidParams => standard::INVALID_PARAMS_CODE,
            Self::InternalError => standard::INTERNAL_ERROR_CODE,
            Self::BatchNotSupported => standard::BATCHES_NOT_SUPPORTED_CODE,
            Self::OversizedRequest => standard::OVERSIZED_REQUEST_CODE,
            Self::OversizedResponse => standard::OVERSIZED_RESPONSE_CODE,
            Self::Overloaded => standard::SERVER_IS_BUSY_CODE,
            Self::CommandFailed => standard::CALL_EXECUTION_FAILED_CODE,
            Self::HostUnavailable => -32050,
            Self::HostGone => -32051,
            Self::Timeout => -32052,
            Self::BadHostResponse => -32053,
            Self::NotAllowed => -32054,
            Self::BlockedByUser => -32055,
            Self::ShuttingDown => -32056,
            Self::VersionMismatch => -32057,
            Self::AmbiguousRuntime => -32059,
            Self::Forbidden => -32060,
            Self::WrongRole => -32061,
            Self::NotFound => -32062,
            Self::Conflict => -32063,
            Self::OutsideWorkspace => -32064,
            Self::NoSpace => -32065,
            Self::RequestCancelled => -32800,
        }
    }

    /// The name in `data.kind`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ParseError => "ParseError",
            Self::InvalidRequest => "InvalidRequest",
            Self::MethodNotFound => "MethodNotFound",
            Self::InvalidParams => "InvalidParams",
            Self::InternalError => "InternalError",
            Self::BatchNotSupported => "BatchNotSupported",
            Self::OversizedRequest => "OversizedRequest",
            Self::OversizedResponse => "OversizedResponse",
            Self::Overloaded => "Overloaded",
            Self::CommandFailed => "CommandFailed",
            Self::HostUnavailable => "HostUnavailable",
            Self::HostGone => "HostGone",
            Self::Timeout => "Timeout",
            Self::BadHostResponse => "BadHostResponse",
            Self::NotAllowed => "NotAllowed",
            Self::BlockedByUser => "BlockedByUser",
            Self::ShuttingDown => "ShuttingDown",
            Self::VersionMismatch => "VersionMismatch",
            Self::AmbiguousRuntime => "AmbiguousRuntime",
            Self::Forbidden => "Forbidden",
            Self::WrongRole => "WrongRole",
            Self::NotFound => "NotFound",
            Self::Conflict => "Conflict",
            Self::OutsideWorkspace => "OutsideWorkspace",
            Self::NoSpace => "NoSpace",
            Self::RequestCancelled => "RequestCancelled",
        }
    }

    /// Whether a caller may retry the request: it can succeed later, and it has not been carried out.
    pub const fn retryable(self) -> bool {
        matches!(self, Self::Overloaded | Self::HostUnavailable | Self::AmbiguousRuntime)
    }

    /// The kind with this code, if there is one.
    pub fn from_code(code: i32) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.code() == code)
    }

    /// An error object of this kind. `message` is a sentence for people.
    pub fn error(self, message: impl Into<String>) -> WireError {
        self.error_with(message, Map::new())
    }

    /// An error object of this kind whose `data` holds `facts` for programs beside `kind` and `retryable`. A long
    /// message loses its middle.
    pub fn error_with(self, message: impl Into<String>, facts: Map<String, Value>) -> WireError {
        let mut data = facts;
        data.insert("kind".into(), json!(self.name()));
        data.insert("retryable".into(), json!(self.retryable()));
        let message = message.into();
        WireError::owned(self.code(), shortened(&message, MESSAGE_CHARS), Some(Value::Object(data)))
    }
}

/// An error object of this kind with its exact reason for programs, as `data.reason`.
pub fn with_reason(kind: ErrorKind, message: impl Into<String>, reason: &str) -> WireError {
    kind.error_with(message, Map::from_iter([("reason".to_owned(), json!(reason))]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_and_names_are_distinct_and_codes_lead_back_to_kinds() {
        for kind in ErrorKind::ALL {
            assert_eq!(ErrorKind::from_code(kind.code()), Some(kind));
            assert_eq!(
                ErrorKind::ALL.iter().filter(|other| other.name() == kind.name()).count(),
                1
            );
        }
        assert_eq!(ErrorKind::from_code(1), None);
    }

    #[test]
    fn codes_of_run_bridge_lie_outside_the_ranges_of_the_standards() {
        let is_own = |kind: &ErrorKind| (-32065..=-32050).contains(&kind.code());
        let standard: Vec<_> = ErrorKind::ALL.into_iter().filter(|kind| !is_own(kind)).collect();
        assert_eq!(standard[..10], ErrorKind::ALL[..10], "codes of JSON-RPC and jsonrpsee");
        assert_eq!(standard[10..], [ErrorKind::RequestCancelled]);
        assert_eq!(ErrorKind::RequestCancelled.code(), -32800, "as in LSP");
    }

    #[test]
    fn only_errors_of_requests_that_were_not_carried_out_are_retryable() {
        let retryable: Vec<_> =
            ErrorKind::ALL.into_iter().filter(|kind| kind.retryable()).collect();
        assert_eq!(
            retryable,
            [ErrorKind::Overloaded, ErrorKind::HostUnavailable, ErrorKind::AmbiguousRuntime]
        );
    }

    #[test]
    fn errors_carry_kind_and_retryable() {
        let error = ErrorKind::Overloaded.error("too much");
        let text = serde_json::to_string(&error).unwrap();
        assert_eq!(
            text,
            r#"{"code":-32009,"message":"too much","data":{"kind":"Overloaded","retryable":true}}"#
        );
        let error = with_reason(ErrorKind::Conflict, "", "busy");
        let data: Value = serde_json::from_str(error.data().unwrap().get()).unwrap();
        assert_eq!(data, json!({"kind": "Conflict", "reason": "busy", "retryable": false}));
    }

    #[test]
    fn messages_are_bounded() {
        let error = ErrorKind::NotFound.error(format!("{:?}: look again", "x".repeat(1 << 20)));
        assert_eq!(error.message().chars().count(), MESSAGE_CHARS);
        assert!(error.message().ends_with("look again"), "{error:?}");
    }
}
