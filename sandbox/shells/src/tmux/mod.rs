//! The connection to the tmux server: one control client (`tmux -C`) through which all commands go.
//!
//! The client does not receive the output of panes (`no-output`): that would be slow, and output would be lost when
//! the owner dies. What remains are answers and notifications, which one task always reads to the end, because a
//! control client that is not drained prevents the server from ending. A client that ends while the server lives is
//! replaced: it was killed or detached from outside, which does not concern the shells.
//!
//! Answers come in the order of the commands, framed by `%begin` and `%end` or `%error`.

mod client;
mod environment;

use std::{
    ffi::OsStr, os::unix::ffi::OsStrExt as _, process::Stdio, slice, sync::Arc, time::Duration,
};

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
use client::{Client, CommandLine, PendingCommand};
use process_identity::{self as process, ProcessId};

/// How long tmux may take to start or to answer. It usually needs a millisecond or two.
const ANSWER_LIMIT: Duration = Duration::from_secs(20);
/// How long the server and its clients may take to end at shutdown.
const SHUTDOWN_LIMIT: Duration = Duration::from_secs(2);
/// How long the control client of a dead owner may take to end by itself.
const DETACH_LIMIT: Duration = Duration::from_millis(500);
/// The number of attempts to start tmux.
const ATTEMPTS: u32 = 3;
/// How often in a row a living server may refuse a control client before it counts as ended.
const REFUSALS: u32 = 3;
/// The pause between two attempts to replace a control client.
const RETRY_PAUSE: Duration = Duration::from_millis(500);
/// The most command lines in the queue to the control client.
const QUEUE: usize = 256;

/// Sends commands to the tmux server. Clones share one control client.
#[derive(Debug, Clone)]
pub(crate) struct Tmux {
    requests: mpsc::Sender<CommandLine>,
    /// The last message of the last client, once the server has ended.
    closed: watch::Receiver<Option<String>>,
    server: Arc<OnceCell<ProcessId>>,
}

/// A command line that was sent without waiting for its answer.
#[derive(Debug)]
pub(crate) struct Delivery(oneshot::Receiver<Result<Vec<String>>>);

impl Delivery {
    /// Whether tmux may still carry the commands out. False after an answer, and after the loss of the client, which
    /// leaves nobody to answer.
    pub(crate) fn is_pending(&mut self) -> bool {
        matches!(self.0.try_recv(), Err(oneshot::error::TryRecvError::Empty))
    }
}

/// Keeps a control client running. Dropping it ends the client and leaves the server alive.
#[derive(Debug)]
pub(crate) struct ControlClient {
    /// The task that runs and replaces the client; it ends with the server.
    supervisor: JoinSet<()>,
    /// The task that replaces the keeper, to whose tmux session the client is attached.
    _guard: JoinSet<()>,
}

/// Starts the server in a new state directory, and the control client. Does not wait for them: the first command
/// shows whether the server runs.
pub(crate) fn start_first(config: &Config) -> Result<(Tmux, ControlClient)> {
    spawn(config).map(|(started, _)| started)
}

/// Starts the control client, and the server if there is none.
pub(crate) async fn start(config: &Config) -> Result<(Tmux, ControlClient)> {
    let mut attempt = 1;
    loop {
        wait_for_former_clients(config).await;
        match start_client(config).await {
            Err(Error::TmuxMissing { .. }) if attempt < ATTEMPTS => attempt += 1,
            tried => return tried,
        }
    }
}

/// Waits until the control clients of killed owners are gone. tmux 3.3 crashes when it sends a notification to a
/// control client that has not finished attaching, and the end of another client causes such a notification. It also
/// crashes when a client ends before it has finished attaching. So the old clients get time to attach; they end by
/// themselves as soon as they notice that their owner is gone.
async fn wait_for_former_clients(config: &Config) {
    let clients = former_clients(config);
    for client in process::wait_for_all(&clients, DETACH_LIMIT).await {
        client.send(Signal::KILL);
        if time::timeout(ANSWER_LIMIT, client.ended()).await.is_err() {
            warn!(?client, "a control client of an earlier owner does not end");
        }
    }
    // The server may not have noticed yet that they are gone. It has when it answers a client that came later and is
    // not a control client.
    if let Err(error) = run_once(config, &["list-sessions".as_ref()]).await {
        // Usually there is no server; then one is started.
        debug!(%error, "no tmux server answers");
    }
}

