//! The terminal host, for places without an editor: it prints messages, passes chat to a program or to the person at the
//! terminal, and refuses editor commands unless they are mapped to programs.

mod chat;
mod command;
mod console;
mod history;

use std::sync::Arc;

use bridge_protocol::answer::{Answer, print_result, read_params, required};
use bridge_protocol::methods::{
    Chat, ChatParams, ExecuteCommand, ExecuteCommandParams, GetChatHistory, GetChatHistoryParams,
    RegisterParams, ShowMessage, ShowMessageParams,
};
use bridge_protocol::{Dialect, ErrorKind, Method};
use serde_json::value::RawValue;
use tokio::sync::Semaphore;

use crate::broker::{Grant, HostGrant};
use crate::hub::Hub;
use crate::in_process::{self, Caller, Respond};

pub use command::AllowedCommand;

/// The runtime id of this host, which no other host of a run can have.
pub const RUNTIME_ID: &str = "terminal";

/// How many programs run for callers at a time. Further requests wait.
const PROGRAMS: usize = 8;

/// See the [module](self).
pub struct TerminalHost {
    answerer: chat::Answerer,
    commands: Vec<AllowedCommand>,
    history: history::History,
    programs: Semaphore,
}

impl TerminalHost {
    /// Creates a host that answers chat with this command, or without one by asking the person.
    pub fn new(chat_command: Option<String>, commands: Vec<AllowedCommand>) -> Self {
        Self {
            answerer: chat::Answerer::choose(chat_command),
            commands,
            history: history::History::default(),
            programs: Semaphore::new(PROGRAMS),
        }
    }

    /// Registers, and returns the future that serves requests, which never ends. The registration comes first, so that
    /// no call finds the run without a host.
    pub fn attach(self, hub: &Arc<Hub>) -> impl Future<Output = ()> + Send + 'static {
        let grant = Grant::Host(Arc::new(HostGrant::own(RUNTIME_ID, &["vscode"])));
        let (peer, outbox) = hub.connect(grant, Dialect::JsonRpc);
        let methods = Method::ALL.map(|method| method.name().to_owned()).to_vec();
        let registration = RegisterParams {
            runtime_id: Some(RUNTIME_ID.to_owned()),
            title: RUNTIME_ID.to_owned(),
            methods,
            focused: true,
            ..RegisterParams::default()
        };
        let registered = hub.with_broker(|broker, now| broker.register(peer, registration, now));
        registered.expect("the registration is well-formed");
        hub.settle();
        in_process::serve(Arc::new(self), Arc::clone(hub), peer, outbox)
    }
}

impl Respond for TerminalHost {
    async fn answer(&self, method: &str, params: Option<&RawValue>, caller: &Caller) -> Answer {
        match Method::from_name(method) {
            Some(Method::Chat) => {
                let params: ChatParams = read_params::<Chat>(params)?;
                required(&params.message, "message")?;
                print_result::<Chat>(&self.chat(params, caller).await?)
            }
            Some(Method::ShowMessage) => {
                let params: ShowMessageParams = read_params::<ShowMessage>(params)?;
                required(&params.message, "message")?;
                print_result::<ShowMessage>(&console::show(params).await)
            }
            Some(Method::ExecuteCommand) => {
                let params: ExecuteCommandParams = read_params::<ExecuteCommand>(params)?;
                required(&params.command, "command")?;
                let program = command::find(&self.commands, &params.command)?;
                let _turn = self.programs.acquire().await;
                print_result::<ExecuteCommand>(&command::execute(program, &params).await?)
            }
            Some(Method::GetChatHistory) => {
                let params: GetChatHistoryParams = read_params::<GetChatHistory>(params)?;
                required(&params.conversation_id, "conversationId")?;
                print_result::<GetChatHistory>(&self.history.read(&params))
            }
            None => Err(ErrorKind::MethodNotFound.error("the terminal host serves vscode/* only")),
        }
    }
}
