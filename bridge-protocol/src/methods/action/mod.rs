//! `action/*`: what an agent does, one action at a time, in the words that OpenHands uses. The OpenHands edge
//! serves them, with the tools of the runtime that the caller chose.

mod observation;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::shell::ShellName;
use super::{Empty, methods};

pub use observation::{Extras, Observation, RunMetadata};

methods! {
    /// `action/execute`: carries an action out. An error that an agent should read is a result; an error is
    /// answered only when there is nothing to observe.
    Execute = "action/execute": ExecuteParams => Observation { needs: [Read, Write, Run], within: Work };
    /// `action/cancel`: interrupts an action that is under way, whichever client asked for it.
    Cancel = "action/cancel": CancelParams => Empty { needs: [Run], within: Tool };
}

/// What to do.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExecuteParams {
    /// The kind: `run`, `run_ipython`, `read`, `write`, `edit`, `browse`, `mkdir`, `rmdir`, `rm` or
    /// `close`.
    #[serde(default)]
    pub action: String,
    /// Its arguments.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub args: Map<String, Value>,
    /// A name for it that no other action under way has. The observation repeats it as its `cause`, and
    /// `action/cancel` finds the action by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action_id: Option<String>,
    /// The runtime whose tools carry it out, by its id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime_id: Option<String>,
    /// The runtime whose tools carry it out, by an absolute path in its folders.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The agent's shell; agents that must not wait for one another have one each.
    #[serde(default = "ShellName::agent", skip_serializing_if = "ShellName::is_agent")]
    pub shell: ShellName,
    /// Send what commands and cells print as it comes, as `$/progress` with [`OutputPiece`].
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stream: bool,
    /// Milliseconds until the answer. A command goes on when they are over; the observation says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<f64>,
}

/// Which action to interrupt.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CancelParams {
    /// The name that its caller gave it.
    #[serde(default)]
    pub action_id: String,
}

/// A piece of what a command or a cell prints, in order. A piece may be dropped on the way to a caller
/// that is slow. What a command prints has a place in the log of its shell, which shows the gap;
/// `shell/read` fills it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OutputPiece {
    /// The text, with the escape sequences of a terminal.
    pub text: String,
    /// Where it begins in the log. Cells have none, and neither have shells made for one command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<u64>,
    /// Where it ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<u64>,
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json, to_value};

    use super::*;

    #[test]
    fn what_is_usual_need_not_be_said() {
        let close: ExecuteParams = from_value(json!({"action": "close"})).unwrap();
        assert_eq!(close.shell.0, "agent");
        assert_eq!(to_value(&close).unwrap(), json!({"action": "close"}));
        let other: ExecuteParams = from_value(json!({"action": "close", "shell": "x"})).unwrap();
        assert_eq!(to_value(&other).unwrap(), json!({"action": "close", "shell": "x"}));
    }
}
