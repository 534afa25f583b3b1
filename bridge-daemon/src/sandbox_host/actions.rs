//! Actions of agents, on the same shells and files as everything else here.
//!
//! Each shell that an agent names is that agent's: it has an executor, which keeps the order of its
//! commands and has a kernel of its own. An action is carried out in a task, so that a cancel can
//! interrupt its command although nobody waits for it any more. Whoever leaves without a word ends
//! only the wait.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bridge_protocol::methods::action::{CancelParams, Execute, ExecuteParams, OutputPiece};
use bridge_protocol::methods::{Empty, MethodType};
use bridge_protocol::text::brief;
use bridge_protocol::timeout::Allowance;
use bridge_protocol::{ErrorKind, WireError};
use openhands_edge::action::{
    Action, ActionError, CallOff, ErrorKind as ActionErrorKind, Executor, KernelSettings,
    Observation, Request, Run, RunIn, Settings, Watch,
};
use openhands_edge::event::{self, Answer, ErrorForm, Event, Malformed};
use sandbox_files::{Editor, Workspace};
use sandbox_pages::Browser;
use sandbox_shells::ShellId;
use serde_json::json;
use serde_json::value::to_raw_value;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::{AbortHandle, JoinHandle};

use super::error::with_reason;
use super::shells::{AgentShells, SHELLS, ShellService, lock, parse};
use crate::in_process::{self, Caller, required};

/// A command that is silent for so long is no longer waited for.
const QUIET: Duration = Duration::from_secs(10);
/// Pieces of output that may wait to be sent.
const PIECES: usize = 16;
/// Longest name of an action in bytes.
const NAME_BYTES: usize = 256;

type Agent = Executor<AgentShells>;

/// How actions are carried out.
pub(super) struct ActionSettings {
    /// The directory in which agents begin.
    pub directory: PathBuf,
    /// The files that they may touch.
    pub workspace: Workspace,
    /// Remembers what files were before edits.
    pub editor: Arc<Editor>,
    /// Operations on files wait here for one another.
    pub turns: Arc<Semaphore>,
    /// How cells are run.
    pub kernel: KernelSettings,
    /// What shows web pages, if there are to be any.
    pub browser: Option<Browser>,
    /// Whether errors tell where they come from.
    pub traces: bool,
}

/// All agents, and what they are doing.
pub(super) struct ActionService {
    settings: ActionSettings,
    shells: Arc<ShellService>,
    agents: Mutex<HashMap<ShellId, Arc<Agent>>>,
    /// Actions under way that have a name.
    named: Mutex<HashMap<String, Arc<CallOff>>>,
}

impl ActionService {
    pub fn new(settings: ActionSettings, shells: Arc<ShellService>) -> Self {
        Self { settings, shells, agents: Mutex::default(), named: Mutex::default() }
    }

    pub async fn execute(
        &self,
        params: ExecuteParams,
        caller: &Caller,
    ) -> Result<Answer, WireError> {
        required(&params.action, "action")?;
        // From here to the agent's own queue nothing is awaited: actions keep their order.
        let agent = self.agent(parse(&params.shell)?)?;
        let form = ErrorForm { typed: true, traces: self.settings.traces };
        let Event { action, question } = match event::parse(&params.action, params.args) {
            Ok(event) => event,
            Err(Malformed::UnknownAction(reason)) => {
                return Err(with_reason(ErrorKind::InvalidParams, reason, "unknownAction"));
            }
            Err(Malformed::Arguments(reason)) => {
                let answer = Answer::error(&ActionError::Invalid(reason), form);
                return Ok(answer.caused_by(params.action_id));
            }
        };
        let call_off = Arc::new(CallOff::default());
        let _named = self.name(params.action_id.as_deref(), &call_off)?;
        let result = match action {
            Ok(action) => {
                let timeout = Allowance::new(params.timeout, Execute::NAME).host_limit();
                let request = Request { action, timeout };
                self.carry_out(&agent, request, params.stream, call_off, caller).await?
            }
            Err(error) => Err(error),
        };
        match result {
            Err(error) if is_failure(error.kind()) => Err(failure(&error)),
            result => {
                let answer = question.answer(result, &agent.current_directory(), form);
                Ok(answer.caused_by(params.action_id))
            }
        }
    }

    pub fn cancel(&self, params: &CancelParams) -> Result<Empty, WireError> {
        required(&params.action_id, "actionId")?;
        match lock(&self.named).get(&params.action_id) {
            Some(call_off) => {
                call_off.call_off();
                Ok(Empty {})
            }
            None => {
                let reason = format!(
                    "no action {:?} is under way: it has ended, or was never begun",
                    brief(&params.action_id)
                );
                Err(with_reason(ErrorKind::NotFound, reason, "noSuchAction"))
            }
        }
    }

    /// Ends the kernels.
    pub async fn shut_down(&self) {
        let agents = std::mem::take(&mut *lock(&self.agents));
        for agent in agents.into_values() {
            agent.end_kernel().await;
        }
    }

