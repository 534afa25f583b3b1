//! Reads, writes and edits files for an agent, with the `file/*` tools of a runtime.

mod access;
mod view;

use std::{
    collections::HashMap,
    ffi::OsStr,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use bridge_protocol::methods::file;
use sandbox_files::{LINES_REPORTED, line_count, media_type_by_name};

use super::{
    ActionError, Edit, EditCommand, EditObservation, EditOutcome, FileError, FileProblem,
    Observation, Read, ReadAs, ReadContent, Write,
    text_edit::{self, TextEdit},
};
use crate::tools::Tools;
use access::Document;

/// Extensions of files that are returned as data.
const MEDIA: [&str; 9] = ["png", "jpg", "jpeg", "bmp", "gif", "pdf", "mp4", "webm", "ogg"];
/// Extensions of documents, which are not edited as text.
const DOCUMENTS: [&str; 8] = ["docx", "xlsx", "pptx", "pdf", "mp3", "wav", "m4a", "flac"];
/// The mode of new files: agent and user often share a group.
const NEW_FILE_MODE: u32 = 0o664;
/// How often a change is tried if others change the file in between.
const ATTEMPTS: usize = 5;
/// Limit for the bytes of created files that are remembered for undo.
const CREATED_BYTES: usize = 8 << 20;

/// The files of a runtime, as an agent uses them. All paths are absolute.
#[derive(Debug)]
pub(crate) struct Files<T> {
    tools: T,
    /// Files that the agent has created, with their first text. Undo never removes a created file;
    /// it only undoes later changes.
    created: Mutex<HashMap<PathBuf, String>>,
}

impl<T: Tools> Files<T> {
    pub(crate) fn new(tools: T) -> Self {
        Self { tools, created: Mutex::default() }
    }

    /// Reads a file. `path` is the absolute path of `read.path`.
    pub(crate) async fn read(&self, path: &Path, read: &Read) -> Result<Observation, ActionError> {
        let (path, content) = match read.form {
            ReadAs::Slice { start, end } => {
                let content = match media_type(path) {
                    Some(media_type) => {
                        ReadContent::Media { media_type, bytes: self.bytes(path).await?.0 }
                    }
                    None => ReadContent::Text(slice(&self.utf8(path).await?, start, end)),
                };
                (path.to_owned(), content)
            }
            ReadAs::View { range } => (read.path.clone(), self.view(path, range).await?),
        };
        Ok(Observation::Read { path, content })
    }

    /// Writes some lines of a file, or the whole file.
    pub(crate) async fn write(&self, path: &Path, write: &Write) -> Result<(), ActionError> {
        let new = write.content.clone() + "\n";
        let mut params = write_params(path, String::new());
        let mut attempts = 0;
        loop {
            attempts += 1;
            match self.bytes(path).await {
                Err(ActionError::File(FileError { problem: FileProblem::NotFound, .. })) => {
                    params.text = Some(new.clone());
                    params.mode = Some(NEW_FILE_MODE);
                }
                Err(error) => return Err(error),
                // Any UTF-8 file can be written by lines, even one that is not text.
                Ok((old, version)) => {
                    let old = String::from_utf8(old)
                        .map_err(|_| ActionError::NotUtf8(path.to_owned()))?;
                    let lines = old.split_inclusive('\n').collect::<Vec<_>>();
                    let place = |line: i64| usize::try_from(line).unwrap_or(0).min(lines.len());
                    let kept = if write.end == -1 { &[] } else { &lines[place(write.end)..] };
                    let text = lines[..place(write.start)].concat() + &new + &kept.concat();
                    params.text = Some(text);
                    params.if_version = version;
                }
            }
            match self.call::<file::Write>(&params).await {
                Err(ActionError::File(error)) if should_retry(&error, attempts) => {}
                written => return written.map(drop),
            }
        }
    }

    /// Saves a screenshot. Returns whether that was possible.
    pub(crate) async fn save_picture(&self, path: &Path, base64: String) -> bool {
        let params = file::WriteParams {
            text: None,
            base64: Some(base64),
            ..write_params(path, String::new())
        };
        match self.call::<file::Write>(&params).await {
            Ok(_) => true,
            Err(error) => {
                tracing::debug!(%error, "cannot save a screenshot");
                false
            }
        }
    }

    /// Changes a file, views it, or undoes a change.
    pub(crate) async fn edit(&self, path: &Path, edit: &Edit) -> Result<Observation, ActionError> {
        self.check_path(path, edit).await?;
        let edition = match &edit.command {
            EditCommand::Invalid { reason, .. } => {
                return Err(ActionError::Invalid(reason.clone()));
            }
            EditCommand::Create { text } => {
                self.create(path, text).await?;
                EditOutcome::Created { text: text.clone() }
            }
            EditCommand::View => EditOutcome::Viewed(self.view(path, None).await?),
            EditCommand::Replace { old, new } => {
                let edited = self.replace(path, old, new).await?;
                let (snippet, first) = edited.snippet();
                EditOutcome::Replaced { before: edited.before, after: edited.after, snippet, first }
            }
            EditCommand::Insert { line, text } => {
                let edited = self.insert(path, *line, text).await?;
                let (snippet, first) = edited.snippet();
                EditOutcome::Inserted { before: edited.before, after: edited.after, snippet, first }
            }
            EditCommand::Undo => self.undo(path).await?,
        };
        Ok(Observation::Edited(EditObservation { path: edit.path.clone(), edition }))
    }

    /// Creates a file in an existing directory.
    async fn create(&self, path: &Path, text: &str) -> Result<(), ActionError> {
        if let Some(parent) = path.parent() {
            self.stat(parent).await.map_err(unwritten)?;
        }
        let params = file::WriteParams { replace: false, ..write_params(path, text.to_owned()) };
        self.call::<file::Write>(&params).await.map_err(unwritten)?;
        let mut created = self.created.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = created.values().map(String::len).sum::<usize>() + text.len();
        if bytes > CREATED_BYTES {
            created.clear();
        }
        created.insert(path.to_owned(), text.to_owned());
        Ok(())
    }

    async fn replace(&self, path: &Path, old: &str, new: &str) -> Result<TextEdit, ActionError> {
        self.change(path, |document| {
            if old.is_empty() {
                if !document.is_utf8 {
                    return Err(ActionError::NotUtf8(path.to_owned()));
                }
                let lines = line_count(&document.text).max(1);
                let lines = (1..=lines.min(LINES_REPORTED)).collect();
                return Err(FileError::new(
                    FileProblem::SeveralMatches(lines),
                    "the text is empty",
                )
                .into());
            }
            let replaced = match text_edit::replace_once(&document.text, old, new) {
                Err(FileProblem::NoMatch) if !old.trim().is_empty() => {
                    text_edit::replace_once(&document.text, old.trim(), new.trim())
                }
                replaced => replaced,
            };
            replaced.map_err(|problem| {
                let text = format!("the text to replace in {}: {problem:?}", path.display());
                FileError::new(problem, text).into()
            })
        })
        .await
    }

    async fn insert(&self, path: &Path, line: i64, text: &str) -> Result<TextEdit, ActionError> {
        self.change(path, |document| {
            let lines = line_count(&document.text);
            match usize::try_from(line).ok().filter(|&line| line <= lines) {
                Some(line) => Ok(text_edit::insert_after(&document.text, line, text)),
                None => Err(no_such_place(line, lines)),
            }
        })
        .await
    }

    /// Reads a file, lets `decide` choose a change, and makes it if nobody else has changed the
    /// file meanwhile.
    async fn change(
        &self,
        path: &Path,
        decide: impl Fn(&Document) -> Result<TextEdit, ActionError>,
    ) -> Result<TextEdit, ActionError> {
        let mut attempts = 0;
        loop {
            attempts += 1;
            let document = self.document(path).await?;
            let edit = decide(&document)?;
            let params = file::EditParams {
                path: path_string(path),
                old_text: edit.old.clone(),
                insert_after: edit.insert_after,
                new_text: edit.new.clone(),
                if_version: document.version,
            };
            match self.call::<file::Edit>(&params).await {
                Ok(_) => return Ok(edit),
                Err(ActionError::File(error)) if should_retry(&error, attempts) => {}
                // Reading succeeded, so this error is about writing.
                Err(error) => return Err(unwritten(error)),
            }
        }
    }

    async fn undo(&self, path: &Path) -> Result<EditOutcome, ActionError> {
        let before = self.text_or_empty(path).await?;
        let params = file::UndoParams { path: path_string(path), force: true };
        match self.call::<file::Undo>(&params).await {
            Ok(_) => {}
            Err(ActionError::File(error)) if error.problem == FileProblem::NoHistory => {
                let created =
                    self.created.lock().unwrap_or_else(PoisonError::into_inner).remove(path);
                let Some(text) = created else { return Err(error.into()) };
                self.call::<file::Write>(&write_params(path, text)).await.map_err(unwritten)?;
            }
            Err(error) => return Err(unwritten(error)),
        }
        let after = self.text_or_empty(path).await?;
        Ok(EditOutcome::Undone { before, after })
    }

    /// Checks the path first: its errors come before errors of other parameters.
    async fn check_path(&self, path: &Path, edit: &Edit) -> Result<(), ActionError> {
        let found = self.stat(path).await;
        let creates = matches!(
            edit.command,
            EditCommand::Create { .. } | EditCommand::Invalid { creates: true, .. }
        );
        let wrong = |hint: &str| ActionError::Argument {
            name: "path",
            value: edit.path.display().to_string(),
            hint: hint.into(),
        };
        match found {
            Ok(_) if creates => {
                let text = format!("{} exists already: choose another name", edit.path.display());
                return Err(FileError::new(FileProblem::Exists, text).into());
            }
            Err(error) if !creates => return Err(error),
            // The runtime cannot be called at all.
            Err(error @ ActionError::Call(_)) => return Err(error),
            _ if edit.command == EditCommand::View => return Ok(()),
            Ok(found) if found.kind == file::FileKind::Directory => {
                return Err(wrong("It is a directory, which can only be viewed."));
            }
            _ => {}
        }
        let extension = edit.path.extension().map(OsStr::to_ascii_lowercase);
        match extension.as_ref().and_then(|extension| extension.to_str()) {
            Some(extension) if DOCUMENTS.contains(&extension) => {
                Err(wrong("It is a document, which cannot be edited as text."))
            }
            _ => Ok(()),
        }
    }
}

/// Whether to read the file and try again, because somebody else has changed it in between.
fn should_retry(error: &FileError, attempts: usize) -> bool {
    error.problem == FileProblem::Changed && attempts < ATTEMPTS
}

fn write_params(path: &Path, text: String) -> file::WriteParams {
    file::WriteParams {
        path: path_string(path),
        text: Some(text),
        base64: None,
        replace: true,
        mode: None,
        if_version: None,
    }
}

/// Turns an error of reading into one of writing.
fn unwritten(error: ActionError) -> ActionError {
    match error {
        ActionError::File(error) => ActionError::Unwritten(error),
        error => error,
    }
}

fn path_string(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// Lines from `start` to before `end`; see [`ReadAs::Slice`].
fn slice(text: &str, start: i64, end: i64) -> String {
    let lines = text.split_inclusive('\n').collect::<Vec<_>>();
    let clamp = |line: i64| usize::try_from(line).unwrap_or(0).min(lines.len());
    let (begin, end) = match end {
        -1 => (clamp(start), lines.len()),
        _ => {
            let begin = clamp(start).min(lines.len().saturating_sub(2));
            (begin, clamp(end).max(begin + 1).min(lines.len()))
        }
    };
    lines[begin.min(end)..end].concat()
}

fn media_type(path: &Path) -> Option<&'static str> {
    let extension = path.extension()?.to_str()?.to_ascii_lowercase();
    MEDIA.contains(&extension.as_str()).then(|| media_type_by_name(path)).flatten()
}

fn no_such_place(line: i64, lines: usize) -> ActionError {
    ActionError::Argument {
        name: "insert_line",
        value: line.to_string(),
        hint: format!("It should be within the range of allowed values: [0, {lines}]"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_are_clamped_as_agents_expect() {
        let text = "1\n2\n3\n4\n";
        for (start, end, expected) in [
            (0, -1, "1\n2\n3\n4\n"),
            (1, 2, "2\n"),
            (0, 1, "1\n"),
            (2, -1, "3\n4\n"),
            (3, 3, "3\n"),
            (10, 20, "3\n4\n"),
            (-5, 2, "1\n2\n"),
            (0, 100, "1\n2\n3\n4\n"),
            (4, 5, "3\n4\n"),
            (2, 4, "3\n4\n"),
            (9, -1, ""),
        ] {
            assert_eq!(slice(text, start, end), expected, "{start}..{end}");
        }
        assert_eq!(slice("", 0, -1), "");
        assert_eq!(slice("", 3, 5), "");
        assert_eq!(slice("x", 0, 0), "x");
    }
}
