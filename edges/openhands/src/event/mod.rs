//! Actions and observations as events: the JSON in which agents of OpenHands (version 0.62) write and read
//! them, with the same keys, in the same words where they look for certain ones.
//!
//! It exists once, for every edge over which agents come. [`parse`] turns an action's name and
//! arguments into an [`Event`], and [`Question::answer`] turns what came of it into JSON; what is done is
//! decided in [`crate::action`].

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

/// Arguments that mean nothing here, and those that only older clients send.
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

/// Actions that clients answer themselves.
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

/// An action as it came.
#[derive(Debug)]
pub struct Event {
    /// The action, or why the agent's arguments make no sense. The agent is told that like any result.
    pub action: Result<Action, ActionError>,
    /// The part of the action that the observation repeats.
    pub question: Question,
}

/// An event that is no action of ours.
#[derive(Debug, thiserror::Error)]
pub enum Malformed {
    /// There is no such kind of action.
    #[error("{0}")]
    UnknownAction(String),
    /// Its arguments have not the right shape.
    #[error("{0}")]
    Arguments(String),
}

/// The part of an action that its observation repeats, or that decides its form.
#[derive(Debug)]
pub struct Question(Asked);

#[derive(Debug)]
enum Asked {
    Run,
    Cell { code: String, include_extra: bool },
    Read { path: String },
    View { path: String },
    Write { path: String },
    Edit { path: String, old: Option<String>, new: Option<String> },
    Browse { interactively: bool },
    Other,
}

/// An action or why there is none, and what its answer has to know.
type Parsed = (Result<Action, ActionError>, Asked);

/// Reads an action. An argument that it does not have is an error.
pub fn parse(name: &str, mut args: Map<String, Value>) -> Result<Event, Malformed> {
    for ignored in IGNORED {
        args.remove(ignored);
    }
    let (action, asked) = match name {
        "run" => arguments::<RunArguments>(name, args)?.into_action(),
        "run_ipython" => {
            let CellArguments { code, include_extra, restart, _kernel_init_code: _ } =
                arguments(name, args)?;
            let asked = Asked::Cell { code: code.clone(), include_extra };
            (Ok(Action::RunIpython(Cell { code, restart })), asked)
        }
        "read" => arguments::<ReadArguments>(name, args)?.into_action(),
        "write" => {
            let WriteArguments { path, content, start, end } = arguments(name, args)?;
            let asked = Asked::Write { path: path.clone() };
            (Ok(Action::Write(Write { path: path.into(), content, start, end })), asked)
        }
        "edit" => arguments::<EditArguments>(name, args)?.into_action()?,
        "browse" => {
            let BrowseArguments { url, _return_axtree: _ } = arguments(name, args)?;
            (Ok(Action::Browse { url }), Asked::Browse { interactively: false })
        }
        "browse_interactive" => {
            let InteractiveArguments { .. } = arguments(name, args)?;
            let error = ActionError::Unavailable("there is no browser to click in".into());
            (Err(error), Asked::Browse { interactively: true })
        }
        "mkdir" => {
            let PathArguments { path } = arguments(name, args)?;
            (Ok(Action::CreateDirectory { path }), Asked::Other)
        }
        "rmdir" => {
            let PathArguments { path } = arguments(name, args)?;
            (Ok(Action::RemoveDirectory { path }), Asked::Other)
        }
        "rm" => {
            let RemoveArguments { path, recursive } = arguments(name, args)?;
            (Ok(Action::Remove { path, recursive }), Asked::Other)
        }
        "close" => {
            let NoArguments {} = arguments(name, args)?;
            (Ok(Action::Close), Asked::Other)
        }
        name if NOT_FOR_SERVERS.contains(&name) => {
            return Err(Malformed::UnknownAction(format!(
                "'{name}' actions are answered by the client and are not for a runtime"
            )));
        }
        name => {
            return Err(Malformed::UnknownAction(format!(
                "'{name}' is not a known action; use one of {}",
                KNOWN.join(", ")
            )));
        }
    };
    Ok(Event { action, question: Question(asked) })
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
        let Value::Object(args) = args else { panic!("{args} is no object") };
        parse(name, args)
    }

    #[test]
    fn what_a_client_adds_is_accepted() {
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
    fn what_is_wrong_is_named() {
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
