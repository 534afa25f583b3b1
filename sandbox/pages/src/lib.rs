//! Web pages as text.
//!
//! A headless Chromium renders a page where it is installed: scripts run, and there is a
//! screenshot. Otherwise the page is fetched without running scripts. In both cases the result has
//! the text, with a list of the links at the end.
//!
//! HTTP, TLS and HTML need much memory. A process that must stay small runs the installed program
//! `sandbox` once for each page.

mod fetch;
mod program;

use std::{path::PathBuf, time::Duration};

use serde::{Deserialize, Serialize};

pub use program::{PROGRAM, answer_request};

/// The usual path of Chromium.
pub const CHROMIUM: &str = "/usr/bin/chromium";

/// Renders pages.
#[derive(Debug, Clone)]
pub struct Browser {
    /// The path of Chromium. It need not exist.
    pub chromium: PathBuf,
    /// Where rendering happens.
    pub renderer: Renderer,
}

/// Where pages are rendered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Renderer {
    /// In this process.
    InProcess,
    /// In the program `sandbox`, which is found beside this program or on the `PATH`.
    Program,
}

/// The page to render.
#[derive(Debug, Clone)]
pub enum Source {
    /// The page at this address, which begins with `http`.
    Web(String),
    /// This HTML. It is not given to Chromium, which would load whatever it refers to.
    Html(Vec<u8>),
}

/// A rendered page, or the reason why it could not be rendered.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Page {
    /// The readable text.
    pub text: String,
    /// A screenshot as a PNG file.
    #[serde(with = "program::base64")]
    pub png: Option<Vec<u8>>,
    /// Why the page could not be rendered.
    pub error: Option<String>,
}

/// Why no page can be rendered at all.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The program `sandbox` was not found. Install it, or fetch pages with a command.
    #[error(
        "web pages cannot be shown, because the program `{PROGRAM}` is neither beside this program nor on \
         the PATH: install it, or fetch pages with a command such as curl"
    )]
    Missing,
    /// The program `sandbox` does not work.
    #[error("{} cannot show web pages ({reason}); install the version that belongs to this program", program.display())]
    Failed {
        /// The program.
        program: PathBuf,
        /// The program's standard error, or the error of the system.
        reason: String,
    },
}

impl Browser {
    /// Renders a page. A page that cannot be loaded is a result with an error. If the future is
    /// dropped, everything that was started for it ends.
    pub async fn render(&self, source: Source, limit: Duration) -> Result<Page, Error> {
        match self.renderer {
            Renderer::InProcess => Ok(fetch::render(&self.chromium, source, limit).await),
            Renderer::Program => program::render(&self.chromium, source, limit).await,
        }
    }
}

impl Page {
    fn failed(reason: impl Into<String>) -> Self {
        Self { error: Some(reason.into()), ..Self::default() }
    }
}
