//! Prints observations as clients expect them: the same keys, in the same order.

use std::path::Path;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use bridge_protocol::methods::Empty;
use bridge_protocol::methods::action::{Extras, Observation as Answer, RunMetadata};

use super::{ActionKind, ObservationContext, texts};
use crate::action::{
    ActionError, CellObservation, CellOutcome, EditObservation, Executor, FileProblem, Observation,
    Outcome, Page, Picture, ReadContent, RunObservation, Screenshot,
};
use crate::tools::Tools;

/// How errors are reported.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ErrorForm {
    /// Every error is an observation of the kind `error`, with its class. Otherwise errors of the
    /// editor are observations of an edit or a view, as the clients of OpenHands expect; a cell
    /// always counts as successful, and only its PNG pictures are reported.
    pub typed: bool,
    /// Errors contain where they come from, for debugging the server. Clients of OpenHands cannot
    /// read such observations.
    pub traces: bool,
}

impl ObservationContext {
    /// The observation of an action that `executor` has carried out.
    pub async fn observe<T: Tools>(
        &self,
        result: Result<Observation, ActionError>,
        executor: &Executor<T>,
        form: ErrorForm,
    ) -> Answer {
        // Errors about a file that cannot be read or written name the directory.
        let is_about_file = matches!(self.0, ActionKind::Read { .. } | ActionKind::Write { .. });
        let cwd = match result.is_err() && is_about_file {
            true => executor.current_directory().await.unwrap_or_default(),
            false => Default::default(),
        };
        self.answer(result, &cwd, form)
    }

    /// The observation of a result. Relative paths begin in `cwd`.
    pub fn answer(
        &self,
        result: Result<Observation, ActionError>,
        cwd: &Path,
        form: ErrorForm,
    ) -> Answer {
        match result {
            Ok(observation) => of(&self.0, observation, form),
            Err(error) => failed(&self.0, &error, cwd, form),
        }
    }
}

/// The observation of an error if the action is not known.
pub fn error(error: &ActionError, form: ErrorForm) -> Answer {
    of_error(texts::error(error), error, form)
}

fn of(kind: &ActionKind, observation: Observation, form: ErrorForm) -> Answer {
    match observation {
        Observation::Run(run) => of_run(run, form),
        Observation::Cell(cell) => of_cell(kind, cell, form),
        Observation::Read { path, content } => match kind {
            ActionKind::View { path } => match content {
                ReadContent::Media { .. } => binary(),
                content => read(path.clone(), "oh_aci", texts::view(path, &content)),
            },
            _ => read(path.display().to_string(), "default", plain(content)),
        },
        Observation::Written { path } => {
            let path = path.display().to_string();
            let message = format!("Wrote the file {path}.");
            new("write", message, String::new(), Extras::Written { path })
        }
        Observation::Edited(edited) => of_edit(kind, &edited),
        Observation::Browsed(page) => of_page(page),
        Observation::Done { path } => success(format!("Done: {}", path.display())),
        Observation::Closed => success("The shell is closed.".into()),
    }
}

/// The observation of an error, in the form that clients expect for this action: an `error`, or a
/// result that begins with a certain word.
fn failed(kind: &ActionKind, error: &ActionError, cwd: &Path, form: ErrorForm) -> Answer {
    let is_binary = matches!(error, ActionError::File(file) if file.problem == FileProblem::Binary);
    let text = match kind {
        ActionKind::View { .. } if is_binary => texts::BINARY_FILE.into(),
        ActionKind::View { path } => match texts::editor_error(error, path, "") {
            text if form.typed => text,
            text => return read(path.clone(), "oh_aci", format!("ERROR:\n{text}")),
        },
        ActionKind::Edit { path, old, .. } => {
            match texts::editor_error(error, path, old.as_deref().unwrap_or_default()) {
                text if form.typed => text,
                text => return edit(kind, format!("ERROR:\n{text}"), String::new()),
            }
        }
        ActionKind::Read { path } | ActionKind::Write { path } => {
            texts::file_error(error, &cwd.join(path).display().to_string(), cwd)
        }
        ActionKind::Browse { interactively }
            if !form.typed && (*interactively || matches!(error, ActionError::Unavailable(_))) =>
        {
            texts::NO_BROWSER.into()
        }
        ActionKind::Browse { .. }
        | ActionKind::Run
        | ActionKind::Cell { .. }
        | ActionKind::Other => texts::error(error),
    };
    of_error(text, error, form)
}

fn of_error(text: String, error: &ActionError, form: ErrorForm) -> Answer {
    let trace = form.traces.then(|| format!("{error:?}"));
    let extras = Extras::Error { error_id: error.kind().name().to_owned(), trace };
    new("error", text.clone(), text, extras)
}

fn new(observation: &'static str, message: String, content: String, extras: Extras) -> Answer {
    Answer {
        message,
        cause: None,
        observation: observation.to_owned(),
        content,
        extras,
        success: None,
    }
}

