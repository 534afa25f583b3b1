//! Accepting connections, reading their heads, and refusing them.

use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::task::JoinSet;
use tracing::{debug, warn};

use crate::half_open::{self, HalfOpen, Place};
use crate::head::{HEAD_BYTES, Head, Refusal};

/// How long a connection may take to send its request head. After that it is refused with 408.
pub const HEAD_TIME: Duration = Duration::from_secs(2);
/// Delay of the answer to a wrong token.
const PENALTY: Duration = Duration::from_millis(100);
/// Pause after the system refused to accept, for lack of descriptors or memory.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The entrance that all listeners of one server share: it counts their half-open connections.
#[derive(Debug, Default)]
pub struct Entrance {
    half_open: Arc<Mutex<HalfOpen>>,
}

impl Entrance {
    /// Accepts connections until `stop` completes, and then waits for the end of all tasks. `welcome` is a task for
    /// each connection, from its first byte to its last; it drops its place when the connection has passed the gate.
    /// All tasks end if this future is dropped.
    pub async fn accept_all<Socket, Accepted, Welcome>(
        &self,
        accept: impl Fn() -> Accepted,
        stop: impl Future<Output = ()>,
        welcome: impl Fn(Socket, Place) -> Welcome,
    ) where
        Accepted: Future<Output = io::Result<Socket>>,
        Welcome: Future<Output = ()> + Send + 'static,
    {
        let mut tasks = JoinSet::new();
        let mut stop = pin!(stop);
        loop {
            let accepted = tokio::select! {
                accepted = accept() => accepted,
                Some(_) = tasks.join_next() => continue,
                () = &mut stop => break,
            };
            match accepted {
                Ok(socket) => {
                    half_open::enter(&self.half_open, |place| tasks.spawn(welcome(socket, place)));
                }
                Err(error) if is_exhaustion(&error) => {
                    warn!(%error, "cannot accept connections for now");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
                Err(error) => debug!(%error, "a connection failed before it began"),
            }
        }
        while tasks.join_next().await.is_some() {}
    }
}

/// Reads until the head is complete, and perhaps more. Returns `Err(None)` if the other end closed before.
pub async fn read_head(socket: &mut (impl AsyncRead + Unpin)) -> Result<Vec<u8>, Option<Refusal>> {
    let reading = async {
        let mut bytes = Vec::with_capacity(1024);
        loop {
            if Head::parse(&bytes).map_err(Some)?.is_some() {
                return Ok(bytes);
            }
            let mut rest = (&mut *socket).take((HEAD_BYTES - bytes.len()) as u64);
            match rest.read_buf(&mut bytes).await {
                Ok(1..) => {}
                Ok(0) | Err(_) => return Err(None),
            }
        }
    };
    tokio::time::timeout(HEAD_TIME, reading).await.unwrap_or_else(|_| {
        Err(Some(Refusal::new(408, "the request head did not arrive within 2 s")))
    })
}

/// Answers that a connection is refused, and closes it. The message is the member `member` of the answer.
pub async fn refuse(
    mut socket: impl AsyncRead + AsyncWrite + Unpin,
    refusal: &Refusal,
    member: &str,
) {
    debug!(status = refusal.status, reason = %refusal.message, "refused");
    if refusal.is_guess {
        tokio::time::sleep(PENALTY).await;
    }
    let goodbye = async {
        socket.write_all(refusal.to_http(member).as_bytes()).await?;
        socket.shutdown().await?;
        // Closing with unread bytes would reset the connection, and the answer would be lost.
        let mut discarded = [0; 1024];
        while socket.read(&mut discarded).await? > 0 {}
        io::Result::Ok(())
    };
    // A peer that is gone, or that does not end, needs no further answer.
    let _ = tokio::time::timeout(HEAD_TIME, goodbye).await;
}

/// Whether the error is temporary resource exhaustion (EMFILE, ENFILE, ENOMEM …). Retrying at once would only waste
/// processor time.
fn is_exhaustion(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let exhaustion = [Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM];
    Errno::from_io_error(error).is_some_and(|errno| exhaustion.contains(&errno))
}
