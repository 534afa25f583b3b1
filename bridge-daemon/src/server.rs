//! The listeners: they accept connections, ask the gate, and pass admitted ones on. The crate `listener` keeps
//! connections that have not passed the gate few and short.

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bridge_protocol::Dialect;
use listener::{Entrance, Head, Place, Refusal, read_head};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, UnixListener};
use tracing::debug;

use crate::broker::Grant;
use crate::connection::{self, Socket};
use crate::gate::{Admission, Gate, Transport};
use crate::http;
use crate::hub::Hub;

/// How long a plain HTTP request may take.
const HTTP_TIME: Duration = Duration::from_secs(30);

/// The state that all listeners of the daemon share.
pub struct Server {
    hub: Arc<Hub>,
    gate: Gate,
    /// Maximum number of connections that have passed the gate. One more is refused with 503.
    connections: usize,
    ping_interval: Duration,
    open: AtomicUsize,
    entrance: Entrance,
}

impl Server {
    /// Creates a server for this hub.
    pub fn new(
        hub: Arc<Hub>,
        gate: Gate,
        connections: usize,
        ping_interval: Duration,
    ) -> Arc<Self> {
        Arc::new(Self {
            hub,
            gate,
            connections,
            ping_interval,
            open: AtomicUsize::new(0),
            entrance: Entrance::default(),
        })
    }

    /// Accepts connections on loopback TCP until dropped.
    pub async fn serve_tcp(self: Arc<Self>, listener: TcpListener) -> io::Result<()> {
        let port = listener.local_addr()?.port();
        let accept = || async {
            let (socket, _) = listener.accept().await?;
            socket.set_nodelay(true)?;
            Ok(Box::new(socket) as Box<dyn Socket>)
        };
        self.accept_all(accept, Transport::Tcp { port }).await
    }

    /// Accepts connections on a Unix socket until dropped, only of the user that runs the daemon.
    pub async fn serve_unix(self: Arc<Self>, listener: UnixListener) -> io::Result<()> {
        let own = rustix::process::geteuid().as_raw();
        let accept = || async {
            let (socket, _) = listener.accept().await?;
            check_user(socket.peer_cred()?.uid(), own)?;
            Ok(Box::new(socket) as Box<dyn Socket>)
        };
        self.accept_all(accept, Transport::Unix).await
    }

    async fn accept_all<F>(
        self: Arc<Self>,
        accept: impl Fn() -> F,
        transport: Transport,
    ) -> io::Result<()>
    where
        F: Future<Output = io::Result<Box<dyn Socket>>>,
    {
        let welcome = |socket, place| Arc::clone(&self).welcome(socket, transport, place);
        self.entrance.accept_all(accept, self.hub.drained(), welcome).await;
        Ok(())
    }

    /// Serves one connection from its first byte to its last.
    async fn welcome(
        self: Arc<Self>,
        mut socket: Box<dyn Socket>,
        transport: Transport,
        half_open: Place,
    ) {
        let verdict = match read_head(&mut socket).await {
            Ok(bytes) => self.judge(&bytes, transport).map(|admission| (admission, bytes)),
            Err(Some(refusal)) => Err(refusal),
            Err(None) => return,
        };
        let (admission, bytes) = match verdict {
            Ok(admitted) => admitted,
            Err(refusal) => return self.refuse(socket, &refusal).await,
        };
        drop(half_open);
        let Some(_connection) = self.take_connection() else {
            let reason = format!("all {} connections are in use: close some", self.connections);
            return self.refuse(socket, &Refusal::new(503, reason)).await;
        };
        let _attendance = self.hub.attend();
        match admission {
            Admission::Http(route) => {
                let request = http::serve(Arc::clone(&self.hub), route, socket, bytes);
                if tokio::time::timeout(HTTP_TIME, request).await.is_err() {
                    debug!("cut an HTTP request that took too long");
                }
            }
            Admission::WebSocket { grant, dialect, answer } => {
                self.upgrade(socket, grant, dialect, &answer, bytes).await;
            }
        }
    }

    fn take_connection(&self) -> Option<OpenConnection<'_>> {
        let connection = OpenConnection(&self.open);
        (self.open.fetch_add(1, Ordering::Relaxed) < self.connections).then_some(connection)
    }

    fn judge(&self, bytes: &[u8], transport: Transport) -> Result<Admission, Refusal> {
        let head = Head::parse(bytes)?.ok_or_else(|| Refusal::new(400, "incomplete head"))?;
        self.gate.admit(&head, transport)
    }

    async fn upgrade(
        &self,
        mut socket: Box<dyn Socket>,
        grant: Grant,
        dialect: Dialect,
        answer: &str,
        bytes: Vec<u8>,
    ) {
        let length = Head::parse(&bytes).ok().flatten().map_or(bytes.len(), |head| head.length);
        // Flushed before anything else is sent: the original client discards bytes that arrive together with it.
        if socket.write_all(answer.as_bytes()).await.is_ok() && socket.flush().await.is_ok() {
            let rest = bytes[length..].to_vec();
            drop(bytes);
            let hub = Arc::clone(&self.hub);
            connection::serve(hub, socket, rest, grant, dialect, self.ping_interval).await;
        }
    }

    async fn refuse(&self, socket: Box<dyn Socket>, refusal: &Refusal) {
        self.hub.metrics().refuse();
        listener::refuse(socket, refusal, "error").await;
    }
}

/// One of the limited places for connections. It becomes free when this is dropped.
struct OpenConnection<'a>(&'a AtomicUsize);

impl Drop for OpenConnection<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Checks that the peer on a Unix socket is the user that runs the daemon. Not even root is admitted; root has other
/// ways.
fn check_user(theirs: u32, own: u32) -> io::Result<()> {
    match theirs == own {
        true => Ok(()),
        false => Err(io::Error::other(format!("user {theirs} does not own this daemon"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_owner_comes_in_by_a_unix_socket() {
        assert!(check_user(1000, 1000).is_ok());
        for stranger in [0, 1001, u32::MAX] {
            assert!(check_user(stranger, 1000).is_err());
        }
    }
}
