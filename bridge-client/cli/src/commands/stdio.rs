//! `stdio`: relays newline-delimited JSON-RPC on stdin and stdout, for programs without a WebSocket library.
//!
//! The relay parses only what it needs for an orderly end: which messages get an answer, and how long that may take.
//! Messages pass unchanged, with one exception: a line break between the tokens of a message from the daemon becomes a
//! space, because it would end the line.

mod lines;
mod outstanding;

use std::time::Duration;

use bridge_client::Connection;
use bridge_protocol::{Dialect, ErrorKind, print};
use tokio::io::{AsyncBufRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::signal::ctrl_c;
use tokio::sync::mpsc;
use tokio::time::Instant;

use self::lines::{Line, Lines};
use self::outstanding::Outstanding;
use super::Context;
use crate::failure::Failure;

/// Timeout of the handshake.
const CONNECT: Duration = Duration::from_secs(5);

/// How many lines wait for the reader of stdout. When it is reached, nothing more is read from the daemon.
const LINES_WAITING: usize = 64;

pub async fn run(context: Context) -> Result<(), Failure> {
    let connection = Connection::open(&context.endpoint()?, CONNECT).await?;
    let input = BufReader::with_capacity(64 * 1024, tokio::io::stdin());
    tokio::select! {
        ended = relay(input, tokio::io::stdout(), connection, context.timeout) => ended,
        _ = ctrl_c() => Err(Failure::Interrupted),
    }
}

/// Passes messages both ways until one side ends. At the end of the input, it waits for outstanding answers until their
/// deadlines, or for `limit`.
async fn relay(
    input: impl AsyncBufRead + Unpin,
    output: impl AsyncWrite + Unpin + Send + 'static,
    mut connection: Connection,
    limit: Option<Duration>,
) -> Result<(), Failure> {
    let mut lines = Lines::new(input);
    let mut outstanding = Outstanding::default();
    let mut input_ended: Option<Instant> = None;
    let (printing, to_print) = mpsc::channel(LINES_WAITING);
    let printer = tokio::spawn(print_lines(output, to_print));
    let outcome = loop {
        if input_ended.is_some() && outstanding.count() == 0 {
            break Ok(());
        }
        let give_up = input_ended
            .map(|at| limit.map_or_else(|| outstanding.last_deadline(), |limit| at + limit));
        let listening = input_ended.is_none() && connection.has_room();
        tokio::select! {
            line = lines.next(), if listening => match line.map_err(Failure::Input)? {
                Some(Line::Message(text)) => {
                    outstanding.sent(&text, Instant::now());
                    connection.send(text);
                }
                Some(Line::Unusable(reason)) => {
                    let error = ErrorKind::ParseError.error(reason);
                    let refusal = print::failure(Dialect::JsonRpc, None, &error);
                    if printing.send(refusal).await.is_err() {
                        break Ok(());
                    }
                }
                None => input_ended = Some(Instant::now()),
            },
            received = receive(&mut connection, &printing) => match received {
                Received::Message { text, room } => {
                    outstanding.received(&text, Instant::now());
                    room.send(text);
                }
                Received::End(error) if error.is_goodbye() && outstanding.count() == 0 => break Ok(()),
                Received::End(error) => break Err(error.into()),
                Received::Room => {}
                Received::NobodyReads => break Ok(()),
            },
            () = printing.closed() => break Ok(()),
            () = sleep_until(give_up) => break Err(Failure::Unanswered(outstanding.count())),
        }
    };
    drop(printing);
    let printed = printer.await.unwrap_or(Ok(()));
    connection.close().await;
    printed.map_err(Failure::Output).and(outcome)
}

enum Received<'p> {
    Message {
        text: String,
        room: mpsc::Permit<'p, String>,
    },
    /// There is room for more lines.
    Room,
    End(bridge_client::Error),
    NobodyReads,
}

/// Reads a message only when there is room to print it, so that a slow reader slows down the daemon instead of filling
/// the memory of this program.
async fn receive<'p>(
    connection: &mut Connection,
    printing: &'p mpsc::Sender<String>,
) -> Received<'p> {
    let Ok(room) = printing.reserve().await else { return Received::NobodyReads };
    match connection.next_or_room().await {
        Ok(Some(text)) => Received::Message { text: in_one_line(&text), room },
        Ok(None) => Received::Room,
        Err(error) => Received::End(error),
    }
}

/// Replaces line breaks. JSON allows none within strings, so this changes only the space between tokens.
fn in_one_line(text: &str) -> String {
    text.replace(['\n', '\r'], " ")
}

async fn print_lines(
    mut output: impl AsyncWrite + Unpin,
    mut lines: mpsc::Receiver<String>,
) -> std::io::Result<()> {
    while let Some(mut line) = lines.recv().await {
        line.push('\n');
        output.write_all(line.as_bytes()).await?;
        if lines.is_empty() {
            output.flush().await?;
        }
    }
    output.flush().await
}

async fn sleep_until(moment: Option<Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests;
