//! Reading, writing and editing files for an agent. All of it blocks on the disk.

use std::{ffi::OsStr, path::Path};

use super::{
    ActionError, Edit, EditCommand, EditObservation, Edition, Observation, Read, ReadAs,
    ReadContent, Write,
};
use sandbox_files::{
    self as files, Depth, EDIT_BYTES, Editor, Encoding, Existing, Kind, LineRange, Links,
    ListOptions, Listed, Parents, Undo, WorkspacePath, WriteOptions, line_count, list,
    media_type_by_name, open_file, read_bytes, read_text, select_lines, stat,
};

/// Larger files are not read in one go.
const READ_BYTES: u64 = 64 << 20;
/// Extensions of what is handed over as data.
const MEDIA: [&str; 9] = ["png", "jpg", "jpeg", "bmp", "gif", "pdf", "mp4", "webm", "ogg"];
/// Extensions of documents, which no editor of text shall touch.
const DOCUMENTS: [&str; 8] = ["docx", "xlsx", "pptx", "pdf", "mp3", "wav", "m4a", "flac"];
/// The mode of new files: agent and user are often of one group.
const NEW_FILE_MODE: u32 = 0o664;
/// Lines that are shown before and after a change.
const SNIPPET_CONTEXT: usize = 4;

pub(crate) fn read(place: &WorkspacePath, read: &Read) -> Result<Observation, ActionError> {
    let (path, content) = match read.form {
        ReadAs::Slice { start, end } => {
            let content = match media_type(place.as_path()) {
                Some(media_type) => {
                    ReadContent::Media { media_type, bytes: read_bytes(place, READ_BYTES)? }
                }
                None => ReadContent::Text(slice(&utf8(place)?, start, end)),
            };
            (place.absolute(), content)
        }
        ReadAs::View { range } => (read.path.clone(), view(place, range)?),
    };
    Ok(Observation::Read { path, content })
}

pub(super) fn write(path: &WorkspacePath, write: &Write) -> Result<(), ActionError> {
    let mut new = write.content.clone() + "\n";
    let options = WriteOptions::default();
    let bytes = match read_bytes(path, READ_BYTES) {
        Err(files::Error::NotFound { .. }) => {
            files::write(path, new.as_bytes(), options)?;
            files::set_mode(path, NEW_FILE_MODE)?;
            return Ok(());
        }
        Err(error) => return Err(error.into()),
        // Whatever is UTF-8 has lines, be it for people or not.
        Ok(old) => {
            let old = String::from_utf8(old).map_err(|_| ActionError::NotUtf8(path.absolute()))?;
            let lines = old.split_inclusive('\n').collect::<Vec<_>>();
            let place = |line: i64| usize::try_from(line).unwrap_or(0).min(lines.len());
            let kept = if write.end == -1 { &[] } else { &lines[place(write.end)..] };
            new = lines[..place(write.start)].concat() + &new + &kept.concat();
            new.into_bytes()
        }
    };
    files::write(path, &bytes, options)?;
    Ok(())
}

pub(crate) fn edit(
    path: &WorkspacePath,
    editor: &Editor,
    edit: &Edit,
) -> Result<Observation, ActionError> {
    check_path(path, edit)?;
    let edition = match &edit.command {
        EditCommand::Wrong { reason, .. } => return Err(ActionError::Invalid(reason.clone())),
        EditCommand::Create { text } => {
            // Taking this back shall not remove the file, but only what came later.
            let options = WriteOptions {
                existing: Existing::Refuse,
                parents: Parents::MustExist,
                ..WriteOptions::default()
            };
            files::write(path, text.as_bytes(), options).map_err(ActionError::Unwritten)?;
            editor.remember(path)?;
            Edition::Created { text: text.clone() }
        }
        EditCommand::View => Edition::Viewed(view(path, None)?),
        EditCommand::Replace { old, new } => {
            let edited = match editor.replace_once(path, old, new) {
                Err(files::Error::NoMatch { .. }) if !old.trim().is_empty() => {
                    editor.replace_once(path, old.trim(), new.trim())?
                }
                Err(files::Error::EmptyPattern { path: shown }) => {
                    let lines = line_count(&utf8(path)?).max(1);
                    let error = files::Error::Several {
                        path: shown,
                        count: lines,
                        lines: (1..=lines.min(files::LINES_REPORTED)).collect(),
                    };
                    return Err(error.into());
                }
                edited => edited.map_err(|error| file_error(path, error))?,
            };
            let (before, after) = texts(edited.before, edited.after);
            let first = edited.line.saturating_sub(SNIPPET_CONTEXT) + 1;
            let last = edited.line + SNIPPET_CONTEXT + edited.lines_added;
            let snippet = select_lines(&after, first, last).to_owned();
            Edition::Replaced { before, after, snippet, first }
        }
        EditCommand::Insert { line, text } => {
            let number = usize::try_from(*line).ok();
            let inserted = number.map(|line| editor.insert_after(path, line, &format!("{text}\n")));
            let edited = match inserted {
                Some(Err(files::Error::NoSuchLine { lines, .. })) => {
                    return Err(no_such_place(*line, lines));
                }
                None => return Err(no_such_place(*line, view_lines(path)?)),
                Some(edited) => edited.map_err(|error| file_error(path, error))?,
            };
            let (before, after) = texts(edited.before, edited.after);
            let at = edited.line - 1;
            let first = at.saturating_sub(SNIPPET_CONTEXT) + 1;
            let last = at + SNIPPET_CONTEXT + edited.lines_added;
            let snippet = select_lines(&after, first, last).to_owned();
            Edition::Inserted { before, after, snippet, first }
        }
        EditCommand::Undo => {
            let edited =
                editor.undo(path, Undo::Anyway).map_err(|error| file_error(path, error))?;
            let (before, after) = texts(edited.before, edited.after);
            Edition::Undone { before, after }
        }
    };
    Ok(Observation::Edited(EditObservation { path: edit.path.clone(), edition }))
}