/// The control clients that other owners have started for this directory. If one of them has also started the server,
/// the server has the same arguments, so it is excluded by its name.
fn former_clients(config: &Config) -> Vec<ProcessId> {
    let is_server = |process: &ProcessId| process.is_named("tmux: server");
    let mut found = process::with_argument(config.tmux_conf().as_os_str().as_bytes());
    found.retain(|process| !is_server(process));
    found
}

/// Starts a control client for a server that may already exist.
async fn start_client(config: &Config) -> Result<(Tmux, ControlClient)> {
    let ((tmux, client), process) = spawn(config)?;
    let server = match tmux.server().await {
        Ok(server) => server,
        Err(Error::ServerGone) => {
            let reason = format!("it ended immediately with the message {:?}", tmux.closed().await);
            return Err(Error::TmuxMissing { reason });
        }
        Err(error) => return Err(error),
    };
    // A server that this client has started already has the owner's environment.
    if process.is_some_and(|client| server.start_time < client.start_time) {
        environment::replace(&tmux, config).await?;
    }
    Ok((tmux, client))
}

/// Starts the tasks around a new control client. Also returns the client's process.
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
            let last_message = supervise(&config, &server, client, receiver).await;
            closing.send_replace(Some(last_message));
        }
    });
    guard.spawn(keeper::keep_running(tmux.clone()));
    Ok(((tmux, ControlClient { supervisor, _guard: guard }), process))
}

/// Passes command lines to the client, and to its replacements for as long as the server lives. Returns the last
/// message of the last client.
async fn supervise(
    config: &Config,
    server: &OnceCell<ProcessId>,
    mut client: Client,
    mut requests: mpsc::Receiver<CommandLine>,
) -> String {
    let mut refusals = 0;
    loop {
        let end = client.run(&mut requests).await;
        refusals = if end.was_attached { 0 } else { refusals + 1 };
        if requests.is_closed() {
            return end.last_message;
        }
        // A server whose process is not known has answered nothing yet: it did not start.
        let Some(server) = server.get() else { return end.last_message };
        let Some(successor) = replace_client(config, server, &mut refusals).await else {
            return end.last_message;
        };
        client = successor;
        // It is unknown whether these were carried out.
        for PendingCommand { command, answer, .. } in end.unanswered {
            let reason = "the control client was killed or detached".into();
            // It is fine if nobody waits for the answer.
            let _ = answer.send(Err(Error::TmuxSilent { command, reason }));
        }
    }
}

/// Starts another control client. Retries for as long as the server's process lives, because most errors say nothing
/// about the server: tmux could not be started (EMFILE, EAGAIN), or the server is stopped. Returns `None` if the
/// server has ended, or has refused clients so often that it will not accept one any more: tmux 3.3 may wait for ever
/// for a client before it ends.
async fn replace_client(config: &Config, server: &ProcessId, refusals: &mut u32) -> Option<Client> {
    while server.is_alive() && *refusals < REFUSALS {
        // An answer shows that the server has noticed the loss of the client.
        let error = match run_once(config, &["list-sessions".as_ref()]).await {
            Ok(()) => match Client::start(config, &["-N"]) {
                Ok(client) => return Some(client),
                Err(error) => error,
            },
            Err(error) => error,
        };
        if let Error::TmuxRefused { .. } = error {
            *refusals += 1;
        }
        // A server that is about to end refuses its clients, too, and needs no warning.
        let deadline = time::Instant::now() + RETRY_PAUSE;
        if process::wait_for_all(slice::from_ref(server), RETRY_PAUSE).await.is_empty() {
            break;
        }
        warn!(%error, "the control client could not be replaced; retrying");
        // The wait above returns early if the process cannot be watched.
        time::sleep_until(deadline).await;
    }
    None
}

