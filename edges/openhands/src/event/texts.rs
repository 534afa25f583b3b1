//! The texts that agents read. Texts in which clients look for certain words keep these words.

use std::{path::Path, time::Duration};

use crate::action::{
    ActionError, CellObservation, CellOutcome, Completion, EditOutcome, FileError, FileProblem,
    NothingRunning, Outcome, Page, ReadContent, Renewal, RunObservation,
};
use sandbox_files::{numbered, unified_diff_of_lines};

/// Limit for the characters of a command's output; longer output keeps its beginning and end.
const OUTPUT_CHARACTERS: usize = 30_000;
const OUTPUT_CUT: &str = "\n[... Observation truncated due to length ...]\n";
/// Limit for the characters of a view.
const VIEW_CHARACTERS: usize = 16_000;
/// The whole content of the observation for a binary file.
pub(super) const BINARY_FILE: &str = "ERROR_BINARY_FILE";

/// The whole content of the observation if there is no browser.
pub(super) const NO_BROWSER: &str = "Browser functionality is not supported or disabled.";

/// Advice for a command that is still running.
const CHOICES: &str = "To continue waiting, send an empty command ''; to answer it, send text as input; to \
    interrupt or end it, send C-c, C-z or C-d; next time, give a longer timeout.";

/// Advice for a command that is incomplete.
const UNFINISHED: &str = "It is incomplete: a quote, a heredoc or a compound command is open. Send the rest as \
    input, or C-c to discard it.";

/// The line before the output.
pub(super) fn prefix(observation: &RunObservation) -> String {
    match observation.outcome {
        Outcome::Completed { .. } if !observation.continued => beginning_lost(observation),
        Outcome::Quiet(_) | Outcome::TimedOut(_) | Outcome::Unfinished(_) | Outcome::Busy
            if observation.continued =>
        {
            "[Below is the output of the previous command.]\n".into()
        }
        _ => String::new(),
    }
}

/// A note that only the last lines are shown.
fn beginning_lost(observation: &RunObservation) -> String {
    observation.last_lines.map_or_else(String::new, |lines| {
        format!("[Previous command outputs are truncated. These are the last {lines} lines.]\n")
    })
}

/// The lines after the output.
pub(super) fn suffix(observation: &RunObservation) -> String {
    let mut text = ending(observation);
    if observation.lost > 0 {
        text.push_str(&format!(
            "\n[{} bytes of output were lost, because the log of this shell or its disk is full. Close the shell to \
             begin a new log.]",
            observation.lost
        ));
    }
    text
}

/// How the command ended, or why the wait for it ended.
fn ending(observation: &RunObservation) -> String {
    match &observation.outcome {
        Outcome::Completed { exit_code, key, completion } => {
            let key = key.map(|key| format!(" CTRL+{} was sent.", key.to_ascii_uppercase()));
            let more = match completion {
                Completion::Plain => "",
                Completion::ShellReplaced => {
                    " The shell ended with it. A new one was started in the same directory; \
                     variables, functions and jobs are lost."
                }
                Completion::InputNotSent => {
                    " It ended before your input arrived; the input was not sent."
                }
            };
            let key = key.unwrap_or_default();
            format!("\n[The command completed with exit code {exit_code}.{key}{more}]")
        }
        Outcome::Quiet(limit) => format!(
            "\n[The command has no new output after {} seconds. {CHOICES}]",
            limit.as_secs()
        ),
        // Clients look for the sentence about missing output.
        Outcome::Unfinished(Some(limit)) => format!(
            "\n[The command has no new output after {} seconds. {UNFINISHED} {CHOICES}]",
            limit.as_secs()
        ),
        Outcome::Unfinished(None) => format!("\n[The command has not begun. {UNFINISHED}]"),
        Outcome::TimedOut(limit) => {
            format!("\n[The command timed out after {} seconds. {CHOICES}]", float(*limit))
        }
        Outcome::Busy => format!(
            "\n[Your command \"{}\" is NOT executed. The previous command is still running, and \
             no other can start before it ends; with `is_input` = `true` your text is sent to it. {CHOICES}]",
            observation.command
        ),
        Outcome::NothingRunning(_) => String::new(),
    }
}

