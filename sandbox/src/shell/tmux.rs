//! The control client: one `tmux -C` process through which all commands to the server go.
//!
//! Output of the panes is switched off here (`no-output`): it would be slow, and it would be lost
//! with us. What remains are answers and notifications, which one task reads to the end whatever
//! happens, because a control client that is not drained keeps the server from ending.
//!
//! Answers come in the order of the commands, framed by `%begin` and `%end` or `%error`.

use std::{collections::VecDeque, fs, io, process::Stdio, time::Duration};

use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    process::{Child, ChildStdout, Command},
    sync::{mpsc, oneshot, watch},
    task::{JoinHandle, JoinSet},
    time,
};

use super::{
    config::Config,
    environment, keeper,
    ledger::write_private,
    process::{self, ProcessId},
};
use crate::{Error, Result};

/// How long tmux may take to start or to answer; it normally needs a millisecond or two.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long server and clients may take to end when there is nothing left for them to do.
const LAST_PATIENCE: Duration = Duration::from_secs(2);
/// How often the start of tmux is tried.
const ATTEMPTS: u32 = 3;
/// Commands that may wait for the writer.
const QUEUE: usize = 256;

/// Sends commands to the tmux server. Clones share the one client.
#[derive(Debug, Clone)]
pub(crate) struct Tmux {
    requests: mpsc::Sender<Request>,
    /// What the client said last, once it has ended.
    closed: watch::Receiver<Option<String>>,
}

/// The running control client; dropping it leaves the server alive.
#[derive(Debug)]
pub(crate) struct ControlClient {
    child: Child,
    task: JoinHandle<()>,
    pub(crate) server: ProcessId,
    /// Replaces the keeper, in whose session the client is; ends with us.
    _guard: JoinSet<()>,
}

#[derive(Debug)]
struct Request {
    line: String,
    /// Commands in the line, each of which is answered.
    count: usize,
    answer: oneshot::Sender<Result<Vec<String>>>,
}

/// A request whose answers are on their way.
struct Pending {
    command: String,
    left: usize,
    output: Vec<String>,
    answer: oneshot::Sender<Result<Vec<String>>>,
}

/// Starts the server if there is none, and the control client.
pub(crate) async fn start(config: &Config) -> Result<(Tmux, ControlClient)> {
    // The client of an owner that was killed must be gone first: a server that hears of a lost control
    // client while another introduces itself dies of it (seen with tmux 3.3). It would end by itself, but
    // nothing says when.
    let former = fs::read(config.client()).ok();
    let former = former.and_then(|text| serde_json::from_slice::<ProcessId>(&text).ok());
    if let Some(former) = former {
        former.send(rustix::process::Signal::KILL);
        process::all_ended(&[former], PATIENCE).await;
        // That it is gone does not say that the server has heard of it. It has when it answers somebody who came
        // later, and who is no control client.
        let mut ask = Command::new(&config.tmux);
        ask.arg("-S").arg(config.socket()).arg("list-sessions").env_remove("TMUX");
        ask.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
        let _ = time::timeout(PATIENCE, ask.status()).await;
    }
    let mut attempt = 1;
    loop {
        // A server whose first client was killed at its birth dies of that (seen with tmux 3.3), and
        // takes with it whoever has come meanwhile.
        match try_start(config).await {
            Err(Error::TmuxMissing { .. }) if attempt < ATTEMPTS => attempt += 1,
            tried => return tried,
        }
    }
}

