//! Renders pages in another process: `sandbox show-page`, which reads one line of JSON and prints
//! another.
//!
//! The request comes on standard input, since an address can hold secrets, and all users can see
//! arguments. The program ends, with its Chromium, when that pipe closes: its owner has dropped the
//! request or died.

use std::{
    env,
    ffi::OsStr,
    io,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use serde::{Deserialize, Serialize};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    process::Command,
    time,
};

use super::{Error, Page, Source};

/// The name of the program.
pub const PROGRAM: &str = "sandbox";
/// The subcommand of the program `sandbox`.
const COMMAND: &str = "show-page";
/// How much longer than the page's own limit the program may take.
const EXTRA_TIME: Duration = Duration::from_secs(10);
/// The largest answer in bytes.
const ANSWER_BYTES: u64 = 128 << 20;

/// The request to the program.
#[derive(Debug, Serialize, Deserialize)]
struct Request {
    /// The address; none if `html` is the page.
    url: Option<String>,
    #[serde(with = "base64")]
    html: Option<Vec<u8>>,
    chromium: PathBuf,
    limit: Duration,
}

pub(super) async fn render(
    chromium: &Path,
    source: Source,
    limit: Duration,
) -> Result<Page, Error> {
    let beside = env::current_exe().unwrap_or_default();
    let program = find(&beside, env::var_os("PATH").as_deref()).ok_or(Error::Missing)?;
    let (url, html) = match source {
        Source::Web(url) => (Some(url), None),
        Source::Html(html) => (None, Some(html)),
    };
    let request = Request { url, html, chromium: chromium.to_owned(), limit };
    match time::timeout(limit + EXTRA_TIME, ask(&program, &request)).await {
        Ok(Ok(page)) => Ok(page),
        Ok(Err(error)) => Err(Error::Failed { program, reason: error.to_string() }),
        Err(_) => Ok(Page::failed(format!("it took longer than {limit:?}"))),
    }
}

async fn ask(program: &Path, request: &Request) -> io::Result<Page> {
    let mut command = Command::new(program);
    command.arg(COMMAND).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // In its own process group: a Ctrl-C for this process must not reach it.
    let mut child = command.process_group(0).spawn()?;
    let mut input = child.stdin.take().expect("stdin was asked to be a pipe");
    let output = child.stdout.take().expect("stdout was asked to be a pipe");
    let mut errors = child.stderr.take().expect("stderr was asked to be a pipe");
    let line = serde_json::to_string(request)? + "\n";
    let (mut answer, mut words) = (String::new(), String::new());
    // Write and read at the same time: a program that does not read its input must not block us.
    let (written, read, _) = tokio::join!(
        input.write_all(line.as_bytes()),
        async { output.take(ANSWER_BYTES).read_to_string(&mut answer).await },
        errors.read_to_string(&mut words),
    );
    let status = child.wait().await?;
    if !status.success() {
        return Err(io::Error::other(format!("{status}: {}", words.trim())));
    }
    written?;
    read?;
    Ok(serde_json::from_str(&answer)?)
}

/// The program beside the one at this path, or the first one on a `PATH`.
fn find(beside: &Path, path: Option<&OsStr>) -> Option<PathBuf> {
    let on_path =
        env::split_paths(path.unwrap_or_default()).map(|directory| directory.join(PROGRAM));
    [beside.with_file_name(PROGRAM)].into_iter().chain(on_path).find(|place| place.is_file())
}

/// The program's side: renders the page that standard input asks for and prints it. Returns false
/// if the owner closed the pipe before.
pub fn answer_request() -> io::Result<bool> {
    use std::io::{BufRead as _, Write as _};

    let mut line = String::new();
    io::stdin().lock().read_line(&mut line)?;
    let Request { url, html, chromium, limit } = serde_json::from_str(&line)?;
    let source = match url {
        Some(url) => Source::Web(url),
        None => Source::Html(html.unwrap_or_default()),
    };
    let (sender, closed) = tokio::sync::oneshot::channel::<()>();
    // A thread, not a blocking task of tokio: the tokio runtime would wait for a task at its end.
    std::thread::spawn(move || {
        // An error of the pipe means the same as its end: the owner is gone.
        let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
        drop(sender);
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let page = runtime.block_on(async {
        tokio::select! {
            page = super::fetch::render(&chromium, source, limit) => Some(page),
            _ = closed => None,
        }
    });
    // Do not wait for a fetch that is still running.
    runtime.shutdown_background();
    if let Some(page) = &page {
        let mut output = io::stdout().lock();
        serde_json::to_writer(&mut output, page)?;
        output.write_all(b"\n")?;
        output.flush()?;
    }
    Ok(page.is_some())
}

/// Bytes as Base64 in JSON.
pub(super) mod base64 {
    use base64::{Engine as _, prelude::BASE64_STANDARD};
    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer, de::Error as _};

    pub(crate) fn serialize<S: Serializer>(
        bytes: &Option<Vec<u8>>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        bytes.as_ref().map(|bytes| BASE64_STANDARD.encode(bytes)).serialize(serializer)
    }

    pub(crate) fn deserialize<'a, D: Deserializer<'a>>(
        deserializer: D,
    ) -> Result<Option<Vec<u8>>, D::Error> {
        let text = Option::<String>::deserialize(deserializer)?;
        text.map(|text| BASE64_STANDARD.decode(text)).transpose().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_program_beside_this_one_comes_first() {
        let home = tempfile::tempdir().unwrap();
        let place = |directory: &str| home.path().join(directory).join(PROGRAM);
        for directory in ["ours", "empty", "other"] {
            fs::create_dir(home.path().join(directory)).unwrap();
        }
        let path = env::join_paths(["empty", "other"].map(|name| home.path().join(name))).unwrap();
        let find = || find(&home.path().join("ours/daemon"), Some(&path));
        assert_eq!(find(), None);
        fs::write(place("other"), "").unwrap();
        assert_eq!(find(), Some(place("other")));
        fs::write(place("ours"), "").unwrap();
        assert_eq!(find(), Some(place("ours")));
    }

    #[test]
    fn a_page_survives_serialization() {
        let page = Page { text: "ü\n".into(), png: Some(vec![0, 255]), error: None };
        let text = serde_json::to_string(&page).unwrap();
        assert_eq!(serde_json::from_str::<Page>(&text).unwrap(), page);
    }
}