/// The output itself.
pub(super) fn output(mut observation: RunObservation) -> String {
    // In other cases clients expect another line before the output, or none.
    let is_in_prefix =
        matches!(observation.outcome, Outcome::Completed { .. }) && !observation.continued;
    if !is_in_prefix {
        observation.content.insert_str(0, &beginning_lost(&observation));
    }
    match observation.outcome {
        Outcome::NothingRunning(NothingRunning::Output) => {
            "ERROR: No previous running command to retrieve logs from.".into()
        }
        Outcome::NothingRunning(NothingRunning::Input) => {
            "ERROR: No previous running command to interact with.".into()
        }
        _ if observation.hidden => observation.content,
        _ => shorten(observation.content),
    }
}

/// The text of a cell's observation.
pub(super) fn cell(cell: &CellObservation, include_extra: bool) -> String {
    let mut text = cell.text.trim_end().to_owned();
    let note = match cell.outcome {
        CellOutcome::TimedOut(limit) => {
            format!("[Execution timed out ({} seconds).]", float(limit))
        }
        CellOutcome::KernelDied => {
            "[The kernel died during this cell and was restarted; variables are lost.]".into()
        }
        CellOutcome::Finished if text.is_empty() && cell.renewal.is_none() => {
            "[Code executed successfully with no output]".into()
        }
        CellOutcome::Finished | CellOutcome::Raised => String::new(),
    };
    if !text.is_empty() && !note.is_empty() {
        text.push('\n');
    }
    text.push_str(&note);
    let renewal = match cell.renewal {
        Some(Renewal::Requested) => {
            "[A new kernel was started; variables of an earlier one are lost.]"
        }
        Some(Renewal::WasStuck) => {
            "[An earlier cell did not end, so a new kernel was started for this one; variables are lost.]"
        }
        None => "",
    };
    if !text.is_empty() && !renewal.is_empty() {
        text.push('\n');
    }
    text.push_str(renewal);
    if include_extra {
        let (cwd, python) = (cell.cwd.display(), cell.python.display());
        text.push_str(&format!("\n[Jupyter current working directory: {cwd}]"));
        text.push_str(&format!("\n[Jupyter Python interpreter: {python}]"));
    }
    text
}

/// The text of a page's observation.
pub(super) fn page(page: &Page) -> String {
    let mut text = format!("[Current URL: {}]\n", page.url);
    if let Some(path) = page.screenshot.as_ref().and_then(|picture| picture.path.as_ref()) {
        text.push_str(&format!("[Screenshot: {}]\n", path.display()));
    }
    match &page.error {
        Some(error) => {
            text.push_str(&format!(
                "== The page could not be shown ==\n{error}\n== End of the error =="
            ));
        }
        None => {
            text.push_str(&format!("== Text of the page ==\n{}\n== End of the page ==", page.text));
        }
    }
    text
}

/// The text of an error that is the whole result.
pub(super) fn error(error: &ActionError) -> String {
    let ActionError::SeveralCommands(commands) = error else { return error.to_string() };
    let mut text = "ERROR: Cannot execute multiple commands at once.\nRun them separately, or \
        join them with && or ;\nThey are:"
        .to_owned();
    for (index, command) in commands.iter().enumerate() {
        text.push_str(&format!("\n({}) {command}", index + 1));
    }
    text
}

/// The text of an error of a plain read or write.
pub(super) fn file_error(error: &ActionError, path: &str, cwd: &Path) -> String {
    let problem = match error {
        ActionError::File(FileError { problem, .. }) => problem,
        ActionError::NotUtf8(path) => {
            return format!("File could not be decoded as utf-8: {}.", path.display());
        }
        error => return error.to_string(),
    };
    match problem {
        FileProblem::Binary => BINARY_FILE.into(),
        FileProblem::NotFound => {
            format!("File not found: {path}. Your current working directory is {}.", cwd.display())
        }
        FileProblem::IsDirectory => {
            format!("Path is a directory: {path}. You can only use files here.")
        }
        _ => error.to_string(),
    }
}

