//! Loads a page with Chromium, or fetches it without, in a helper process.

use std::{
    fs, io,
    path::{Path, PathBuf},
    process::Stdio,
    time::{Duration, Instant},
};

use sandbox_worker::{Error, Job, Worker};
use serde::{Deserialize, Serialize};
use tokio::{io::AsyncReadExt as _, process::Command};

use crate::{HTML_BYTES, Page, html::text_of};

/// Loads the page at an address and turns it into text, with a helper of its own.
#[derive(Debug)]
pub struct PageJob;

/// The page to load.
#[derive(Debug, Serialize, Deserialize)]
pub struct PageRequest {
    /// The address.
    pub url: String,
    /// The path of Chromium. It need not exist.
    pub chromium: PathBuf,
    /// How long it may take.
    pub limit: Duration,
}

impl Job for PageJob {
    type Request = PageRequest;
    type Answer = Page;

    const NAME: &'static str = "page";
    /// Chromium inherits the limit, and reserves more address space than there is memory.
    const MEMORY: Option<u64> = None;
    const ANSWER_BYTES: u64 = 128 << 20;

    fn carry_out(request: PageRequest) -> Page {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let (worker, runtime) = match (Worker::of_this_program(), runtime) {
            (Ok(worker), Ok(runtime)) => (worker, runtime),
            (Err(error), _) | (_, Err(error)) => return Page::failed(error.to_string()),
        };
        let page = runtime.block_on(load(&worker, request));
        // Do not wait for a fetch that is still running.
        runtime.shutdown_background();
        page
    }
}

/// The content that was loaded from an address.
enum Loaded {
    Html { html: Vec<u8>, png: Option<Vec<u8>> },
    Text(String),
}

async fn load(worker: &Worker, request: PageRequest) -> Page {
    let PageRequest { url, chromium, limit } = request;
    let began = Instant::now();
    let left = || limit.saturating_sub(began.elapsed());
    let late = || Page::failed(format!("it took longer than {limit:?}"));
    let loaded = match tokio::time::timeout(limit, loaded(&chromium, url, limit)).await {
        Ok(loaded) => loaded,
        Err(_) => return late(),
    };
    match loaded {
        Ok(Loaded::Text(text)) => Page { text, ..Page::default() },
        Ok(Loaded::Html { html, png }) => match text_of(worker, html, left()).await {
            Ok(page) => Page { png, ..page },
            Err(Error::TookTooLong { .. }) => late(),
            Err(error) => Page::failed(format!("it cannot be shown as text, because {error}")),
        },
        Err(reason) => Page::failed(reason),
    }
}

async fn loaded(chromium: &Path, url: String, limit: Duration) -> Result<Loaded, String> {
    let began = Instant::now();
    if chromium.exists() {
        // If the browser fails, fetch the page without it.
        if let Ok(loaded) = load_with_chromium(chromium, &url, limit).await {
            return Ok(loaded);
        }
    }
    let left = limit.saturating_sub(began.elapsed());
    let fetched = tokio::task::spawn_blocking(move || fetch(&url, left)).await;
    fetched.unwrap_or_else(|error| Err(error.to_string()))
}

fn fetch(url: &str, limit: Duration) -> Result<Loaded, String> {
    let config = ureq::Agent::config_builder().timeout_global(Some(limit)).build();
    let mut answer =
        ureq::Agent::from(config).get(url).call().map_err(|error| error.to_string())?;
    let is_html = answer.body().mime_type().is_none_or(|kind| kind.contains("html"));
    let body = answer.body_mut().with_config().limit(HTML_BYTES as u64).read_to_vec();
    let body = body.map_err(|error| error.to_string())?;
    Ok(match is_html {
        true => Loaded::Html { html: body, png: None },
        false => Loaded::Text(String::from_utf8_lossy(&body).into_owned()),
    })
}

async fn load_with_chromium(program: &Path, url: &str, limit: Duration) -> io::Result<Loaded> {
    let home = tempfile::tempdir()?;
    let picture = home.path().join("picture.png");
    let mut command = Command::new(program);
    command.args(["--headless", "--disable-gpu", "--hide-scrollbars", "--window-size=1280,960"]);
    command.arg(format!("--user-data-dir={}", home.path().join("profile").display()));
    command.arg(format!("--screenshot={}", picture.display())).arg("--dump-dom");
    command.arg(format!("--timeout={}", (limit / 2).as_millis()));
    if rustix::process::geteuid().is_root() {
        // As root, Chromium refuses to start without this. Containers usually run as root.
        command.arg("--no-sandbox");
    }
    command.arg("--").arg(url).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut browser = command.kill_on_drop(true).spawn()?;
    let output = browser.stdout.take().expect("stdout was asked to be a pipe");
    let mut html = Vec::new();
    // One byte more shows that the page is too large, which is reported.
    output.take(HTML_BYTES as u64 + 1).read_to_end(&mut html).await?;
    if html.len() <= HTML_BYTES && !browser.wait().await?.success() || html.is_empty() {
        return Err(io::Error::other("the browser failed"));
    }
    Ok(Loaded::Html { html, png: fs::read(&picture).ok() })
}
