//! Serves `action/*` at a broker: carries out the actions of agents with the tools of the runtime
//! that each caller chose.
//!
//! Each shell name of a runtime belongs to one agent. The agent has an executor, which keeps its
//! commands in order. An action runs in a task of its own, so that a cancel can interrupt its
//! command although nobody waits for the answer any more. A caller that leaves without a cancel
//! ends only the wait.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bridge_protocol::answer::required;
use bridge_protocol::error::with_reason;
use bridge_protocol::methods::action::{
    CancelParams, Execute, ExecuteParams, Observation as Answer, OutputPiece,
};
use bridge_protocol::methods::shell::ShellName;
use bridge_protocol::methods::{Empty, MethodType};
use bridge_protocol::text::brief;
use bridge_protocol::timeout::Allowance;
use bridge_protocol::{ErrorKind, WireError};
use serde_json::{Map, json};
use tokio::sync::mpsc;

use crate::action::{
    self, Action, ActionError, Cancellation, ErrorKind as ActionErrorKind, Executor, Grammar,
    Request, Run, RunIn, Settings, Watch,
};
use crate::event::{self, ErrorForm, Event, Malformed};
use crate::tools::{Route, Runtimes, Tools};

/// How long a command may print nothing before the wait for it ends.
const QUIET: Duration = Duration::from_secs(10);
/// Capacity of the queue of output pieces.
const PIECES: usize = 16;
/// The largest size of an action id in bytes.
const NAME_BYTES: usize = 256;
/// The largest number of agents at once: as many as a sandbox has shells.
const MAX_AGENTS: usize = 64;

/// Why a caller no longer waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Departure {
    /// The caller has cancelled: interrupt the action.
    Cancelled,
    /// The caller has disconnected, or its deadline has passed: a command goes on.
    Gone,
}

/// The caller of one action.
pub trait Caller: Sync {
    /// Sends a piece of output to the caller. Waits while its connection is busy.
    fn send(&self, piece: &OutputPiece) -> impl Future<Output = ()> + Send;

    /// Returns when the caller no longer waits.
    fn departure(&self) -> impl Future<Output = Departure> + Send;
}

/// Agents by the name of their shell and its runtime.
type Agents<T> = HashMap<(String, Route), Arc<Executor<T>>>;

/// Runs the actions of all agents.
pub struct ActionService<R: Runtimes> {
    runtimes: R,
    grammar: Grammar,
    form: ErrorForm,
    agents: Mutex<Agents<R::Tools>>,
    /// Held while the agent of an action is looked up: it lets actions through in the order in
    /// which they came.
    turn: tokio::sync::Mutex<()>,
    /// Running actions that have an id, for `action/cancel`.
    named: Mutex<HashMap<String, Arc<Cancellation>>>,
}

impl<R: Runtimes> std::fmt::Debug for ActionService<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = f.debug_struct("ActionService");
        shown.field("agents", &lock(&self.agents).len()).field("named", &lock(&self.named).len());
        shown.finish_non_exhaustive()
    }
}

impl<R: Runtimes> ActionService<R> {
    /// Carries out actions with the tools of these runtimes. With `traces`, errors contain where
    /// they come from.
    pub fn new(runtimes: R, grammar: Grammar, traces: bool) -> Self {
        Self {
            grammar,
            runtimes,
            form: ErrorForm { typed: true, traces },
            agents: Mutex::default(),
            turn: tokio::sync::Mutex::default(),
            named: Mutex::default(),
        }
    }

    /// `action/execute`.
    pub async fn execute(
        &self,
        params: ExecuteParams,
        caller: &impl Caller,
    ) -> Result<Answer, WireError> {
        required(&params.action, "action")?;
        let shell = check_shell_name(params.shell)?;
        let route = Route { runtime_id: params.runtime_id, path: params.path };
        // Before anything is awaited: the next request may cancel this action.
        let cancellation = Arc::new(Cancellation::default());
        let _named = self.name(params.action_id.as_deref(), &cancellation)?;
        // Nothing is awaited from the end of the turn to the agent's own queue, so actions keep
        // their order.
        let agent = self.agent(shell, route).await?;
        let Event { action, context } = match event::parse(&params.action, params.args) {
            Ok(event) => event,
            Err(Malformed::UnknownAction(reason)) => {
                return Err(with_reason(ErrorKind::InvalidParams, reason, "unknownAction"));
            }
            Err(Malformed::Arguments(reason)) => {
                let answer = event::error(&ActionError::Invalid(reason), self.form);
                return Ok(Answer { cause: params.action_id, ..answer });
            }
        };
        let result = match action {
            Ok(action) => {
                let timeout = Allowance::new(params.timeout, Execute::NAME).host_limit();
                let request = Request { action, timeout };
                carry_out(&agent, request, params.stream, cancellation, caller).await?
            }
            Err(error) => Err(error),
        };
        match result {
            Err(ActionError::Call(error)) => Err(error),
            Err(error) if is_failure(error.kind()) => Err(failure(&error)),
            result => {
                let answer = context.observe(result, &agent, self.form).await;
                Ok(Answer { cause: params.action_id, ..answer })
            }
        }
    }

