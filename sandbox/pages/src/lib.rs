//! Web pages as text.
//!
//! A page is shown by a headless Chromium where there is one: its scripts run, and there is a picture
//! of it. Otherwise it is fetched as it is. Either way there is its text, with the links as a list
//! at the end.
//!
//! All that HTTP, TLS and HTML take is big. An owner that shall stay small has none of it, and lets the
//! installed `sandbox` program do it, in a process for each page.

mod fetch;
mod program;

use std::{path::PathBuf, time::Duration};

use serde::{Deserialize, Serialize};

pub use program::{PROGRAM, answer_owner};

/// Where Chromium usually is.
pub const CHROMIUM: &str = "/usr/bin/chromium";

/// What shows pages.
#[derive(Debug, Clone)]
pub struct Browser {
    /// The Chromium for it, if it is there.
    pub chromium: PathBuf,
    /// Who does the work.
    pub by: ShownBy,
}

/// Who does the work of showing pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShownBy {
    /// We ourselves.
    Us,
    /// The `sandbox` program, which lies beside ours or on the `PATH`.
    Program,
}

/// What is to be shown.
#[derive(Debug, Clone)]
pub enum Source {
    /// What is at this address, which begins with `http`.
    Web(String),
    /// This text. It is not given to a Chromium, which would go wherever it leads.
    Html(Vec<u8>),
}

/// A page, or why there is none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shown {
    /// What can be read on it.
    pub text: String,
    /// A picture of it: a PNG file.
    #[serde(with = "program::base64")]
    pub png: Option<Vec<u8>>,
    /// Why it could not be shown.
    pub error: Option<String>,
}

/// Why nothing can be shown, whatever the page.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no program for it. Install it, or fetch pages with a command.
    #[error(
        "no web pages are shown here, because the program `{PROGRAM}` is neither beside this one nor on the \
         PATH: install it, or fetch pages with a command, such as curl"
    )]
    Missing,
    /// The program is of no use.
    #[error("{} cannot show web pages ({reason}); install the one of this version", program.display())]
    Failed {
        /// The program.
        program: PathBuf,
        /// Its last words, or what the system said.
        reason: String,
    },
}

impl Browser {
    /// Shows a page. What is not there is shown too, as an error. If the future is dropped, everything
    /// that was started for it ends.
    pub async fn show(&self, source: Source, limit: Duration) -> Result<Shown, Error> {
        match self.by {
            ShownBy::Us => Ok(fetch::show(&self.chromium, source, limit).await),
            ShownBy::Program => program::show(&self.chromium, source, limit).await,
        }
    }
}

impl Shown {
    fn failed(reason: impl Into<String>) -> Self {
        Self { error: Some(reason.into()), ..Self::default() }
    }
}
