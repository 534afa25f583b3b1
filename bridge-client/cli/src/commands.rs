//! The subcommands, one file each, and what they share: finding the daemon, waiting for an answer, printing the result.

mod act;
mod call;
mod cell;
mod chat;
mod execute_command;
mod file;
mod history;
mod host;
mod list;
mod page;
mod route;
mod rules;
mod screen;
mod shell;
mod show_message;
mod status;
mod stdio;
mod tail;
mod token;

use std::pin::pin;
use std::process::ExitCode;
use std::time::Duration;

use base64::prelude::{BASE64_STANDARD, Engine};
use bridge_client::{Call, Client, Endpoint, Options};
use bridge_protocol::SessionId;
use bridge_protocol::methods::MethodType;
use clap::CommandFactory;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use tokio::signal::ctrl_c;

use crate::cli::target::Target;
use crate::cli::{Cli, Command};
use crate::failure::Failure;
use crate::output::{Output, Style};
use route::Route;

/// How long Ctrl-C waits for the daemon to confirm the cancel.
const CANCEL_WAIT: Duration = Duration::from_secs(1);

/// The exit code when a command or cell reached its limit, as of the program `timeout`.
const GOES_ON: u8 = 124;

/// Settings and output of a subcommand.
pub struct Context {
    session: Option<SessionId>,
    timeout: Option<Duration>,
    environment: fn(&str) -> Option<String>,
    route: Route,
    output: Output,
}

/// Runs the subcommand. `environment` reads a variable.
pub async fn run(cli: Cli, environment: fn(&str) -> Option<String>) -> ExitCode {
    let Cli { global, command } = cli;
    let output = Output::new(global.json);
    let context = Context {
        session: global.session,
        timeout: global.timeout,
        environment,
        route: Route::default(),
        output,
    };
    let outcome = carry_out(context, command).await;
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(global.json),
    }
}

async fn carry_out(context: Context, command: Command) -> Result<(), Failure> {
    match command {
        Command::Call(arguments) => call::run(context, arguments).await,
        Command::Chat(arguments) => chat::run(context.to(&arguments.target)?, arguments).await,
        Command::ShowMessage(arguments) => {
            show_message::run(context.to(&arguments.target)?, arguments).await
        }
        Command::ExecuteCommand(arguments) => {
            execute_command::run(context.to(&arguments.target)?, arguments).await
        }
        Command::History(arguments) => {
            history::run(context.to(&arguments.target)?, arguments).await
        }
        Command::Status => status::run(context).await,
        Command::List => list::run(context).await,
        Command::Tail => tail::run(context).await,
        Command::Stdio => stdio::run(context).await,
        Command::Host(arguments) => host::run(context, arguments).await,
        Command::Token(arguments) => token::run(context, arguments).await,
        Command::Shell(shell) => shell::run(context.to(&shell.target)?, shell.verb).await,
        Command::File(file) => file::run(context.to(&file.target)?, file.verb).await,
        Command::Cell(cell) => cell::run(context.to(&cell.target)?, cell.verb).await,
        Command::Page(page) => page::run(context.to(&page.target)?, page.verb).await,
        Command::Act(act) => act::run(context.to(&act.target)?, act.verb).await,
        Command::Completions { shell } => completions(context, shell).await,
    }
}

impl Context {
    /// Sends the requests of this subcommand to the runtime that was chosen.
    fn to(self, target: &Target) -> Result<Self, Failure> {
        Ok(Self { route: Route::to(target)?, ..self })
    }

    fn endpoint(&self) -> Result<Endpoint, Failure> {
        Ok(Endpoint::find(self.session.as_ref(), self.environment)?)
    }

    async fn client(&self) -> Result<Client, Failure> {
        let options = Options { name: "bridge-client".to_owned(), ..Options::default() };
        Ok(Client::connect(self.endpoint()?, options).await?)
    }

    /// Calls a method and returns its result as raw text: `--json` prints that, other styles parse it with [`typed`].
    async fn call<M: MethodType>(&self, params: &M::Params) -> Result<Box<RawValue>, Failure> {
        let client = self.client().await?;
        let params = self.route.added_to(params);
        let result = answer(client.call_raw(M::NAME, Some(params), self.timeout)).await;
        client.close().await;
        result
    }
}

/// Parses the result of a method.
fn typed<M: MethodType>(result: &RawValue) -> Result<M::Result, Failure> {
    serde_json::from_str(result.get()).map_err(|error| {
        let (method, reason) = (M::NAME.to_owned(), error.to_string());
        bridge_client::Error::BadAnswer { method, reason }.into()
    })
}

/// Calls a method whose result is empty.
async fn done<M: MethodType>(context: Context, params: &M::Params) -> Result<(), Failure> {
    shown::<M>(context, params, |_| String::new()).await
}

/// Calls a method and prints its result as text, or unchanged with `--json`.
async fn shown<M: MethodType>(
    mut context: Context,
    params: &M::Params,
    words: impl FnOnce(M::Result) -> String,
) -> Result<(), Failure> {
    let result = context.call::<M>(params).await?;
    if context.output.style == Style::Json {
        return context.output.json(&result).await;
    }
    match words(typed::<M>(&result)?) {
        text if text.is_empty() => Ok(()),
        text => context.output.line(&text).await,
    }
}

/// Decodes base64.
fn decoded<M: MethodType>(base64: &str) -> Result<Vec<u8>, Failure> {
    BASE64_STANDARD.decode(base64).map_err(|error| {
        let (method, reason) = (M::NAME.to_owned(), error.to_string());
        bridge_client::Error::BadAnswer { method, reason }.into()
    })
}

/// Waits for the answer. Ctrl-C cancels the request at the daemon before it ends the wait.
async fn answer<R: DeserializeOwned>(call: Call<R>) -> Result<R, Failure> {
    let canceller = call.canceller();
    let mut answer = pin!(call.answer());
    tokio::select! {
        result = &mut answer => Ok(result?),
        _ = ctrl_c() => {
            canceller.cancel();
            // Whatever the answer is, the person has interrupted the call.
            let _ = tokio::time::timeout(CANCEL_WAIT, answer).await;
            Err(Failure::Interrupted)
        }
    }
}

async fn completions(mut context: Context, shell: clap_complete::Shell) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "bridge-client", &mut script);
    context.output.piece(&String::from_utf8_lossy(&script)).await
}