    async fn carry_out(
        &self,
        agent: &Arc<Agent>,
        request: Request,
        stream: bool,
        call_off: Arc<CallOff>,
        caller: &Caller,
    ) -> Result<Result<Observation, ActionError>, WireError> {
        // A shell made for one command takes its log along.
        let stays = !matches!(request.action, Action::Run(Run { shell: RunIn::Fresh { .. }, .. }));
        let (sink, mut pieces) = mpsc::channel(PIECES);
        let sink = stream.then_some(sink);
        let (agent, turns) = (Arc::clone(agent), Arc::clone(&self.settings.turns));
        let called_off = Arc::clone(&call_off);
        let mut task: JoinHandle<_> = tokio::spawn(async move {
            let touches_files = !matches!(
                request.action,
                Action::Run(_) | Action::RunIpython(_) | Action::Browse { .. } | Action::Close
            );
            let _turn = match touches_files {
                true => turns.acquire().await.ok(),
                false => None,
            };
            let watch = Watch { output: sink.as_ref(), call_off: &called_off };
            agent.execute(request, watch).await
        });
        let _abandoned = Abandoned { task: task.abort_handle(), call_off, caller };
        while let Some(piece) = pieces.recv().await {
            let place = piece.place.filter(|_| stays);
            let (start, end) = place.map(|place| (place.start, place.end)).unzip();
            caller.progress(&OutputPiece { text: piece.text, start, end });
        }
        (&mut task)
            .await
            .map_err(|_| ErrorKind::InternalError.error("the work on this action was given up"))
    }

    /// The agent whose shell this is.
    fn agent(&self, id: ShellId) -> Result<Arc<Agent>, WireError> {
        let mut agents = lock(&self.agents);
        if let Some(agent) = agents.get(&id) {
            return Ok(Arc::clone(agent));
        }
        if agents.len() >= SHELLS {
            agents.retain(|_, agent| Arc::strong_count(agent) > 1 || agent.has_processes());
        }
        if agents.len() >= SHELLS {
            let reason = format!("there are {SHELLS} agents already: close the shells of some");
            return Err(with_reason(ErrorKind::NoSpace, reason, "tooManyShells"));
        }
        let ActionSettings { directory, workspace, editor, kernel, browser, .. } = &self.settings;
        let settings = Settings {
            main: id.clone(),
            bash: self.shells.bash(),
            cwd: directory.clone(),
            environment: Vec::new(),
            quiet: QUIET,
            workspace: workspace.clone(),
            kernel: Some(kernel.clone()),
            browser: browser.clone(),
        };
        let shells = Arc::new(AgentShells(Arc::clone(&self.shells)));
        let left = self.shells.get(&id)?;
        let agent = Arc::new(Executor::new(settings, shells, left, Arc::clone(editor)));
        agents.insert(id, Arc::clone(&agent));
        Ok(agent)
    }

    /// Makes an action known by its name, until the return value is dropped.
    fn name(
        &self,
        name: Option<&str>,
        call_off: &Arc<CallOff>,
    ) -> Result<Option<Named<'_>>, WireError> {
        let Some(name) = name else { return Ok(None) };
        required(name, "actionId")?;
        if name.len() > NAME_BYTES {
            let reason = format!("an actionId may have at most {NAME_BYTES} bytes");
            return Err(with_reason(ErrorKind::InvalidParams, reason, "invalid"));
        }
        let mut named = lock(&self.named);
        if named.contains_key(name) {
            let reason =
                format!("an action {name:?} is under way already: choose another actionId");
            return Err(with_reason(ErrorKind::Conflict, reason, "exists"));
        }
        named.insert(name.to_owned(), Arc::clone(call_off));
        Ok(Some(Named { service: self, name: name.to_owned() }))
    }
}

/// An action that can be called off by its name.
struct Named<'a> {
    service: &'a ActionService,
    name: String,
}

impl Drop for Named<'_> {
    fn drop(&mut self) {
        lock(&self.service.named).remove(&self.name);
    }
}

/// Decides what becomes of an action when nobody waits for it any more. For one that has ended, both do
/// nothing.
struct Abandoned<'a> {
    task: AbortHandle,
    call_off: Arc<CallOff>,
    caller: &'a Caller,
}

impl Drop for Abandoned<'_> {
    fn drop(&mut self) {
        match self.caller.has_cancelled() {
            true => self.call_off.call_off(),
            false => self.task.abort(),
        }
    }
}

/// Whether there is nothing to observe.
fn is_failure(kind: ActionErrorKind) -> bool {
    matches!(kind, ActionErrorKind::Gone | ActionErrorKind::TimedOut | ActionErrorKind::Cancelled)
}

fn failure(error: &ActionError) -> WireError {
    let (kind, may_have_executed) = match error.kind() {
        ActionErrorKind::Cancelled => (ErrorKind::RequestCancelled, false),
        ActionErrorKind::TimedOut => (ErrorKind::Timeout, true),
        _ => (ErrorKind::HostGone, true),
    };
    let mut facts = serde_json::Map::from_iter([("reason".into(), json!(error.kind().name()))]);
    if may_have_executed {
        facts.insert("mayHaveExecuted".into(), json!(true));
    }
    kind.error_with(error.to_string(), facts)
}

/// An observation as text.
pub(super) fn print(answer: &Answer) -> in_process::Answer {
    to_raw_value(answer).map_err(|error| {
        ErrorKind::InternalError.error(format!("cannot print the observation: {error}"))
    })
}
