//! The control client: one `tmux -C` process through which all commands to the server go.
//!
//! Output of the panes is switched off here (`no-output`): it would be slow, and it would be lost
//! with us. What remains are answers and notifications, which one task reads to the end whatever
//! happens, because a control client that is not drained keeps the server from ending. A client that ends while the
//! server lives is replaced: somebody has killed or detached it, and the shells have nothing to do with that.
//!
//! Answers come in the order of the commands, framed by `%begin` and `%end` or `%error`.

mod client;
mod environment;

use std::{ffi::OsStr, os::unix::ffi::OsStrExt as _, process::Stdio, sync::Arc, time::Duration};

use rustix::process::Signal;
use tokio::{
    process::Command,
    sync::{
        OnceCell,
        mpsc::{self, error::TrySendError},
        oneshot, watch,
    },
    task::JoinSet,
    time,
};
use tracing::{debug, warn};

use crate::{Error, Result};
use crate::{config::Config, keeper};
use client::{Client, Pending, Request};
use process_identity::{self as process, ProcessId};

/// How long tmux may take to start or to answer; it normally needs a millisecond or two.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long server and clients may take to end when there is nothing left for them to do.
const LAST_PATIENCE: Duration = Duration::from_secs(2);
/// How long a control client may take to end whose owner is gone.
const LEAVING_PATIENCE: Duration = Duration::from_millis(500);
/// How often the start of tmux is tried.
const ATTEMPTS: u32 = 3;
/// Commands that may wait for the writer.
const QUEUE: usize = 256;

/// Sends commands to the tmux server. Clones share the one client.
#[derive(Debug, Clone)]
pub(crate) struct Tmux {
    requests: mpsc::Sender<Request>,
    /// What the last client said last, once the server has ended.
    closed: watch::Receiver<Option<String>>,
    server: Arc<OnceCell<ProcessId>>,
}

/// Keeps a control client running; dropping it lets the client go and leaves the server alive.
#[derive(Debug)]
pub(crate) struct ControlClient {
    /// Ends with the server.
    supervisor: JoinSet<()>,
    /// Replaces the keeper, in whose shell the client is.
    _guard: JoinSet<()>,
}

/// Starts the server where nobody has ever had one, and the control client. It is not waited for: whatever is asked of
/// it first tells whether it runs.
pub(crate) fn start_first(config: &Config) -> Result<(Tmux, ControlClient)> {
    spawn(config).map(|(started, _)| started)
}

/// Starts the control client, and the server if there is none.
pub(crate) async fn start(config: &Config) -> Result<(Tmux, ControlClient)> {
    let mut attempt = 1;
    loop {
        let_former_clients_go(config).await;
        match join(config).await {
            Err(Error::TmuxMissing { .. }) if attempt < ATTEMPTS => attempt += 1,
            tried => return tried,
        }
    }
}

/// Waits until the clients of owners that were killed are gone. tmux 3.3 dies of news for a control client that has
/// not quite introduced itself, and that another has gone is such news. It dies as well of one that goes before it
/// has introduced itself; so they get the time to, and end by themselves as soon as they know that nobody asks any
/// more.
async fn let_former_clients_go(config: &Config) {
    let clients = former_clients(config);
    for client in process::wait_for_all(&clients, LEAVING_PATIENCE).await {
        client.send(Signal::KILL);
        if time::timeout(PATIENCE, client.ended()).await.is_err() {
            warn!(?client, "a control client of a former owner does not end");
        }
    }
    // That they are gone does not say that the server has heard of it. It has when it answers somebody who came
    // later, and who is no control client.
    if let Err(error) = run_plainly(config, &["list-sessions".as_ref()]).await {
        // There is no server, as a rule; another is started then.
        debug!(%error, "no server answers");
    }
}

/// Control clients that others have started for this directory. If one of them has also started the server, that has
/// the same arguments.
fn former_clients(config: &Config) -> Vec<ProcessId> {
    let is_server = |process: &ProcessId| process.is_named("tmux: server");
    let mut found = process::with_argument(config.tmux_conf().as_os_str().as_bytes());
    found.retain(|process| !is_server(process));
    found
}