/// Runs one tmux command in a separate client. The command completes even if this process is killed.
pub(super) async fn run_once(config: &Config, arguments: &[&OsStr]) -> Result<()> {
    let mut command = tmux_command(config);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    // Otherwise every attempt to reach a stopped server would leave a process behind.
    command.kill_on_drop(true);
    let name = arguments[0].to_string_lossy().into_owned();
    match time::timeout(ANSWER_LIMIT, command.output()).await {
        Ok(Ok(output)) if output.status.success() => Ok(()),
        Ok(Ok(output)) => {
            let reason = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            Err(Error::TmuxRefused { command: name, reason })
        }
        Ok(Err(error)) => Err(Error::TmuxMissing { reason: error.to_string() }),
        Err(_) => Err(no_answer(name)),
    }
}

fn tmux_command(config: &Config) -> Command {
    let mut command = Command::new(&config.tmux);
    command.arg("-S").arg(config.socket()).current_dir(&config.root);
    command.env_remove("TMUX").env_remove("TMUX_PANE");
    command
}

fn no_answer(command: String) -> Error {
    let reason =
        format!("no answer within {} s, the machine may be overloaded", ANSWER_LIMIT.as_secs());
    Error::TmuxSilent { command, reason }
}

impl Tmux {
    /// A handle without a control client, and the receiver of its command lines.
    #[cfg(test)]
    pub(crate) fn unconnected() -> (Self, mpsc::Receiver<CommandLine>) {
        let (requests, receiver) = mpsc::channel(QUEUE);
        let (_, closed) = watch::channel(None);
        (Self { requests, closed, server: Arc::default() }, receiver)
    }

    /// Runs one command, which must not contain an unquoted `;`, and returns its output.
    pub(crate) async fn ask(&self, command: &str) -> Result<String> {
        Ok(self.ask_all(&[command]).await?.join("\n"))
    }

    /// Sends several commands as one line and waits for nothing, not even for room in the queue. The caller must
    /// learn by other means whether they worked.
    pub(crate) fn send_without_waiting(&self, commands: &[&str]) -> Result<Delivery> {
        let (answer, answered) = oneshot::channel();
        let sent = self.requests.try_send(request(commands, answer));
        sent.map(|()| Delivery(answered)).map_err(|error| match error {
            TrySendError::Full(request) => {
                let reason =
                    format!("{QUEUE} commands are waiting already, the machine may be overloaded");
                Error::TmuxSilent { command: name_of(&request.line), reason }
            }
            TrySendError::Closed(_) => Error::ServerGone,
        })
    }

    /// Runs several commands as one line: the server does nothing else in between. Stops at the first error.
    pub(crate) async fn ask_all(&self, commands: &[&str]) -> Result<Vec<String>> {
        let (answer, answered) = oneshot::channel();
        let asking = async {
            let sent = self.requests.send(request(commands, answer)).await;
            sent.map_err(|_| Error::ServerGone)?;
            answered.await.map_err(|_| Error::ServerGone)?
        };
        let asked = time::timeout(ANSWER_LIMIT, asking).await;
        asked.unwrap_or_else(|_| Err(no_answer(name_of(commands[0]))))
    }

    /// The process of the server.
    pub(crate) async fn server(&self) -> Result<ProcessId> {
        let ask = || async {
            let answer = self.ask("display-message -p '#{pid}'").await?;
            answer.parse().ok().and_then(ProcessId::of).ok_or_else(|| Error::TmuxMissing {
                reason: format!("it reported {answer:?} as its process number"),
            })
        };
        self.server.get_or_try_init(ask).await.copied()
    }

    /// Whether the server has ended.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed.borrow().is_some()
    }

    /// Returns the last message of the last control client, when the server has ended.
    pub(crate) async fn closed(&self) -> String {
        let mut closed = self.closed.clone();
        let closed = closed.wait_for(Option::is_some).await;
        closed.ok().and_then(|words| words.clone()).unwrap_or_default()
    }
}

