//! The shells of a server.

use tokio::sync::RwLock;

use crate::{
    Error as ShellError,
    action::{ActionError, ShellSource},
    shell::{Config, Session, SessionId, SessionSpec, Shells},
};

/// All of them. If the tmux server dies, there is a new one as soon as somebody needs a shell.
#[derive(Debug)]
pub(super) struct OwnShells {
    config: Config,
    /// None while they are opened anew, and after the end.
    shells: RwLock<Option<Shells>>,
}

impl OwnShells {
    pub(super) async fn open(config: Config) -> Result<Self, ActionError> {
        let shells = Shells::open(config.clone()).await?;
        if let Err(error) = shells.check_policy() {
            let _ = shells.shut_down().await;
            return Err(error.into());
        }
        Ok(Self { config, shells: RwLock::new(Some(shells)) })
    }

    /// A session that a server which was killed has left.
    pub(super) async fn get(&self, id: &SessionId) -> Option<Session> {
        self.shells.read().await.as_ref()?.get(id)
    }

    /// Ends all of them. Whoever wants one later is refused.
    pub(super) async fn shut_down(&self) {
        if let Some(shells) = self.shells.write().await.take() {
            let _ = shells.shut_down().await;
        }
    }
}

impl ShellSource for OwnShells {
    async fn session(&self, spec: SessionSpec) -> Result<Session, ActionError> {
        let ended = || ActionError::Unavailable("the server is ending; start it again".into());
        let created = match self.shells.read().await.as_ref() {
            Some(shells) => match shells.get(&spec.id) {
                Some(session) => return Ok(session),
                None => shells.create(spec.clone()).await,
            },
            None => return Err(ended()),
        };
        match created {
            Err(ShellError::ServerGone) => {
                let mut shells = self.shells.write().await;
                // The former owner has to go before there can be another.
                drop(shells.take().ok_or_else(ended)?);
                let opened = Shells::open(self.config.clone()).await?;
                Ok(shells.insert(opened).create(spec).await?)
            }
            created => Ok(created?),
        }
    }
}
