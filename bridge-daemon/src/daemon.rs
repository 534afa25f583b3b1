//! A running daemon: its start (secrets, sockets, connection files, children) and its end.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use anyhow::Context;
use bridge_protocol::connection_file::{ConnectionFile, HostFile, SCHEMA};
use bridge_protocol::{Rights, Secret, SessionId, env};
use connection_file::{Directory, Published};
use process_identity::ProcessId;
use tokio::net::{TcpListener, UnixListener};
use tokio::task::JoinSet;
use tracing::{debug, info};

use crate::broker::{Grant, HostWait, Limits};
use crate::children::{Children, Surroundings};
use crate::config::BridgeArgs;
use crate::descriptors::DescriptorLimit;
use crate::gate::Gate;
use crate::hub::Hub;
use crate::secrets::random_session;
use crate::server::Server;

/// How long connections may take to end when the daemon ends.
const DRAIN: Duration = Duration::from_secs(2);

/// Facts about the run. The connection file shows them.
#[derive(Debug, Default)]
pub struct RunFacts {
    /// The program, without its arguments.
    pub program: Option<String>,
    /// Whether the run waits for a window.
    pub wants_editor: bool,
    /// The rights of the program, if it does not have all.
    pub rights: Option<Rights>,
}

/// A daemon that accepts connections. Dropping it removes its files.
pub struct Daemon {
    /// The hub, which holds the broker.
    pub hub: Arc<Hub>,
    /// `ws://127.0.0.1:PORT/`
    pub addr: String,
    /// The session.
    pub session: SessionId,
    /// The client token with all rights.
    pub token: Secret,
    /// The session's host token.
    pub host_token: Secret,
    /// The limit of descriptors for programs that the daemon starts.
    pub descriptors: DescriptorLimit,
    /// The client token of the program of a run.
    program_token: Secret,
    tasks: JoinSet<()>,
    children: Children,
    _files: Published,
    _socket: Option<SocketFile>,
}

impl Daemon {
    /// Starts listening. The error says what to do about it.
    pub async fn start(args: &BridgeArgs, wait: HostWait, facts: RunFacts) -> anyhow::Result<Self> {
        let session = match &args.session {
            Some(session) => session.clone(),
            None => random_session()?,
        };
        let hub = Hub::new(session.clone(), Limits::default(), wait);
        let general = Grant::Host(Arc::new(args.sandboxes.general_grant()));
        let token = hub.create_token(Grant::Client(Rights::ALL))?;
        let host_token = hub.create_token(general)?;
        let program_token = match facts.rights {
            Some(rights) => hub.create_token(Grant::Client(rights))?,
            None => token.clone(),
        };
        let directory = Directory::locate(|name| std::env::var(name).ok())?;
        directory.prepare()?;
        directory.claim(&session)?;
        let (tcp, addr) = listen_tcp(args.port).await?;
        let socket = args.unix.then(|| SocketFile::bind(&directory, &session)).transpose()?;
        let files =
            publish(&directory, &session, &addr, socket.as_ref(), [&token, &host_token], facts)?;
        let descriptors = DescriptorLimit::inherited();
        let gate = Gate {
            tokens: hub.tokens(),
            session: session.clone(),
            allowed_origins: args.allow_origin.clone(),
            query_token: !args.no_query_token,
        };
        let connections = descriptors.raise_for(args.max_connections);
        let server = Server::new(Arc::clone(&hub), gate, connections, args.ping_interval);
        let mut tasks = JoinSet::new();
        tasks.spawn(Arc::clone(&hub).keep_time());
        // Before the first connection is accepted, so that no call finds the daemon without its sandboxes.
        let hosts = args.sandboxes.children(&session, directory.path())?;
        let surroundings = Surroundings {
            hub: Arc::clone(&hub),
            ping_interval: args.ping_interval,
            descriptors: descriptors.clone(),
        };
        let children = Children::start(hosts, &surroundings).await?;
        let over_tcp = Arc::clone(&server).serve_tcp(tcp);
        tasks.spawn(async move { report(over_tcp.await) });
        let socket = socket.map(|(file, listener)| {
            tasks.spawn(async move { report(server.serve_unix(listener).await) });
            file
        });
        info!(%session, addr, "listening");
        Ok(Self {
            hub,
            addr,
            session,
            token,
            host_token,
            descriptors,
            program_token,
            tasks,
            children,
            _files: files,
            _socket: socket,
        })
    }

    /// Names and values of the six variables that a program gets.
    pub fn variables(&self) -> Vec<(&'static str, &str)> {
        let values = [&*self.addr, self.program_token.expose(), self.session.as_str()];
        env::FAMILIES
            .iter()
            .flat_map(|family| [family.addr, family.token, family.session].into_iter().zip(values))
            .collect()
    }

    /// Fails the requests in flight, closes all connections, waits for the end of the children, and removes the files.
    pub async fn stop(mut self) {
        self.hub.drain();
        let mut population = self.hub.population();
        if tokio::time::timeout(DRAIN, population.wait_for(|count| *count == 0)).await.is_err() {
            debug!(
                connections = *population.borrow(),
                "cut connections that did not close in time"
            );
        }
        self.tasks.shutdown().await;
        self.children.ended().await;
        info!("ended");
    }
}

/// The path of a Unix socket. The file is removed when this is dropped.
struct SocketFile(PathBuf);

impl SocketFile {
    fn bind(directory: &Directory, session: &SessionId) -> anyhow::Result<(Self, UnixListener)> {
        let path = directory.socket(session);
        let listener = UnixListener::bind(&path).with_context(|| {
            format!("cannot listen on {}: remove it if no daemon uses it", path.display())
        })?;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))?;
        Ok((Self(path), listener))
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        // It may be gone already; a file that stays is replaced or reported by the next `bind`.
        let _ = std::fs::remove_file(&self.0);
    }
}

async fn listen_tcp(port: u16) -> anyhow::Result<(TcpListener, String)> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let listener = TcpListener::bind(address).await.with_context(|| {
        format!(
            "cannot listen on port {port}: choose another --port, or leave it out to get a free one"
        )
    })?;
    let port = listener.local_addr()?.port();
    Ok((listener, format!("ws://127.0.0.1:{port}/")))
}

fn publish(
    directory: &Directory,
    session: &SessionId,
    addr: &str,
    socket: Option<&(SocketFile, UnixListener)>,
    [token, host_token]: [&Secret; 2],
    facts: RunFacts,
) -> anyhow::Result<Published> {
    let pid = std::process::id();
    let process_start = ProcessId::of(pid).map_or(0, |process| process.start_time);
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let client = ConnectionFile {
        schema: SCHEMA,
        session: session.clone(),
        pid,
        process_start,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        addr: addr.to_owned(),
        unix: socket.map(|(file, _)| file.0.to_string_lossy().into_owned()),
        token: token.clone(),
        directory: std::env::current_dir().unwrap_or_default().to_string_lossy().into_owned(),
        program: facts.program,
        wants_editor: facts.wants_editor,
        started_at: now.as_millis() as u64,
    };
    let host = HostFile {
        schema: SCHEMA,
        session: session.clone(),
        pid,
        process_start,
        host_token: host_token.clone(),
    };
    Ok(directory.publish(&client, &host)?)
}

fn report(ended: io::Result<()>) {
    if let Err(error) = ended {
        tracing::error!(%error, "a listener failed");
    }
}
