//! The editor behind `file_editor` in cells: the editor of the actions, controlled by lines of
//! JSON.
//!
//! A kernel starts it as `openhands-edge edit`, so it runs as the kernel's user and under its
//! policy. It remembers only its own edits, and cannot undo those of `edit` actions.

use std::{
    env,
    io::{self, BufRead, Write},
    path::Path,
};

use sandbox_worker::Worker;
use serde_json::{Map, Value};

use super::execute::relative_path;
use crate::{
    action::{Action, ActionError, Files, Observation},
    event::{self, Answer, ErrorForm, Event},
    tools::FileTools,
};

/// The module for cells, without the line that says how to start the editor.
const SKILLS: &str = include_str!("../skills.py");

/// Python source that provides `file_editor` to cells, with this program as the editor.
pub fn prelude(program: &Path) -> String {
    let program = Value::from(program.to_string_lossy());
    format!("{SKILLS}\nEDITOR[:] = [{program}, \"edit\"]\n")
}

/// Answers each line with one observation, until the end of input. A line has the arguments of an
/// edit or a view.
pub async fn edit_lines(requests: impl BufRead, mut answers: impl Write) -> io::Result<()> {
    let files = Files::new(FileTools::new(Worker::of_this_program()?));
    let directory = env::current_dir()?;
    for request in requests.lines() {
        let answer = match serde_json::from_str(&request?) {
            Ok(arguments) => edit(arguments, &files, &directory).await,
            Err(error) => failed(error.to_string()),
        };
        serde_json::to_writer(&mut answers, &answer)?;
        answers.write_all(b"\n")?;
        answers.flush()?;
    }
    Ok(())
}

async fn edit(
    mut arguments: Map<String, Value>,
    files: &Files<FileTools>,
    directory: &Path,
) -> Answer {
    // A view is a `read` action, which has a range and no command.
    let name = match arguments.get("command").and_then(Value::as_str) {
        Some("view") => {
            arguments.remove("command");
            arguments.insert("impl_source".into(), "oh_aci".into());
            "read"
        }
        _ => "edit",
    };
    let Event { action, context } = match event::parse(name, arguments) {
        Ok(event) => event,
        Err(malformed) => return failed(malformed.to_string()),
    };
    let observed = match action {
        Ok(action) => match relative_path(&action, directory) {
            Some(error) => Err(error),
            None => carry_out(&action, files).await,
        },
        Err(error) => Err(error),
    };
    context.answer(observed, directory, ErrorForm::default())
}

async fn carry_out(action: &Action, files: &Files<FileTools>) -> Result<Observation, ActionError> {
    match action {
        Action::Read(read) => files.read(&read.path, read).await,
        Action::Edit(edit) => files.edit(&edit.path, edit).await,
        _ => unreachable!("edit parses only these two"),
    }
}

/// The observation of a request that could not be parsed.
fn failed(reason: String) -> Answer {
    event::error(&ActionError::Invalid(format!("ERROR:\n{reason}")), ErrorForm::default())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn every_line_is_answered() {
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
        edit_lines(requests.join("\n").as_bytes(), &mut answers).await.unwrap();
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
