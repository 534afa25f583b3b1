//! The editor behind `file_editor` in cells: the one of the actions, asked in lines of JSON.
//!
//! A kernel starts it as `openhands-edge edit`, so it has the kernel's user and walls. It remembers its own edits
//! only; those of `edit` actions are the server's to take back.

use std::{
    env,
    io::{self, BufRead, Write},
    path::Path,
};

use serde_json::{Map, Value};

use super::execute::relative_path;
use crate::{
    action::{self, Action, ActionError},
    event::{self, Answer, ErrorForm, Event},
};
use sandbox_files::{Editor, Workspace};

/// Answers each line, the arguments of an edit or a view, with one observation, until there are no more.
pub fn edit_lines(requests: impl BufRead, mut answers: impl Write) -> io::Result<()> {
    let (editor, directory) = (Editor::default(), env::current_dir()?);
    for request in requests.lines() {
        let answer = match serde_json::from_str(&request?) {
            Ok(arguments) => edit(arguments, &editor, &directory),
            Err(error) => failed(error.to_string()),
        };
        serde_json::to_writer(&mut answers, &answer)?;
        answers.write_all(b"\n")?;
        answers.flush()?;
    }
    Ok(())
}

fn edit(mut arguments: Map<String, Value>, editor: &Editor, directory: &Path) -> Answer {
    // Only a view has a range, and it has no other command.
    let name = match arguments.get("command").and_then(Value::as_str) {
        Some("view") => {
            arguments.remove("command");
            arguments.insert("impl_source".into(), "oh_aci".into());
            "read"
        }
        _ => "edit",
    };
    let Event { action, question } = match event::parse(name, arguments) {
        Ok(event) => event,
        Err(malformed) => return failed(malformed.to_string()),
    };
    let observed = action.and_then(|action| match relative_path(&action, directory) {
        Some(error) => Err(error),
        None => carry_out(&action, editor),
    });
    question.answer(observed, directory, ErrorForm::default())
}

fn carry_out(action: &Action, editor: &Editor) -> Result<action::Observation, ActionError> {
    let workspace = Workspace::whole_file_system();
    match action {
        Action::Read(read) => action::read(&workspace.path(&read.path)?, read),
        Action::Edit(edit) => action::edit(&workspace.path(&edit.path)?, editor, edit),
        _ => unreachable!("only these two are parsed"),
    }
}

/// As the editor tells of what it does not understand.
fn failed(reason: String) -> Answer {
    Answer::error(&ActionError::Invalid(format!("ERROR:\n{reason}")), ErrorForm::default())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_line_is_answered() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("f");
        let path = path.to_str().unwrap();
        let requests = [
            json!({"command": "create", "path": path, "file_text": "1\n2\n"}).to_string(),
            json!({"command": "view", "path": path, "view_range": [2, 2]}).to_string(),
            "no JSON".into(),
            json!({"command": "view", "path": path, "old_str": "x"}).to_string(),
            json!({"command": "dance", "path": path}).to_string(),
            json!({"command": "view", "path": "relative"}).to_string(),
            json!({"command": "str_replace", "path": path, "old_str": "2", "new_str": "3"})
                .to_string(),
            json!({"command": "undo_edit", "path": path}).to_string(),
        ];
        let mut answers = Vec::new();
        edit_lines(requests.join("\n").as_bytes(), &mut answers).unwrap();
        let answers = String::from_utf8(answers).unwrap();
        let contents = answers.lines().map(|line| {
            let answer: Value = serde_json::from_str(line).unwrap();
            answer["content"].as_str().unwrap().to_owned()
        });
        for (content, word) in contents.zip([
            "File created successfully",
            "     2\t2",
            "ERROR:\nexpected",
            "ERROR:\nthe arguments of 'read' are wrong: unknown field `old_str`",
            "ERROR:\nUnrecognized command",
            "ERROR:\nInvalid `path` parameter",
            "has been edited",
            "undone successfully",
        ]) {
            assert!(content.contains(word), "{content}");
        }
        assert_eq!(answers.lines().count(), requests.len());
    }
}
