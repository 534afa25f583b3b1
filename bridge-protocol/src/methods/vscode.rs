//! `vscode/*`: what a host does for running code.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::methods;

methods! {
    /// `vscode/chat`: asks a language model. Streams [`TextProgress`](super::TextProgress).
    Chat = "vscode/chat": ChatParams => ChatResult { needs: [Chat], within: Talk };
    /// `vscode/showMessage`: shows a message.
    ShowMessage = "vscode/showMessage": ShowMessageParams => ShowMessageResult { needs: [Chat], within: Talk };
    /// `vscode/executeCommand`: runs an editor command.
    ExecuteCommand = "vscode/executeCommand": ExecuteCommandParams => ExecuteCommandResult { needs: [Editor], within: Moment };
    /// `vscode/getChatHistory`: what was said in a conversation.
    GetChatHistory = "vscode/getChatHistory": GetChatHistoryParams => GetChatHistoryResult { needs: [Chat], within: Talk };
}

/// What to ask.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChatParams {
    /// The question.
    #[serde(default)]
    pub message: String,
    /// Deadline in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<f64>,
    /// Model to use, by id or by a part of its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Conversation to go on with; a new one otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation_id: Option<String>,
}

/// The answer, or why there is none. A refusal is a result, not an error.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChatResult {
    /// The text; empty when blocked.
    pub response: String,
    /// Key for `vscode/getChatHistory` and for going on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation_id: Option<String>,
    /// True when nobody answered.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub blocked: bool,
    /// Why, for people: a word such as `refusal`, or a sentence. Programs look at `blocked`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocked_reason: Option<String>,
    /// Whether a chat view was opened for the person instead.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub opened_chat: bool,
}

/// What to show.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ShowMessageParams {
    /// The text.
    #[serde(default)]
    pub message: String,
    /// How loud.
    #[serde(default)]
    pub level: MessageLevel,
    /// Buttons to choose from. Without any, the answer comes at once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub buttons: Vec<String>,
    /// Deadline in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<f64>,
}

/// Anything but the three known words counts as `info`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MessageLevel {
    /// Needs attention now.
    Error,
    /// May need attention.
    Warning,
    /// Good to know.
    #[default]
    #[serde(other)]
    Info,
}

/// Which button was pressed, if there were any and one was.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ShowMessageResult {
    /// The button's text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub choice: Option<String>,
}

/// Which command.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExecuteCommandParams {
    /// Its id, for instance `workbench.action.files.save`.
    #[serde(default)]
    pub command: String,
    /// Its arguments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<Value>,
    /// Deadline in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<f64>,
}

/// What the command returned.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ExecuteCommandResult {
    /// Absent when it returned nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
}

/// Which conversation.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GetChatHistoryParams {
    /// As returned by `vscode/chat`.
    #[serde(default)]
    pub conversation_id: String,
    /// How many messages, the newest; 10 unless told otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
}

/// The messages, oldest first; none when the conversation is unknown.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GetChatHistoryResult {
    /// What was said.
    pub messages: Vec<ChatMessage>,
}

/// One thing said.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChatMessage {
    /// Who.
    pub role: ChatRole,
    /// What.
    pub content: String,
    /// When, in milliseconds since 1970.
    pub timestamp: u64,
}

/// Who said it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChatRole {
    /// The running code.
    User,
    /// The model.
    Assistant,
}