async fn try_start(config: &Config) -> Result<(Tmux, ControlClient)> {
    let root = &config.root;
    let mut command = Command::new(&config.tmux);
    command.arg("-S").arg(config.socket()).arg("-f").arg(root.join("tmux.conf"));
    command.args(["-C", "new-session", "-A", "-f", "no-output,ignore-size", "-s", keeper::NAME]);
    command.args(["-x", "80", "-y", "24"]).args(keeper::command(&config.program, root));
    command.current_dir(root).env_remove("TMUX").env_remove("TMUX_PANE");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    command.kill_on_drop(true);
    let missing = |reason: String| Error::TmuxMissing { reason };
    let mut child = command.spawn().map_err(|error| missing(error.to_string()))?;
    let client = child.id().and_then(ProcessId::of);
    if let Some(client) = client {
        serde_json::to_vec(&client)
            .map_err(io::Error::from)
            .and_then(|text| write_private(&config.client(), &text))
            .map_err(Error::io("writing down the control client"))?;
    }
    let input = child.stdin.take().expect("stdin was asked to be a pipe");
    let output = child.stdout.take().expect("stdout was asked to be a pipe");
    let (requests, receiver) = mpsc::channel(QUEUE);
    let (closing, closed) = watch::channel(None);
    let task = tokio::spawn(async move {
        let last_words = converse(receiver, input, BufReader::new(output)).await;
        closing.send_replace(Some(last_words));
    });
    let tmux = Tmux { requests, closed };
    let list = format!("list-clients -t ={} -F '#{{client_pid}}'", keeper::NAME);
    let (server, clients) = tokio::join!(tmux.ask("display-message -p '#{pid}'"), tmux.ask(&list));
    let server = match server {
        Ok(server) => server,
        Err(Error::ServerGone) => {
            let last_words = tmux.closed().await;
            return Err(missing(format!("it ended at once, saying {last_words:?}")));
        }
        Err(error) => return Err(error),
    };
    let Some(server) = server.parse().ok().and_then(ProcessId::of) else {
        return Err(missing(format!("it named {server:?} as its process")));
    };
    end_others(child.id(), &clients.unwrap_or_default());
    // A server that our client has started has its environment from us.
    if client.is_some_and(|client| server.start_time < client.start_time) {
        environment::replace(&tmux).await?;
    }
    let mut guard = JoinSet::new();
    guard.spawn(keeper::guard(tmux.clone()));
    Ok((tmux, ControlClient { child, task, server, _guard: guard }))
}

impl Tmux {
    /// Runs one command, which must not contain an unquoted `;`, and returns its output.
    pub(crate) async fn ask(&self, command: &str) -> Result<String> {
        Ok(self.ask_all(&[command]).await?.join("\n"))
    }

    /// Runs commands in one go without waiting for them. Whatever becomes of them, something else must tell.
    pub(crate) async fn tell_all(&self, commands: &[&str]) -> Result<()> {
        let (answer, _) = oneshot::channel();
        self.send(commands, answer).await
    }

    async fn send(
        &self,
        commands: &[&str],
        answer: oneshot::Sender<Result<Vec<String>>>,
    ) -> Result<()> {
        let line = commands.join(" ; ") + "\n";
        let request = Request { line, count: commands.len(), answer };
        self.requests.send(request).await.map_err(|_| Error::ServerGone)
    }

    /// Runs commands in one go: the server does nothing else in between. Stops at the first error.
    pub(crate) async fn ask_all(&self, commands: &[&str]) -> Result<Vec<String>> {
        let (answer, answered) = oneshot::channel();
        self.send(commands, answer).await?;
        match time::timeout(PATIENCE, answered).await {
            Ok(Ok(result)) => result,
            Ok(Err(_)) => Err(Error::ServerGone),
            Err(_) => Err(Error::TmuxRefused {
                command: name_of(commands[0]),
                reason: format!("no answer within {} s", PATIENCE.as_secs()),
            }),
        }
    }

    /// Whether the control client has ended.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed.borrow().is_some()
    }

    /// Returns when the control client has ended, and with it, as a rule, the server; says what
    /// the client said last.
    pub(crate) async fn closed(&self) -> String {
        let mut closed = self.closed.clone();
        let closed = closed.wait_for(Option::is_some).await;
        closed.ok().and_then(|words| words.clone()).unwrap_or_default()
    }
}

/// Ends the clients of former owners. A server that has something to say to a control client whose
/// owner was killed never lets it go (seen with tmux 3.3).
fn end_others(ours: Option<u32>, clients: &str) {
    let pids = clients.lines().filter_map(|pid| pid.parse().ok());
    for client in pids.filter(|&pid| Some(pid) != ours).filter_map(ProcessId::of) {
        client.send(rustix::process::Signal::KILL);
    }
}

