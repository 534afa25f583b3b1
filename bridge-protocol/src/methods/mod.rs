//! One type per method: its name, its parameters, its result. These are the promises to other
//! languages; `vscode-ext` and `vscode_bridge` mirror them, and `tests/wire` holds examples.

pub mod action;
mod bridge;
mod progress;
mod runtime;
pub mod sandbox;
mod vscode;

use serde::Serialize;
use serde::de::DeserializeOwned;

pub use bridge::{
    Hello, HelloParams, HelloResult, Ping, RequestRecord, Shutdown, Status, StatusResult, Tail,
};
pub use progress::{CancelParams, ProgressParams, TextProgress};
pub use runtime::{
    GetRuntime, ListRuntimes, Register, RegisterParams, RegisterResult, RuntimeInfo, RuntimeRef,
    Unregister, Update, UpdateParams,
};
pub use vscode::{
    Chat, ChatMessage, ChatParams, ChatResult, ChatRole, ExecuteCommand, ExecuteCommandParams,
    ExecuteCommandResult, GetChatHistory, GetChatHistoryParams, GetChatHistoryResult, MessageLevel,
    ShowMessage, ShowMessageParams, ShowMessageResult,
};

/// A method as a type.
pub trait MethodType {
    /// The name on the wire.
    const NAME: &'static str;
    /// What the caller sends.
    type Params: Serialize + DeserializeOwned;
    /// What comes back.
    type Result: Serialize + DeserializeOwned;
}

/// Declares methods: a type each, with its name, parameters and result.
macro_rules! methods {
    ($($(#[$doc:meta])* $method:ident = $name:literal: $params:ty => $result:ty;)*) => {$(
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $method;

        impl MethodType for $method {
            const NAME: &'static str = $name;
            type Params = $params;
            type Result = $result;
        }
    )*};
}
use methods;

/// Parameters of a method that takes none, and the result of one that returns none: `{}`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, serde::Deserialize)]
pub struct Empty {}
