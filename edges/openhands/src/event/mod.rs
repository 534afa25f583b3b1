//! Actions and observations as events: the JSON that agents of OpenHands (version 0.62) write and
//! read. Keys are the same, and so are the words that clients look for.
//!
//! All edges for OpenHands agents use this module. [`parse`] turns an action's name and arguments
//! into an [`Event`], and [`ObservationContext::answer`] turns its result into JSON.
//! [`crate::action`] decides what is done.

mod answer;
mod arguments;
mod texts;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::action::{Action, ActionError, Cell, Write};
use arguments::{
    BrowseArguments, CellArguments, EditArguments, InteractiveArguments, NoArguments,
    PathArguments, ReadArguments, RemoveArguments, RunArguments, WriteArguments,
};

pub use answer::{ErrorForm, error};
pub use bridge_protocol::methods::action::Observation as Answer;

/// Arguments without a meaning here, and arguments that only older clients send.
const IGNORED: [&str; 10] = [
    "thought",
    "security_risk",
    "confirmation_state",
    "is_confirmed",
    "keep_prompt",
    "task_completed",
    "timestamp",
    "translated_ipython_code",
    "image_urls",
    "images_urls",
];

/// Actions that clients carry out themselves.
const NOT_FOR_SERVERS: [&str; 14] = [
    "null",
    "think",
    "finish",
    "reject",
    "delegate",
    "recall",
    "change_agent_state",
    "message",
    "system",
    "condensation",
    "condensation_request",
    "call_tool_mcp",
    "task_tracking",
    "loop_recovery",
];

/// Actions that are carried out.
pub(crate) const KNOWN: [&str; 10] =
    ["run", "run_ipython", "read", "write", "edit", "browse", "mkdir", "rmdir", "rm", "close"];

/// A parsed action.
#[derive(Debug)]
pub struct Event {
    /// The action, or the error in the agent's arguments, which becomes an observation like any
    /// result.
    pub action: Result<Action, ActionError>,
    /// The part of the action that the observation repeats.
    pub context: ObservationContext,
}

/// Why an event could not be parsed.
#[derive(Debug, thiserror::Error)]
pub enum Malformed {
    /// There is no such kind of action.
    #[error("{0}")]
    UnknownAction(String),
    /// The arguments do not have the right form.
    #[error("{0}")]
    Arguments(String),
}

/// The part of an action that its observation repeats, or that decides its form.
#[derive(Debug)]
pub struct ObservationContext(ActionKind);

#[derive(Debug)]
enum ActionKind {
    Run,
    Cell { code: String, include_extra: bool },
    Read { path: String },
    View { path: String },
    Write { path: String },
    Edit { path: String, old: Option<String>, new: Option<String> },
    Browse { interactively: bool },
    Other,
}

/// An action or its error, and the data that its observation needs.
type Parsed = (Result<Action, ActionError>, ActionKind);

/// Parses an action. An unknown argument is an error.
pub fn parse(name: &str, mut args: Map<String, Value>) -> Result<Event, Malformed> {
    for ignored in IGNORED {
        args.remove(ignored);
    }
    let (action, kind) = match name {
        "run" => arguments::<RunArguments>(name, args)?.into_action(),
        "run_ipython" => {
            let CellArguments { code, include_extra, restart, _kernel_init_code: _ } =
                arguments(name, args)?;
            let kind = ActionKind::Cell { code: code.clone(), include_extra };
            (Ok(Action::RunIpython(Cell { code, restart })), kind)
        }
        "read" => arguments::<ReadArguments>(name, args)?.into_action(),
        "write" => {
            let WriteArguments { path, content, start, end } = arguments(name, args)?;
            let kind = ActionKind::Write { path: path.clone() };
            (Ok(Action::Write(Write { path: path.into(), content, start, end })), kind)
        }
        "edit" => arguments::<EditArguments>(name, args)?.into_action()?,
        "browse" => {
            let BrowseArguments { url, _return_axtree: _ } = arguments(name, args)?;
            (Ok(Action::Browse { url }), ActionKind::Browse { interactively: false })
        }
        "browse_interactive" => {
            let InteractiveArguments { .. } = arguments(name, args)?;
            let error = ActionError::Unavailable("interactive browsing is not supported".into());
            (Err(error), ActionKind::Browse { interactively: true })
        }
        "mkdir" => {
            let PathArguments { path } = arguments(name, args)?;
            (Ok(Action::CreateDirectory { path }), ActionKind::Other)
        }
        "rmdir" => {
            let PathArguments { path } = arguments(name, args)?;
            (Ok(Action::RemoveDirectory { path }), ActionKind::Other)
        }
        "rm" => {
            let RemoveArguments { path, recursive } = arguments(name, args)?;
            (Ok(Action::Remove { path, recursive }), ActionKind::Other)
        }
        "close" => {
            let NoArguments {} = arguments(name, args)?;
            (Ok(Action::Close), ActionKind::Other)
        }
        name if NOT_FOR_SERVERS.contains(&name) => {
            return Err(Malformed::UnknownAction(format!(
                "'{name}' actions are carried out by the client, not by a runtime"
            )));
        }
        name => {
            return Err(Malformed::UnknownAction(format!(
                "'{name}' is not a known action; use one of {}",
                KNOWN.join(", ")
            )));
        }
    };
    Ok(Event { action, context: ObservationContext(kind) })
}

fn arguments<T: DeserializeOwned>(name: &str, args: Map<String, Value>) -> Result<T, Malformed> {
    serde_json::from_value(Value::Object(args)).map_err(|error| {
        Malformed::Arguments(format!("the arguments of '{name}' are wrong: {error}"))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::action::{Run, RunIn};

    fn check(name: &str, args: Value) -> Result<Event, Malformed> {
        let Value::Object(args) = args else { panic!("{args} is not an object") };
        parse(name, args)
    }

    #[test]
    fn extra_arguments_of_clients_are_accepted() {
        let event = check(
            "run",
            json!({
                "command": "ls", "is_input": false, "thought": "t", "blocking": true,
                "is_static": true, "cwd": "/tmp", "hidden": true, "confirmation_state": "confirmed",
                "security_risk": 7, "keep_prompt": true, "is_confirmed": "confirmed"
            }),
        );
        let shell = RunIn::Fresh { cwd: Some("/tmp".into()) };
        let command = "ls".into();
        let run = Run { command, input: false, blocking: true, shell, hidden: true };
        assert_eq!(event.unwrap().action.unwrap(), Action::Run(run));
    }

    #[test]
    fn errors_name_the_wrong_part() {
        for (name, args, word) in [
            ("run", json!({}), "command"),
            ("run", json!({"command": "x", "bogus": 1}), "bogus"),
            ("run", json!({"command": 1}), "string"),
            ("edit", json!({"path": "/x", "impl_source": "llm_based_edit"}), "client"),
        ] {
            match check(name, args.clone()).unwrap_err() {
                Malformed::Arguments(text) => assert!(text.contains(word), "{name} {args}: {text}"),
                other => panic!("{name} {args}: {other:?}"),
            }
        }
        for (name, word) in [("dance", "use one of run, "), ("think", "by the client"), ("", "''")]
        {
            match check(name, json!({"bogus": 1})).unwrap_err() {
                Malformed::UnknownAction(text) => assert!(text.contains(word), "{name}: {text}"),
                other => panic!("{name}: {other:?}"),
            }
        }
    }
}
