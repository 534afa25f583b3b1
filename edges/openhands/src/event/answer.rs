//! Observations as clients expect them: the same keys, in the same order.

use std::path::Path;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde::Serialize;

use super::{Asked, Question, texts};
use crate::action::{
    ActionError, CellObservation, CellOutcome, EditObservation, Observation, Outcome, Page,
    Picture, ReadContent, RunObservation, Screenshot,
};

/// One observation. Clients build their own objects from exactly these keys.
#[derive(Debug, Serialize)]
pub struct Answer {
    message: String,
    /// The name of the action, if its sender gave it one.
    #[serde(skip_serializing_if = "Option::is_none")]
    cause: Option<String>,
    observation: &'static str,
    content: String,
    extras: Extras,
    #[serde(skip_serializing_if = "Option::is_none")]
    success: Option<bool>,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Extras {
    Run {
        command: String,
        metadata: Metadata,
        hidden: bool,
        /// Bytes of output that could not be kept. Not for clients of OpenHands, who do not know this key.
        #[serde(skip_serializing_if = "Option::is_none")]
        lost: Option<u64>,
    },
    Cell {
        code: String,
        image_urls: Option<Vec<String>>,
        /// The same for a cell.
        #[serde(skip_serializing_if = "Option::is_none")]
        lost: Option<u64>,
    },
    Read {
        path: String,
        impl_source: &'static str,
    },
    Written {
        path: String,
    },
    Edit {
        path: String,
        prev_exist: bool,
        old_content: Option<String>,
        new_content: Option<String>,
        impl_source: &'static str,
        diff: String,
        #[serde(rename = "_diff_cache")]
        diff_cache: Option<String>,
    },
    Page {
        url: String,
        trigger_by_action: &'static str,
        screenshot: String,
        screenshot_path: Option<String>,
        set_of_marks: &'static str,
        error: bool,
        goal_image_urls: [String; 0],
        open_pages_urls: Vec<String>,
        active_page_index: i64,
        dom_object: Empty,
        axtree_object: Empty,
        extra_element_properties: Empty,
        last_browser_action: String,
        last_browser_action_error: String,
        focused_element_bid: &'static str,
        filter_visible_only: bool,
    },
    Error {
        error_id: &'static str,
        /// Only on request: clients do not know this key.
        #[serde(skip_serializing_if = "Option::is_none")]
        trace: Option<String>,
    },
    None {},
}

#[derive(Debug, Serialize)]
struct Empty {}

/// What is known of the shell; the defaults say that a command runs.
#[derive(Debug, Serialize)]
struct Metadata {
    exit_code: i32,
    pid: i64,
    username: Option<String>,
    hostname: Option<String>,
    working_dir: Option<String>,
    py_interpreter_path: Option<String>,
    prefix: String,
    suffix: String,
}

/// How errors are told.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ErrorForm {
    /// Every error is an observation of the kind `error`, with its class. Otherwise the errors of an
    /// editor are observations of an edit or a view, as the clients of OpenHands know them, a cell
    /// has always succeeded, and its pictures are PNG.
    pub typed: bool,
    /// Errors tell where they come from. Only for looking into the server: clients of OpenHands cannot
    /// read such answers.
    pub traces: bool,
}

impl Question {
    /// What came of it, in JSON. `cwd` is the directory in which relative paths begin.
    pub fn answer(
        &self,
        result: Result<Observation, ActionError>,
        cwd: &Path,
        form: ErrorForm,
    ) -> Answer {
        match result {
            Ok(observation) => Answer::of(&self.0, observation, form),
            Err(error) => Answer::failed(&self.0, &error, cwd, form),
        }
    }
}

impl Answer {
    /// What is told of an error when nothing is known of the action.
    pub fn error(error: &ActionError, form: ErrorForm) -> Self {
        Self::of_error(texts::error(error), error, form)
    }

    /// The same as the answer to the action of this name.
    #[must_use]
    pub fn caused_by(self, cause: Option<String>) -> Self {
        Self { cause, ..self }
    }

    fn of(asked: &Asked, observation: Observation, form: ErrorForm) -> Self {
        match observation {
            Observation::Run(run) => Self::run(run, form),
            Observation::Cell(cell) => Self::cell(asked, cell, form),
            Observation::Read { path, content } => match asked {
                Asked::View { path } => match content {
                    ReadContent::Media { .. } => Self::binary(),
                    content => Self::read(path.clone(), "oh_aci", texts::view(path, &content)),
                },
                _ => Self::read(path.display().to_string(), "default", plain(content)),
            },
            Observation::Written { path } => {
                let path = path.display().to_string();
                let message = format!("Wrote the file {path}.");
                Self::new("write", message, String::new(), Extras::Written { path })
            }
            Observation::Edited(edited) => Self::edited(asked, &edited),
            Observation::Browsed(page) => Self::page(page),
            Observation::Done { path } => Self::success(format!("Done: {}", path.display())),
            Observation::Closed => Self::success("The shell is closed.".into()),
        }
    }

