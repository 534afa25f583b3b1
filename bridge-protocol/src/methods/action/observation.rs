//! The observation of an action, in exactly the format that OpenHands expects.

use serde::{Deserialize, Serialize};

use super::super::Empty;

/// Result of `action/execute`. Clients of OpenHands build objects from exactly these keys, in this order.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Observation {
    /// A line for people.
    pub message: String,
    /// The `actionId` of the action, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    /// The kind: `run`, `run_ipython`, `read`, `write`, `edit`, `browse`, `success` or `error`.
    pub observation: String,
    /// The text that the agent reads.
    pub content: String,
    /// Further members; each kind of observation has its own.
    #[serde(default)]
    pub extras: Extras,
    /// Whether a command or a cell succeeded. Absent for other kinds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub success: Option<bool>,
}

/// The members of an observation beside its content. The kinds are distinguished by their members, so the order
/// of the variants matters: a variant comes before the variants whose members it includes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Extras {
    /// Members of a `run` observation.
    Run {
        /// The command, as it was sent.
        command: String,
        /// How it ended, and the state of its shell.
        metadata: RunMetadata,
        /// Whether the agent asked for all of the output.
        hidden: bool,
        /// Bytes of output that the log could not keep. The V0 action server leaves this out: clients of
        /// OpenHands do not know the key.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        lost: Option<u64>,
    },
    /// Members of a `run_ipython` observation.
    Cell {
        /// The code, as it was sent.
        code: String,
        /// The pictures that the cell displayed, as data URLs; null if there are none.
        image_urls: Option<Vec<String>>,
        /// Bytes of output that are missing in the content. The V0 action server leaves this out.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        lost: Option<u64>,
    },
    /// Members of an `edit` observation.
    Edit {
        /// The file, as it was named.
        path: String,
        /// Always false, as OpenHands has it.
        prev_exist: bool,
        /// The text that was replaced.
        old_content: Option<String>,
        /// The text in its place.
        new_content: Option<String>,
        /// Always `oh_aci`.
        impl_source: String,
        /// The change as a unified diff.
        diff: String,
        /// Always null, as OpenHands has it.
        #[serde(rename = "_diff_cache")]
        diff_cache: Option<String>,
    },
    /// Members of a `browse` observation.
    Page {
        /// The address that was shown.
        url: String,
        /// Always `browse`.
        trigger_by_action: String,
        /// A picture of the page as a data URL; empty where there is none.
        screenshot: String,
        /// The file of that picture, if it was saved.
        screenshot_path: Option<String>,
        /// Always empty.
        set_of_marks: String,
        /// Whether the page could not be shown, or not in full.
        error: bool,
        /// Always empty.
        goal_image_urls: Vec<String>,
        /// The address of the page, because exactly one page is open.
        open_pages_urls: Vec<String>,
        /// Always 0.
        active_page_index: i64,
        /// Always `{}`.
        dom_object: Empty,
        /// Always `{}`.
        axtree_object: Empty,
        /// Always `{}`.
        extra_element_properties: Empty,
        /// The call that showed the page: `goto("ADDRESS")`.
        last_browser_action: String,
        /// Why the page could not be shown; empty if it was.
        last_browser_action_error: String,
        /// Always empty.
        focused_element_bid: String,
        /// Always false.
        filter_visible_only: bool,
    },
    /// Members of a `read` observation.
    Read {
        /// The file.
        path: String,
        /// `oh_aci` for a view with numbered lines, otherwise `default`.
        impl_source: String,
    },
    /// Members of a `write` observation.
    Written {
        /// The file.
        path: String,
    },
    /// Members of an `error` observation.
    Error {
        /// The class: `unavailable`, `refused`, `outside_workspace`, `not_found`, `permission`, `invalid` or
        /// `internal`.
        error_id: String,
        /// The source of the error. Present only if the action server is configured to show it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        trace: Option<String>,
    },
    /// A `success` observation has no members: `{}`.
    None {},
}

impl Default for Extras {
    fn default() -> Self {
        Self::None {}
    }
}

/// How a command ended, and the state of its shell. The default stands for a command that is still running.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunMetadata {
    /// The exit code; -1 while the command runs.
    pub exit_code: i32,
    /// The latest background process of the shell; -1 if there is none.
    pub pid: i64,
    /// The shell's user.
    pub username: Option<String>,
    /// The machine's name without its domain.
    pub hostname: Option<String>,
    /// The shell's directory.
    pub working_dir: Option<String>,
    /// The Python that the shell would run; empty if there is none.
    pub py_interpreter_path: Option<String>,
    /// A line for the agent before the output.
    pub prefix: String,
    /// A line for the agent after the output: how the command ended, or why the wait for it did.
    pub suffix: String,
}

impl Default for RunMetadata {
    fn default() -> Self {
        Self {
            exit_code: -1,
            pid: -1,
            username: None,
            hostname: None,
            working_dir: None,
            py_interpreter_path: None,
            prefix: String::new(),
            suffix: String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{from_str, from_value, json, to_string};

    use super::*;

    #[test]
    fn members_tell_the_kinds_apart() {
        let read = |text: &str| from_str::<Extras>(text).unwrap();
        assert!(matches!(read("{}"), Extras::None {}));
        assert!(matches!(read(r#"{"path":"a"}"#), Extras::Written { .. }));
        assert!(matches!(read(r#"{"path":"a","impl_source":"default"}"#), Extras::Read { .. }));
        assert!(matches!(read(r#"{"code":"1","image_urls":null}"#), Extras::Cell { .. }));
        assert!(matches!(read(r#"{"error_id":"invalid"}"#), Extras::Error { .. }));
    }

    #[test]
    fn keys_are_printed_in_the_order_that_clients_expect() {
        let run = Observation {
            message: "m".into(),
            observation: "run".into(),
            extras: Extras::Run {
                command: "x".into(),
                metadata: RunMetadata::default(),
                hidden: false,
                lost: None,
            },
            success: Some(false),
            ..Observation::default()
        };
        let text = to_string(&run).unwrap();
        assert_eq!(
            text,
            concat!(
                r#"{"message":"m","observation":"run","content":"","extras":{"command":"x","metadata":"#,
                r#"{"exit_code":-1,"pid":-1,"username":null,"hostname":null,"working_dir":null,"#,
                r#""py_interpreter_path":null,"prefix":"","suffix":""},"hidden":false},"success":false}"#
            )
        );
        assert_eq!(from_str::<Observation>(&text).unwrap(), run);
        let bare: Observation =
            from_value(json!({"message": "", "observation": "success", "content": ""})).unwrap();
        assert_eq!(bare.extras, Extras::None {});
    }
}
