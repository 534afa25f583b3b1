//! The host for places without an editor: messages are printed, chat goes to a program or to the
//! person at the terminal, and commands are refused unless mapped to programs.
//!
//! To the broker it is a host like any other: it registers, gets requests as text, answers in text,
//! and hears of cancels. It only needs no socket.

mod chat;
mod command;
mod console;
mod history;

use std::collections::HashMap;
use std::sync::Arc;

use bridge_protocol::methods::{
    CancelParams, Chat, ChatParams, ExecuteCommand, ExecuteCommandParams, GetChatHistory,
    GetChatHistoryParams, MethodType, RegisterParams, ShowMessage, ShowMessageParams, TextProgress,
};
use bridge_protocol::{
    CallId, Dialect, ErrorKind, Message, Method, Notification, Request, RequestId, WireError, print,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};
use tokio::sync::Semaphore;
use tokio::task::{AbortHandle, JoinSet};

use crate::broker::{Event, PeerId, Role};
use crate::hub::Hub;
use crate::outbox::{Next, Outbox};

pub use command::AllowedCommand;

/// Programs that run at once on behalf of callers; further requests wait.
const PROGRAMS: usize = 8;

type Answer = Result<Box<RawValue>, WireError>;

/// See the [module](self).
pub struct TerminalHost {
    answerer: chat::Answerer,
    commands: Vec<AllowedCommand>,
    history: history::History,
    programs: Semaphore,
}

impl TerminalHost {
    /// A host that answers chat with this command, or else by asking the person.
    pub fn new(chat_command: Option<String>, commands: Vec<AllowedCommand>) -> Self {
        Self {
            answerer: chat::Answerer::choose(chat_command),
            commands,
            history: history::History::default(),
            programs: Semaphore::new(PROGRAMS),
        }
    }

    /// Registers, and returns the work of serving, which ends never. The registration comes first, so
    /// that no call finds the run without a host.
    pub fn attach(self, hub: &Arc<Hub>) -> impl Future<Output = ()> + Send + 'static {
        let (peer, outbox) = hub.connect(Role::Host, Dialect::JsonRpc);
        let methods = Method::ALL.map(|method| method.name().to_owned()).to_vec();
        let registration = RegisterParams {
            runtime_id: Some("terminal".to_owned()),
            title: "terminal".to_owned(),
            methods,
            focused: true,
            ..RegisterParams::default()
        };
        let registered = hub.with_broker(|broker, now| broker.register(peer, registration, now));
        registered.expect("the registration is well-formed");
        hub.settle();
        Arc::new(self).serve(Arc::clone(hub), peer, outbox)
    }

    async fn serve(self: Arc<Self>, hub: Arc<Hub>, peer: PeerId, outbox: Arc<Outbox>) {
        let mut tasks = JoinSet::new();
        let mut running: HashMap<RequestId, AbortHandle> = HashMap::new();
        loop {
            let texts = tokio::select! {
                next = outbox.next(usize::MAX) => match next {
                    Next::Texts(texts) => texts,
                    Next::Ping => continue,
                    // Another host has taken our name, or the daemon ends.
                    Next::Close(_) => return hub.disconnect(peer),
                },
                Some(ended) = tasks.join_next() => {
                    if let Ok(id) = ended {
                        running.remove(&id);
                    }
                    continue;
                }
            };
            for text in texts {
                let taken = Taken { hub: Arc::clone(&hub), peer, bytes: text.len() };
                match Message::parse(&text) {
                    Ok(Message::Request(request)) => {
                        let Some(id) = RequestId::from_raw(request.id.raw()) else { continue };
                        let work = Arc::clone(&self).work(taken, id, request);
                        running.insert(id, tasks.spawn(work));
                    }
                    Ok(Message::Notification(note)) => {
                        // Dropping the work kills the program that it waits for.
                        if let Some(task) = cancelled(&note).and_then(|id| running.remove(&id)) {
                            task.abort();
                        }
                    }
                    _ => {}
                }
            }
        }
    }

    /// The work on one request.
    fn work(
        self: Arc<Self>,
        taken: Taken,
        id: RequestId,
        request: Request<'_>,
    ) -> impl Future<Output = RequestId> + Send + 'static {
        let method = Method::from_name(&request.method);
        let params = request.params.map(ToOwned::to_owned);
        async move {
            let caller = Caller { hub: Arc::clone(&taken.hub), peer: taken.peer, id };
            let answer = self.answer(method, params.as_deref(), &caller).await;
            caller.answer(answer);
            drop(taken);
            id
        }
    }

    async fn answer(
        &self,
        method: Option<Method>,
        params: Option<&RawValue>,
        caller: &Caller,
    ) -> Answer {
        match method {
            Some(Method::Chat) => {
                let params: ChatParams = read::<Chat>(params)?;
                required(&params.message, "message")?;
                write::<Chat>(self.chat(params, caller).await?)
            }
            Some(Method::ShowMessage) => {
                let params: ShowMessageParams = read::<ShowMessage>(params)?;
                required(&params.message, "message")?;
                write::<ShowMessage>(console::show(params).await)
            }
            Some(Method::ExecuteCommand) => {
                let params: ExecuteCommandParams = read::<ExecuteCommand>(params)?;
                required(&params.command, "command")?;
                let program = command::find(&self.commands, &params.command)?;
                let _turn = self.programs.acquire().await;
                write::<ExecuteCommand>(command::execute(program, &params).await?)
            }
            Some(Method::GetChatHistory) => {
                let params: GetChatHistoryParams = read::<GetChatHistory>(params)?;
                required(&params.conversation_id, "conversationId")?;
                write::<GetChatHistory>(self.history.read(&params))
            }
            None => Err(ErrorKind::MethodNotFound.error("the terminal host serves vscode/* only")),
        }
    }
}

