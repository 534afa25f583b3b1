//! One type per method: its name, parameters, result, needed rights and timeouts. This is the contract with other
//! languages: `vscode-ext` and `vscode_bridge` mirror these types, and `tests/wire` has golden messages for every
//! method.
//!
//! The `methods!` macro is the only way to declare a method. It makes the catalogue, which [`find`] and [`all`]
//! return as values and [`visit`] shows as types, for tests.

pub mod action;
mod bridge;
pub mod cell;
pub mod file;
pub mod page;
mod progress;
mod runtime;
pub mod shell;
mod vscode;

use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::limits::{TIMEOUT_DEFAULT, TIMEOUT_MAX, TOOL_TIMEOUT_DEFAULT, TOOL_TIMEOUT_MAX};
use crate::rights::{Right, Rights};

pub use bridge::{
    CreateToken, CreateTokenParams, CreateTokenResult, Hello, HelloParams, HelloResult, Ping,
    RequestRecord, Shutdown, Status, StatusResult, Tail,
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

/// A method as a type: name, parameters and result.
pub trait MethodType {
    /// The name on the wire.
    const NAME: &'static str;
    /// Type of the parameters.
    type Params: Serialize + DeserializeOwned;
    /// Type of the result.
    type Result: Serialize + DeserializeOwned;
}

/// A method as a value: the facts that the broker needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MethodSpec {
    /// The name on the wire.
    pub name: &'static str,
    /// The rights that a client needs to call the method.
    pub needs: Rights,
    /// Default and longest timeout of the method.
    pub time: TimeClass,
}

/// Default timeout and longest timeout of a method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeClass {
    /// A model or a person answers: 30 s by default, at most 10 minutes.
    Reply,
    /// The editor answers: 10 s by default, at most 10 minutes.
    Editor,
    /// A shell may be slow to start, a tree large to search: 2 minutes by default, at most a day.
    Tool,
    /// Commands and cells may run for hours and have time limits of their own: a day.
    Job,
}

impl TimeClass {
    /// The timeout of a request that names none.
    pub const fn default_timeout(self) -> Duration {
        match self {
            Self::Reply => TIMEOUT_DEFAULT,
            Self::Editor => Duration::from_secs(10),
            Self::Tool => TOOL_TIMEOUT_DEFAULT,
            Self::Job => TOOL_TIMEOUT_MAX,
        }
    }

    /// The longest timeout; a longer one is reduced to this.
    pub const fn longest_timeout(self) -> Duration {
        match self {
            Self::Reply | Self::Editor => TIMEOUT_MAX,
            Self::Tool | Self::Job => TOOL_TIMEOUT_MAX,
        }
    }
}

/// Receives every method of the catalogue as a type, from [`visit`].
pub trait MethodVisitor {
    /// Receives one method.
    fn method<M: MethodType>(&mut self);
}

/// Declares methods. For each it makes a type, an entry in the catalogue, and a call of the visitor.
macro_rules! methods {
    ($($(#[$doc:meta])* $method:ident = $name:literal: $params:ty => $result:ty {
        needs: [$($right:ident),*], time: $time:ident
    };)*) => {
        $(
            $(#[$doc])*
            #[derive(Debug)]
            pub struct $method;

            impl super::MethodType for $method {
                const NAME: &'static str = $name;
                type Params = $params;
                type Result = $result;
            }
        )*

        pub(super) const SPECS: &[super::MethodSpec] = &[$(super::MethodSpec {
            name: $name,
            needs: super::Rights::of(&[$(super::Right::$right),*]),
            time: super::TimeClass::$time,
        }),*];

        pub(super) fn visit(visitor: &mut impl super::MethodVisitor) {
            $(visitor.method::<$method>();)*
        }
    };
}
use methods;

/// The methods by family, that is by the part of the name before the slash.
const FAMILIES: [(&str, &[MethodSpec]); 8] = [
    ("action", action::SPECS),
    ("bridge", bridge::SPECS),
    ("cell", cell::SPECS),
    ("file", file::SPECS),
    ("page", page::SPECS),
    ("runtime", runtime::SPECS),
    ("shell", shell::SPECS),
    ("vscode", vscode::SPECS),
];

/// The catalogue's entry for a method. `None` for a method that a host has defined itself.
pub fn find(name: &str) -> Option<&'static MethodSpec> {
    let (family, _) = name.split_once('/')?;
    let (_, specs) = FAMILIES.iter().find(|(known, _)| *known == family)?;
    specs.iter().find(|spec| spec.name == name)
}

