//! Notifications about a request that is in flight.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// Parameters of `$/cancelRequest`: the sender no longer wants the answer. The request still gets exactly
/// one answer.
#[derive(Debug, Serialize, Deserialize)]
pub struct CancelParams<'a> {
    /// Id of the request, as its sender wrote it.
    #[serde(borrow)]
    pub id: &'a RawValue,
    /// Only from the daemon to a host: why nobody waits for the answer any more. `RequestCancelled` if the
    /// caller cancelled it, otherwise `Timeout`, `CallerGone` or `ShuttingDown`.
    #[serde(default, borrow, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Cow<'a, str>>,
}

/// Parameters of `$/progress`: a piece of the answer, sent before the answer itself.
#[derive(Debug, Serialize, Deserialize)]
pub struct ProgressParams<'a> {
    /// Id of the request.
    #[serde(borrow)]
    pub id: &'a RawValue,
    /// The piece. For `vscode/chat` it is a [`TextProgress`]; other methods document their own type.
    #[serde(borrow)]
    pub value: &'a RawValue,
}

/// A piece of text in `$/progress`. Append it to the pieces before it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TextProgress {
    /// The text.
    pub text: String,
}
