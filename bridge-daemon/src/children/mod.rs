//! Hosts that are processes of their own, started by the daemon: sandboxes, and the edge for OpenHands.
//!
//! A child inherits one end of a socket pair, whose descriptor `--connection-fd` names. The daemon has decided
//! beforehand what the child may register, so no token is sent. An edge has a second connection, as a client, for the
//! tools that it calls.
//!
//! When a child ends for whatever reason, the broker fails the requests that it was working on, and the child is
//! restarted: at once, or after growing pauses if it keeps ending. New requests wait for it. When the daemon ends,
//! each child gets a close frame, and has some time to end before it is killed. When the daemon is killed, the child
//! reads end of file from its socket.

mod pauses;
mod program;

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream as StdUnixStream;
use std::path::PathBuf;
use std::pin::Pin;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use bridge_protocol::{Dialect, Rights};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::{Pid, Signal, kill_process, setsid};
use tokio::net::UnixStream;
use tokio::process::{Child, Command};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tracing::{error, info, warn};

use crate::broker::{Grant, HostGrant};
use crate::connection;
use crate::descriptors::DescriptorLimit;
use crate::exit_status;
use crate::hub::Hub;
use pauses::Pauses;
pub use program::find;

/// How long a child may take to register. If it takes longer, the daemon does not start.
const START: Duration = Duration::from_secs(60);
/// How long a child may take to end after the close frame of an ending daemon, before it gets SIGTERM.
const GRACE: Duration = Duration::from_secs(10);
/// How long a child may take to end after it has lost a connection while the daemon runs, before it gets SIGTERM.
const GRACE_WITHOUT_CONNECTION: Duration = Duration::from_secs(1);
/// How long a child may take to end after SIGTERM, before it gets SIGKILL.
const TERMINATION: Duration = Duration::from_secs(2);
/// How long the connections of a child that has ended are still read. Without a limit, processes that it has
/// started could hold them open.
const LAST_WORDS: Duration = Duration::from_millis(100);

/// A program that the daemon starts as a host.
#[derive(Debug)]
pub struct ChildHost {
    /// The program.
    pub program: PathBuf,
    /// Its arguments, without the flags that name descriptors.
    pub arguments: Vec<OsString>,
    /// The id under which it registers.
    pub runtime_id: String,
    /// What it may register.
    pub grant: HostGrant,
    /// The rights of its second connection, with which it calls tools. `None` if it has no second connection.
    pub calls_with: Option<Rights>,
}

/// What children need of the daemon.
#[derive(Clone)]
pub struct Surroundings {
    /// The hub that their connections belong to.
    pub hub: Arc<Hub>,
    /// The time between two pings on their connections.
    pub ping_interval: Duration,
    /// The limit of open descriptors that they run under.
    pub descriptors: DescriptorLimit,
}

/// All children. Each has a task that supervises it.
#[derive(Default)]
pub struct Children(JoinSet<()>);

impl Children {
    /// Starts all children and returns when each has registered. If one cannot start, all end.
    pub async fn start(hosts: Vec<ChildHost>, surroundings: &Surroundings) -> anyhow::Result<Self> {
        let mut children = Self::default();
        for host in hosts {
            let supervisor = Supervisor { host, surroundings: surroundings.clone() };
            if let Err(error) = supervisor.start(&mut children.0).await {
                surroundings.hub.drain();
                children.ended().await;
                return Err(error);
            }
        }
        Ok(children)
    }

    /// Returns when all children have ended. To be called after the hub has been drained.
    pub async fn ended(&mut self) {
        while self.0.join_next().await.is_some() {}
    }
}

/// Keeps one child running.
struct Supervisor {
    host: ChildHost,
    surroundings: Surroundings,
}

impl Supervisor {
    async fn start(self, tasks: &mut JoinSet<()>) -> anyhow::Result<()> {
        let supervisor = Arc::new(self);
        let (hub, id) = (&supervisor.surroundings.hub, &supervisor.host.runtime_id);
        let started = Instant::now();
        let mut life = Box::pin(Arc::clone(&supervisor).live());
        tokio::select! {
            () = hub.registered(id) => {}
            ended = &mut life => {
                let program = supervisor.host.program.display();
                match ended {
                    Ok(status) => bail!(
                        "the host {id} did not start ({program}: {}): its own message says why",
                        exit_status::describe(status)
                    ),
                    Err(error) => return Err(error).context(format!("cannot start {program} for the host {id}")),
                }
            }
            () = tokio::time::sleep(START) => bail!("the host {id} did not register within {START:?}"),
        }
        tasks.spawn(Arc::clone(&supervisor).supervise(started, life));
        Ok(())
    }

