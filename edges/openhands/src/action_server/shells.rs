//! The shells of a server.

use std::sync::Arc;

use tokio::sync::RwLock;

use crate::action::{ActionError, ShellSource};
use sandbox_shells::{Config, Error as ShellError, Shell, ShellId, ShellSpec, Shells};

/// All of them. If the tmux server dies, there is a new one as soon as somebody needs a shell.
#[derive(Debug)]
pub(super) struct OwnShells {
    config: Config,
    state: Arc<RwLock<State>>,
}

#[derive(Debug)]
struct State {
    /// None where they could not be opened anew, and after the end.
    shells: Option<Shells>,
    has_ended: bool,
}

impl OwnShells {
    pub(super) async fn open(config: Config) -> Result<Self, ActionError> {
        let shells = Some(Shells::open(config.clone()).await?);
        Ok(Self { config, state: Arc::new(RwLock::new(State { shells, has_ended: false })) })
    }

    /// A session that a server which was killed has left.
    pub(super) async fn get(&self, id: &ShellId) -> Option<Shell> {
        self.state.read().await.shells.as_ref()?.get(id)
    }

    /// Ends all of them. Whoever wants one later is refused.
    pub(super) async fn shut_down(&self) {
        let mut state = self.state.write().await;
        state.has_ended = true;
        if let Some(shells) = state.shells.take() {
            let _ = shells.shut_down().await;
        }
    }
}

impl ShellSource for OwnShells {
    async fn session(&self, spec: ShellSpec) -> Result<Shell, ActionError> {
        let (config, state) = (self.config.clone(), Arc::clone(&self.state));
        // In a task of its own: a session whose maker went away before its first prompt would be nobody's.
        let made = tokio::spawn(async move { session(config, &state, spec).await }).await;
        made.unwrap_or_else(|error| {
            Err(ActionError::Internal(format!("a shell was lost: {error}")))
        })
    }
}

async fn session(
    config: Config,
    state: &RwLock<State>,
    spec: ShellSpec,
) -> Result<Shell, ActionError> {
    let made = match &state.read().await.shells {
        Some(shells) => match shells.get(&spec.id) {
            Some(session) => return Ok(session),
            None => shells.create(spec.clone()).await,
        },
        None => Err(ShellError::ServerGone),
    };
    match made {
        Err(ShellError::ServerGone) => {
            let mut state = state.write().await;
            if state.has_ended {
                let reason = "the server is ending; start it again";
                return Err(ActionError::Unavailable(reason.into()));
            }
            // The former owner has to go before there can be another.
            drop(state.shells.take());
            Ok(state.shells.insert(Shells::open(config).await?).create(spec).await?)
        }
        made => Ok(made?),
    }
}
