//! The listeners: they accept connections, ask the gate, and pass admitted ones on.
//!
//! Connections that have not passed the gate cost little. Each has 2 s and 8 KiB. There are at most [`HALF_OPEN`] of
//! them, including those that are being refused, and a new one replaces the oldest, so that they cannot lock others
//! out. A wrong token is answered with a delay. When the system has no more file descriptors, accepting pauses instead
//! of spinning.

use std::collections::BTreeMap;
use std::future::Future;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, UnixListener};
use tokio::task::{AbortHandle, JoinSet};
use tracing::{debug, warn};

use crate::broker::Grant;
use crate::connection::{self, Socket};
use crate::gate::{Admission, Gate, HEAD_BYTES, Head, Refusal, Transport};
use crate::http;
use crate::hub::Hub;
use bridge_protocol::Dialect;

/// Maximum number of connections that have not passed the gate. One more drops the oldest.
const HALF_OPEN: usize = 64;
/// How long a connection may take to send its request head. After that it is refused with 408.
const HEAD_TIME: Duration = Duration::from_secs(2);
/// Delay of the answer to a wrong token.
const PENALTY: Duration = Duration::from_millis(100);
/// How long a plain HTTP request may take.
const HTTP_TIME: Duration = Duration::from_secs(30);
/// Pause after the system refused to accept, for lack of descriptors or memory.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// What the listeners share.
pub struct Server {
    hub: Arc<Hub>,
    gate: Gate,
    /// Maximum number of connections that have passed the gate. One more is refused with 503.
    connections: usize,
    ping_interval: Duration,
    open: AtomicUsize,
    half_open: Mutex<HalfOpen>,
}

#[derive(Default)]
struct HalfOpen {
    next: u64,
    tasks: BTreeMap<u64, AbortHandle>,
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
            half_open: Mutex::default(),
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
        // Dropped with this future, so every connection ends with its listener.
        let mut tasks = JoinSet::new();
        loop {
            let accepted = tokio::select! {
                accepted = accept() => accepted,
                Some(_) = tasks.join_next() => continue,
                () = self.hub.drained() => break,
            };
            match accepted {
                Ok(socket) => {
                    let ticket = self.lock_half_open().ticket();
                    let task = tasks.spawn(Arc::clone(&self).welcome(socket, transport, ticket));
                    self.lock_half_open().enter(ticket, task);
                }
                Err(error) if is_exhaustion(&error) => {
                    warn!(%error, "cannot accept connections for now");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
                Err(error) => debug!(%error, "a connection failed before it began"),
            }
        }
        while tasks.join_next().await.is_some() {}
        Ok(())
    }

    /// Serves one connection from its first byte to its last.
    async fn welcome(
        self: Arc<Self>,
        mut socket: Box<dyn Socket>,
        transport: Transport,
        ticket: u64,
    ) {
        let read = tokio::time::timeout(HEAD_TIME, read_head(&mut socket));
        let verdict = match read.await {
            Ok(Ok(bytes)) => self.judge(&bytes, transport).map(|admission| (admission, bytes)),
            Ok(Err(Some(refusal))) => Err(refusal),
            Ok(Err(None)) => return self.lock_half_open().leave(ticket),
            Err(_) => Err(Refusal::new(408, "the request head did not arrive within 2 s")),
        };
        let (admission, bytes) = match verdict {
            Ok(admitted) => admitted,
            Err(refusal) => {
                self.refuse(socket, &refusal).await;
                return self.lock_half_open().leave(ticket);
            }
        };
        self.lock_half_open().leave(ticket);
        let Some(_place) = self.take_place() else {
            let reason = format!("all {} connections are in use: close some", self.connections);
            return self.refuse(socket, &Refusal::new(503, reason)).await;
        };
        let _attendance = self.hub.attend();
        match admission {
            Admission::Http(route) => {
                let request = http::serve(Arc::clone(&self.hub), route, socket, bytes);
                let _ = tokio::time::timeout(HTTP_TIME, request).await;
            }
            Admission::WebSocket { grant, dialect, answer } => {
                self.upgrade(socket, grant, dialect, &answer, bytes).await;
            }
        }
    }

    fn take_place(&self) -> Option<Place<'_>> {
        let place = Place(&self.open);
        (self.open.fetch_add(1, Ordering::Relaxed) < self.connections).then_some(place)
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

    async fn refuse(&self, mut socket: Box<dyn Socket>, refusal: &Refusal) {
        self.hub.metrics().refuse();
        debug!(status = refusal.status, reason = %refusal.message, "refused");
        if refusal.status == 401 {
            tokio::time::sleep(PENALTY).await;
        }
        let goodbye = async {
            socket.write_all(refusal.to_http().as_bytes()).await?;
            socket.shutdown().await?;
            // Closing with unread bytes would reset the connection, and the answer would be lost.
            let mut discarded = [0; 1024];
            while socket.read(&mut discarded).await? > 0 {}
            io::Result::Ok(())
        };
        let _ = tokio::time::timeout(HEAD_TIME, goodbye).await;
    }

    fn lock_half_open(&self) -> std::sync::MutexGuard<'_, HalfOpen> {
        self.half_open.lock().expect("no holder of this lock panics")
    }
}

impl HalfOpen {
    fn ticket(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn enter(&mut self, ticket: u64, task: AbortHandle) {
        self.tasks.insert(ticket, task);
        if self.tasks.len() > HALF_OPEN
            && let Some((_, oldest)) = self.tasks.pop_first()
        {
            oldest.abort();
        }
    }

    fn leave(&mut self, ticket: u64) {
        self.tasks.remove(&ticket);
    }
}

/// One of the limited places for connections. It becomes free when this is dropped.
struct Place<'a>(&'a AtomicUsize);

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Reads until the head is complete. Returns `Err(None)` if the other end closed before.
async fn read_head(socket: &mut Box<dyn Socket>) -> Result<Vec<u8>, Option<Refusal>> {
    let mut bytes = Vec::with_capacity(1024);
    loop {
        if Head::parse(&bytes).map_err(Some)?.is_some() {
            return Ok(bytes);
        }
        let mut rest = (&mut **socket).take((HEAD_BYTES - bytes.len()) as u64);
        match rest.read_buf(&mut bytes).await {
            Ok(1..) => {}
            Ok(0) | Err(_) => return Err(None),
        }
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

/// Whether the error is temporary resource exhaustion (EMFILE, ENFILE, ENOMEM …). Retrying at once would only waste
/// processor time.
fn is_exhaustion(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let exhaustion = [Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM];
    Errno::from_io_error(error).is_some_and(|errno| exhaustion.contains(&errno))
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
