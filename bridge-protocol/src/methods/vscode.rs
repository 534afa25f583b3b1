//! `vscode/*`: chat, messages and editor commands, which an editor or a terminal host serves.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::methods;

methods! {
    /// `vscode/chat`: asks a language model. Streams [`TextProgress`](super::TextProgress).
    Chat = "vscode/chat": ChatParams => ChatResult { needs: [Chat], time: Reply };
    /// `vscode/showMessage`: shows a message to the person at the host.
    ShowMessage = "vscode/showMessage": ShowMessageParams => ShowMessageResult { needs: [Chat], time: Reply };
    /// `vscode/executeCommand`: runs an editor command.
    ExecuteCommand = "vscode/executeCommand": ExecuteCommandParams => ExecuteCommandResult { needs: [Editor], time: Editor };
    /// `vscode/getChatHistory`: the messages of a conversation.
    GetChatHistory = "vscode/getChatHistory": GetChatHistoryParams => GetChatHistoryResult { needs: [Chat], time: Reply };
}

/// Parameters of `vscode/chat`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChatParams {
    /// The message for the model.
    #[serde(default)]
    pub message: String,
    /// Timeout in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<f64>,
    /// Model to use, by id or by a part of its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Conversation to continue. When absent, a new one begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation_id: Option<String>,
}

/// Result of `vscode/chat`: the answer, or why there is none. A refusal is a result, not an error.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChatResult {
    /// Text of the answer; empty when blocked.
    pub response: String,
    /// Id of the conversation, to continue it or to pass it to `vscode/getChatHistory`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation_id: Option<String>,
    /// Whether no model answered.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub blocked: bool,
    /// Why no model answered, for people: a word such as `refusal`, or a sentence. Programs check `blocked`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocked_reason: Option<String>,
    /// Whether a chat view was opened for the person instead of an answer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub opened_chat: bool,
}

/// Parameters of `vscode/showMessage`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ShowMessageParams {
    /// The text to show.
    #[serde(default)]
    pub message: String,
    /// Severity of the message.
    #[serde(default)]
    pub level: MessageLevel,
    /// Buttons to choose from. Without buttons, the answer comes at once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub buttons: Vec<String>,
    /// Timeout in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<f64>,
}

/// Severity of a message. Any other word than the three counts as `info`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MessageLevel {
    /// The person must act now.
    Error,
    /// The person may have to act.
    Warning,
    /// Information only.
    #[default]
    #[serde(other)]
    Info,
}

/// Result of `vscode/showMessage`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ShowMessageResult {
    /// Text of the button that the person pressed. Absent if there were no buttons or none was pressed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub choice: Option<String>,
}

/// Parameters of `vscode/executeCommand`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExecuteCommandParams {
    /// Id of the editor command, for instance `workbench.action.files.save`.
    #[serde(default)]
    pub command: String,
    /// Arguments of the command.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<Value>,
    /// Timeout in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<f64>,
}

/// Result of `vscode/executeCommand`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ExecuteCommandResult {
    /// Return value of the command. Absent if it returned nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
}

/// Parameters of `vscode/getChatHistory`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GetChatHistoryParams {
    /// Id of the conversation, as `vscode/chat` returned it.
    #[serde(default)]
    pub conversation_id: String,
    /// Return this many of the newest messages; 10 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
}

/// Result of `vscode/getChatHistory`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GetChatHistoryResult {
    /// The messages, oldest first. Empty if the conversation is unknown.
    pub messages: Vec<ChatMessage>,
}

/// One message of a conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChatMessage {
    /// Author of the message.
    pub role: ChatRole,
    /// Text of the message.
    pub content: String,
    /// Time of the message, in milliseconds since 1970.
    pub timestamp: u64,
}

/// Author of a message in a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChatRole {
    /// The running program.
    User,
    /// The model.
    Assistant,
}
