//! `vscode/chat` without an editor: a program answers, or the person at the terminal, or nobody.

use std::process::Stdio;

use bridge_protocol::methods::{ChatParams, ChatResult, TextProgress};
use bridge_protocol::text::visible;
use bridge_protocol::{ErrorKind, WireError};
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};

use super::console::{ask, is_attended};
use super::{Caller, TerminalHost};
use crate::exit_status;
use crate::orphans::end_with_us;

/// Maximum output of a program. A program that writes more is stopped.
const OUTPUT_BYTES: usize = 8 << 20;
/// How many bytes at the end of a failed program's stderr the error message quotes.
const STDERR_BYTES: usize = 2048;

/// The program or person that answers chat.
#[derive(Debug)]
pub enum Answerer {
    /// A shell command.
    Program(String),
    /// The person at the terminal.
    Person,
    /// There is neither a program nor a person.
    Nobody,
}

impl Answerer {
    /// Chooses the program if there is one, else the person if there is a terminal.
    pub fn choose(program: Option<String>) -> Self {
        match program {
            Some(program) => Self::Program(program),
            None if is_attended() => Self::Person,
            None => Self::Nobody,
        }
    }
}

impl TerminalHost {
    pub(super) async fn chat(
        &self,
        params: ChatParams,
        caller: &Caller,
    ) -> Result<ChatResult, WireError> {
        let response = match &self.answerer {
            Answerer::Program(program) => {
                let _turn = self.programs.acquire().await;
                let mut shell = Command::new("sh");
                shell.arg("-c").arg(program).stdin(Stdio::piped());
                let told =
                    [("CHAT_MODEL", &params.model), ("CHAT_CONVERSATION", &params.conversation_id)];
                for (name, value) in told {
                    match value {
                        Some(value) => shell.env(name, value),
                        None => shell.env_remove(name),
                    };
                }
                let run = ProgramRun::start(&mut shell, "the chat command")?;
                let question = Some(params.message.clone());
                let show = |text: &str| caller.progress(&TextProgress { text: text.to_owned() });
                run.collect(question, show).await?
            }
            Answerer::Person => {
                let question = format!("[chat] {}\n> ", visible(&params.message));
                match ask(&question).await {
                    Some(answer) => answer,
                    None => return Ok(blocked("nobody answered at the terminal")),
                }
            }
            Answerer::Nobody => {
                let reason =
                    "no model: start the run with --chat-command, at a terminal, or in VS Code";
                return Ok(blocked(reason));
            }
        };
        let conversation = params.conversation_id.unwrap_or_else(|| self.history.draw_id());
        self.history.add(&conversation, params.message, response.clone());
        Ok(ChatResult { response, conversation_id: Some(conversation), ..ChatResult::default() })
    }
}

fn blocked(reason: &str) -> ChatResult {
    ChatResult { blocked: true, blocked_reason: Some(reason.to_owned()), ..ChatResult::default() }
}

/// A program that runs for a caller. When this is dropped, its whole process group is killed, so that a cancelled request
/// leaves no process behind.
pub struct ProgramRun {
    child: Child,
    group: Option<Pid>,
    name: String,
}

impl ProgramRun {
    /// Starts the program in a process group of its own.
    pub fn start(command: &mut Command, name: &str) -> Result<Self, WireError> {
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        end_with_us(command);
        let child = command.spawn().map_err(|error| {
            ErrorKind::InternalError.error(format!("cannot start {name}: {error}"))
        })?;
        let group = child.id().and_then(|pid| Pid::from_raw(pid.cast_signed()));
        Ok(Self { child, group, name: name.to_owned() })
    }

    /// Writes `input` to the program, passes on its output piece by piece, and returns all of it without trailing line
    /// ends. An error contains the exit status and the end of stderr.
    pub async fn collect(
        mut self,
        input: Option<String>,
        mut piece: impl FnMut(&str),
    ) -> Result<String, WireError> {
        let name = self.name.clone();
        let failed = |what: String| ErrorKind::InternalError.error(what);
        let stdin = self.child.stdin.take();
        let feed = async {
            if let (Some(mut stdin), Some(input)) = (stdin, input) {
                // It is no error if a program does not read its input.
                let _ = stdin.write_all(input.as_bytes()).await;
            }
            Ok(())
        };
        let mut stdout = self.child.stdout.take().expect("piped by `start`");
        let read = async {
            let mut text = PieceWise::default();
            let mut chunk = vec![0; 8192];
            while let Ok(count @ 1..) = stdout.read(&mut chunk).await {
                text.add(&chunk[..count], &mut piece);
                if text.whole.len() > OUTPUT_BYTES {
                    return Err(failed(format!("{name} wrote more than {OUTPUT_BYTES} bytes")));
                }
            }
            Ok(text.finish())
        };
        let mut stderr = self.child.stderr.take().expect("piped by `start`");
        let complain = async {
            let mut tail = Vec::new();
            let mut chunk = vec![0; 1024];
            while let Ok(count @ 1..) = stderr.read(&mut chunk).await {
                tail.extend_from_slice(&chunk[..count]);
                let surplus = tail.len().saturating_sub(STDERR_BYTES);
                tail.drain(..surplus);
            }
            Ok(String::from_utf8_lossy(&tail).trim().to_owned())
        };
        let ((), text, complaint) = tokio::try_join!(feed, read, complain)?;
        let status = self.child.wait().await;
        let status = status.map_err(|error| failed(format!("{name} was lost: {error}")))?;
        match status.success() {
            true => Ok(text),
            false => Err(failed(format!(
                "{name} failed ({}): {complaint}",
                exit_status::describe(status)
            ))),
        }
    }
}

