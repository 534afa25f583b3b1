//! Whatever a helper does, its caller gets an answer or a typed error, and nothing is left over.

#![allow(clippy::unwrap_used, reason = "this is test code, also outside of test functions")]

#[path = "../src/bin/worker-helper/misbehave.rs"]
mod misbehave;

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::fd::AsFd as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use misbehave::{Deed, Misbehave};
use rustix::fs::{Mode, mkfifoat};
use sandbox_worker::{Error, Worker};

/// Longer than any helper of these tests should need.
const LONG: Duration = Duration::from_secs(60);

fn worker() -> Worker {
    Worker::new(env!("CARGO_BIN_EXE_worker-helper"))
}

async fn run(deed: Deed) -> Result<String, Error> {
    worker().run::<Misbehave>(&deed, LONG).await
}

/// A pipe in a directory, through which a helper reports its process ids.
fn pipe(directory: &Path) -> String {
    mkfifoat(rustix::fs::CWD, directory.join("ids"), Mode::RUSR | Mode::WUSR).unwrap();
    directory.join("ids").to_str().unwrap().to_owned()
}

/// Reads the ids from the pipe; waits until they have come.
fn ids(pipe: &str) -> Vec<String> {
    let mut line = String::new();
    BufReader::new(fs::File::open(pipe).unwrap()).read_line(&mut line).unwrap();
    line.split_whitespace().map(str::to_owned).collect()
}

/// Waits until none of these processes runs any more; one that has ended may still be a zombie.
fn wait_for_end(ids: &[String]) {
    let runs = |id: &String| {
        let status = fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        status.rsplit(") ").next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with('Z'))
    };
    while ids.iter().any(runs) {
        std::thread::yield_now();
    }
}

#[tokio::test]
async fn a_job_is_answered() {
    let text = "ü\n\"".repeat(100_000);
    assert_eq!(run(Deed::Echo(text.clone())).await.unwrap(), text);
    run(Deed::Print(1 << 20)).await.unwrap();
}

#[tokio::test]
async fn a_crash_ends_only_the_job() {
    let crashed = run(Deed::Panic).await;
    assert!(
        matches!(&crashed, Err(Error::Crashed { words, .. }) if words.contains("as asked")),
        "{crashed:?}"
    );
    let overflowed = run(Deed::Recurse).await;
    assert!(matches!(&overflowed, Err(Error::Crashed { .. })), "{overflowed:?}");
    let filled = run(Deed::Allocate).await;
    assert!(
        matches!(&filled, Err(Error::TooMuchMemory { limit }) if *limit == 256 << 20),
        "{filled:?}"
    );
    let long = run(Deed::Return(2 << 20)).await;
    assert!(matches!(&long, Err(Error::TooLong { .. })), "{long:?}");
}

#[tokio::test]
async fn a_job_without_end_is_killed_when_its_time_is_over() {
    let endless = worker().run::<Misbehave>(&Deed::Loop, Duration::from_millis(50)).await;
    assert!(matches!(endless, Err(Error::TookTooLong { .. })), "{endless:?}");
}

#[tokio::test]
async fn dropping_the_wait_kills_the_helper_and_its_children() {
    let home = tempfile::tempdir().unwrap();
    let pipe = pipe(home.path());
    let job = tokio::spawn({
        let deed = Deed::Start(pipe.clone());
        async move { worker().run::<Misbehave>(&deed, LONG).await }
    });
    let ids = tokio::task::spawn_blocking(move || ids(&pipe)).await.unwrap();
    assert_eq!(ids.len(), 2);
    job.abort();
    assert!(job.await.unwrap_err().is_cancelled());
    wait_for_end(&ids);
}

/// The caller here is not a `Worker` but a pipe, which closes as it does when a caller is killed.
#[test]
fn a_helper_ends_with_its_caller() {
    use std::io::Write as _;
    use std::os::unix::process::CommandExt as _;

    let home = tempfile::tempdir().unwrap();
    let pipe = pipe(home.path());
    let mut helper = Command::new(worker().program())
        .args(["work", "misbehave", "60"])
        .stdin(Stdio::piped())
        .process_group(0)
        .spawn()
        .unwrap();
    let request = serde_json::to_vec(&Deed::Start(pipe.clone())).unwrap();
    let mut input = helper.stdin.take().unwrap();
    input.write_all(&(request.len() as u64).to_le_bytes()).unwrap();
    input.write_all(&request).unwrap();
    let ids = ids(&pipe);
    drop(input);
    assert!(!helper.wait().unwrap().success());
    wait_for_end(&ids);
}

#[tokio::test]
async fn a_job_runs_in_the_directory_that_is_open_whatever_its_name_is_now() {
    let home = tempfile::tempdir().unwrap();
    let [old, new] = ["old", "new"].map(|name| home.path().canonicalize().unwrap().join(name));
    fs::create_dir(&old).unwrap();
    let open = fs::File::open(&old).unwrap();
    fs::rename(&old, &new).unwrap();
    fs::create_dir(&old).unwrap();
    let found = worker().run_in::<Misbehave>(Some(open.as_fd()), &Deed::Directory, LONG).await;
    assert_eq!(found.unwrap(), new.to_str().unwrap());
}

#[tokio::test]
async fn a_program_that_cannot_help_is_named() {
    for program in ["/no/such/program", "true"] {
        let refused = Worker::new(program).run::<Misbehave>(&Deed::Loop, LONG).await;
        let error = refused.unwrap_err();
        assert!(matches!(error, Error::Unusable { .. } | Error::Crashed { .. }), "{error:?}");
    }
}
