//! The entrance of the server: a connection reaches the routes only when its first request passes
//! the access rules. Until then it is one of a few half-open ones, so that strangers cannot use up
//! the file descriptors.

use std::{
    future::pending,
    io::{self, Cursor},
    net::SocketAddr,
};

use axum::http::{HeaderMap, HeaderName, HeaderValue, Uri};
use listener::{Entrance, Head, Place, Refusal, read_head, refuse};
use tokio::{
    io::{AsyncReadExt as _, Chain, Join, join},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::mpsc,
    task::JoinSet,
};

use super::{Access, failure::DETAIL};

/// An admitted connection, from its first byte on.
type Admitted = Join<Chain<Cursor<Vec<u8>>, OwnedReadHalf>, OwnedWriteHalf>;

/// A listener that gives out admitted connections only.
#[derive(Debug)]
pub(super) struct GatedListener {
    admitted: mpsc::Receiver<(Admitted, SocketAddr)>,
    address: SocketAddr,
    /// Ends when this is dropped.
    _accepting: JoinSet<()>,
}

impl GatedListener {
    pub(super) fn new(listener: TcpListener, access: Access) -> io::Result<Self> {
        let address = listener.local_addr()?;
        let (sender, admitted) = mpsc::channel(1);
        let mut accepting = JoinSet::new();
        accepting.spawn(async move {
            let accept = || async {
                let (socket, peer) = listener.accept().await?;
                // Send small answers without delay.
                socket.set_nodelay(true)?;
                Ok((socket, peer))
            };
            let welcome = |(socket, peer), half_open| {
                welcome(socket, peer, access.clone(), sender.clone(), half_open)
            };
            Entrance::default().accept_all(accept, pending(), welcome).await;
        });
        Ok(Self { admitted, address, _accepting: accepting })
    }
}

impl axum::serve::Listener for GatedListener {
    type Io = Admitted;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Admitted, SocketAddr) {
        match self.admitted.recv().await {
            Some(admitted) => admitted,
            // The task that accepts has failed; the requests that are being served may end.
            None => pending().await,
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.address)
    }
}

/// Reads the first head of a connection, and admits or refuses the connection.
async fn welcome(
    mut socket: TcpStream,
    peer: SocketAddr,
    access: Access,
    admitted: mpsc::Sender<(Admitted, SocketAddr)>,
    half_open: Place,
) {
    let verdict = match read_head(&mut socket).await {
        Ok(bytes) => judge(&access, &bytes).map(|()| bytes),
        Err(Some(refusal)) => Err(refusal),
        Err(None) => return,
    };
    match verdict {
        Ok(bytes) => {
            drop(half_open);
            let (reader, writer) = socket.into_split();
            let rewound = join(Cursor::new(bytes).chain(reader), writer);
            // Fails only if the server ends.
            let _ = admitted.send((rewound, peer)).await;
        }
        Err(refusal) => refuse(socket, &refusal, DETAIL).await,
    }
}

/// Applies the rules that the router applies to every request to the first one of a connection.
fn judge(access: &Access, bytes: &[u8]) -> Result<(), Refusal> {
    let malformed = || Refusal::new(400, "not an HTTP request");
    let head = Head::parse(bytes)?.ok_or_else(malformed)?;
    let uri: Uri = head.path.parse().map_err(|_| malformed())?;
    let mut headers = HeaderMap::with_capacity(head.headers.len());
    for (name, value) in &head.headers {
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| malformed())?;
        headers.append(name, HeaderValue::from_str(value).map_err(|_| malformed())?);
    }
    access.check(uri.path(), &headers).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_head_decides() {
        let access = Access::with_key("secret");
        for (head, expected) in [
            ("POST /execute_action HTTP/1.1\r\nX-Session-API-Key: secret\r\n\r\n{}", None),
            ("POST /execute_action?a=b HTTP/1.1\r\nx-session-api-key:  secret \r\n\r\n", None),
            ("GET /alive?x HTTP/1.1\r\nHost: a\r\n\r\n", None),
            ("GET http://a/alive HTTP/1.1\r\nHost: a\r\n\r\n", None),
            ("GET /alive HTTP/1.1\r\nOrigin: null\r\n\r\n", Some(403)),
            ("POST /execute_action HTTP/1.1\r\n\r\n", Some(403)),
            ("POST /alive/../execute_action HTTP/1.1\r\n\r\n", Some(403)),
            ("GET /alive HTTP/1.1\r\nX: \u{1}\r\n\r\n", Some(400)),
            ("GET /alive HTTP/1.1\r\n", Some(400)),
        ] {
            let refused = judge(&access, head.as_bytes()).err().map(|refusal| refusal.status);
            assert_eq!(refused, expected, "{head:?}");
        }
    }
}