impl ControlClient {
    /// Ends the server and waits until it, its clients and the keeper are gone.
    pub(crate) async fn shut_down(mut self, tmux: &Tmux) {
        let mut others = Vec::new();
        for list in ["list-clients -F '#{client_pid}'", "list-panes -a -F '#{pane_pid}'"] {
            let pids = tmux.ask(list).await.unwrap_or_default();
            others.extend(pids.lines().filter_map(|pid| ProcessId::of(pid.parse().ok()?)));
        }
        // The answer to this is the end of the stream.
        let _ = tmux.ask("kill-server").await;
        let _ = time::timeout(PATIENCE, &mut self.task).await;
        if time::timeout(PATIENCE, self.child.wait()).await.is_err() {
            let _ = self.child.kill().await;
        }
        // tmux 3.3 waits for ever for a control client whose owner was killed at its birth. There
        // is no session left that could lose anything.
        for process in process::all_ended(&[self.server], LAST_PATIENCE).await {
            process.send(rustix::process::Signal::KILL);
            let _ = process.ended().await;
        }
        for process in process::all_ended(&others, LAST_PATIENCE).await {
            process.send(rustix::process::Signal::KILL);
            let _ = process.ended().await;
        }
    }
}

/// Quotes a word for tmux's own parser, as one argument.
pub(crate) fn quote(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Quotes a word for `/bin/sh`; the rules are the same.
pub(crate) fn quote_for_shell(word: &str) -> String {
    quote(word)
}

/// Protects a text from the expansions that tmux makes in formats (`#`) and times (`%`).
pub(crate) fn protect_format(text: &str) -> String {
    text.replace('#', "##").replace('%', "%%")
}

async fn converse(
    mut requests: mpsc::Receiver<Request>,
    mut input: tokio::process::ChildStdin,
    mut output: BufReader<ChildStdout>,
) -> String {
    let mut last_words = String::new();
    let mut pending = VecDeque::new();
    let mut frame: Option<Vec<String>> = None;
    let mut line = Vec::new();
    loop {
        tokio::select! {
            read = output.read_until(b'\n', &mut line) => match read {
                Ok(0) | Err(_) => return last_words,
                Ok(_) => {
                    let text = String::from_utf8_lossy(&line);
                    let text = text.trim_end_matches('\n');
                    if let Some(reason) = text.strip_prefix("%exit ") {
                        last_words = reason.to_owned();
                    }
                    take_line(text, &mut frame, &mut pending);
                    line.clear();
                }
            },
            request = requests.recv() => {
                // When nobody can ask any more, closing the input detaches the client.
                let Some(request) = request else { break };
                // A failed write is followed by the end of the output, which answers everybody.
                let _ = input.write_all(request.line.as_bytes()).await;
                let command = name_of(&request.line);
                let Request { count, answer, .. } = request;
                pending.push_back(Pending { command, left: count, output: Vec::new(), answer });
            }
        }
    }
    drop(input);
    loop {
        line.clear();
        match output.read_until(b'\n', &mut line).await {
            Ok(0) | Err(_) => return last_words,
            Ok(_) => {}
        }
    }
}

fn take_line(line: &str, frame: &mut Option<Vec<String>>, pending: &mut VecDeque<Pending>) {
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

fn finish_frame(text: String, failed: bool, pending: &mut VecDeque<Pending>) {
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
        let _ = done.answer.send(result);
    }
}

fn name_of(command: &str) -> String {
    command.split_ascii_whitespace().next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_find_their_requests() {
        let (mut frame, mut pending) = (None, VecDeque::new());
        let (answer, mut first) = oneshot::channel();
        pending.push_back(Pending { command: "a".into(), left: 2, output: Vec::new(), answer });
        let (answer, mut second) = oneshot::channel();
        pending.push_back(Pending { command: "b".into(), left: 2, output: Vec::new(), answer });
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

    #[test]
    fn quoting_keeps_words_whole() {
        assert_eq!(quote("it's #1 $x;"), r"'it'\''s #1 $x;'");
        assert_eq!(protect_format("a#b%c"), "a##b%%c");
    }
}