/// Starts a control client for a server that may have been there before us.
async fn join(config: &Config) -> Result<(Tmux, ControlClient)> {
    let ((tmux, client), process) = spawn(config)?;
    let server = match tmux.server().await {
        Ok(server) => server,
        Err(Error::ServerGone) => {
            let reason = format!("it ended at once, saying {:?}", tmux.closed().await);
            return Err(Error::TmuxMissing { reason });
        }
        Err(error) => return Err(error),
    };
    // A server that our client has started has its environment from us.
    if process.is_some_and(|client| server.start_time < client.start_time) {
        environment::replace(&tmux, config).await?;
    }
    Ok((tmux, client))
}

/// Also says which process it is.
fn spawn(config: &Config) -> Result<((Tmux, ControlClient), Option<ProcessId>)> {
    let client = Client::start(config, &[])?;
    let process = client.child.id().and_then(ProcessId::of);
    let (requests, receiver) = mpsc::channel(QUEUE);
    let (closing, closed) = watch::channel(None);
    let tmux = Tmux { requests, closed, server: Arc::default() };
    let (mut supervisor, mut guard) = (JoinSet::new(), JoinSet::new());
    supervisor.spawn({
        let (config, server) = (config.clone(), Arc::clone(&tmux.server));
        async move {
            let last_words = supervise(&config, &server, client, receiver).await;
            closing.send_replace(Some(last_words));
        }
    });
    guard.spawn(keeper::guard(tmux.clone()));
    Ok(((tmux, ControlClient { supervisor, _guard: guard }), process))
}

/// Passes requests to the client, and to its successors for as long as the server lives; returns what the last one
/// said last.
async fn supervise(
    config: &Config,
    server: &OnceCell<ProcessId>,
    mut client: Client,
    mut requests: mpsc::Receiver<Request>,
) -> String {
    let mut fruitless = 0;
    loop {
        let farewell = client.converse(&mut requests).await;
        fruitless = if farewell.was_attached { 0 } else { fruitless + 1 };
        let is_server_alive = server.get().is_some_and(ProcessId::is_alive);
        if requests.is_closed() || !is_server_alive || fruitless == ATTEMPTS {
            return farewell.last_words;
        }
        // Answers, so the server has heard of the loss; an error is its end.
        let successor = match run_plainly(config, &["list-sessions".as_ref()]).await {
            Ok(()) => Client::start(config, &["-N"]),
            Err(error) => Err(error),
        };
        let Ok(successor) = successor else { return farewell.last_words };
        client = successor;
        // Nobody knows whether these were carried out.
        for Pending { command, answer, .. } in farewell.unanswered {
            let reason = "its control client was ended from outside".into();
            // Nobody may wait for it.
            let _ = answer.send(Err(Error::TmuxSilent { command, reason }));
        }
    }
}

/// Has a client run one command that is none of the control client's. It goes on if we are killed.
pub(super) async fn run_plainly(config: &Config, arguments: &[&OsStr]) -> Result<()> {
    let mut command = tmux_command(config);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let name = arguments[0].to_string_lossy().into_owned();
    match time::timeout(PATIENCE, command.output()).await {
        Ok(Ok(output)) if output.status.success() => Ok(()),
        Ok(Ok(output)) => {
            let reason = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            Err(Error::TmuxRefused { command: name, reason })
        }
        Ok(Err(error)) => Err(Error::TmuxMissing { reason: error.to_string() }),
        Err(_) => Err(silent(name)),
    }
}

fn tmux_command(config: &Config) -> Command {
    let mut command = Command::new(&config.tmux);
    command.arg("-S").arg(config.socket()).current_dir(&config.root);
    command.env_remove("TMUX").env_remove("TMUX_PANE");
    command
}

fn silent(command: String) -> Error {
    let reason = format!("nothing for {} s, the machine may be overloaded", PATIENCE.as_secs());
    Error::TmuxSilent { command, reason }
}

impl Tmux {
    /// Runs one command, which must not contain an unquoted `;`, and returns its output.
    pub(crate) async fn ask(&self, command: &str) -> Result<String> {
        Ok(self.ask_all(&[command]).await?.join("\n"))
    }

