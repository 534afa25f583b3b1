//! A host inside the daemon's own process: the terminal host.
//!
//! To the broker it is a host like any other: it registers, gets requests and cancels as text, and answers in text. It
//! only needs no socket. Requests are taken from the outbox and each gets a task; a cancel drops the task, and its
//! return value is the answer.

use std::collections::HashMap;
use std::sync::Arc;

use bridge_protocol::answer::Answer;
use bridge_protocol::methods::CancelParams;
use bridge_protocol::{
    CallId, Dialect, ErrorKind, Message, Notification, Request, RequestId, print,
};
use serde::Serialize;
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};
use tokio::task::{AbortHandle, JoinSet};

use crate::broker::{Event, PeerId};
use crate::hub::Hub;
use crate::outbox::{Next, Outbox};

/// The error message when the work on a request has panicked. (A release build aborts on a panic.)
const BUG: &str = "the daemon panicked while it worked on this request: please report this bug";

/// Answers the requests of a host.
pub trait Respond: Send + Sync + 'static {
    /// Works on one request. The future is dropped when nobody waits for the answer any more.
    fn answer(
        &self,
        method: &str,
        params: Option<&RawValue>,
        caller: &Caller,
    ) -> impl Future<Output = Answer> + Send;
}

/// Serves what the broker sends to this connection, until it is closed.
pub async fn serve(host: Arc<impl Respond>, hub: Arc<Hub>, peer: PeerId, outbox: Arc<Outbox>) {
    let mut tasks = JoinSet::new();
    let mut running: HashMap<RequestId, AbortHandle> = HashMap::new();
    loop {
        let texts = tokio::select! {
            next = outbox.next(usize::MAX) => match next {
                Next::Texts(texts) => texts,
                Next::Ping => continue,
                // Another host has registered the same id, or the daemon ends.
                Next::Close(_) => return hub.disconnect(peer),
            },
            Some(ended) = tasks.join_next() => {
                match ended {
                    Ok(id) => drop(running.remove(&id)),
                    Err(error) if error.is_panic() => {
                        let failed = running.extract_if(|_, task| task.id() == error.id());
                        for (id, _) in failed {
                            let caller = Caller { hub: Arc::clone(&hub), peer, id };
                            caller.answer(Err(ErrorKind::InternalError.error(BUG)));
                        }
                    }
                    // Nobody waits for what was cancelled.
                    Err(_) => {}
                }
                continue;
            }
        };
        for text in texts {
            let taken = Taken { hub: Arc::clone(&hub), peer, bytes: text.len() };
            match Message::parse(&text) {
                Ok(Message::Request(request)) => {
                    let Some(id) = RequestId::from_raw(request.id.raw()) else { continue };
                    running.insert(id, tasks.spawn(work(Arc::clone(&host), taken, id, request)));
                }
                Ok(Message::Notification(note)) => {
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
fn work<H: Respond>(
    host: Arc<H>,
    taken: Taken,
    id: RequestId,
    request: Request<'_>,
) -> impl Future<Output = RequestId> + Send + use<H> {
    let method = request.method.into_owned();
    let params = request.params.map(ToOwned::to_owned);
    async move {
        let caller = Caller { hub: Arc::clone(&taken.hub), peer: taken.peer, id };
        let answer = host.answer(&method, params.as_deref(), &caller).await;
        caller.answer(answer);
        drop(taken);
        id
    }
}

/// A message that was taken from the outbox. It counts as queued until the work on it has ended, so that the broker's
/// limits also hold for requests that wait here.
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

/// The caller of a request, to send it progress and the answer.
pub struct Caller {
    hub: Arc<Hub>,
    peer: PeerId,
    id: RequestId,
}

impl Caller {
    /// Sends a piece of the answer.
    pub fn progress(&self, value: &impl Serialize) {
        let params = to_raw_value(&json!({"id": self.id, "value": value}));
        let params = params.expect("progress always prints");
        self.send(&print::notification("$/progress", Some(&params)));
    }

    fn answer(&self, answer: Answer) {
        let id = self.id.to_string();
        let id = CallId::from_raw(&id).expect("a number is an id");
        self.send(&match answer {
            Ok(result) => print::success(Dialect::JsonRpc, &id, &result),
            Err(error) => print::failure(Dialect::JsonRpc, Some(&id), &error),
        });
    }

    fn send(&self, text: &str) {
        self.hub.deliver(Event::Message { peer: self.peer, text });
    }
}

/// The request that a notification cancels.
fn cancelled(note: &Notification<'_>) -> Option<RequestId> {
    let params: CancelParams<'_> = serde_json::from_str(note.params?.get()).ok()?;
    (note.method == "$/cancelRequest").then(|| RequestId::from_raw(params.id.get()))?
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::broker::{Grant, HostGrant, HostWait, Limits};
    use bridge_protocol::Rights;
    use bridge_protocol::methods::RegisterParams;

    /// A host with a bug in one method.
    struct Host;

    impl Respond for Host {
        async fn answer(&self, method: &str, _: Option<&RawValue>, _: &Caller) -> Answer {
            assert_ne!(method, "my/bug");
            Ok(to_raw_value(&1).unwrap())
        }
    }

    async fn next(outbox: &Outbox) -> serde_json::Value {
        let Next::Texts(texts) = outbox.next(usize::MAX).await else { panic!("no text") };
        serde_json::from_str(&texts[0]).unwrap()
    }

    #[tokio::test]
    async fn work_that_panics_is_answered_and_the_next_request_is_served() {
        let hub = Hub::new("s".parse().unwrap(), Limits::default(), HostWait::UntilDeadline);
        let grant = Grant::Host(Arc::new(HostGrant::general([], &[])));
        let (host, outbox) = hub.connect(grant, Dialect::JsonRpc);
        let methods = ["my/bug", "my/well"].map(str::to_owned).to_vec();
        let registration = RegisterParams { methods, ..RegisterParams::default() };
        hub.with_broker(|broker, now| broker.register(host, registration, now)).unwrap();
        hub.settle();
        let serving = tokio::spawn(serve(Arc::new(Host), Arc::clone(&hub), host, outbox));
        let (client, answers) = hub.connect(Grant::Client(Rights::ALL), Dialect::JsonRpc);
        for (method, member) in [("my/bug", "error"), ("my/well", "result")] {
            let text = format!(r#"{{"jsonrpc": "2.0", "id": 7, "method": "{method}"}}"#);
            hub.deliver(Event::Message { peer: client, text: &text });
            let answer = next(&answers).await;
            assert_eq!(answer["id"], 7, "{answer}");
            assert!(answer[member] != serde_json::Value::Null, "{answer}");
        }
        serving.abort();
    }
}