    /// `action/cancel`.
    pub fn cancel(&self, params: &CancelParams) -> Result<Empty, WireError> {
        required(&params.action_id, "actionId")?;
        match lock(&self.named).get(&params.action_id) {
            Some(cancellation) => {
                cancellation.cancel();
                Ok(Empty {})
            }
            None => {
                let reason = format!(
                    "no action {:?} is running: it has ended, or never began",
                    brief(&params.action_id)
                );
                Err(with_reason(ErrorKind::NotFound, reason, "noSuchAction"))
            }
        }
    }

    /// Finds or makes the agent of this shell.
    async fn agent(
        &self,
        shell: ShellName,
        route: Route,
    ) -> Result<Arc<Executor<R::Tools>>, WireError> {
        let _turn = self.turn.lock().await;
        let route = self.runtimes.resolve(route).await;
        let key = (shell.0.clone(), route.clone());
        if let Some(agent) = lock(&self.agents).get(&key) {
            return Ok(Arc::clone(agent));
        }
        if lock(&self.agents).len() >= MAX_AGENTS {
            self.forget_ended().await;
        }
        let mut agents = lock(&self.agents);
        if agents.len() >= MAX_AGENTS {
            let reason = format!("there are {MAX_AGENTS} agents already: close the shells of some");
            return Err(with_reason(ErrorKind::NoSpace, reason, "tooManyShells"));
        }
        let grammar = self.grammar.clone();
        let settings = Settings { main: shell, grammar, quiet: QUIET, pages: true };
        let agent = Arc::new(Executor::new(settings, self.runtimes.connect(route)));
        agents.insert(key, Arc::clone(&agent));
        Ok(agent)
    }

    /// Removes the agents that are idle and have no shell.
    async fn forget_ended(&self) {
        let idle: Vec<_> = {
            let agents = lock(&self.agents);
            let idle = agents.iter().filter(|(_, agent)| Arc::strong_count(agent) == 1);
            idle.map(|(key, agent)| (key.clone(), Arc::clone(agent))).collect()
        };
        for (key, agent) in idle {
            match agent.has_shell().await {
                Ok(true) => {}
                Ok(false) => {
                    lock(&self.agents).remove(&key);
                }
                Err(error) => {
                    // If the runtime is gone, its shells are gone, too.
                    tracing::debug!(shell = key.0, %error, "removed an agent whose runtime does not answer");
                    lock(&self.agents).remove(&key);
                }
            }
        }
    }

    /// Makes an action known by its id until the returned value is dropped.
    fn name(
        &self,
        name: Option<&str>,
        cancellation: &Arc<Cancellation>,
    ) -> Result<Option<NamedAction<'_, R>>, WireError> {
        let Some(name) = name else { return Ok(None) };
        required(name, "actionId")?;
        if name.len() > NAME_BYTES {
            let reason = format!("an actionId may have at most {NAME_BYTES} bytes");
            return Err(with_reason(ErrorKind::InvalidParams, reason, "invalid"));
        }
        let mut named = lock(&self.named);
        if named.contains_key(name) {
            let reason = format!("an action {name:?} is already running: choose another actionId");
            return Err(with_reason(ErrorKind::Conflict, reason, "exists"));
        }
        named.insert(name.to_owned(), Arc::clone(cancellation));
        Ok(Some(NamedAction { service: self, name: name.to_owned() }))
    }
}