/// The text of an error of the editor.
pub(super) fn editor_error(what: &ActionError, path: &str, old: &str) -> String {
    let (ActionError::File(error) | ActionError::Unwritten(error)) = what else {
        return what.to_string();
    };
    match &error.problem {
        FileProblem::NotFound if matches!(what, ActionError::Unwritten(_)) => {
            let directory = Path::new(path).parent().unwrap_or(Path::new("/")).display();
            format!("Ran into a missing directory, {directory}, while trying to write to {path}")
        }
        FileProblem::NotFound => {
            format!("Invalid `path` parameter: {path}. It does not exist; check the name.")
        }
        FileProblem::Exists => format!(
            "Invalid `path` parameter: {path}. File already exists at: {path}; `create` only makes \
             new ones."
        ),
        FileProblem::TooLarge { size, limit } => format!(
            "File validation failed for {path}: it has {:.1}MB, and {}MB is the maximum.",
            megabytes(*size),
            limit >> 20
        ),
        FileProblem::Binary => {
            format!("File validation failed for {path}: it is binary and cannot be edited as text.")
        }
        FileProblem::SameText => "No replacement was performed. `new_str` and `old_str` must be \
            different."
            .into(),
        FileProblem::NoMatch => format!(
            "No replacement was performed, old_str `{old}` did not appear verbatim in {path}."
        ),
        FileProblem::SeveralMatches(lines) => format!(
            "No replacement was performed. Multiple occurrences of old_str `{old}` in lines {lines:?}. \
             Add lines around it until it is unique."
        ),
        FileProblem::NoHistory => format!("No edit history found for {path}."),
        _ => {
            let doing = if matches!(what, ActionError::File(_)) { "read" } else { "write to" };
            format!("Ran into an error ({error}) while trying to {doing} {path}")
        }
    }
}

/// The text of a view of a file or directory.
pub(super) fn view(path: &str, content: &ReadContent) -> String {
    match content {
        ReadContent::Lines { text, first, only } => {
            let note = match only {
                Some(lines) => {
                    format!("NOTE: The file has only {lines} lines; they are shown to the end.\n")
                }
                None => String::new(),
            };
            clip(&format!("{note}{}", listing(path, text, *first)), CLIPPED_FILE)
        }
        ReadContent::Directory { entries, hidden } => {
            let mut text = format!(
                "Here's the files and directories up to 2 levels deep in {path}, excluding hidden items:\n{}",
                entries.join("\n")
            );
            if *hidden > 0 {
                text.push_str(&format!(
                    "\n\n{hidden} hidden entries are omitted; `ls -la {path}` shows them."
                ));
            }
            clip(&text, CLIPPED_DIRECTORY)
        }
        ReadContent::Text(text) => text.clone(),
        ReadContent::Media { .. } => BINARY_FILE.into(),
    }
}

/// The text of an edit's observation.
pub(super) fn edition(path: &str, edition: &EditOutcome) -> String {
    const REVIEW: &str = "Check that these lines are what you want";
    match edition {
        EditOutcome::Viewed(content) => view(path, content),
        EditOutcome::Created { .. } => format!("File created successfully at: {path}"),
        EditOutcome::Replaced { snippet, first, .. } => {
            let listing = listing(&format!("a snippet of {path}"), snippet, *first);
            let listing = clip(&listing, CLIPPED_FILE);
            format!("The file {path} has been edited. {listing}{REVIEW}; if not, edit again.")
        }
        EditOutcome::Inserted { snippet, first, .. } => {
            let listing =
                clip(&listing("a snippet of the edited file", snippet, *first), CLIPPED_FILE);
            format!(
                "The file {path} has been edited. {listing}{REVIEW}, with correct indentation and without \
                 duplicates; if not, edit again."
            )
        }
        EditOutcome::Undone { after, .. } => {
            format!(
                "Last edit to {path} undone successfully. {}",
                clip(&listing(path, after, 1), CLIPPED_FILE)
            )
        }
    }
}

/// The difference that an edit made, without context lines.
pub(super) fn diff(path: &str, before: &str, after: &str) -> String {
    if before == after {
        return String::new();
    }
    let diff = unified_diff_of_lines(before, after, (path, path));
    let lines = diff.lines().map(str::trim_end).collect::<Vec<_>>();
    lines.join("\n")
}

