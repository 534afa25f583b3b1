//! `sandbox host`: serves the tools of a workspace to a daemon.
//!
//! A daemon that starts this program passes it a connected socket. In a container or on another
//! machine it connects with a token from a file. If the daemon says goodbye, the shells end with
//! it. If the connection just breaks, the daemon was killed: the shells stay for the next host of
//! the same session and workspace, until their lease ends.

use std::os::fd::RawFd;
use std::path::PathBuf;
use std::pin::pin;
use std::process::ExitCode;

use anyhow::Context as _;
use bridge_client::connection::inherited_stream;
use bridge_client::host::{Cancel, Request};
use bridge_client::{Address, Endpoint, Host, Options};
use bridge_protocol::answer::Answer;
use bridge_protocol::methods::RegisterParams;
use bridge_protocol::{ErrorKind, SessionId};
use clap::{ArgGroup, Args};
use connection_file::Directory;
use sandbox_files::Workspace;
use sandbox_host::{Caller, CellSettings, Sandbox, Settings, state};
use sandbox_isolation::Network;
use sandbox_pages::{Browser, CHROMIUM};
use sandbox_shells::ShellArguments;
use sandbox_worker::Worker;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tracing::{debug, info, warn};

use super::logging::LogFilter;

pub(super) const HELP: &str = "\
bridge-daemon --sandbox DIR starts this program by itself. To start it by hand in a container or on another machine,
write a host token to a file with `bridge-client token --host`, and then:
  sandbox host --id web --workspace . --connect unix:/run/bridge.sock --session ID --token-file FILE

It ends with the daemon, and the shells end with it. If the daemon is killed, the shells stay for an hour: the next
host of the same session and workspace adopts them.";

/// Capacity of the queue of progress pieces of one call.
const PIECES: usize = 16;
/// Exit code: the daemon is gone.
const LOST: u8 = 1;

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("placement").required(true).args(["connection_fd", "connect"])))]
pub(super) struct HostArguments {
    /// The runtime id to register
    #[arg(long, value_name = "NAME", default_value = "sandbox")]
    id: String,

    /// The directory in which shells start; the file tools reach nothing outside of it
    #[arg(long, value_name = "DIR")]
    workspace: PathBuf,

    /// The session of the daemon
    #[arg(long, value_name = "ID")]
    session: SessionId,

    /// The private directory for the state of the shells [default: the directory of the connection
    /// files]
    #[arg(long, value_name = "DIR")]
    runtime_directory: Option<PathBuf>,

    /// The file descriptor of a connection that the daemon has opened
    #[arg(long, value_name = "N")]
    connection_fd: Option<RawFd>,

    /// The daemon's address: unix:PATH or ws://HOST:PORT/
    #[arg(long, value_name = "ADDRESS", requires = "token_file")]
    connect: Option<Address>,

    /// The file that holds a host token
    #[arg(long, value_name = "FILE", requires = "connect", conflicts_with = "connection_fd")]
    token_file: Option<PathBuf>,

    #[command(flatten)]
    shells: ShellArguments,

    /// The Python for cells; it must have ipykernel [default: the first on the PATH that has it]
    #[arg(long, value_name = "PROGRAM")]
    kernel_python: Option<PathBuf>,

    /// The Chromium that renders web pages; without it, they are fetched without running scripts
    #[arg(long, value_name = "PROGRAM", default_value = CHROMIUM)]
    browser_program: PathBuf,

    /// What to log to stderr: off, error, warn, info, debug, trace, or CRATE=LEVEL,CRATE=LEVEL
    #[arg(long, value_name = "LEVEL", env = "SANDBOX_LOG", default_value = "warn")]
    pub(super) log: LogFilter,
}