/// A message that was taken from the queue. It counts as queued until the work on it has ended, so that
/// the broker's bounds hold for what waits in here, too.
struct Taken {
    hub: Arc<Hub>,
    peer: PeerId,
    bytes: usize,
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.hub.deliver(Event::Sent { peer: self.peer, messages: 1, bytes: self.bytes });
    }
}

/// The way back to whoever asked.
struct Caller {
    hub: Arc<Hub>,
    peer: PeerId,
    id: RequestId,
}

impl Caller {
    /// Sends a piece of the answer.
    fn progress(&self, text: &str) {
        let params = json!({"id": self.id, "value": TextProgress { text: text.to_owned() }});
        let params = to_raw_value(&params).expect("progress always prints");
        self.say(&print::notification("$/progress", Some(&params)));
    }

    fn answer(&self, answer: Answer) {
        let id = self.id.to_string();
        let id = CallId::from_raw(&id).expect("a number is an id");
        self.say(&match answer {
            Ok(result) => print::success(Dialect::JsonRpc, &id, &result),
            Err(error) => print::failure(Dialect::JsonRpc, Some(&id), &error),
        });
    }

    fn say(&self, text: &str) {
        self.hub.deliver(Event::Message { peer: self.peer, text });
    }
}

fn cancelled(note: &Notification<'_>) -> Option<RequestId> {
    let params: CancelParams<'_> = serde_json::from_str(note.params?.get()).ok()?;
    (note.method == "$/cancelRequest").then(|| RequestId::from_raw(params.id.get()))?
}

fn read<M: MethodType>(params: Option<&RawValue>) -> Result<M::Params, WireError>
where
    M::Params: DeserializeOwned,
{
    serde_json::from_str(params.map_or("{}", RawValue::get)).map_err(|error| {
        ErrorKind::InvalidParams.error(format!("wrong params for {}: {error}", M::NAME))
    })
}

fn write<M: MethodType>(result: M::Result) -> Answer
where
    M::Result: Serialize,
{
    to_raw_value(&result).map_err(|error| {
        ErrorKind::InternalError.error(format!("cannot print the result: {error}"))
    })
}

fn required(value: &str, name: &str) -> Result<(), WireError> {
    match value.is_empty() {
        true => Err(ErrorKind::InvalidParams.error(format!("Missing {name} parameter"))),
        false => Ok(()),
    }
}