fn listing(what: &str, text: &str, first: usize) -> String {
    format!("Here's the result of running `cat -n` on {what}:\n{}", numbered(text, first))
}

const CLIPPED_FILE: &str = "<response clipped><NOTE>Only a part of this file is shown. Find the lines that \
    you need with `grep -n` and view them with a range.</NOTE>";
const CLIPPED_DIRECTORY: &str = "<response clipped><NOTE>Only a part of this directory is shown. Use \
    `ls -la` to see all of it.</NOTE>";

fn clip(text: &str, notice: &str) -> String {
    match text.char_indices().nth(VIEW_CHARACTERS) {
        Some((end, _)) => format!("{}{notice}", &text[..end]),
        None => text.to_owned(),
    }
}

/// Keeps the beginning and the end of a text that is too long.
fn shorten(text: String) -> String {
    // There are at most as many characters as bytes.
    if text.len() <= OUTPUT_CHARACTERS {
        return text;
    }
    let half = OUTPUT_CHARACTERS / 2;
    let count = text.chars().count();
    if count <= OUTPUT_CHARACTERS {
        return text;
    }
    let place = |index: usize| text.char_indices().nth(index).map_or(text.len(), |(at, _)| at);
    format!("{}{OUTPUT_CUT}{}", &text[..place(half)], &text[place(count - half)..])
}

/// Seconds as Python prints a float: always with a point.
fn float(duration: Duration) -> String {
    format!("{:?}", duration.as_secs_f64())
}

#[expect(clippy::cast_precision_loss, reason = "it is shown with one digit after the point")]
fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_output_keeps_its_ends() {
        let text = "ä".repeat(15_000) + &"x".repeat(20_000) + &"ö".repeat(15_000);
        let short = shorten(text);
        assert_eq!(short.chars().count(), 30_047);
        assert!(short.starts_with("ää") && short.ends_with("öö"));
        assert!(!short.contains('x'));
        assert_eq!(shorten("ä".repeat(30_000)).chars().count(), 30_000);
    }

    #[test]
    fn a_lost_beginning_is_reported_exactly_once() {
        let observe = |outcome, continued| RunObservation {
            command: String::new(),
            content: "x\ny".into(),
            outcome,
            shell: None,
            continued,
            last_lines: Some(2),
            lost: 0,
            hidden: false,
        };
        let completed =
            || Outcome::Completed { exit_code: 0, key: None, completion: Completion::Plain };
        let quiet = || Outcome::Quiet(Duration::from_secs(1));
        let note = "[Previous command outputs are truncated. These are the last 2 lines.]\n";
        for (outcome, continued) in
            [(completed(), false), (completed(), true), (quiet(), false), (quiet(), true)]
        {
            let observation = observe(outcome, continued);
            let text = prefix(&observation) + &output(observation);
            assert_eq!(text.matches(note).count(), 1, "{text}");
            assert!(text.ends_with("x\ny"), "{text}");
        }
    }

    #[test]
    fn seconds_have_a_point() {
        assert_eq!(float(Duration::from_secs(3)), "3.0");
        assert_eq!(float(Duration::from_millis(2500)), "2.5");
    }

    #[test]
    fn differences_have_no_context() {
        let check = |before: &str, after: &str, hunks: &str| {
            let expected = format!("--- /f\n+++ /f\n{hunks}");
            assert_eq!(diff("/f", before, after), expected);
        };
        check("1\n2\n3\n", "1\nx\ny \n3\n", "@@ -2 +2,2 @@\n-2\n+x\n+y");
        check("1\n", "0\n1\n", "@@ -0,0 +1 @@\n+0");
        check("1\n2\n3\n", "1\n3\n", "@@ -2 +1,0 @@\n-2");
        check("", "a\nb\n", "@@ -0,0 +1,2 @@\n+a\n+b");
        check("", "a", "@@ -1 +1 @@\n-\n+a");
        assert_eq!(diff("/f", "same", "same"), "");
    }
}
