//! The servers that are part of this program. Each runs in its own process and prints one line when it is
//! ready: its port, or `ready` if it has none.

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, Result};
use bridge_protocol::{Dialect, Message as BridgeMessage, print};
use clap::{Args, Subcommand};
use futures_util::{FutureExt, SinkExt, StreamExt};
use jsonrpsee::RpcModule;
use serde_json::value::RawValue;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, UnixListener};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;

use crate::framing::Framing;
use crate::load::{Address, Socket, Stream, Target};

/// Message limit of the jsonrpsee server: more than the largest message that is measured.
const JSONRPSEE_BYTES: u32 = 4 * 1024 * 1024;

#[derive(Args)]
pub struct Server {
    #[command(subcommand)]
    kind: Kind,
}

#[derive(Subcommand)]
enum Kind {
    /// Echo bytes over TCP
    Tcp,
    /// Echo bytes over a Unix socket
    Unix { path: PathBuf },
    /// Echo WebSocket messages
    WebSocket,
    /// Return the params of a call, with jsonrpsee's own server
    Jsonrpsee,
    /// Answer the broker's requests; the address is read from stdin
    Host,
    /// Answer the Socket.IO broker's requests
    SocketIoHost { port: u16 },
}

pub fn serve(server: Server) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        match server.kind {
            Kind::Tcp => tcp().await,
            Kind::Unix { path } => unix(path).await,
            Kind::WebSocket => web_socket().await,
            Kind::Jsonrpsee => jsonrpsee().await,
            Kind::Host => host().await,
            Kind::SocketIoHost { port } => socket_io_host(port).await,
        }
    })
}

#[allow(clippy::print_stdout, reason = "the ready line")]
fn ready(what: impl std::fmt::Display) -> Result<()> {
    println!("{what}");
    Ok(std::io::stdout().flush()?)
}

async fn tcp() -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    ready(listener.local_addr()?.port())?;
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        tokio::spawn(echo_bytes(stream));
    }
}

async fn unix(path: PathBuf) -> Result<()> {
    let listener = UnixListener::bind(path)?;
    ready("ready")?;
    loop {
        tokio::spawn(echo_bytes(listener.accept().await?.0));
    }
}

async fn echo_bytes(mut stream: impl Stream) -> std::io::Result<()> {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let count = stream.read(&mut buffer).await?;
        if count == 0 {
            return Ok(());
        }
        stream.write_all(&buffer[..count]).await?;
    }
}

async fn web_socket() -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    ready(listener.local_addr()?.port())?;
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        tokio::spawn(async move {
            let socket = tokio_tungstenite::accept_async(stream).await?;
            answer(socket, |text| Ok(Some(text))).await
        });
    }
}

/// Answers messages as they come, and flushes the answers to all messages that were ready together. The load
/// generator may drop connections in any way, so a failed read or write ends the loop without an error.
async fn answer<S: Stream>(
    mut socket: WebSocketStream<S>,
    reply: impl Fn(Message) -> Result<Option<Message>>,
) -> Result<()> {
    while let Some(message) = socket.next().await {
        let mut next = Some(message);
        while let Some(message) = next.take() {
            let Ok(message) = message else { return Ok(()) };
            if message.is_text()
                && let Some(reply) = reply(message)?
                && socket.feed(reply).await.is_err()
            {
                return Ok(());
            }
            next = socket.next().now_or_never().flatten();
        }
        if socket.flush().await.is_err() {
            break;
        }
    }
    Ok(())
}

async fn jsonrpsee() -> Result<()> {
    let config = jsonrpsee::server::ServerConfig::builder()
        .max_request_body_size(JSONRPSEE_BYTES)
        .max_response_body_size(JSONRPSEE_BYTES)
        .max_connections(2048)
        .build();
    let server =
        jsonrpsee::server::Server::builder().set_config(config).build("127.0.0.1:0").await?;
    ready(server.local_addr()?.port())?;
    let mut module = RpcModule::new(());
    module.register_method("echo", |params, (), _| params.parse::<Box<RawValue>>())?;
    server.start(module).stopped().await;
    Ok(())
}

/// Address and token for the broker's host. It contains a secret, so it is passed through stdin.
#[derive(serde::Serialize, serde::Deserialize)]
pub struct HostTarget {
    pub address: Address,
    pub token: String,
}

async fn host() -> Result<()> {
    let mut line = String::new();
    std::io::stdin().read_line(&mut line)?;
    let HostTarget { address, token } = serde_json::from_str(&line)?;
    let framing = Framing::JsonRpc("vscode/chat");
    let target = Target { address, path: "/", token: Some(token), framing };
    let mut socket = target.connect().await?;
    let register = r#"{"jsonrpc":"2.0","id":0,"method":"runtime/register","params":{"title":"bench","methods":["vscode/chat"]}}"#;
    socket.send(register.into()).await?;
    socket.next().await.context("the daemon closed the connection")??;
    ready("ready")?;
    answer(socket, |message| {
        Ok(match BridgeMessage::parse(message.to_text()?) {
            Ok(BridgeMessage::Request(request)) => {
                let params = request.params.context("a request without params")?;
                Some(print::success(Dialect::JsonRpc, &request.id, params).into())
            }
            _ => None,
        })
    })
    .await
}

async fn socket_io_host(port: u16) -> Result<()> {
    let target = Target {
        address: Address::Tcp(port),
        path: crate::arms::SOCKET_IO_PATH,
        token: None,
        framing: Framing::SocketIo,
    };
    let mut socket: Socket = target.connect().await?;
    socket.send(r#"42["host"]"#.into()).await?;
    ready("ready")?;
    answer(socket, |message| {
        let text = message.to_text()?;
        Ok(match text.strip_prefix("42").and_then(|rest| rest.split_once(r#"["call","#)) {
            Some((id, data)) => Some(format!("43{id}[{data}").into()),
            None if text == "2" => Some("3".into()),
            None => None,
        })
    })
    .await
}