/// What has to be right before the parameters of an edit count.
fn check_path(path: &WorkspacePath, edit: &Edit) -> Result<(), ActionError> {
    let found = stat(path, Links::Follow);
    let creates = matches!(
        edit.command,
        EditCommand::Create { .. } | EditCommand::Wrong { creates: true, .. }
    );
    let wrong = |hint: &str| ActionError::Argument {
        name: "path",
        value: edit.path.display().to_string(),
        hint: hint.into(),
    };
    match found {
        Ok(_) if creates => return Err(files::Error::Exists { path: edit.path.clone() }.into()),
        Err(error) if !creates => return Err(error.into()),
        _ if edit.command == EditCommand::View => return Ok(()),
        Ok(found) if found.kind == Kind::Directory => {
            return Err(wrong("It is a directory, which can be viewed only."));
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

/// Tells whether an edit failed at the reading or at the writing.
fn file_error(path: &WorkspacePath, error: files::Error) -> ActionError {
    match error {
        files::Error::Denied { .. } | files::Error::Io { .. } if open_file(path).is_ok() => {
            ActionError::Unwritten(error)
        }
        error => error.into(),
    }
}

fn view(path: &WorkspacePath, range: Option<[i64; 2]>) -> Result<ReadContent, ActionError> {
    let is_directory = stat(path, Links::Follow)?.kind == Kind::Directory;
    let Some([first, last]) = range else {
        return if is_directory { view_directory(path) } else { view_whole(path) };
    };
    let wrong = |hint: String| ActionError::Argument {
        name: "view_range",
        value: format!("[{first}, {last}]"),
        hint,
    };
    if is_directory {
        return Err(wrong("A directory has no lines; leave the range out.".into()));
    }
    let text = text_to_edit(path)?;
    let lines = line_count(&text);
    let from = usize::try_from(first).unwrap_or(0);
    if from < 1 || from > lines {
        return Err(wrong(format!("The first line must be one of the file's: 1 to {lines}.")));
    }
    if last != -1 && last < first {
        return Err(wrong("The last line must not come before the first.".into()));
    }
    let to = usize::try_from(last).unwrap_or(lines);
    let chosen = select_lines(&text, from, to.min(lines));
    let chosen = chosen.strip_suffix('\n').unwrap_or(chosen);
    Ok(ReadContent::Lines {
        text: chosen.to_owned(),
        first: from,
        only: (to > lines).then_some(lines),
    })
}

fn view_whole(path: &WorkspacePath) -> Result<ReadContent, ActionError> {
    Ok(ReadContent::Lines { text: text_to_edit(path)?, first: 1, only: None })
}

fn view_directory(path: &WorkspacePath) -> Result<ReadContent, ActionError> {
    let listing = list(path, ListOptions { depth: Depth::Two, ..ListOptions::default() })?;
    let top = path.absolute().display().to_string();
    let top = top.trim_end_matches('/');
    let show = |entry: &Listed| {
        let is_directory = entry.target.unwrap_or(entry.kind) == Kind::Directory;
        format!("{top}/{}{}", entry.path.display(), if is_directory { "/" } else { "" })
    };
    let mut entries = vec![format!("{top}/")];
    entries.extend(listing.entries.iter().map(show));
    Ok(ReadContent::Directory { entries, hidden: listing.hidden_left_out })
}

/// The text of a file as it is edited: in any encoding, with `\n` for every line end.
fn text_to_edit(path: &WorkspacePath) -> Result<String, ActionError> {
    let text = read_text(path, LineRange::All, EDIT_BYTES)?.content;
    Ok(if text.contains('\r') { text.replace("\r\n", "\n") } else { text })
}

fn view_lines(path: &WorkspacePath) -> Result<usize, ActionError> {
    Ok(line_count(&text_to_edit(path)?))
}

fn utf8(path: &WorkspacePath) -> Result<String, ActionError> {
    let text = read_text(path, LineRange::All, READ_BYTES)?;
    match text.encoding {
        Encoding::Utf8 => Ok(text.content),
        // The mark is a part of the lines that are kept.
        Encoding::Utf8WithMark => Ok(format!("\u{feff}{}", text.content)),
        _ => Err(ActionError::NotUtf8(path.absolute())),
    }
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

fn texts(before: Option<String>, after: Option<String>) -> (String, String) {
    (before.unwrap_or_default(), after.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_are_clamped_as_agents_know_it() {
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
