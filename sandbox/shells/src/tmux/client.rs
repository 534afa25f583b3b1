//! One control client: a `tmux -C` process that receives commands and returns their answers.

use std::{collections::VecDeque, io, process::Stdio};

use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    process::{Child, ChildStdin, ChildStdout},
    sync::{mpsc, oneshot},
};
use tracing::warn;

use super::{name_of, tmux_command};
use crate::{Error, Result, config::Config, keeper};

/// A `tmux -C` process and its two streams.
pub(super) struct Client {
    pub(super) child: Child,
    pub(super) input: ChildStdin,
    pub(super) output: BufReader<ChildStdout>,
}

/// How a control client ended.
#[derive(Default)]
pub(super) struct ClientEnd {
    /// The reason that it gave.
    pub(super) last_message: String,
    /// Whether it had attached to the server.
    pub(super) was_attached: bool,
    /// The command lines that have no answer.
    pub(super) unanswered: VecDeque<PendingCommand>,
}

/// Commands for the server, and the place for their answers.
#[derive(Debug)]
pub(crate) struct CommandLine {
    pub(crate) line: String,
    /// The number of commands in the line; tmux answers each of them.
    pub(crate) count: usize,
    pub(crate) answer: oneshot::Sender<Result<Vec<String>>>,
}

/// A command line that was sent and is not fully answered.
pub(super) struct PendingCommand {
    pub(super) command: String,
    pub(super) left: usize,
    pub(super) output: Vec<String>,
    pub(super) answer: oneshot::Sender<Result<Vec<String>>>,
}

impl Client {
    pub(super) fn start(config: &Config, flags: &[&str]) -> Result<Self> {
        let root = &config.root;
        let mut command = tmux_command(config);
        command.args(flags).arg("-f").arg(config.tmux_conf());
        command.args(["-C", "new-session", "-A", "-f", "no-output,ignore-size"]);
        command.args(["-s", keeper::NAME, "-x", "80", "-y", "24"]);
        command.args(keeper::command(&config.program, root));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let missing = |error: io::Error| Error::TmuxMissing { reason: error.to_string() };
        let mut child = command.spawn().map_err(missing)?;
        let input = child.stdin.take().expect("stdin was asked to be a pipe");
        let output = child.stdout.take().expect("stdout was asked to be a pipe");
        Ok(Self { child, input, output: BufReader::new(output) })
    }

    /// Passes command lines on and their answers back, until the client ends or all senders are gone.
    pub(super) async fn run(self, requests: &mut mpsc::Receiver<CommandLine>) -> ClientEnd {
        let Self { mut child, mut input, mut output } = self;
        let mut end = ClientEnd::default();
        let mut frame: Option<Vec<String>> = None;
        let mut line = Vec::new();
        loop {
            tokio::select! {
                read = output.read_until(b'\n', &mut line) => {
                    if read.is_err() || line.is_empty() {
                        break;
                    }
                    let text = String::from_utf8_lossy(&line);
                    let text = text.trim_end_matches('\n');
                    if let Some(reason) = text.strip_prefix("%exit ") {
                        end.last_message = reason.to_owned();
                    }
                    end.was_attached |= text.starts_with("%session-changed ");
                    take_line(text, &mut frame, &mut end.unanswered);
                    line.clear();
                },
                request = requests.recv() => {
                    let Some(request) = request else {
                        // Closing the input detaches the client.
                        drop(input);
                        // A read error means the end of the stream, too.
                        let _ = tokio::io::copy(&mut output, &mut tokio::io::sink()).await;
                        break;
                    };
                    // If the write fails, the output ends, and then all unanswered command lines get an error.
                    let _ = input.write_all(request.line.as_bytes()).await;
                    let command = name_of(&request.line);
                    let CommandLine { count, answer, .. } = request;
                    let output = Vec::new();
                    end.unanswered.push_back(PendingCommand { command, left: count, output, answer });
                }
            }
        }
        if let Err(error) = child.wait().await {
            warn!(%error, "cannot wait for the end of a control client");
        }
        end
    }
}

fn take_line(line: &str, frame: &mut Option<Vec<String>>, pending: &mut VecDeque<PendingCommand>) {
    let ours = |rest: &str| rest.ends_with(" 1");
    match frame {
        None => {
            if line.strip_prefix("%begin ").is_some_and(ours) {
                *frame = Some(Vec::new());
            }
        }
        Some(lines) => {
            let failed = line.strip_prefix("%error ").is_some_and(ours);
            if failed || line.strip_prefix("%end ").is_some_and(ours) {
                let text = lines.join("\n");
                *frame = None;
                finish_frame(text, failed, pending);
            } else {
                lines.push(line.to_owned());
            }
        }
    }
}

fn finish_frame(text: String, failed: bool, pending: &mut VecDeque<PendingCommand>) {
    let Some(first) = pending.front_mut() else { return };
    // After an error tmux skips the rest of the line.
    first.left = if failed { 0 } else { first.left.saturating_sub(1) };
    if !failed {
        first.output.push(text.clone());
    }
    if first.left == 0
        && let Some(done) = pending.pop_front()
    {
        let result = if failed {
            Err(Error::TmuxRefused { command: done.command, reason: text })
        } else {
            Ok(done.output)
        };
        // It is fine if nobody waits, as for the key that runs a command.
        let _ = done.answer.send(result);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_find_their_requests() {
        let (mut frame, mut pending) = (None, VecDeque::new());
        let (answer, mut first) = oneshot::channel();
        pending.push_back(PendingCommand {
            command: "a".into(),
            left: 2,
            output: Vec::new(),
            answer,
        });
        let (answer, mut second) = oneshot::channel();
        pending.push_back(PendingCommand {
            command: "b".into(),
            left: 2,
            output: Vec::new(),
            answer,
        });
        let stream = "%begin 1 1 0\nattached\n%end 1 1 0\n%session-changed $0 x\n%begin 2 2 1\n\
             %7 123\n%end 2 2 1\n%window-add @1\n%begin 2 3 1\n%end 2 3 1\n%begin 3 4 1\nno such \
             pane\n%error 3 4 1\n";
        for line in stream.lines() {
            take_line(line, &mut frame, &mut pending);
        }
        assert_eq!(first.try_recv().unwrap().unwrap(), ["%7 123", ""]);
        let error = second.try_recv().unwrap().unwrap_err().to_string();
        assert!(error.contains("`b`: no such pane"), "{error}");
        assert!(pending.is_empty());
    }
}
