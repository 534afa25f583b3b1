//! The catalogue: methods that hosts serve, and those the daemon answers itself.

use std::time::Duration;

use crate::limits::{SANDBOX_TIMEOUT_DEFAULT, SANDBOX_TIMEOUT_MAX, TIMEOUT_DEFAULT, TIMEOUT_MAX};
use crate::methods::MethodType;
use crate::methods::action::Execute;
use crate::methods::sandbox::commands::{RunCommand, WaitForCommand};

/// A method that every VS Code host serves. A host may offer others by registering their names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    /// Ask a language model.
    Chat,
    /// Show a message to the person.
    ShowMessage,
    /// Run an editor command.
    ExecuteCommand,
    /// Read what was said in a conversation.
    GetChatHistory,
}

impl Method {
    /// All of them.
    pub const ALL: [Self; 4] =
        [Self::Chat, Self::ShowMessage, Self::ExecuteCommand, Self::GetChatHistory];

    /// The canonical name, the only one that hosts see.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Chat => "vscode/chat",
            Self::ShowMessage => "vscode/showMessage",
            Self::ExecuteCommand => "vscode/executeCommand",
            Self::GetChatHistory => "vscode/getChatHistory",
        }
    }

    /// Finds a method by its name or an alias: with or without `vscode/`, in camelCase or in
    /// snake_case.
    pub fn from_name(name: &str) -> Option<Self> {
        match name.strip_prefix("vscode/").unwrap_or(name) {
            "chat" => Some(Self::Chat),
            "showMessage" | "show_message" => Some(Self::ShowMessage),
            "executeCommand" | "execute_command" => Some(Self::ExecuteCommand),
            "getChatHistory" | "get_chat_history" => Some(Self::GetChatHistory),
            _ => None,
        }
    }

    const fn default_timeout(self) -> Duration {
        match self {
            Self::ExecuteCommand => Duration::from_secs(10),
            Self::Chat | Self::ShowMessage | Self::GetChatHistory => TIMEOUT_DEFAULT,
        }
    }
}

/// Whether the daemon answers this name itself and never forwards it.
pub fn is_own(name: &str) -> bool {
    name.starts_with("bridge/") || name.starts_with("runtime/")
}

/// Whether this name belongs to the daemon's own sandbox; no other host may serve it: it would read and
/// forge whatever an agent does.
pub fn is_sandbox(name: &str) -> bool {
    name.starts_with("sandbox/") || name.starts_with("action/")
}

/// Deadline of a request that names none.
pub fn default_timeout(name: &str) -> Duration {
    match name {
        // They have limits of their own, and who gives none wants to wait for the end.
        RunCommand::NAME | WaitForCommand::NAME | Execute::NAME => SANDBOX_TIMEOUT_MAX,
        _ if is_sandbox(name) => SANDBOX_TIMEOUT_DEFAULT,
        _ => Method::from_name(name).map_or(TIMEOUT_DEFAULT, Method::default_timeout),
    }
}

/// Longest deadline of a request; a longer one is shortened to this.
pub fn longest_timeout(name: &str) -> Duration {
    match is_sandbox(name) {
        true => SANDBOX_TIMEOUT_MAX,
        false => TIMEOUT_MAX,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aliases_lead_to_the_canonical_method() {
        for method in Method::ALL {
            let short = method.name().strip_prefix("vscode/").unwrap();
            assert_eq!(Method::from_name(method.name()), Some(method));
            assert_eq!(Method::from_name(short), Some(method));
        }
        for name in ["show_message", "vscode/show_message"] {
            assert_eq!(Method::from_name(name), Some(Method::ShowMessage));
        }
        assert_eq!(Method::from_name("vscode/execute_command"), Some(Method::ExecuteCommand));
        assert_eq!(Method::from_name("get_chat_history"), Some(Method::GetChatHistory));
        for name in ["", "vscode/", "Chat", "vscode/vscode/chat", "bridge/chat"] {
            assert_eq!(Method::from_name(name), None, "{name}");
        }
    }

    #[test]
    fn the_daemon_keeps_two_families_of_names_for_itself() {
        for name in ["bridge/status", "runtime/register", "bridge/"] {
            assert!(is_own(name), "{name}");
        }
        for name in ["vscode/chat", "bridge", "my/runtime/list", ""] {
            assert!(!is_own(name), "{name}");
        }
    }
}