    /// Restarts the child whenever it has ended, until the daemon ends.
    async fn supervise(self: Arc<Self>, mut started: Instant, mut life: Life) {
        let hub = &self.surroundings.hub;
        let mut pauses = Pauses::default();
        loop {
            let ended = match life.await {
                Ok(status) => exit_status::describe(status),
                Err(error) => error.to_string(),
            };
            let runtime = &self.host.runtime_id;
            if hub.is_draining() {
                return info!(runtime, ended, "a child of the daemon has ended");
            }
            let pause = pauses.after(started.elapsed());
            error!(runtime, ended, ?pause, "a child of the daemon has ended: restarting it");
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = hub.drained() => return,
            }
            started = Instant::now();
            life = Box::pin(Arc::clone(&self).live());
        }
    }

    /// Starts the child and serves its connections until it has ended.
    async fn live(self: Arc<Self>) -> io::Result<ExitStatus> {
        let Started { mut process, host, client } = self.spawn()?;
        let hub = &self.surroundings.hub;
        let serve = |socket: UnixStream, grant: Grant| {
            let interval = self.surroundings.ping_interval;
            connection::serve(
                Arc::clone(hub),
                Box::new(socket),
                Vec::new(),
                grant,
                Dialect::JsonRpc,
                interval,
            )
        };
        // Ends with the first connection that ends: the child is of no use without both.
        let connections = async {
            let as_host = serve(host, Grant::Host(Arc::new(self.host.grant.clone())));
            match client {
                Some((socket, rights)) => tokio::select! {
                    () = as_host => {}
                    () = serve(socket, Grant::Client(rights)) => {}
                },
                None => as_host.await,
            }
        };
        let mut connections = Box::pin(connections);
        tokio::select! {
            status = process.wait() => {
                // Its last answers may still be in the socket. After the timeout the connections are dropped,
                // whoever holds their other ends open.
                let _ = timeout(LAST_WORDS, &mut connections).await;
                status
            }
            () = &mut connections => {
                let grace = match hub.is_draining() {
                    true => GRACE,
                    false => GRACE_WITHOUT_CONNECTION,
                };
                self.end(&mut process, grace).await
            }
        }
    }

    fn spawn(&self) -> io::Result<Started> {
        let mut command = Command::new(&self.host.program);
        command.args(&self.host.arguments).stdin(Stdio::null()).stdout(Stdio::null());
        let (host, theirs) = pair()?;
        command.arg("--connection-fd").arg(theirs.as_raw_fd().to_string());
        let mut inherited = vec![theirs];
        let client = match self.host.calls_with {
            Some(rights) => {
                let (client, theirs) = pair()?;
                command.arg("--client-fd").arg(theirs.as_raw_fd().to_string());
                inherited.push(theirs);
                Some((client, rights))
            }
            None => None,
        };
        self.surroundings.descriptors.restore_in(&mut command);
        in_process_session_of_its_own(
            &mut command,
            inherited.iter().map(AsRawFd::as_raw_fd).collect(),
        );
        let process = command.spawn()?;
        Ok(Started { process, host, client })
    }

    /// Ends a child that has lost a connection: waits, then sends SIGTERM, then SIGKILL.
    async fn end(&self, process: &mut Child, grace: Duration) -> io::Result<ExitStatus> {
        if let Ok(status) = timeout(grace, process.wait()).await {
            return status;
        }
        warn!(
            runtime = self.host.runtime_id,
            "a child of the daemon does not end by itself: sending SIGTERM"
        );
        if let Some(pid) = process.id().and_then(|pid| Pid::from_raw(pid.cast_signed()))
            && let Err(error) = kill_process(pid, Signal::TERM)
        {
            warn!(%error, "cannot send SIGTERM");
        }
        if let Ok(status) = timeout(TERMINATION, process.wait()).await {
            return status;
        }
        process.start_kill()?;
        process.wait().await
    }
}

type Life = Pin<Box<dyn Future<Output = io::Result<ExitStatus>> + Send>>;

/// A running child, and the daemon's ends of its connections.
struct Started {
    process: Child,
    host: UnixStream,
    client: Option<(UnixStream, Rights)>,
}

/// A socket pair: the daemon's end, and the child's. Both are closed on exec unless that is changed.
fn pair() -> io::Result<(UnixStream, OwnedFd)> {
    let (ours, theirs) = StdUnixStream::pair()?;
    ours.set_nonblocking(true)?;
    Ok((UnixStream::from_std(ours)?, theirs.into()))
}

/// Lets the child inherit these descriptors and no others, in a process session of its own. So it has no terminal:
/// neither Ctrl-C, which is for the program of a run, nor a write to the terminal can stop it.
#[allow(unsafe_code)]
fn in_process_session_of_its_own(command: &mut Command, inherited: Vec<RawFd>) {
    // SAFETY: only async-signal-safe system calls are made, and nothing is allocated. The descriptors are open,
    // because their owner lives until the child has been started.
    unsafe {
        command.pre_exec(move || {
            setsid()?;
            for descriptor in &inherited {
                let descriptor = std::os::fd::BorrowedFd::borrow_raw(*descriptor);
                fcntl_setfd(descriptor, FdFlags::empty())?;
            }
            Ok(())
        });
    }
}