/// Runs an action in a task of its own. The outer error means that the caller has left.
async fn carry_out<T: Tools>(
    agent: &Arc<Executor<T>>,
    request: Request,
    stream: bool,
    cancellation: Arc<Cancellation>,
    caller: &impl Caller,
) -> Result<Result<action::Observation, ActionError>, WireError> {
    // A shell that is made for one command is closed with its log, so offsets in it are useless.
    let stays = !matches!(request.action, Action::Run(Run { shell: RunIn::Fresh { .. }, .. }));
    let (sink, mut pieces) = mpsc::channel::<action::OutputPiece>(PIECES);
    let sink = stream.then_some(sink);
    let mut task = {
        let (agent, cancellation) = (Arc::clone(agent), Arc::clone(&cancellation));
        tokio::spawn(async move {
            let watch = Watch { output: sink.as_ref(), cancellation: &cancellation };
            agent.execute(request, watch).await
        })
    };
    let stop = task.abort_handle();
    let done = async {
        while let Some(piece) = pieces.recv().await {
            let place = piece.place.filter(|_| stays);
            let (start, end) = place.map(|place| (place.start, place.end)).unzip();
            caller.send(&OutputPiece { text: piece.text, start, end }).await;
        }
        (&mut task).await
    };
    tokio::select! {
        done = done => {
            done.map_err(|_| ErrorKind::InternalError.error("the task of this action failed"))
        }
        departure = caller.departure() => {
            match departure {
                Departure::Cancelled => cancellation.cancel(),
                Departure::Gone => stop.abort(),
            }
            Err(ErrorKind::RequestCancelled.error("the caller no longer waits for this action"))
        }
    }
}

/// Registers a running action by its id, until it is dropped.
struct NamedAction<'a, R: Runtimes> {
    service: &'a ActionService<R>,
    name: String,
}

impl<R: Runtimes> Drop for NamedAction<'_, R> {
    fn drop(&mut self) {
        lock(&self.service.named).remove(&self.name);
    }
}

/// Checks the name of a shell.
fn check_shell_name(shell: ShellName) -> Result<ShellName, WireError> {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    if (1..=64).contains(&shell.0.len()) && shell.0.bytes().all(is_part) {
        return Ok(shell);
    }
    let name = brief(&shell.0);
    let reason =
        format!("{name:?} is not a valid shell name: use 1 to 64 characters of A-Z a-z 0-9 _ -");
    Err(with_reason(ErrorKind::InvalidParams, reason, "invalid"))
}

/// Whether the error is the answer to the request, not an observation for the agent.
fn is_failure(kind: ActionErrorKind) -> bool {
    matches!(kind, ActionErrorKind::Gone | ActionErrorKind::TimedOut | ActionErrorKind::Cancelled)
}

fn failure(error: &ActionError) -> WireError {
    let (kind, may_have_executed) = match error.kind() {
        ActionErrorKind::Cancelled => (ErrorKind::RequestCancelled, false),
        ActionErrorKind::TimedOut => (ErrorKind::Timeout, true),
        _ => (ErrorKind::HostGone, true),
    };
    let mut facts = Map::from_iter([("reason".into(), json!(error.kind().name()))]);
    if may_have_executed {
        facts.insert("mayHaveExecuted".into(), json!(true));
    }
    kind.error_with(error.to_string(), facts)
}

fn lock<V>(mutex: &Mutex<V>) -> MutexGuard<'_, V> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use sandbox_worker::Worker;

    use super::*;
    use crate::tools::FakeTools;

    /// One runtime, to which all routes lead.
    struct OneRuntime;

    impl Runtimes for OneRuntime {
        type Tools = FakeTools;

        async fn resolve(&self, _: Route) -> Route {
            Route::to("only".to_owned())
        }

        fn connect(&self, _: Route) -> FakeTools {
            FakeTools::default()
        }
    }

    #[tokio::test]
    async fn a_shell_has_one_agent_however_its_runtime_is_named() {
        let grammar = Grammar::new("bash", Worker::new("/no/such/program"));
        let service = ActionService::new(OneRuntime, grammar, false);
        let shell = || ShellName("agent".to_owned());
        let first = service.agent(shell(), Route::default()).await.unwrap();
        for number in 0..=MAX_AGENTS {
            let path = Some(format!("/w/{number}"));
            let route = Route { runtime_id: None, path };
            let again = service.agent(shell(), route).await.unwrap();
            assert!(Arc::ptr_eq(&first, &again), "path {number}");
        }
        let other = ShellName("other".to_owned());
        let other = service.agent(other, Route::default()).await.unwrap();
        assert!(!Arc::ptr_eq(&first, &other));
    }
}
