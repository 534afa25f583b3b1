//! `bridge-daemon serve`: a daemon for the program that started it.

use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::process::ExitCode;
use std::time::Duration;

use rustix::fs::{FileType, fstat};
use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;
use tracing::info;

use crate::config::ServeArgs;
use crate::daemon::{Daemon, RunFacts};

/// Serves until stdin closes, a signal comes, a host asks for the end, or nobody has been connected for
/// `--idle-timeout`.
pub async fn serve(args: ServeArgs) -> anyhow::Result<ExitCode> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut hang_up = signal(SignalKind::hangup())?;
    // Before the ready line: a parent that dies right after reading it is still detected.
    let parent = Parent::now();
    let wait = args.bridge.host_wait(false);
    let daemon = Daemon::start(&args.bridge, wait, RunFacts::default()).await?;
    announce(&daemon)?;
    let idle = wait_until_idle(&daemon, args.idle_timeout);
    tokio::select! {
        () = parent_gone(parent) => info!("ending: the parent has ended"),
        () = daemon.hub.ended() => info!("ending: a host asked for it"),
        () = idle => info!("ending: nobody has been connected for --idle-timeout"),
        _ = terminate.recv() => info!("SIGTERM"),
        _ = interrupt.recv() => info!("SIGINT"),
        _ = hang_up.recv() => info!("SIGHUP"),
    }
    daemon.stop().await;
    Ok(ExitCode::SUCCESS)
}

/// Prints the ready line to stdout. It contains the tokens only if stdout is a pipe or a socket: a terminal or a file
/// would keep them.
fn announce(daemon: &Daemon) -> io::Result<()> {
    let mut line = json!({
        "addr": daemon.addr,
        "session": daemon.session,
        "pid": std::process::id(),
        "version": env!("CARGO_PKG_VERSION"),
    });
    if is_pipe_or_socket(&io::stdout()) {
        line["token"] = json!(daemon.token);
        line["hostToken"] = json!(daemon.host_token);
        line["env"] = daemon.variables().into_iter().collect();
    }
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{line}")?;
    stdout.flush()
}

/// Returns when stdin closes or the parent dies. If stdin cannot show the end of another process (a file, the null
/// device), neither is watched: such a daemon ends by a signal or when it is idle.
async fn parent_gone(parent: Parent) {
    let stdin = io::stdin();
    let piped = is_pipe_or_socket(&stdin);
    if !piped && !stdin.is_terminal() {
        return std::future::pending().await;
    }
    let (closed, stdin_closed) = oneshot::channel::<()>();
    // In a separate thread: a read of stdin cannot be cancelled, and must not delay the daemon's end.
    std::thread::spawn(move || {
        // An error ends the copy as the end of stdin does.
        let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
        drop(closed);
    });
    tokio::select! {
        _ = stdin_closed => {}
        // Another child of a dead parent may hold the pipe open.
        () = parent.died(), if piped => {}
    }
}

/// The process that started the daemon.
#[cfg(target_os = "linux")]
struct Parent(Option<std::os::fd::OwnedFd>);

#[cfg(target_os = "linux")]
impl Parent {
    fn now() -> Self {
        use rustix::process::{PidfdFlags, getppid, pidfd_open};
        Self(getppid().and_then(|parent| pidfd_open(parent, PidfdFlags::empty()).ok()))
    }

    async fn died(self) {
        match self.0.and_then(|pidfd| process_identity::register_readable(pidfd).ok()) {
            Some(pidfd) => _ = pidfd.readable().await,
            None => std::future::pending().await,
        }
    }
}

/// The process that started the daemon. Without pidfds, the id of the parent is polled and compared with the first one:
/// the process that becomes the new parent need not be process 1.
#[cfg(not(target_os = "linux"))]
struct Parent(Option<rustix::process::Pid>);

#[cfg(not(target_os = "linux"))]
impl Parent {
    fn now() -> Self {
        Self(rustix::process::getppid())
    }

    async fn died(self) {
        while rustix::process::getppid() == self.0 {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }
}

async fn wait_until_idle(daemon: &Daemon, limit: Option<Duration>) {
    let Some(limit) = limit else { return std::future::pending().await };
    let mut population = daemon.hub.population();
    loop {
        // Fails only without a sender, which the daemon holds.
        let _ = population.wait_for(|count| *count == 0).await;
        let somebody = population.wait_for(|count| *count > 0);
        if tokio::time::timeout(limit, somebody).await.is_err() {
            return;
        }
    }
}

fn is_pipe_or_socket(stream: &impl AsFd) -> bool {
    let kind = fstat(stream).map(|stat| FileType::from_raw_mode(stat.st_mode));
    matches!(kind, Ok(FileType::Fifo | FileType::Socket))
}