    /// What went wrong is told in the way of the action: some are `error`s, some are results that
    /// begin with a certain word.
    fn failed(asked: &Asked, error: &ActionError, cwd: &Path, form: ErrorForm) -> Self {
        use sandbox_files::Error;
        let is_binary = matches!(error, ActionError::File(Error::Binary { .. }));
        let text = match asked {
            Asked::View { .. } if is_binary => texts::BINARY_FILE.into(),
            Asked::View { path } => match texts::editor_error(error, path, "") {
                text if form.typed => text,
                text => return Self::read(path.clone(), "oh_aci", format!("ERROR:\n{text}")),
            },
            Asked::Edit { path, old, .. } => {
                match texts::editor_error(error, path, old.as_deref().unwrap_or_default()) {
                    text if form.typed => text,
                    text => return Self::edit(asked, format!("ERROR:\n{text}"), String::new()),
                }
            }
            Asked::Read { path } | Asked::Write { path } => {
                texts::file_error(error, &cwd.join(path).display().to_string(), cwd)
            }
            Asked::Browse { interactively }
                if !form.typed
                    && (*interactively || matches!(error, ActionError::Unavailable(_))) =>
            {
                texts::NO_BROWSER.into()
            }
            Asked::Browse { .. } | Asked::Run | Asked::Cell { .. } | Asked::Other => {
                texts::error(error)
            }
        };
        Self::of_error(text, error, form)
    }

    fn of_error(text: String, error: &ActionError, form: ErrorForm) -> Self {
        let trace = form.traces.then(|| format!("{error:?}"));
        let extras = Extras::Error { error_id: error.kind().name(), trace };
        Self::new("error", text.clone(), text, extras)
    }

    fn new(observation: &'static str, message: String, content: String, extras: Extras) -> Self {
        Self { message, cause: None, observation, content, extras, success: None }
    }

    fn run(run: RunObservation, form: ErrorForm) -> Self {
        let (prefix, suffix) = (texts::prefix(&run), texts::suffix(&run));
        let exit_code = match run.outcome {
            Outcome::Completed { exit_code, .. } => exit_code,
            _ => -1,
        };
        let (command, hidden) = (run.command.clone(), run.hidden);
        let shell = run.shell.clone();
        let metadata = Metadata {
            exit_code,
            pid: shell.as_ref().and_then(|shell| shell.background_pid).map_or(-1, i64::from),
            username: shell.as_ref().map(|shell| shell.user.clone()),
            // The name without the domain.
            hostname: shell
                .as_ref()
                .map(|shell| shell.host.split('.').next().unwrap_or_default().to_owned()),
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
        Self { success, ..Self::new("run", message, texts::output(run), extras) }
    }

    fn cell(asked: &Asked, cell: CellObservation, form: ErrorForm) -> Self {
        let (code, include_extra) = match asked {
            Asked::Cell { code, include_extra } => (code.clone(), *include_extra),
            _ => (String::new(), false),
        };
        // Clients of OpenHands expect PNG only.
        let pictures = cell.pictures.iter().filter(|p| form.typed || p.media_type == "image/png");
        let url = |Picture { media_type, base64 }: &_| format!("data:{media_type};base64,{base64}");
        let urls = pictures.map(url).collect::<Vec<_>>();
        let image_urls = (!urls.is_empty()).then_some(urls);
        let lost = (form.typed && cell.left_out > 0).then_some(cell.left_out);
        let extras = Extras::Cell { code, image_urls, lost };
        let (message, content) = ("The cell was run.".into(), texts::cell(&cell, include_extra));
        // OpenHands says that every cell has succeeded, and its clients expect no other word.
        let success = Some(!form.typed || cell.outcome == CellOutcome::Finished);
        Self { success, ..Self::new("run_ipython", message, content, extras) }
    }

    fn read(path: String, impl_source: &'static str, content: String) -> Self {
        let message = format!("Read the file {path}.");
        Self::new("read", message, content, Extras::Read { path, impl_source })
    }

    fn edited(asked: &Asked, edited: &EditObservation) -> Self {
        let path = edited.path.display().to_string();
        let (before, after) = edited.edition.change();
        let diff = texts::diff(&path, before, after);
        Self::edit(asked, texts::edition(&path, &edited.edition), diff)
    }

    fn edit(asked: &Asked, content: String, diff: String) -> Self {
        let (path, old_content, new_content) = match asked {
            Asked::Edit { path, old, new } => (path.clone(), old.clone(), new.clone()),
            _ => (String::new(), None, None),
        };
        let message = format!("Edited the file {path}.");
        let extras = Extras::Edit {
            path,
            prev_exist: false,
            old_content,
            new_content,
            impl_source: "oh_aci",
            diff,
            diff_cache: None,
        };
        Self::new("edit", message, content, extras)
    }

    fn page(page: Page) -> Self {
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
            trigger_by_action: "browse",
            screenshot,
            screenshot_path,
            set_of_marks: "",
            error: page.error.is_some(),
            goal_image_urls: [],
            open_pages_urls: vec![page.url.clone()],
            active_page_index: 0,
            dom_object: Empty {},
            axtree_object: Empty {},
            extra_element_properties: Empty {},
            last_browser_action: format!("goto({:?})", page.url),
            last_browser_action_error: page.error.unwrap_or_default(),
            focused_element_bid: "",
            filter_visible_only: false,
            url: page.url,
        };
        Self::new("browse", message, content, extras)
    }

    fn success(text: String) -> Self {
        Self::new("success", text.clone(), text, Extras::None {})
    }

    fn binary() -> Self {
        let extras = Extras::Error { error_id: "invalid", trace: None };
        Self::new("error", texts::BINARY_FILE.into(), texts::BINARY_FILE.into(), extras)
    }
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
