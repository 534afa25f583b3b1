//! The tool calls for the shell of an agent.

use std::pin::Pin;
use std::time::Duration;

use bridge_protocol::WireError;
use bridge_protocol::methods::MethodType;
use bridge_protocol::methods::shell::{self, CommandState, ShellName, WaitOptions};
use tokio::sync::mpsc;

use super::{ActionError, Watch, error::reason, relay::Relay};
use crate::tools::{Listener, Tools};

/// Columns and rows of the terminals: wide, so that programs do not wrap their lines.
const SIZE: (u16, u16) = (1000, 200);
/// How many lines an observation shows: agents know terminals with a history of about ten thousand
/// lines and a screen. Of longer output only the end is shown.
pub(super) const LINES: usize = 10_500;
/// Capacity of the queue of output pieces.
const PIECES: usize = 16;

/// The key that interrupts a command.
const INTERRUPT: &str = "C-c";
/// How long a cancelled command may take to end after each press of Ctrl-C. Between two programs of
/// one command a shell may lose the key, so it is pressed again. After the last pause the caller
/// gets *Cancelled*, and the command goes on.
const INTERRUPT_PAUSES: [Duration; 3] =
    [Duration::from_millis(300), Duration::from_millis(700), Duration::from_secs(1)];

/// The shell of an agent.
#[derive(Debug, Clone)]
pub(super) struct AgentShell<T> {
    pub(super) tools: T,
    pub(super) name: ShellName,
}

/// The result of a call that waits for a command.
pub(super) enum WaitResult {
    /// The command has ended, or the wait for it has.
    State(CommandState),
    /// The caller has cancelled. The state is known if the command ended because of that.
    Cancelled(Option<CommandState>),
    /// The tool returned an error.
    Failed(WireError),
    /// Another call, such as reading output or pressing a key, failed meanwhile.
    Lost(ActionError),
}

/// Why a relayed call failed.
enum Failure {
    Wire(WireError),
    Relay(ActionError),
}

impl From<ActionError> for Failure {
    fn from(error: ActionError) -> Self {
        Self::Relay(error)
    }
}

impl<T: Tools> AgentShell<T> {
    /// Gets or creates the shell.
    pub(super) async fn open(&self) -> Result<(), ActionError> {
        let params =
            shell::CreateParams { shell: Some(self.name.clone()), reuse: true, ..create_params() };
        self.call::<shell::Create>(&params).await?;
        Ok(())
    }

    /// Runs a command and waits for it.
    pub(super) async fn run(&self, text: &str, wait: WaitOptions, watch: Watch<'_>) -> WaitResult {
        let command = text.to_owned();
        let params = shell::RunParams { shell: self.name.clone(), command, create: false, wait };
        self.watched::<shell::Run>(&params, None, watch).await
    }

    /// Waits for the command with this number, or for the latest one. The output begins at `from`.
    pub(super) async fn wait(
        &self,
        number: Option<u64>,
        from: Option<u64>,
        wait: WaitOptions,
        watch: Watch<'_>,
    ) -> WaitResult {
        let params = shell::WaitParams { shell: self.name.clone(), command: number, from, wait };
        self.watched::<shell::Wait>(&params, from, watch).await
    }

    /// The present state of the command with this number, or of the latest one, with its output
    /// from an offset on. `None` if there is no such command, or if others were run since.
    pub(super) async fn command_state(
        &self,
        number: Option<u64>,
        from: Option<u64>,
    ) -> Result<Option<CommandState>, ActionError> {
        let wait = WaitOptions {
            limit_ms: Some(0.0),
            output_lines: Some(LINES),
            ..WaitOptions::default()
        };
        let params = shell::WaitParams { shell: self.name.clone(), command: number, from, wait };
        match self.tools.call::<shell::Wait>(&params, Listener::default()).await {
            Ok(state) => Ok(Some(state)),
            Err(error) if reason(&error).as_deref() == Some("noSuchCommand") => Ok(None),
            Err(error) => Err(ActionError::of_shell(error)),
        }
    }

    /// Types a text and presses Enter.
    pub(super) async fn type_text(&self, text: &str) -> Result<(), ActionError> {
        // The Enter key sends a carriage return.
        let text = text.replace('\n', "\r");
        let params = shell::InputParams { shell: self.name.clone(), text, enter: true };
        self.call::<shell::Input>(&params).await?;
        Ok(())
    }

    /// Presses a key.
    pub(super) async fn press(&self, key: &str) -> Result<(), ActionError> {
        let params = shell::KeysParams { shell: self.name.clone(), keys: vec![key.to_owned()] };
        self.call::<shell::Keys>(&params).await?;
        Ok(())
    }

    /// Calls a tool that waits for a command. Relays the output if the caller wants it, and
    /// interrupts the command if the caller cancels.
    async fn watched<M>(
        &self,
        params: &M::Params,
        from: Option<u64>,
        watch: Watch<'_>,
    ) -> WaitResult
    where
        M: MethodType<Result = CommandState>,
        M::Params: Sync,
    {
        let (progress, mut pieces) = mpsc::channel(PIECES);
        let progress = watch.output.is_some().then_some(progress);
        let call = self.tools.call::<M>(params, Listener { progress, cancellation: None });
        tokio::pin!(call);
        let relaying = async {
            let Some(sink) = watch.output else {
                return call.as_mut().await.map_err(Failure::Wire);
            };
            let mut relay = Relay::new(&self.tools, &self.name, sink, from);
            let state = loop {
                tokio::select! {
                    biased;
                    Some(piece) = pieces.recv() => relay.pass_on(&piece).await?,
                    answer = &mut call => break answer.map_err(Failure::Wire)?,
                }
            };
            while let Ok(piece) = pieces.try_recv() {
                relay.pass_on(&piece).await?;
            }
            if state.ending.is_some() {
                relay.finish(state.output.start, state.output.end).await?;
            }
            Ok(state)
        };
        let result = tokio::select! {
            // The call comes first, so that the shell has the command before any key is pressed.
            biased;
            result = relaying => result,
            () = watch.cancellation.cancelled() => return self.interrupt(call).await,
        };
        match result {
            Ok(state) => WaitResult::State(state),
            Err(Failure::Wire(error)) => WaitResult::Failed(error),
            Err(Failure::Relay(error)) => WaitResult::Lost(error),
        }
    }

    /// Presses Ctrl-C for the command that `call` waits for.
    async fn interrupt(
        &self,
        mut call: Pin<&mut impl Future<Output = Result<CommandState, WireError>>>,
    ) -> WaitResult {
        for pause in INTERRUPT_PAUSES {
            if let Err(error) = self.press(INTERRUPT).await {
                return WaitResult::Lost(error);
            }
            match tokio::time::timeout(pause, call.as_mut()).await {
                Ok(Ok(state)) => return WaitResult::Cancelled(Some(state)),
                Ok(Err(error)) => return WaitResult::Failed(error),
                Err(_) => {}
            }
        }
        WaitResult::Cancelled(None)
    }

    async fn call<M: MethodType>(&self, params: &M::Params) -> Result<M::Result, ActionError>
    where
        M::Params: Sync,
        M::Result: Send,
    {
        let answer = self.tools.call::<M>(params, Listener::default()).await;
        answer.map_err(ActionError::of_shell)
    }
}

/// The parameters of a new shell for an agent.
pub(super) fn create_params() -> shell::CreateParams {
    let (columns, rows) = SIZE;
    shell::CreateParams { columns: Some(columns), rows: Some(rows), ..Default::default() }
}
