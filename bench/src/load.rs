//! The load generator. All WebSocket arms get the same client, so that differences come from the servers.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use futures_util::{FutureExt, SinkExt, StreamExt};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::http::HeaderValue;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;

use crate::framing::Framing;

/// Time limit for a reply. A slower reply fails the measurement.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Address of a server.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub enum Address {
    Tcp(u16),
    Unix(PathBuf),
}

/// A server to measure: address, path, token and message format.
#[derive(Clone, Debug)]
pub struct Target {
    pub address: Address,
    pub path: &'static str,
    pub token: Option<String>,
    pub framing: Framing,
}

/// A bidirectional byte stream.
pub trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

pub type Socket = WebSocketStream<Box<dyn Stream>>;

impl Address {
    pub async fn connect(&self) -> Result<Box<dyn Stream>> {
        Ok(match self {
            Self::Tcp(port) => {
                let stream = TcpStream::connect(("127.0.0.1", *port)).await?;
                stream.set_nodelay(true)?;
                Box::new(stream)
            }
            Self::Unix(path) => Box::new(UnixStream::connect(path).await?),
        })
    }
}

impl Target {
    pub async fn connect(&self) -> Result<Socket> {
        let authority = match self.address {
            Address::Tcp(port) => format!("127.0.0.1:{port}"),
            Address::Unix(_) => "localhost".to_owned(),
        };
        let mut request = format!("ws://{authority}{}", self.path).into_client_request()?;
        if let Some(token) = &self.token {
            let value = HeaderValue::from_str(&format!("Bearer {token}"))?;
            request.headers_mut().insert("Authorization", value);
        }
        let config = WebSocketConfig::default().read_buffer_size(16 * 1024);
        let stream = self.address.connect().await?;
        let (mut socket, _) =
            tokio_tungstenite::client_async_with_config(request, stream, Some(config)).await?;
        if self.framing == Framing::SocketIo {
            join_namespace(&mut socket).await?;
        }
        Ok(socket)
    }
}

/// Completes the two handshakes of Socket.IO: one for the transport, one for the namespace.
async fn join_namespace(socket: &mut Socket) -> Result<()> {
    next_text(socket).await?;
    socket.send("40".into()).await?;
    next_text(socket).await?;
    Ok(())
}

async fn next_text(socket: &mut Socket) -> Result<Message> {
    loop {
        let message = tokio::time::timeout(TIMEOUT, socket.next()).await;
        let message =
            message.context("no reply")?.context("the server closed the connection")??;
        match message {
            Message::Text(ref text) if text.as_str() == "2" => socket.send("3".into()).await?,
            Message::Text(_) => return Ok(message),
            Message::Close(reason) => bail!("the server closed the connection: {reason:?}"),
            _ => {}
        }
    }
}

/// Sends requests one after the other, and returns the time of each.
pub async fn latency(target: &Target, payload: &str, count: usize) -> Result<Vec<Duration>> {
    let mut socket = target.connect().await?;
    let mut times = Vec::with_capacity(count);
    let warm_up = count / 10 + 1;
    for id in 0..(warm_up + count) as u64 {
        let begun = Instant::now();
        socket.send(target.framing.request(id, payload).into()).await?;
        let (answered, elapsed) = loop {
            let message = next_text(&mut socket).await?;
            let elapsed = begun.elapsed();
            if let Some(answered) = target.framing.reply(message.to_text()?, payload)? {
                break (answered, elapsed);
            }
        };
        ensure!(answered == id, "got the answer to another request");
        times.push(elapsed);
    }
    Ok(times.split_off(warm_up))
}

/// Keeps `in_flight` requests of one client in flight. Returns requests per second and the number of requests.
pub async fn pipelined(
    target: &Target,
    payload: &str,
    in_flight: u64,
    duration: Duration,
) -> Result<(f64, u64)> {
    let mut socket = target.connect().await?;
    let begun = Instant::now();
    let (mut sent, mut received, mut balance) = (0, 0, 0_u128);
    while sent < in_flight {
        socket.feed(target.framing.request(sent, payload).into()).await?;
        balance += u128::from(sent);
        sent += 1;
    }
    socket.flush().await?;
    let mut elapsed = Duration::ZERO;
    while received < sent {
        let mut next = Some(next_text(&mut socket).await?);
        while let Some(reply) = next.take() {
            if let Some(id) = target.framing.reply(reply.to_text()?, payload)? {
                received += 1;
                balance = balance.checked_sub(u128::from(id)).context("answered twice")?;
                elapsed = begun.elapsed();
                if elapsed < duration {
                    socket.feed(target.framing.request(sent, payload).into()).await?;
                    balance += u128::from(sent);
                    sent += 1;
                }
            }
            next = next_text(&mut socket).now_or_never().transpose()?;
        }
        socket.flush().await?;
    }
    ensure!(balance == 0, "the ids of the answers are not those of our requests");
    Ok((received as f64 / elapsed.as_secs_f64(), received))
}

/// Keeps one request in flight for each of many clients. Returns requests per second and the number of
/// requests.
pub async fn many(
    target: &Target,
    payload: &str,
    clients: usize,
    duration: Duration,
) -> Result<(f64, u64)> {
    let mut sockets = Vec::with_capacity(clients);
    for _ in 0..clients {
        sockets.push(target.connect().await?);
    }
    let begun = Instant::now();
    let mut tasks = tokio::task::JoinSet::new();
    for mut socket in sockets {
        let (framing, payload) = (target.framing, payload.to_owned());
        tasks.spawn(async move {
            let mut id = 0;
            while begun.elapsed() < duration {
                socket.send(framing.request(id, &payload).into()).await?;
                let reply = next_text(&mut socket).await?;
                ensure!(
                    framing.reply(reply.to_text()?, &payload)? == Some(id),
                    "got the answer to another request"
                );
                id += 1;
            }
            Ok(id)
        });
    }
    let mut total = 0;
    while let Some(ended) = tasks.join_next().await {
        total += ended??;
    }
    Ok((total as f64 / begun.elapsed().as_secs_f64(), total))
}

/// Times of round trips of bare bytes through an echo server, which is the floor.
pub async fn floor(address: &Address, bytes: usize, count: usize) -> Result<Vec<Duration>> {
    let mut stream = address.connect().await?;
    let (out, mut back) = (vec![b'x'; bytes], vec![0; bytes]);
    let mut times = Vec::with_capacity(count);
    let warm_up = count / 10 + 1;
    for _ in 0..warm_up + count {
        let begun = Instant::now();
        let (mut reader, mut writer) = tokio::io::split(&mut stream);
        // Write and read at the same time: large messages do not fit into the socket buffers.
        tokio::try_join!(writer.write_all(&out), reader.read_exact(&mut back))?;
        times.push(begun.elapsed());
    }
    ensure!(out == back, "the echo server returned other bytes");
    Ok(times.split_off(warm_up))
}
