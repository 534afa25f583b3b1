//! `openhands-edge host`: serves `action/*` at a broker.

use std::os::fd::RawFd;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context as _;
use bridge_client::connection::inherited_stream;
use bridge_client::host::{Cancel, Request};
use bridge_client::{Client, Host, Options};
use bridge_protocol::answer::{Answer, print_result, read_params, unknown_method};
use bridge_protocol::methods::action::{Cancel as CancelAction, Execute, OutputPiece};
use bridge_protocol::methods::{MethodType, RegisterParams, names_of};
use clap::Args;
use openhands_edge::action::Grammar;
use openhands_edge::service::{ActionService, Caller, Departure};
use openhands_edge::tools::BrokerRuntimes;
use sandbox_worker::Worker;
use tokio::signal::unix::{SignalKind, signal};

/// How the edge reaches its broker
#[derive(Debug, Args)]
pub(crate) struct HostArguments {
    /// The open file descriptor of the connection on which actions arrive
    #[arg(long, value_name = "NUMBER")]
    connection_fd: RawFd,
    /// The open file descriptor of the connection for calling tools
    #[arg(long, value_name = "NUMBER")]
    client_fd: RawFd,
    /// Add a trace to error observations, which shows where the error comes from
    #[arg(long)]
    action_traces: bool,
}

pub(crate) fn host(arguments: HostArguments) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut terminate = signal(SignalKind::terminate())?;
        // A Ctrl-C in the daemon's terminal is for the daemon, which then ends this process.
        let _interrupt = signal(SignalKind::interrupt())?;
        let options = Options { name: "openhands-edge".to_owned(), ..Options::default() };
        let stream = inherited_stream(arguments.client_fd).context("opening --client-fd")?;
        let client = Client::over(stream, options.clone()).await;
        let stream =
            inherited_stream(arguments.connection_fd).context("opening --connection-fd")?;
        let host = Host::over(stream, registration(), options).await.context("registering")?;
        let worker = Worker::of_this_program().context("finding this program")?;
        let grammar = Grammar::new("bash", worker);
        let runtimes = BrokerRuntimes::new(client);
        let service = Arc::new(ActionService::new(runtimes, grammar, arguments.action_traces));
        let serving = host.serve(move |request| {
            let service = Arc::clone(&service);
            async move { answer(&service, &request).await }
        });
        tokio::select! {
            // The connection ended without a goodbye, so the daemon was killed. There is nothing to
            // save.
            served = serving => served.context("serving the broker")?,
            _ = terminate.recv() => {}
        }
        anyhow::Ok(ExitCode::SUCCESS)
    })
}

/// Names no runtime id: the grant of the connection allows exactly one.
fn registration() -> RegisterParams {
    RegisterParams {
        title: "OpenHands".to_owned(),
        methods: names_of("action").map(str::to_owned).collect(),
        edge: true,
        ..RegisterParams::default()
    }
}

async fn answer(service: &ActionService<BrokerRuntimes>, request: &Request) -> Answer {
    let params = request.params.as_deref();
    match request.method.as_str() {
        Execute::NAME => {
            let params = read_params::<Execute>(params)?;
            print_result::<Execute>(&service.execute(params, &RequestCaller(request)).await?)
        }
        CancelAction::NAME => {
            let params = read_params::<CancelAction>(params)?;
            print_result::<CancelAction>(&service.cancel(&params)?)
        }
        method => Err(unknown_method(method)),
    }
}

/// The caller of a request at the broker.
struct RequestCaller<'a>(&'a Request);

impl Caller for RequestCaller<'_> {
    async fn send(&self, piece: &OutputPiece) {
        if let Err(error) = self.0.progress(piece).await {
            tracing::warn!(%error, "cannot send a piece of output");
        }
    }

    async fn departure(&self) -> Departure {
        match self.0.cancelled().await {
            Cancel::Requested => Departure::Cancelled,
            Cancel::Abandoned | Cancel::Disconnected => Departure::Gone,
        }
    }
}
