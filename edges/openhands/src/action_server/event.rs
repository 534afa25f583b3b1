//! Parses the body of an action request.

use std::time::Duration;

use serde_json::{Map, Value};

use super::failure::Failure;
use crate::event::{self, Event, Malformed};

/// Longer timeouts are reduced to this one: a year, which every clock can add to the present.
const MAX_TIMEOUT: Duration = Duration::from_secs(365 * 24 * 3600);

/// The request of a client.
#[derive(Debug)]
pub(super) struct ActionRequest {
    pub(super) event: Event,
    /// The timeout, if there is one.
    pub(super) timeout: Option<Duration>,
}

pub(super) fn parse(body: &[u8]) -> Result<ActionRequest, Failure> {
    let body: Value = serde_json::from_slice(body)
        .map_err(|error| Failure::unprocessable("body", &format!("not valid JSON: {error}")))?;
    let Value::Object(mut body) = body else {
        return Err(Failure::unprocessable("body", "must be an object with the key `action`"));
    };
    match body.remove("action") {
        Some(Value::Object(event)) => parse_event(event),
        Some(_) => Err(Failure::unprocessable("body.action", "must be an object")),
        None => Err(Failure::unprocessable("body.action", "is missing")),
    }
}

fn parse_event(mut event: Map<String, Value>) -> Result<ActionRequest, Failure> {
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
    let args = match event.remove("args") {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(args)) => args,
        Some(_) => return Err(Failure::invalid("the `args` of an action must be an object")),
    };
    // A timeout of 0 means that there is no limit.
    let timeout = timeout.filter(|limit| !limit.is_zero());
    Ok(ActionRequest { event: event::parse(&name, args)?, timeout })
}

impl From<Malformed> for Failure {
    fn from(malformed: Malformed) -> Self {
        Self::invalid(&malformed.to_string())
    }
}

fn seconds(value: &Value) -> Result<Duration, Failure> {
    let wrong = || Failure::invalid(&format!("timeout must be a number of seconds, not {value}"));
    let seconds = value.as_f64().ok_or_else(wrong)?;
    let limit = Duration::try_from_secs_f64(seconds.max(0.0)).map_err(|_| wrong())?;
    Ok(limit.min(MAX_TIMEOUT))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(event: &Value) -> Result<ActionRequest, Failure> {
        parse(&serde_json::to_vec(&json!({ "action": event })).unwrap())
    }

    #[test]
    fn what_a_client_adds_is_accepted() {
        let request = check(&json!({
            "id": 12, "timestamp": "2025-11-16T01:32:11", "source": "agent", "message": "m",
            "cause": 11, "tool_call_metadata": {}, "llm_metrics": {}, "action": "run",
            "args": {"command": "ls"}, "timeout": 2.5
        }));
        assert_eq!(request.unwrap().timeout, Some(Duration::from_millis(2500)));
    }

    #[test]
    fn no_time_is_no_limit() {
        for timeout in [json!(0), json!(-1.0), json!(null)] {
            let event = json!({"action": "close", "timeout": timeout});
            assert_eq!(check(&event).unwrap().timeout, None);
        }
    }

    #[test]
    fn a_limit_that_no_clock_knows_is_a_long_one() {
        let event = json!({"action": "close", "timeout": 1.8e19});
        assert_eq!(check(&event).unwrap().timeout, Some(MAX_TIMEOUT));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (event, word) in [
            (json!({"action": "run"}), "command"),
            (json!({"action": "dance"}), "dance"),
            (json!({"action": 3}), "string"),
            (json!({"observation": "run"}), "Invalid action type"),
            (json!({}), "Unknown event type"),
            (json!({"action": "run", "args": {"command": "x"}, "timeout": "soon"}), "timeout"),
            (json!({"action": "run", "args": {"command": "x"}, "timeout": 1e300}), "timeout"),
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