impl ControlClient {
    /// Ends the server and waits until it, its clients and the keeper are gone.
    pub(crate) async fn shut_down(mut self, tmux: &Tmux) {
        let server = unless_gone(tmux.server().await, "tmux did not report its process");
        let mut others = Vec::new();
        for list in ["list-clients -F '#{client_pid}'", "list-panes -a -F '#{pane_pid}'"] {
            let pids = unless_gone(tmux.ask(list).await, "tmux did not list its processes");
            let pids = pids.unwrap_or_default();
            others.extend(pids.lines().filter_map(|pid| ProcessId::of(pid.parse().ok()?)));
        }
        match tmux.ask("kill-server").await {
            // The end of the stream is the answer.
            Ok(_) | Err(Error::ServerGone) => {}
            Err(error) => warn!(%error, "tmux did not accept kill-server; killing it"),
        }
        if time::timeout(ANSWER_LIMIT, self.supervisor.join_next()).await.is_err() {
            self.supervisor.shutdown().await;
        }
        // tmux 3.3 waits for ever for a control client whose owner was killed while the client started. No shell is
        // left that could lose anything.
        for process in process::wait_for_all(server.as_slice(), SHUTDOWN_LIMIT).await {
            kill(process).await;
        }
        for process in process::wait_for_all(&others, SHUTDOWN_LIMIT).await {
            kill(process).await;
        }
    }
}

/// The answer of tmux at shutdown. Warns about an error, unless the server has ended already.
fn unless_gone<T>(answer: Result<T>, problem: &str) -> Option<T> {
    match answer {
        Ok(answer) => Some(answer),
        Err(Error::ServerGone) => None,
        Err(error) => {
            warn!(%error, "{problem}; what is left of its processes is not waited for");
            None
        }
    }
}

async fn kill(process: ProcessId) {
    process.send(Signal::KILL);
    if let Err(error) = process.ended().await {
        warn!(?process, %error, "cannot wait for the end of a process");
    }
}

/// Quotes a word as one argument for tmux's parser.
pub(crate) fn quote(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Escapes a text against tmux's expansion of formats (`#`) and times (`%`).
pub(crate) fn protect_format(text: &str) -> String {
    text.replace('#', "##").replace('%', "%%")
}

fn request(commands: &[&str], answer: oneshot::Sender<Result<Vec<String>>>) -> CommandLine {
    CommandLine { line: commands.join(" ; ") + "\n", count: commands.len(), answer }
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

    /// Starting a process fails for lack of descriptors or memory, which says nothing about the server.
    #[tokio::test]
    async fn a_client_is_replaced_as_soon_as_tmux_can_be_started() {
        let directory = tempfile::tempdir().unwrap();
        let mut config = Config::new(directory.path(), "sandbox");
        config.tmux = directory.path().join("tmux");
        let (server, mut refusals) = (ProcessId::of(std::process::id()).unwrap(), 0);
        let mut replacing = std::pin::pin!(replace_client(&config, &server, &mut refusals));
        tokio::select! {
            biased;
            _ = &mut replacing => panic!("the server is alive, and tmux is missing"),
            () = std::future::ready(()) => {}
        }
        // The first attempt has failed. `true` accepts the command line of every client.
        std::os::unix::fs::symlink("/bin/true", &config.tmux).unwrap();
        let replaced = time::timeout(ANSWER_LIMIT, replacing).await.expect("it is tried again");
        assert!(replaced.is_some());
    }

    #[tokio::test]
    async fn a_server_that_refuses_every_client_counts_as_ended() {
        let directory = tempfile::tempdir().unwrap();
        let mut config = Config::new(directory.path(), "sandbox");
        config.tmux = "/bin/false".into();
        let (server, mut refusals) = (ProcessId::of(std::process::id()).unwrap(), 0);
        assert!(replace_client(&config, &server, &mut refusals).await.is_none());
    }
}
