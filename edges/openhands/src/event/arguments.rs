//! The arguments of each action. An unknown argument is an error.

use std::path::PathBuf;

use serde::Deserialize;
use serde_json::Value;

use super::{ActionKind, Malformed, Parsed};
use crate::action::{Action, ActionError, Edit, EditCommand, Read, ReadAs, Run, RunIn};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RunArguments {
    command: String,
    #[serde(default)]
    is_input: bool,
    #[serde(default)]
    blocking: bool,
    #[serde(default)]
    is_static: bool,
    #[serde(default)]
    cwd: Option<PathBuf>,
    #[serde(default)]
    hidden: bool,
}

impl RunArguments {
    pub(super) fn into_action(self) -> Parsed {
        let Self { command, is_input: input, blocking, is_static, cwd, hidden } = self;
        let shell = if is_static { RunIn::Fresh { cwd } } else { RunIn::Main };
        let run = Run { command, input, blocking, shell, hidden };
        (Ok(Action::Run(run)), ActionKind::Run)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CellArguments {
    pub(super) code: String,
    #[serde(default = "yes")]
    pub(super) include_extra: bool,
    #[serde(default)]
    pub(super) restart: bool,
    #[serde(default, rename = "kernel_init_code")]
    pub(super) _kernel_init_code: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ReadArguments {
    path: String,
    #[serde(default)]
    start: i64,
    #[serde(default = "minus_one")]
    end: i64,
    #[serde(default)]
    impl_source: Source,
    #[serde(default)]
    view_range: Option<Vec<i64>>,
}

/// The reader or editor that a client asks for.
#[derive(Deserialize, Default, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
enum Source {
    #[default]
    Default,
    OhAci,
    LlmBasedEdit,
}

impl ReadArguments {
    pub(super) fn into_action(self) -> Parsed {
        let Self { path, start, end, impl_source, view_range } = self;
        let read = |form| Ok(Action::Read(Read { path: path.clone().into(), form }));
        if impl_source != Source::OhAci {
            return (read(ReadAs::Slice { start, end }), ActionKind::Read { path: path.clone() });
        }
        let range = match view_range.map(<[i64; 2]>::try_from) {
            None => Ok(None),
            Some(Ok(range)) => Ok(Some(range)),
            Some(Err(given)) => Err(ActionError::Argument {
                name: "view_range",
                value: format!("{given:?}"),
                hint: "Give two integers: the first and the last line.".into(),
            }),
        };
        let action = range.and_then(|range| read(ReadAs::View { range }));
        (action, ActionKind::View { path: path.clone() })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WriteArguments {
    pub(super) path: String,
    pub(super) content: String,
    #[serde(default)]
    pub(super) start: i64,
    #[serde(default = "minus_one")]
    pub(super) end: i64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EditArguments {
    path: String,
    #[serde(default)]
    command: String,
    #[serde(default)]
    file_text: Option<String>,
    #[serde(default)]
    old_str: Option<String>,
    #[serde(default)]
    new_str: Option<String>,
    #[serde(default)]
    insert_line: Option<Value>,
    // For editors in the client, which the edge does not have.
    #[serde(default, rename = "content")]
    _content: String,
    #[serde(default, rename = "start")]
    _start: i64,
    #[serde(default, rename = "end")]
    _end: i64,
    #[serde(default)]
    impl_source: Source,
}

impl EditArguments {
    pub(super) fn into_action(self) -> Result<Parsed, Malformed> {
        if self.impl_source == Source::LlmBasedEdit {
            let reason = "edits by a language model are made by the client";
            return Err(Malformed::Arguments(reason.into()));
        }
        let Self { path, command, file_text, old_str, new_str, insert_line, .. } = self;
        let kind =
            ActionKind::Edit { path: path.clone(), old: old_str.clone(), new: new_str.clone() };
        let needed = |name: &str, value: Option<String>| {
            value.ok_or_else(|| format!("Parameter `{name}` is required for command: {command}."))
        };
        let edit = match command.as_str() {
            "view" => Ok(EditCommand::View),
            "create" => needed("file_text", file_text).map(|text| EditCommand::Create { text }),
            "str_replace" => needed("old_str", old_str)
                .map(|old| EditCommand::Replace { old, new: new_str.unwrap_or_default() }),
            "insert" => match insert_line {
                None => needed("insert_line", None).map(|_| EditCommand::View),
                Some(line) => line_number(&line).and_then(|line| {
                    needed("new_str", new_str).map(|text| EditCommand::Insert { line, text })
                }),
            },
            "undo_edit" => Ok(EditCommand::Undo),
            _ => Err(format!(
                "Unrecognized command {command}: use view, create, str_replace, insert or undo_edit."
            )),
        };
        let creates = command == "create";
        let command = edit.unwrap_or_else(|reason| EditCommand::Invalid { creates, reason });
        Ok((Ok(Action::Edit(Edit { path: path.into(), command })), kind))
    }
}

/// A number, or a string that contains one.
fn line_number(line: &Value) -> Result<i64, String> {
    let number = match line {
        Value::Number(number) => number.as_i64(),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    };
    number.ok_or_else(|| format!("Invalid insert_line value: {line}; it must be a whole number."))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct BrowseArguments {
    pub(super) url: String,
    #[serde(default, rename = "return_axtree")]
    pub(super) _return_axtree: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct InteractiveArguments {
    #[serde(rename = "browser_actions")]
    pub(super) _browser_actions: String,
    #[serde(default, rename = "browsergym_send_msg_to_user")]
    pub(super) _message: String,
    #[serde(default, rename = "return_axtree")]
    pub(super) _return_axtree: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PathArguments {
    pub(super) path: PathBuf,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RemoveArguments {
    pub(super) path: PathBuf,
    #[serde(default)]
    pub(super) recursive: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NoArguments {}

fn yes() -> bool {
    true
}

fn minus_one() -> i64 {
    -1
}
