//! Looks methods up by name: aliases, timeouts, needed rights, and the methods that the daemon answers itself.

use std::time::Duration;

use crate::methods::{
    self, Chat, ExecuteCommand, GetChatHistory, MethodSpec, MethodType, ShowMessage, TimeClass,
};
use crate::rights::Rights;

/// A method that every VS Code host serves. A host may serve others by registering their names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    /// Ask a language model.
    Chat,
    /// Show a message to the person.
    ShowMessage,
    /// Run an editor command.
    ExecuteCommand,
    /// Read the messages of a conversation.
    GetChatHistory,
}

impl Method {
    /// All methods of this type.
    pub const ALL: [Self; 4] =
        [Self::Chat, Self::ShowMessage, Self::ExecuteCommand, Self::GetChatHistory];

    /// The canonical name, the only one that hosts see.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Chat => Chat::NAME,
            Self::ShowMessage => ShowMessage::NAME,
            Self::ExecuteCommand => ExecuteCommand::NAME,
            Self::GetChatHistory => GetChatHistory::NAME,
        }
    }

    /// Finds a method by its name or an alias: with or without `vscode/`, in camelCase or in snake_case.
    pub fn from_name(name: &str) -> Option<Self> {
        match name.strip_prefix("vscode/").unwrap_or(name) {
            "chat" => Some(Self::Chat),
            "showMessage" | "show_message" => Some(Self::ShowMessage),
            "executeCommand" | "execute_command" => Some(Self::ExecuteCommand),
            "getChatHistory" | "get_chat_history" => Some(Self::GetChatHistory),
            _ => None,
        }
    }
}

/// Whether the daemon answers this name itself and never forwards it.
pub fn is_own(name: &str) -> bool {
    name.starts_with("bridge/") || name.starts_with("runtime/")
}

/// Timeout of a request for this method that names none.
pub fn default_timeout(name: &str) -> Duration {
    time_class(name).default_timeout()
}

/// Longest timeout of a request for this method; a longer one is reduced to this.
pub fn longest_timeout(name: &str) -> Duration {
    time_class(name).longest_timeout()
}

/// The rights that a client needs to call a method. A method that the catalogue does not list may do anything,
/// so it needs all rights.
pub fn needed_rights(name: &str) -> Rights {
    spec(name).map_or(Rights::ALL, |spec| spec.needs)
}

fn time_class(name: &str) -> TimeClass {
    spec(name).map_or(TimeClass::Reply, |spec| spec.time)
}

fn spec(name: &str) -> Option<&'static MethodSpec> {
    match Method::from_name(name) {
        Some(method) => methods::find(method.name()),
        None => methods::find(name),
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
    fn the_daemon_answers_two_families_of_methods_itself() {
        for name in ["bridge/status", "runtime/register", "bridge/"] {
            assert!(is_own(name), "{name}");
        }
        for name in ["vscode/chat", "bridge", "my/runtime/list", ""] {
            assert!(!is_own(name), "{name}");
        }
    }
}