/// All methods of the catalogue.
pub fn all() -> impl Iterator<Item = &'static MethodSpec> {
    FAMILIES.iter().flat_map(|(_, specs)| specs.iter())
}

/// The names of all methods of one family, such as `shell`.
pub fn names_of(family: &str) -> impl Iterator<Item = &'static str> + use<'_> {
    let found = FAMILIES.iter().filter(move |(known, _)| *known == family);
    found.flat_map(|(_, specs)| specs.iter().map(|spec| spec.name))
}

/// Passes every method of the catalogue to the visitor, as a type.
pub fn visit(visitor: &mut impl MethodVisitor) {
    action::visit(visitor);
    bridge::visit(visitor);
    cell::visit(visitor);
    file::visit(visitor);
    page::visit(visitor);
    runtime::visit(visitor);
    shell::visit(visitor);
    vscode::visit(visitor);
}

/// Parameters of a method without parameters, and result of a method without a result: `{}`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, serde::Deserialize)]
pub struct Empty {}

const fn yes() -> bool {
    true
}

#[allow(clippy::trivially_copy_pass_by_ref)] // The signature that serde asks for.
const fn is_true(value: &bool) -> bool {
    *value
}

#[allow(clippy::trivially_copy_pass_by_ref)] // The signature that serde asks for.
const fn is_zero(value: &u64) -> bool {
    *value == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_distinct_and_found_in_their_family() {
        for spec in all() {
            assert_eq!(find(spec.name), Some(spec));
            assert_eq!(all().filter(|other| other.name == spec.name).count(), 1, "{}", spec.name);
        }
        for name in ["", "file", "file/", "file/fly", "sandbox/readFile"] {
            assert_eq!(find(name), None, "{name}");
        }
        assert!(names_of("shell").any(|name| name == "shell/run"));
        assert_eq!(names_of("nothing").count(), 0);
    }

    #[test]
    fn the_visit_sees_the_whole_catalogue() {
        struct Names(Vec<&'static str>);
        impl MethodVisitor for Names {
            fn method<M: MethodType>(&mut self) {
                self.0.push(M::NAME);
            }
        }
        let mut seen = Names(Vec::new());
        visit(&mut seen);
        assert_eq!(seen.0, all().map(|spec| spec.name).collect::<Vec<_>>());
    }

    #[test]
    fn methods_that_run_or_write_need_that_right() {
        let needs = |name: &str| find(name).unwrap().needs;
        for name in ["shell/run", "shell/input", "cell/run", "page/browse"] {
            assert_eq!(needs(name), Rights::of(&[Right::Run]), "{name}");
        }
        for name in ["file/write", "file/edit", "file/remove"] {
            assert_eq!(needs(name), Rights::of(&[Right::Write]), "{name}");
        }
        assert_eq!(needs("file/read"), Rights::of(&[Right::Read]));
        assert_eq!(needs("vscode/executeCommand"), Rights::of(&[Right::Editor]));
        assert_eq!(needs("action/execute").to_string(), "read,write,run");
        assert_eq!(needs("bridge/status"), Rights::NONE);
    }

    #[test]
    fn defaults_are_optional_and_not_printed() {
        use serde_json::{from_value, json, to_value};

        let write: file::WriteParams = from_value(json!({"path": "a"})).unwrap();
        assert!(write.replace);
        assert_eq!(to_value(&write).unwrap(), json!({"path": "a"}));
        let keep: file::WriteParams = from_value(json!({"replace": false})).unwrap();
        assert_eq!(to_value(&keep).unwrap()["replace"], false);
        let list: file::ListParams = from_value(json!({})).unwrap();
        assert_eq!(list.path, ".");
        assert_eq!(shell::ShellName::default().to_string(), "main");
        let output = |lost: u64| -> shell::CommandOutput {
            from_value(json!({"text": "", "start": 0, "end": 0, "lost": lost})).unwrap()
        };
        assert_eq!(to_value(output(0)).unwrap().get("lost"), None);
        assert_eq!(to_value(output(7)).unwrap()["lost"], 7);
    }
}
