//! `bridge-daemon serve`: a bridge for the program that started us.

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

/// Serves until stdin closes, a signal comes, a host asks, or nobody has been here for long.
pub async fn serve(args: ServeArgs) -> anyhow::Result<ExitCode> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut hang_up = signal(SignalKind::hangup())?;
    // Before anybody hears of us: a parent that dies right after that is still ours.
    let parent = Parent::now();
    let wait = args.bridge.host_wait(false);
    let daemon = Daemon::start(&args.bridge, wait, RunFacts::default()).await?;
    announce(&daemon)?;
    let idle = wait_until_idle(&daemon, args.idle_timeout);
    tokio::select! {
        () = parent_gone(parent) => info!("the starting program is gone"),
        () = daemon.hub.ended() => info!("a host asked to end"),
        () = idle => info!("nobody has been connected for long"),
        _ = terminate.recv() => info!("SIGTERM"),
        _ = interrupt.recv() => info!("SIGINT"),
        _ = hang_up.recv() => info!("SIGHUP"),
    }
    daemon.stop().await;
    Ok(ExitCode::SUCCESS)
}

/// One line on stdout. It holds the secrets only if nobody but the reader of a pipe can see them:
/// a terminal or a file would keep them.
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

/// Returns when stdin closes, or its other end's process dies. A stdin that cannot tell of anybody's
/// end (a file, the null device) is not watched: such a daemon ends by signal or when idle.
async fn parent_gone(parent: Parent) {
    let stdin = io::stdin();
    let piped = is_pipe_or_socket(&stdin);
    if !piped && !stdin.is_terminal() {
        return std::future::pending().await;
    }
    let (closed, stdin_closed) = oneshot::channel::<()>();
    // A thread of its own: reads of stdin cannot be cancelled, and must not delay our end.
    std::thread::spawn(move || {
        let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
        drop(closed);
    });
    tokio::select! {
        _ = stdin_closed => {}
        // Some other child of a dead parent may hold the pipe open.
        () = parent.died(), if piped => {}
    }
}

/// The process that started us.
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

/// The process that started us. Without pidfds its id is looked at now and then, and compared with the
/// one we started under: whoever adopts us need not be process 1.
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
