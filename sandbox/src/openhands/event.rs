//! Events as clients send them, and the actions that they mean.

use std::time::Duration;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::{
    arguments::{
        BrowseArguments, CellArguments, EditArguments, InteractiveArguments, NoArguments,
        PathArguments, ReadArguments, RemoveArguments, RunArguments, WriteArguments,
    },
    failure::Failure,
};
use crate::action::{Action, ActionError, Request, Write};

/// Arguments that mean nothing to a server, and those that only older clients send.
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

/// Actions that a server carries out.
const KNOWN: [&str; 10] =
    ["run", "run_ipython", "read", "write", "edit", "browse", "mkdir", "rmdir", "rm", "close"];

/// An action as it came.
#[derive(Debug)]
pub(super) struct Event {
    /// What to do, or why an agent's arguments make no sense, which it is told like any result.
    pub(super) request: Result<Request, ActionError>,
    pub(super) asked: Asked,
}

/// What the answer has to know of the question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Asked {
    Run,
    Cell { code: String, include_extra: bool },
    Read { path: String },
    View { path: String },
    Write { path: String },
    Edit { path: String, old: Option<String>, new: Option<String> },
    Browse { interactively: bool },
    Other,
}

/// Reads the body of a request.
pub(super) fn parse(body: &[u8]) -> Result<Event, Failure> {
    let body: Value = serde_json::from_slice(body)
        .map_err(|error| Failure::unprocessable("body", &format!("it is not JSON: {error}")))?;
    let Value::Object(mut body) = body else {
        return Err(Failure::unprocessable("body", "it must be an object with the key `action`"));
    };
    match body.remove("action") {
        Some(Value::Object(event)) => parse_event(event),
        Some(_) => Err(Failure::unprocessable("body.action", "it must be an object")),
        None => Err(Failure::unprocessable("body.action", "it is missing")),
    }
}

fn parse_event(mut event: Map<String, Value>) -> Result<Event, Failure> {
    let name = match event.remove("action") {
        Some(Value::String(name)) => name,
        Some(_) => return Err(Failure::invalid("the name of an action must be a string")),
        None if event.contains_key("observation") => {
            return Err(Failure::invalid("Invalid action type: this is an observation"));
        }
        None => return Err(Failure::invalid("Unknown event type: it has no key `action`")),
    };
    let timeout = match event.remove("timeout") {
        None | Some(Value::Null) => None,
        Some(value) => Some(seconds(&value)?),
    };
    let mut args = match event.remove("args") {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(args)) => args,
        Some(_) => return Err(Failure::invalid("the `args` of an action must be an object")),
    };
    for ignored in IGNORED {
        args.remove(ignored);
    }
    let (action, asked) = parse_action(&name, args)?;
    // A limit of nothing means that there is none.
    let timeout = timeout.filter(|limit| !limit.is_zero());
    Ok(Event { request: action.map(|action| Request { action, timeout }), asked })
}

/// An action or why there is none, and what its answer has to know.
pub(super) type Parsed = (Result<Action, ActionError>, Asked);

fn parse_action(name: &str, args: Map<String, Value>) -> Result<Parsed, Failure> {
    Ok(match name {
        "run" => arguments::<RunArguments>(name, args)?.into_action(),
        "run_ipython" => {
            let CellArguments { code, include_extra, _kernel_init_code: _ } =
                arguments(name, args)?;
            let asked = Asked::Cell { code: code.clone(), include_extra };
            (Ok(Action::RunIpython { code }), asked)
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
            return Err(Failure::invalid(&format!(
                "'{name}' actions are answered by the client and are not for a runtime"
            )));
        }
        name => {
            return Err(Failure::invalid(&format!(
                "'{name}' is not a known action; use one of {}",
                KNOWN.join(", ")
            )));
        }
    })
}

/// Takes the arguments of an action; an argument that it does not have is an error.
fn arguments<T: DeserializeOwned>(name: &str, args: Map<String, Value>) -> Result<T, Failure> {
    serde_json::from_value(Value::Object(args))
        .map_err(|error| Failure::invalid(&format!("the arguments of '{name}' are wrong: {error}")))
}

fn seconds(value: &Value) -> Result<Duration, Failure> {
    let wrong = || Failure::invalid(&format!("timeout must be a number of seconds, not {value}"));
    let seconds = value.as_f64().ok_or_else(wrong)?;
    Duration::try_from_secs_f64(seconds.max(0.0)).map_err(|_| wrong())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::action::{Run, RunIn};

    fn check(event: &Value) -> Result<Event, Failure> {
        parse(&serde_json::to_vec(&json!({ "action": event })).unwrap())
    }

    #[test]
    fn what_a_client_adds_is_accepted() {
        let event = check(&json!({
            "id": 12, "timestamp": "2025-11-16T01:32:11", "source": "agent", "message": "m",
            "cause": 11, "tool_call_metadata": {}, "llm_metrics": {}, "action": "run",
            "args": {
                "command": "ls", "is_input": false, "thought": "t", "blocking": true,
                "is_static": true, "cwd": "/tmp", "hidden": true, "confirmation_state": "confirmed",
                "security_risk": 7, "keep_prompt": true, "is_confirmed": "confirmed"
            },
            "timeout": 2.5
        }));
        let request = event.unwrap().request.unwrap();
        assert_eq!(request.timeout, Some(Duration::from_millis(2500)));
        let shell = RunIn::Fresh { cwd: Some("/tmp".into()) };
        let command = "ls".into();
        let run = Run { command, input: false, blocking: true, shell, hidden: true };
        assert_eq!(request.action, Action::Run(run));
    }

    #[test]
    fn no_time_is_no_limit() {
        for timeout in [json!(0), json!(-1.0), json!(null)] {
            let event = json!({"action": "close", "timeout": timeout});
            assert_eq!(check(&event).unwrap().request.unwrap().timeout, None);
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (event, word) in [
            (json!({"action": "run"}), "command"),
            (json!({"action": "run", "args": {"command": "x", "bogus": 1}}), "bogus"),
            (json!({"action": "run", "args": {"command": 1}}), "string"),
            (json!({"action": "dance"}), "dance"),
            (json!({"action": "think", "args": {"thought": "x"}}), "think"),
            (json!({"action": 3}), "string"),
            (json!({"observation": "run"}), "Invalid action type"),
            (json!({}), "Unknown event type"),
            (json!({"action": "run", "args": {"command": "x"}, "timeout": "soon"}), "timeout"),
            (json!({"action": "run", "args": {"command": "x"}, "timeout": 1e300}), "timeout"),
            (
                json!({"action": "edit", "args": {"path": "/x", "impl_source": "llm_based_edit"}}),
                "client",
            ),
        ] {
            let failure = check(&event).unwrap_err();
            assert_eq!(failure.status(), 400, "{event}");
            assert!(failure.detail().contains(word), "{event}: {failure:?}");
        }
    }

    #[test]
    fn a_body_of_another_shape_is_unprocessable() {
        for body in ["", "[]", "{}", "{\"action\": 1}", "nonsense"] {
            assert_eq!(parse(body.as_bytes()).unwrap_err().status(), 422, "{body}");
        }
    }
}
