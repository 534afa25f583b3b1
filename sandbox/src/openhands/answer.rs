//! Observations as clients expect them: the same keys, in the same order.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde::Serialize;

use super::{event::Asked, texts};
use crate::action::{
    ActionError, CellObservation, EditObservation, Executor, Observation, Outcome, Page,
    ReadContent, RunObservation, Screenshot,
};

/// One observation. Clients build their own objects from exactly these keys.
#[derive(Debug, Serialize)]
pub(super) struct Answer {
    message: String,
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
    },
    Cell {
        code: String,
        image_urls: Option<Vec<String>>,
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

/// Whether errors tell where they come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Traces {
    /// They do. Only for looking into the server: clients cannot read such answers.
    Shown,
    /// They do not.
    Hidden,
}

impl Answer {
    pub(super) fn new(
        asked: &Asked,
        result: Result<Observation, ActionError>,
        executor: &Executor,
        traces: Traces,
    ) -> Self {
        match result {
            Ok(observation) => Self::of(asked, observation),
            Err(error) => Self::failed(asked, &error, executor, traces),
        }
    }

    fn of(asked: &Asked, observation: Observation) -> Self {
        match observation {
            Observation::Run(run) => Self::run(run),
            Observation::Cell(cell) => Self::cell(asked, cell),
            Observation::Read { path, content } => match asked {
                Asked::View { path } => match content {
                    ReadContent::Media { .. } => Self::binary(),
                    content => Self::read(path.clone(), "oh_aci", texts::view(path, &content)),
                },
                _ => Self::read(path.display().to_string(), "default", plain(content)),
            },
            Observation::Written { path } => {
                let path = path.display().to_string();
                Self {
                    message: format!("Wrote the file {path}."),
                    observation: "write",
                    content: String::new(),
                    extras: Extras::Written { path },
                    success: None,
                }
            }
            Observation::Edited(edited) => Self::edited(asked, &edited),
            Observation::Browsed(page) => Self::page(page),
            Observation::Done { path } => Self::success(format!("Done: {}", path.display())),
            Observation::Closed => Self::success("The shell is closed.".into()),
        }
    }

    /// What went wrong is told in the way of the action: some are `error`s, some are results that
    /// begin with a certain word.
    fn failed(asked: &Asked, error: &ActionError, executor: &Executor, traces: Traces) -> Self {
        use crate::files::Error;
        let is_binary = matches!(error, ActionError::File(Error::Binary { .. }));
        let text = match asked {
            Asked::View { .. } if is_binary => texts::BINARY_FILE.into(),
            Asked::View { path } => {
                let content = format!("ERROR:\n{}", texts::editor_error(error, path, ""));
                return Self::read(path.clone(), "oh_aci", content);
            }
            Asked::Edit { path, old, .. } => {
                let old = old.as_deref().unwrap_or_default();
                let content = format!("ERROR:\n{}", texts::editor_error(error, path, old));
                return Self::edit(asked, content, String::new());
            }
            Asked::Read { path } | Asked::Write { path } => {
                let cwd = executor.current_directory();
                texts::file_error(error, &cwd.join(path).display().to_string(), &cwd)
            }
            Asked::Browse { interactively: true } => texts::NO_BROWSER.into(),
            Asked::Browse { .. } if matches!(error, ActionError::Unavailable(_)) => {
                texts::NO_BROWSER.into()
            }
            Asked::Browse { .. } | Asked::Run | Asked::Cell { .. } | Asked::Other => {
                texts::error(error)
            }
        };
        let trace = (traces == Traces::Shown).then(|| format!("{error:?}"));
        Self {
            message: text.clone(),
            observation: "error",
            content: text,
            extras: Extras::Error { error_id: error.kind().name(), trace },
            success: None,
        }
    }

    fn run(run: RunObservation) -> Self {
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
        Self {
            message: format!("Command `{command}` executed with exit code {exit_code}."),
            observation: "run",
            content: texts::output(run),
            extras: Extras::Run { command, metadata, hidden },
            success: Some(exit_code == 0),
        }
    }

    fn cell(asked: &Asked, cell: CellObservation) -> Self {
        let (code, include_extra) = match asked {
            Asked::Cell { code, include_extra } => (code.clone(), *include_extra),
            _ => (String::new(), false),
        };
        let urls = cell.pictures.iter().map(|picture| format!("data:image/png;base64,{picture}"));
        let urls = urls.collect::<Vec<_>>();
        Self {
            message: "The cell was run.".into(),
            observation: "run_ipython",
            content: texts::cell(&cell, include_extra),
            extras: Extras::Cell { code, image_urls: (!urls.is_empty()).then_some(urls) },
            success: Some(true),
        }
    }

    fn read(path: String, impl_source: &'static str, content: String) -> Self {
        Self {
            message: format!("Read the file {path}."),
            observation: "read",
            content,
            extras: Extras::Read { path, impl_source },
            success: None,
        }
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
        Self {
            message: format!("Edited the file {path}."),
            observation: "edit",
            content,
            extras: Extras::Edit {
                path,
                prev_exist: false,
                old_content,
                new_content,
                impl_source: "oh_aci",
                diff,
                diff_cache: None,
            },
            success: None,
        }
    }

    fn page(page: Page) -> Self {
        let content = texts::page(&page);
        let (screenshot, screenshot_path) = match page.screenshot {
            Some(Screenshot { png, path }) => {
                let url = format!("data:image/png;base64,{}", BASE64_STANDARD.encode(png));
                (url, Some(path.display().to_string()))
            }
            None => (String::new(), None),
        };
        Self {
            message: format!("Visited {}", page.url),
            observation: "browse",
            content,
            extras: Extras::Page {
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
            },
            success: None,
        }
    }

    fn success(text: String) -> Self {
        Self {
            message: text.clone(),
            observation: "success",
            content: text,
            extras: Extras::None {},
            success: None,
        }
    }

    fn binary() -> Self {
        Self {
            message: texts::BINARY_FILE.into(),
            observation: "error",
            content: texts::BINARY_FILE.into(),
            extras: Extras::Error { error_id: "invalid", trace: None },
            success: None,
        }
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
