//! `openhands-edge host`: serves `action/*` at a broker.

use std::os::fd::RawFd;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context as _;
use bridge_client::connection::inherited_stream;
use bridge_client::host::{Cancel, Request};
use bridge_client::{Client, Host, Options};
use bridge_protocol::methods::action::{Cancel as CancelAction, Execute, OutputPiece};
use bridge_protocol::methods::{MethodType, RegisterParams, names_of};
use bridge_protocol::{ErrorKind, WireError};
use clap::Args;
use openhands_edge::service::{ActionService, Caller, Left};
use openhands_edge::tools::BrokerTools;
use serde_json::value::{RawValue, to_raw_value};
use tokio::signal::unix::{SignalKind, signal};

/// The name under which the broker lists the edge.
const RUNTIME_ID: &str = "openhands";

/// How the edge reaches its broker.
#[derive(Debug, Args)]
pub(crate) struct HostArguments {
    /// The open file descriptor of the connection over which actions come.
    #[arg(long, value_name = "NUMBER")]
    connection_fd: RawFd,
    /// The open file descriptor of the connection over which tools are called.
    #[arg(long, value_name = "NUMBER")]
    client_fd: RawFd,
    /// Add a trace to error observations: where the error comes from.
    #[arg(long)]
    action_traces: bool,
}

pub(crate) fn host(arguments: HostArguments) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut terminate = signal(SignalKind::terminate())?;
        // A Ctrl-C in the terminal of the daemon is the daemon's to answer.
        let _interrupt = signal(SignalKind::interrupt())?;
        let options = Options { name: "openhands-edge".to_owned(), ..Options::default() };
        let stream = inherited_stream(arguments.client_fd).context("opening --client-fd")?;
        let client = Client::over(stream, options.clone()).await;
        let stream =
            inherited_stream(arguments.connection_fd).context("opening --connection-fd")?;
        let host = Host::over(stream, registration(), options).await.context("registering")?;
        let connect = move |route| BrokerTools::new(client.clone(), route);
        let service = Arc::new(ActionService::new(connect, arguments.action_traces));
        let serving = host.serve(move |request| {
            let service = Arc::clone(&service);
            async move { answer(&service, &request).await }
        });
        tokio::select! {
            // Without a goodbye the daemon was killed. There is nobody to tell, and nothing to keep.
            served = serving => served.context("serving the broker")?,
            _ = terminate.recv() => {}
        }
        anyhow::Ok(ExitCode::SUCCESS)
    })
}

fn registration() -> RegisterParams {
    RegisterParams {
        runtime_id: Some(RUNTIME_ID.to_owned()),
        title: "OpenHands".to_owned(),
        methods: names_of("action").map(str::to_owned).collect(),
        edge: true,
        ..RegisterParams::default()
    }
}

async fn answer(
    service: &ActionService<BrokerTools>,
    request: &Request,
) -> Result<Box<RawValue>, WireError> {
    match request.method.as_str() {
        Execute::NAME => printed(&service.execute(request.params_as()?, &Waiting(request)).await?),
        CancelAction::NAME => printed(&service.cancel(&request.params_as()?)?),
        method => Err(ErrorKind::MethodNotFound.error(format!("Unknown request type: {method}"))),
    }
}

/// A caller that waits for the answer to its request.
struct Waiting<'a>(&'a Request);

impl Caller for Waiting<'_> {
    async fn send(&self, piece: &OutputPiece) {
        if let Err(error) = self.0.progress(piece).await {
            tracing::warn!(%error, "a piece of output was not sent");
        }
    }

    async fn left(&self) -> Left {
        match self.0.cancelled().await {
            Cancel::Requested => Left::Cancelled,
            Cancel::Abandoned | Cancel::Disconnected => Left::Gone,
        }
    }
}

fn printed(result: &impl serde::Serialize) -> Result<Box<RawValue>, WireError> {
    to_raw_value(result).map_err(|error| {
        ErrorKind::InternalError.error(format!("cannot print the result: {error}"))
    })
}