impl Drop for ProgramRun {
    fn drop(&mut self) {
        // Until the leader has been reaped, the process group id belongs to this program, even if the leader is dead.
        // After that it may be reused.
        if let (Some(group), Some(_)) = (self.group, self.child.id()) {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

/// Turns bytes into text piece by piece. An incomplete character is held back until its remaining bytes come, and
/// trailing line ends until more text follows, so that the pieces add up to the final text.
#[derive(Default)]
struct PieceWise {
    whole: String,
    passed_on: usize,
    incomplete: Vec<u8>,
}

impl PieceWise {
    fn add(&mut self, bytes: &[u8], piece: &mut impl FnMut(&str)) {
        let known = self.whole.len();
        self.incomplete.extend_from_slice(bytes);
        let bytes = std::mem::take(&mut self.incomplete);
        let mut chunks = bytes.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            self.whole.push_str(chunk.valid());
            let cut = chunks.peek().is_none() && could_go_on(chunk.invalid());
            match chunk.invalid() {
                [] => {}
                rest if cut => self.incomplete = rest.to_owned(),
                _ => self.whole.push(char::REPLACEMENT_CHARACTER),
            }
        }
        // Only the new text is searched for something other than line ends: searching all of it each time would take
        // quadratic time for a text that has only line ends.
        let news = self.whole[known..].trim_end_matches(['\r', '\n']).len();
        if news > 0 {
            piece(&self.whole[self.passed_on..known + news]);
            self.passed_on = known + news;
        }
    }

    fn finish(mut self) -> String {
        if !self.incomplete.is_empty() {
            self.whole.push(char::REPLACEMENT_CHARACTER);
        }
        self.whole.truncate(self.whole.trim_end_matches(['\r', '\n']).len());
        self.whole
    }
}

/// Whether these last bytes may be the beginning of a character.
fn could_go_on(invalid: &[u8]) -> bool {
    std::str::from_utf8(invalid).is_err_and(|error| error.error_len().is_none())
}

#[cfg(test)]
mod tests {
    use process_identity::ProcessId;

    use super::*;

    #[test]
    fn pieces_add_up_however_the_bytes_are_cut() {
        let text = "Grüße 🦀\n\nzwei\n";
        for size in 1..=text.len() {
            let mut pieces = String::new();
            let mut split = PieceWise::default();
            for chunk in text.as_bytes().chunks(size) {
                split.add(chunk, &mut |piece| pieces.push_str(piece));
            }
            assert_eq!(split.finish(), "Grüße 🦀\n\nzwei", "chunks of {size}");
            assert_eq!(pieces, "Grüße 🦀\n\nzwei", "chunks of {size}");
        }
    }

    #[test]
    fn bytes_that_are_no_text_are_replaced() {
        let mut split = PieceWise::default();
        split.add(b"a\xffb\xe2\x82", &mut |_| {});
        assert_eq!(split.finish(), "a\u{fffd}b\u{fffd}");
    }

    #[tokio::test]
    async fn a_program_that_never_stops_writing_is_stopped() {
        let mut shell = Command::new("yes");
        let run = ProgramRun::start(shell.stdin(Stdio::null()), "yes").unwrap();
        let error = run.collect(None, |_| {}).await.unwrap_err();
        assert!(error.message().contains("wrote more than"), "{error}");
    }

    #[tokio::test]
    async fn dropping_a_run_kills_the_whole_group() {
        let mut shell = Command::new("sh");
        shell.arg("-c").arg("echo $$; sleep 1000 & echo $!; wait").stdin(Stdio::null());
        let mut run = ProgramRun::start(&mut shell, "test").unwrap();
        let mut pids = Vec::new();
        let mut stdout = tokio::io::BufReader::new(run.child.stdout.take().unwrap());
        for _ in 0..2 {
            let mut line = String::new();
            tokio::io::AsyncBufReadExt::read_line(&mut stdout, &mut line).await.unwrap();
            pids.push(line.trim().parse::<u32>().unwrap());
        }
        drop(run);
        // End of file: both processes have closed the pipe, and are about to end.
        stdout.read_to_end(&mut Vec::new()).await.unwrap();
        let gone = async {
            let is_alive = |pid: &u32| ProcessId::of(*pid).is_some_and(|it| it.is_alive());
            while pids.iter().any(is_alive) {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(std::time::Duration::from_secs(20), gone)
            .await
            .expect("both are gone");
    }
}
