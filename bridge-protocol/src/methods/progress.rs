//! Notifications about a request that is under way.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// `$/cancelRequest`: the sender no longer wants the answer. It still gets exactly one.
#[derive(Debug, Serialize, Deserialize)]
pub struct CancelParams<'a> {
    /// The request's id, as its sender wrote it.
    #[serde(borrow)]
    pub id: &'a RawValue,
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