fn of_run(run: RunObservation, form: ErrorForm) -> Answer {
    let (prefix, suffix) = (texts::prefix(&run), texts::suffix(&run));
    let exit_code = match run.outcome {
        Outcome::Completed { exit_code, .. } => exit_code,
        _ => -1,
    };
    let (command, hidden) = (run.command.clone(), run.hidden);
    let shell = run.shell.clone();
    let metadata = RunMetadata {
        exit_code,
        pid: shell.as_ref().and_then(|shell| shell.background_pid).map_or(-1, i64::from),
        username: shell.as_ref().map(|shell| shell.user.clone()),
        // Without the domain.
        hostname: shell
            .as_ref()
            .map(|shell| shell.machine.split('.').next().unwrap_or_default().to_owned()),
        working_dir: shell.as_ref().map(|shell| shell.cwd.display().to_string()),
        py_interpreter_path: shell.map(|shell| {
            shell.python.map(|python| python.display().to_string()).unwrap_or_default()
        }),
        prefix,
        suffix,
    };
    let message = format!("Command `{command}` executed with exit code {exit_code}.");
    let lost = (form.typed && run.lost > 0).then_some(run.lost);
    let extras = Extras::Run { command, metadata, hidden, lost };
    let success = Some(exit_code == 0);
    Answer { success, ..new("run", message, texts::output(run), extras) }
}

fn of_cell(kind: &ActionKind, cell: CellObservation, form: ErrorForm) -> Answer {
    let (code, include_extra) = match kind {
        ActionKind::Cell { code, include_extra } => (code.clone(), *include_extra),
        _ => (String::new(), false),
    };
    // Clients of OpenHands expect PNG only.
    let pictures = cell.pictures.iter().filter(|p| form.typed || p.media_type == "image/png");
    let url = |Picture { media_type, base64 }: &_| format!("data:{media_type};base64,{base64}");
    let urls = pictures.map(url).collect::<Vec<_>>();
    let image_urls = (!urls.is_empty()).then_some(urls);
    let lost = (form.typed && cell.omitted_bytes > 0).then_some(cell.omitted_bytes);
    let extras = Extras::Cell { code, image_urls, lost };
    let (message, content) = ("The cell was run.".into(), texts::cell(&cell, include_extra));
    // OpenHands reports every cell as successful, and its clients expect that.
    let success = Some(!form.typed || cell.outcome == CellOutcome::Finished);
    Answer { success, ..new("run_ipython", message, content, extras) }
}

fn read(path: String, impl_source: &str, content: String) -> Answer {
    let message = format!("Read the file {path}.");
    new("read", message, content, Extras::Read { path, impl_source: impl_source.to_owned() })
}

fn of_edit(kind: &ActionKind, edited: &EditObservation) -> Answer {
    let path = edited.path.display().to_string();
    let (before, after) = edited.edition.change();
    let diff = texts::diff(&path, before, after);
    edit(kind, texts::edition(&path, &edited.edition), diff)
}

fn edit(kind: &ActionKind, content: String, diff: String) -> Answer {
    let (path, old_content, new_content) = match kind {
        ActionKind::Edit { path, old, new } => (path.clone(), old.clone(), new.clone()),
        _ => (String::new(), None, None),
    };
    let message = format!("Edited the file {path}.");
    let extras = Extras::Edit {
        path,
        prev_exist: false,
        old_content,
        new_content,
        impl_source: "oh_aci".to_owned(),
        diff,
        diff_cache: None,
    };
    new("edit", message, content, extras)
}

fn of_page(page: Page) -> Answer {
    let content = texts::page(&page);
    let (screenshot, screenshot_path) = match page.screenshot {
        Some(Screenshot { png, path }) => {
            let url = format!("data:image/png;base64,{}", BASE64_STANDARD.encode(png));
            (url, path.map(|path| path.display().to_string()))
        }
        None => (String::new(), None),
    };
    let message = format!("Visited {}", page.url);
    let extras = Extras::Page {
        trigger_by_action: "browse".to_owned(),
        screenshot,
        screenshot_path,
        set_of_marks: String::new(),
        error: page.error.is_some(),
        goal_image_urls: Vec::new(),
        open_pages_urls: vec![page.url.clone()],
        active_page_index: 0,
        dom_object: Empty {},
        axtree_object: Empty {},
        extra_element_properties: Empty {},
        last_browser_action: format!("goto({:?})", page.url),
        last_browser_action_error: page.error.unwrap_or_default(),
        focused_element_bid: String::new(),
        filter_visible_only: false,
        url: page.url,
    };
    new("browse", message, content, extras)
}

fn success(text: String) -> Answer {
    new("success", text.clone(), text, Extras::None {})
}

fn binary() -> Answer {
    let extras = Extras::Error { error_id: "invalid".to_owned(), trace: None };
    new("error", texts::BINARY_FILE.into(), texts::BINARY_FILE.into(), extras)
}

fn plain(content: ReadContent) -> String {
    match content {
        ReadContent::Text(text) | ReadContent::Lines { text, .. } => text,
        ReadContent::Media { media_type, bytes } => {
            format!("data:{media_type};base64,{}", BASE64_STANDARD.encode(bytes))
        }
        ReadContent::Directory { entries, .. } => entries.join("\n"),
    }
}
