//! Pages by another program: `sandbox show-page`, asked by one line of JSON and answering with another.
//!
//! The line comes on its standard input, since an address can hold secrets, and arguments are seen by
//! everybody. The program lives by that pipe: when its owner closes it, having lost interest or its
//! life, it ends, and its Chromium with it.

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

use super::{Error, Shown, Source};

/// The name of the program.
pub const PROGRAM: &str = "sandbox";
/// Its command; `sandbox` takes the same.
const COMMAND: &str = "show-page";
/// How much longer than the page the program may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// Bytes that it may answer.
const ANSWER_BYTES: u64 = 128 << 20;

/// What the program is asked.
#[derive(Debug, Serialize, Deserialize)]
struct Question {
    /// The address, if the page is not here.
    url: Option<String>,
    #[serde(with = "base64")]
    html: Option<Vec<u8>>,
    chromium: PathBuf,
    limit: Duration,
}

pub(super) async fn show(chromium: &Path, source: Source, limit: Duration) -> Result<Shown, Error> {
    let beside = env::current_exe().unwrap_or_default();
    let program = find(&beside, env::var_os("PATH").as_deref()).ok_or(Error::Missing)?;
    let (url, html) = match source {
        Source::Web(url) => (Some(url), None),
        Source::Html(html) => (None, Some(html)),
    };
    let question = Question { url, html, chromium: chromium.to_owned(), limit };
    match time::timeout(limit + PATIENCE, ask(&program, &question)).await {
        Ok(Ok(shown)) => Ok(shown),
        Ok(Err(error)) => Err(Error::Failed { program, reason: error.to_string() }),
        Err(_) => Ok(Shown::failed(format!("it took longer than {limit:?}"))),
    }
}

async fn ask(program: &Path, question: &Question) -> io::Result<Shown> {
    let mut command = Command::new(program);
    command.arg(COMMAND).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // Not in our process group: a Ctrl-C for us is not for it.
    let mut child = command.process_group(0).spawn()?;
    let mut input = child.stdin.take().expect("stdin was asked to be a pipe");
    let output = child.stdout.take().expect("stdout was asked to be a pipe");
    let mut errors = child.stderr.take().expect("stderr was asked to be a pipe");
    let line = serde_json::to_string(question)? + "\n";
    let (mut answer, mut words) = (String::new(), String::new());
    // Written while it is read: a program that does not listen is heard nevertheless.
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

/// The other side: shows the page that standard input asks for and prints it. Whether its owner still wanted it.
pub fn answer_owner() -> io::Result<bool> {
    use std::io::{BufRead as _, Write as _};

    let mut line = String::new();
    io::stdin().lock().read_line(&mut line)?;
    let Question { url, html, chromium, limit } = serde_json::from_str(&line)?;
    let source = match url {
        Some(url) => Source::Web(url),
        None => Source::Html(html.unwrap_or_default()),
    };
    let (sender, closed) = tokio::sync::oneshot::channel::<()>();
    // Not a task of the runtime, which would wait for it at the end.
    std::thread::spawn(move || {
        let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
        drop(sender);
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let shown = runtime.block_on(async {
        tokio::select! {
            shown = super::fetch::show(&chromium, source, limit) => Some(shown),
            _ = closed => None,
        }
    });
    // What is being fetched in vain is not waited for either.
    runtime.shutdown_background();
    if let Some(shown) = &shown {
        let mut output = io::stdout().lock();
        serde_json::to_writer(&mut output, shown)?;
        output.write_all(b"\n")?;
        output.flush()?;
    }
    Ok(shown.is_some())
}

/// Bytes in JSON.
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
    fn the_program_beside_ours_comes_first() {
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
    fn a_page_survives_the_way() {
        let shown = Shown { text: "ü\n".into(), png: Some(vec![0, 255]), error: None };
        let text = serde_json::to_string(&shown).unwrap();
        assert_eq!(serde_json::from_str::<Shown>(&text).unwrap(), shown);
    }
}
