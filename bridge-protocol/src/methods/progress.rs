//! Notifications about a request that is under way.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// `$/cancelRequest`: the sender no longer wants the answer. It still gets exactly one.
#[derive(Debug, Serialize, Deserialize)]
pub struct CancelParams<'a> {
    /// The request's id, as its sender wrote it.
    #[serde(borrow)]
    pub id: &'a RawValue,
    /// From the daemon to a host: why nobody waits any more. `RequestCancelled` if the caller said so,
    /// otherwise `Timeout`, `CallerGone` or `ShuttingDown`.
    #[serde(default, borrow, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Cow<'a, str>>,
}

/// `$/progress`: a piece of the answer, before the answer.
#[derive(Debug, Serialize, Deserialize)]
pub struct ProgressParams<'a> {
    /// The request's id.
    #[serde(borrow)]
    pub id: &'a RawValue,
    /// For `vscode/chat` a [`TextProgress`]; other methods say what theirs is.
    #[serde(borrow)]
    pub value: &'a RawValue,
}

/// A piece of text, to be appended to those before it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TextProgress {
    /// The piece.
    pub text: String,
}
