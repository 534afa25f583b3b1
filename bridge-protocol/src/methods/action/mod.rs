//! `action/*`: executes an agent's actions one at a time, in the format of OpenHands. The OpenHands edge serves
//! these methods with the tools of the runtime that the caller chose.

mod observation;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::shell::ShellName;
use super::{Empty, methods};

pub use observation::{Extras, Observation, RunMetadata};

methods! {
    /// `action/execute`: executes an action. An error that the agent should read is a result with an error
    /// observation. The call itself fails only if there is no observation.
    Execute = "action/execute": ExecuteParams => Observation { needs: [Read, Write, Run], time: Job };
    /// `action/cancel`: interrupts a running action, also of another client.
    Cancel = "action/cancel": CancelParams => Empty { needs: [Run], time: Tool };
}

/// Parameters of `action/execute`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExecuteParams {
    /// Kind of action: `run`, `run_ipython`, `read`, `write`, `edit`, `browse`, `mkdir`, `rmdir`, `rm` or
    /// `close`.
    #[serde(default)]
    pub action: String,
    /// Arguments of the action.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub args: Map<String, Value>,
    /// Id of the action, different from those of all other running actions. The observation repeats it as its
    /// `cause`, and `action/cancel` finds the action by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action_id: Option<String>,
    /// Id of the runtime whose tools execute the action.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime_id: Option<String>,
    /// Absolute path in the folders of the runtime whose tools execute the action.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The agent's shell; `agent` when absent. Agents with different shells do not wait for each other.
    #[serde(default = "ShellName::agent", skip_serializing_if = "ShellName::is_agent")]
    pub shell: ShellName,
    /// Stream the output of commands and cells, as `$/progress` with [`OutputPiece`].
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stream: bool,
    /// Timeout in milliseconds. A command that takes longer keeps running; the observation says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<f64>,
}

/// Parameters of `action/cancel`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CancelParams {
    /// The `actionId` that the caller of `action/execute` chose.
    #[serde(default)]
    pub action_id: String,
}

/// A piece of the output of a command or a cell, in order. The daemon may drop pieces for a slow caller. Pieces
/// of commands carry offsets in the log of their shell: a gap between two pieces shows the loss, and
/// `shell/read` returns the missing bytes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OutputPiece {
    /// The text, including terminal escape sequences.
    pub text: String,
    /// Offset of the beginning in the log. Absent for cells and for shells made for one command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<u64>,
    /// Offset of the end in the log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<u64>,
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json, to_value};

    use super::*;

    #[test]
    fn defaults_are_not_printed() {
        let close: ExecuteParams = from_value(json!({"action": "close"})).unwrap();
        assert_eq!(close.shell.0, "agent");
        assert_eq!(to_value(&close).unwrap(), json!({"action": "close"}));
        let other: ExecuteParams = from_value(json!({"action": "close", "shell": "x"})).unwrap();
        assert_eq!(to_value(&other).unwrap(), json!({"action": "close", "shell": "x"}));
    }
}