    /// Runs commands in one go and waits for nothing, not even for room in the queue. Whatever becomes of them,
    /// something else must tell.
    pub(crate) fn tell_now(&self, commands: &[&str]) -> Result<()> {
        let (answer, _) = oneshot::channel();
        self.requests.try_send(request(commands, answer)).map_err(|error| match error {
            TrySendError::Full(request) => {
                let reason = format!("{QUEUE} commands wait for it, the machine may be overloaded");
                Error::TmuxSilent { command: name_of(&request.line), reason }
            }
            TrySendError::Closed(_) => Error::ServerGone,
        })
    }

    /// Runs commands in one go: the server does nothing else in between. Stops at the first error.
    pub(crate) async fn ask_all(&self, commands: &[&str]) -> Result<Vec<String>> {
        let (answer, answered) = oneshot::channel();
        let asking = async {
            let sent = self.requests.send(request(commands, answer)).await;
            sent.map_err(|_| Error::ServerGone)?;
            answered.await.map_err(|_| Error::ServerGone)?
        };
        let asked = time::timeout(PATIENCE, asking).await;
        asked.unwrap_or_else(|_| Err(silent(name_of(commands[0]))))
    }

    /// The server's process.
    pub(crate) async fn server(&self) -> Result<ProcessId> {
        let ask = || async {
            let answer = self.ask("display-message -p '#{pid}'").await?;
            answer.parse().ok().and_then(ProcessId::of).ok_or_else(|| Error::TmuxMissing {
                reason: format!("it named {answer:?} as its process"),
            })
        };
        self.server.get_or_try_init(ask).await.copied()
    }

    /// Whether the server has ended.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed.borrow().is_some()
    }

    /// Returns when the server has ended, and says what its last control client said last.
    pub(crate) async fn closed(&self) -> String {
        let mut closed = self.closed.clone();
        let closed = closed.wait_for(Option::is_some).await;
        closed.ok().and_then(|words| words.clone()).unwrap_or_default()
    }
}

impl ControlClient {
    /// Ends the server and waits until it, its clients and the keeper are gone.
    pub(crate) async fn shut_down(mut self, tmux: &Tmux) {
        let server = tmux.server().await.ok();
        let mut others = Vec::new();
        for list in ["list-clients -F '#{client_pid}'", "list-panes -a -F '#{pane_pid}'"] {
            let pids = tmux.ask(list).await.unwrap_or_default();
            others.extend(pids.lines().filter_map(|pid| ProcessId::of(pid.parse().ok()?)));
        }
        match tmux.ask("kill-server").await {
            // The answer is the end of the stream.
            Ok(_) | Err(Error::ServerGone) => {}
            Err(error) => warn!(%error, "tmux does not end, and is killed"),
        }
        if time::timeout(PATIENCE, self.supervisor.join_next()).await.is_err() {
            self.supervisor.shutdown().await;
        }
        // tmux 3.3 waits for ever for a control client whose owner was killed at its birth. There
        // is no shell left that could lose anything.
        for process in process::wait_for_all(server.as_slice(), LAST_PATIENCE).await {
            kill(process).await;
        }
        for process in process::wait_for_all(&others, LAST_PATIENCE).await {
            kill(process).await;
        }
    }
}

async fn kill(process: ProcessId) {
    process.send(Signal::KILL);
    if let Err(error) = process.ended().await {
        warn!(?process, %error, "the end of a process cannot be awaited");
    }
}

/// Quotes a word for tmux's own parser, as one argument.
pub(crate) fn quote(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Protects a text from the expansions that tmux makes in formats (`#`) and times (`%`).
pub(crate) fn protect_format(text: &str) -> String {
    text.replace('#', "##").replace('%', "%%")
}

fn request(commands: &[&str], answer: oneshot::Sender<Result<Vec<String>>>) -> Request {
    Request { line: commands.join(" ; ") + "\n", count: commands.len(), answer }
}

fn name_of(command: &str) -> String {
    command.split_ascii_whitespace().next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoting_keeps_words_whole() {
        assert_eq!(quote("it's #1 $x;"), r"'it'\''s #1 $x;'");
        assert_eq!(protect_format("a#b%c"), "a##b%%c");
    }
}