pub(super) async fn run(arguments: HostArguments) -> anyhow::Result<ExitCode> {
    keep_memory_private();
    // Before anything is started, so that a signal cannot leave anything behind.
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    // Taken first: child processes must not inherit the socket and keep it open.
    let stream = arguments
        .connection_fd
        .map(|number| inherited_stream(number).with_context(|| format!("--connection-fd {number}")))
        .transpose()?;
    let directory = arguments.workspace.canonicalize().with_context(|| {
        let directory = arguments.workspace.display();
        format!("cannot use {directory} as the workspace: name a directory that exists")
    })?;
    let sandbox = open(&arguments, directory.clone()).await?;
    let registration = RegisterParams {
        runtime_id: Some(arguments.id.clone()),
        title: arguments.id.clone(),
        workspace_folders: vec![directory.to_string_lossy().into_owned()],
        methods: Sandbox::methods().map(str::to_owned).collect(),
        ..RegisterParams::default()
    };
    let attached = match (stream, arguments.connect, arguments.token_file) {
        (Some(stream), ..) => Host::over(stream, registration, Options::default()).await,
        (None, Some(address), Some(file)) => {
            match Endpoint::with_token_file(address, arguments.session, &file) {
                Ok(endpoint) => Host::attach(endpoint, registration, Options::default()).await,
                Err(error) => Err(error),
            }
        }
        _ => unreachable!("the command line asks for one of the two"),
    };
    let host = match attached {
        Ok(host) => host,
        Err(error) => {
            // Keep shells of an earlier host for the next one.
            if !sandbox.has_shells().await {
                sandbox.shut_down().await;
            }
            return Err(error).context("cannot attach to the daemon");
        }
    };
    info!(runtime = arguments.id, workspace = %directory.display(), "serving");
    let serving = host.serve({
        let sandbox = sandbox.clone();
        move |request| answer(sandbox.clone(), request)
    });
    let ended = tokio::select! {
        served = serving => served,
        _ = terminate.recv() => Ok(()),
        _ = interrupt.recv() => Ok(()),
    };
    match ended {
        Ok(()) => {
            sandbox.shut_down().await;
            info!("the shells have ended");
            Ok(ExitCode::SUCCESS)
        }
        Err(error) => {
            warn!(%error, "the daemon is gone; the shells stay for the next host");
            Ok(ExitCode::from(LOST))
        }
    }
}

async fn open(arguments: &HostArguments, directory: PathBuf) -> anyhow::Result<Sandbox> {
    let workspace = Workspace::confined(&directory)
        .with_context(|| format!("cannot use {} as the workspace", directory.display()))?;
    let runtime = match &arguments.runtime_directory {
        Some(runtime) => {
            Directory::at(runtime).prepare()?;
            runtime.clone()
        }
        None => state::runtime_directory()?,
    };
    let mut policy = arguments.shells.policy(&directory);
    let root = state::root(&runtime, &arguments.session, &directory, &policy);
    // The connection files lie beside the state directory.
    policy.unreadable.push(runtime.clone());
    let shells = arguments.shells.config(&root, policy)?;
    let cells = CellSettings {
        python: arguments.kernel_python.clone(),
        confinement: shells.confinement(),
        ..CellSettings::default()
    };
    // Pages are fetched outside the policy, so they would bypass a restricted network.
    let browser = (arguments.shells.network == Network::Unrestricted).then(|| Browser {
        chromium: arguments.browser_program.clone(),
        worker: Worker::new(&shells.program),
    });
    let settings = Settings { directory, workspace, shells, cells: Some(cells), browser };
    Sandbox::open(settings).await.context("cannot start the shells of the sandbox")
}

/// Answers one request. When nobody waits for the answer any more, the work is dropped.
async fn answer(sandbox: Sandbox, request: Request) -> Answer {
    let (sender, mut pieces) = mpsc::channel(PIECES);
    let caller = Caller::new(sender);
    let forwarding = async {
        while let Some(piece) = pieces.recv().await {
            request.progress(&piece).await?;
        }
        Ok(())
    };
    let mut forwarding = pin!(forwarding);
    debug!(method = request.method, "called");
    let answer = {
        let mut work = pin!(sandbox.answer(&request.method, request.params.as_deref(), &caller));
        tokio::select! {
            answer = &mut work => answer,
            // Ends before the work only if a piece of progress cannot be printed.
            failed = &mut forwarding => return failed.and_then(|()| Err(abandoned())),
            why = request.cancelled() => {
                if why == Cancel::Requested {
                    caller.cancel();
                }
                return Err(abandoned());
            }
        }
    };
    // All progress goes out before the answer.
    drop(caller);
    forwarding.await?;
    answer
}

fn abandoned() -> bridge_protocol::WireError {
    ErrorKind::RequestCancelled.error("the caller no longer waits for the answer")
}

/// Forbids core dumps and reading by other processes, since our memory may hold a token. Programs
/// that we start do not inherit this.
fn keep_memory_private() {
    use rustix::process::{DumpableBehavior, set_dumpable_behavior};

    if let Err(error) = set_dumpable_behavior(DumpableBehavior::NotDumpable) {
        warn!(%error, "cannot protect memory from other processes of this user");
    }
}
