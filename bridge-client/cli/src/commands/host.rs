//! `host --rules FILE`: a scripted host that follows the rules in a file, for tests of programs that use the bridge.
//!
//! A rule is carried out completely even if its request is cancelled, so that a test can make an answer come late. The
//! log has a line for the cancel.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bridge_client::connection::inherited_stream;
use bridge_client::endpoint::read_token;
use bridge_client::error::without_number;
use bridge_client::host::{Cancel, Request};
use bridge_client::{Endpoint, Host, Options};
use bridge_protocol::{ErrorKind, WireError};
use serde::Serialize;
use serde_json::json;
use serde_json::value::RawValue;
use tokio::signal::ctrl_c;

use super::Context;
use super::rules::{End, Params, Rule, Rules};
use crate::cli;
use crate::failure::Failure;

pub async fn run(mut context: Context, arguments: cli::Host) -> Result<(), Failure> {
    let text = read(&arguments.rules)?;
    let rules = Rules::parse(&text)
        .map_err(|reason| Failure::File { path: arguments.rules.clone(), reason })?;
    let log = Log::open(arguments.log)?;
    let host = match (arguments.connection_fd, &arguments.token_file) {
        (Some(descriptor), _) => {
            let stream = inherited_stream(descriptor).map_err(|error| {
                let reason = without_number(&error);
                Failure::Usage(format!("descriptor {descriptor} is no connection: {reason}"))
            })?;
            Host::over(stream, rules.registration(), Options::default()).await?
        }
        (None, file) => {
            let endpoint = match file {
                Some(path) => Endpoint { token: read_token(path)?, ..context.endpoint()? },
                None => Endpoint::find_for_host(context.session.as_ref(), context.environment)?,
            };
            Host::attach(endpoint, rules.registration(), Options::default()).await?
        }
    };
    context.output.line(&json!({"runtimeId": host.runtime_id()}).to_string()).await?;
    let script = Arc::new((rules, log));
    let serving = host.serve(move |request| {
        let script = Arc::clone(&script);
        async move { serve(&script.0, &script.1, request).await }
    });
    tokio::select! {
        ended = serving => Ok(ended?),
        _ = ctrl_c() => Err(Failure::Interrupted),
    }
}

async fn serve(rules: &Rules, log: &Log, request: Request) -> Result<Box<RawValue>, WireError> {
    log.write(&Line {
        event: "request",
        id: id(&request),
        method: Some(&request.method),
        params: request.params.as_deref(),
    });
    let params = Params::new(request.params.as_deref());
    let end = match rules.find(&request.method, &params) {
        Some(rule) => {
            let mut playing = pin!(play(rule, &params, &request));
            tokio::select! {
                biased;
                end = &mut playing => end,
                cancel = request.cancelled() => {
                    if cancel != Cancel::Disconnected {
                        log.write(&Line::new("cancel", &request));
                    }
                    playing.await
                }
            }
        }
        None => {
            let reason = format!("no rule fits {}: add one to the rules file", request.method);
            End::Answer(Err(ErrorKind::MethodNotFound.error(reason)))
        }
    };
    match end {
        End::Answer(answer) => {
            log.write(&Line::new("answer", &request));
            answer
        }
        End::Silence => {
            request.disconnected().await;
            Err(ErrorKind::RequestCancelled.error("the connection has ended"))
        }
        // Looks like a crash to the daemon: no close frame, no answer.
        End::Exit => std::process::exit(0),
    }
}

/// Sends the progress, waits for the FIFO and the delay, and returns how the request ends, in this order.
async fn play(rule: &Rule, params: &Params<'_>, request: &Request) -> End {
    for value in &rule.progress {
        if let Err(error) = request.progress(&params.fill(value)).await {
            return End::Answer(Err(error));
        }
    }
    if let Some(fifo) = rule.fifo.clone() {
        // Opening a FIFO blocks until a writer comes, hence the thread.
        let read = tokio::task::spawn_blocking(move || std::fs::read(fifo)).await;
        if let Err(error) = read.unwrap_or_else(|panic| Err(panic.into())) {
            let reason = format!("cannot read the FIFO ({error}): create it with mkfifo");
            return End::Answer(Err(ErrorKind::InternalError.error(reason)));
        }
    }
    if rule.delay_ms > 0 {
        tokio::time::sleep(Duration::from_millis(rule.delay_ms)).await;
    }
    rule.end(params)
}

/// The file of `--log`. Without the flag, nothing is logged.
struct Log(Option<File>);

/// One line of the log.
#[derive(Serialize)]
struct Line<'l> {
    event: &'static str,
    id: Option<&'l RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    method: Option<&'l str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    params: Option<&'l RawValue>,
}

impl Log {
    fn open(path: Option<PathBuf>) -> Result<Self, Failure> {
        let Some(path) = path else { return Ok(Self(None)) };
        match OpenOptions::new().append(true).create(true).open(&path) {
            Ok(file) => Ok(Self(Some(file))),
            Err(error) => Err(Failure::File {
                path,
                reason: format!("{}; name a file that can be written", without_number(&error)),
            }),
        }
    }

    /// Writes a line at once and in one piece, so that a test can follow the file.
    fn write(&self, line: &Line<'_>) {
        let Some(mut file) = self.0.as_ref() else { return };
        let mut text = serde_json::to_vec(line).expect("raw values and strings always print");
        text.push(b'\n');
        // A full disk is no reason to fail the request that is being logged.
        let _ = file.write_all(&text);
    }
}

impl<'l> Line<'l> {
    fn new(event: &'static str, request: &'l Request) -> Self {
        Self { event, id: id(request), method: None, params: None }
    }
}

fn id(request: &Request) -> Option<&RawValue> {
    request.id().and_then(|id| serde_json::from_str(id).ok())
}

fn read(path: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(path).map_err(|error| Failure::File {
        path: path.to_owned(),
        reason: format!("{}; name a file that can be read", without_number(&error)),
    })
}
