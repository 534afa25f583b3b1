//! The caller's side: starts a helper for each job, and kills it when its time is over.

use std::os::fd::{AsRawFd as _, BorrowedFd};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use std::{env, io};

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, Command};
use tokio::time;

use crate::frame::{HEAD, framed};
use crate::{COMMAND, Error, Job};

/// How many bytes of a helper's standard error are kept.
const WORDS: usize = 2000;
/// What the Rust runtime prints when it gets no memory.
const NO_MEMORY: &str = "memory allocation of";

/// Runs jobs in helper processes. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Worker {
    program: PathBuf,
}

impl Worker {
    /// Runs jobs with this program, which must have the subcommand of [`Assignment`](crate::Assignment).
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self { program: program.into() }
    }

    /// Runs jobs with the program of this process.
    pub fn of_this_program() -> io::Result<Self> {
        env::current_exe().map(Self::new)
    }

    /// Runs a job. If the future is dropped, the helper is killed with all that it has started.
    pub async fn run<J: Job>(
        &self,
        request: &J::Request,
        limit: Duration,
    ) -> Result<J::Answer, Error> {
        self.run_in::<J>(None, request, limit).await
    }

    /// Runs a job in a directory that is held open, so that a rename or a link cannot put another
    /// directory in its place.
    pub async fn run_in<J: Job>(
        &self,
        directory: Option<BorrowedFd<'_>>,
        request: &J::Request,
        limit: Duration,
    ) -> Result<J::Answer, Error> {
        let request = framed(request).map_err(|error| self.unusable(error))?;
        let mut command = Command::new(&self.program);
        command.args([COMMAND, J::NAME, &limit.as_secs().saturating_add(1).to_string()]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        if let Some(directory) = directory {
            // The child enters it before it loses the descriptor by exec.
            command.current_dir(format!("/proc/self/fd/{}", directory.as_raw_fd()));
        }
        // In a process group of its own: it is killed with its children, and a Ctrl-C for this
        // process does not reach it.
        let child = command.process_group(0).kill_on_drop(true).spawn();
        let mut helper = Helper::new(child.map_err(|error| self.unusable(error))?);
        let exchanged = time::timeout(limit, helper.exchange(&request, J::ANSWER_BYTES)).await;
        let Ok(exchanged) = exchanged else { return Err(Error::TookTooLong { limit }) };
        let Exchanged { answer, status, words } =
            exchanged.map_err(|error| self.unusable(error))?;
        let words = String::from_utf8_lossy(&words).trim().to_owned();
        match (answer, J::MEMORY) {
            (Answer::Complete(answer), _) => {
                serde_json::from_slice(&answer).map_err(|error| self.unusable(error))
            }
            (Answer::TooLong, _) => Err(Error::TooLong { limit: J::ANSWER_BYTES }),
            (Answer::Missing, _) if status.signal() == Some(Signal::XCPU.as_raw()) => {
                Err(Error::TookTooLong { limit })
            }
            (Answer::Missing, Some(limit)) if words.contains(NO_MEMORY) => {
                Err(Error::TooMuchMemory { limit })
            }
            (Answer::Missing, _) => Err(Error::Crashed { status, words }),
        }
    }

    /// The program of the helpers.
    pub fn program(&self) -> &Path {
        &self.program
    }

    fn unusable(&self, reason: impl ToString) -> Error {
        Error::Unusable { program: self.program.clone(), reason: reason.to_string() }
    }
}

/// A running helper. It is killed with its process group when it is dropped.
struct Helper {
    child: Child,
}

struct Exchanged {
    answer: Answer,
    status: ExitStatus,
    /// The beginning of its standard error.
    words: Vec<u8>,
}

enum Answer {
    Complete(Vec<u8>),
    TooLong,
    /// The helper ended before its answer was complete.
    Missing,
}

impl Helper {
    fn new(child: Child) -> Self {
        Self { child }
    }

    async fn exchange(&mut self, request: &[u8], most: u64) -> io::Result<Exchanged> {
        let mut input = self.child.stdin.take().expect("stdin was asked to be a pipe");
        let output = self.child.stdout.take().expect("stdout was asked to be a pipe");
        let errors = self.child.stderr.take().expect("stderr was asked to be a pipe");
        let mut words = Vec::new();
        // At the same time: a helper that does not read its input, or that fills standard error,
        // must not block us.
        let (_, answer, _) = tokio::join!(
            // A helper that ends before it has read everything shows by the missing answer.
            input.write_all(request),
            read_answer(output, most),
            read_words(errors, &mut words),
        );
        // Closed only now: the end of its input would end the helper.
        drop(input);
        // At the end of its output the status of the helper is settled. Its children are not.
        self.kill();
        Ok(Exchanged { answer: answer?, status: self.child.wait().await?, words })
    }

    /// Kills the helper with all that it has started, unless it was waited for.
    fn kill(&self) {
        let id = self.child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        if let Some(group) = id {
            // Fails if all of the group have ended already.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        self.kill();
    }
}

async fn read_answer(mut output: impl AsyncRead + Unpin, most: u64) -> io::Result<Answer> {
    let mut head = [0; HEAD];
    match output.read_exact(&mut head).await {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(Answer::Missing),
        Err(error) => return Err(error),
    }
    let length = u64::from_le_bytes(head);
    if length > most {
        return Ok(Answer::TooLong);
    }
    let mut body = Vec::new();
    (&mut output).take(length).read_to_end(&mut body).await?;
    Ok(if body.len() as u64 == length { Answer::Complete(body) } else { Answer::Missing })
}

/// Reads to the end, and keeps the beginning.
async fn read_words(mut errors: impl AsyncRead + Unpin, words: &mut Vec<u8>) -> io::Result<()> {
    let mut block = [0; 512];
    loop {
        let count = errors.read(&mut block).await?;
        if count == 0 {
            return Ok(());
        }
        let room = WORDS.saturating_sub(words.len());
        words.extend_from_slice(&block[..count.min(room)]);
    }
}
