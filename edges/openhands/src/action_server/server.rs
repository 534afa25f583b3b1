//! The life of a server.

use std::{
    future::Future,
    sync::{Arc, Mutex, OnceLock, PoisonError},
    time::{Duration, Instant},
};

use axum::serve::ListenerExt as _;
use tokio::{net::TcpListener, sync::SetOnce};

use super::{
    Access, router,
    shells::OwnShells,
    vscode::{Editor, EditorSettings},
};
use crate::{
    action::{ActionError, Executor, Settings},
    event::ErrorForm,
};
use sandbox_shells as shell;

/// How long requests that are under way may take to end after the signal.
const DRAIN: Duration = Duration::from_secs(5);

/// What a server is told at its start.
#[derive(Debug)]
pub struct Config {
    /// Of the shells.
    pub shells: shell::Config,
    /// Where and how actions are carried out.
    pub actions: Settings,
    /// Who may ask for them.
    pub access: Access,
    /// Whether errors tell where they come from.
    pub traces: bool,
    /// What is served besides.
    pub plugins: Plugins,
}

/// What a server may serve besides, if it is told to.
#[derive(Debug, Default)]
pub struct Plugins {
    /// Cells.
    pub jupyter: bool,
    /// An editor in the browser.
    pub editor: Option<EditorSettings>,
}

/// What all requests share.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) access: Access,
    pub(super) error_form: ErrorForm,
    pub(super) plugins: Plugins,
    pub(super) editor: OnceLock<Editor>,
    executor: SetOnce<Arc<Executor<OwnShells>>>,
    started: Instant,
    last_action: Mutex<Instant>,
}

/// Serves until `shutdown` comes, then ends the shells and everything in them. Fails if the shell cannot
/// be started.
pub async fn serve(
    config: Config,
    listener: TcpListener,
    shutdown: impl Future<Output = ()>,
) -> Result<(), ActionError> {
    let Config { shells, actions, access, traces, plugins } = config;
    let now = Instant::now();
    let server = Arc::new(Server {
        access,
        error_form: ErrorForm { typed: false, traces },
        plugins,
        editor: OnceLock::new(),
        executor: SetOnce::new(),
        started: now,
        last_action: Mutex::new(now),
    });
    // Small answers must not wait for one another.
    let listener = listener.tap_io(|stream| drop(stream.set_nodelay(true)));
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let accepting = axum::serve(listener, router::router(Arc::clone(&server)))
        .with_graceful_shutdown(async { drop(stopped.await) });
    let mut accepting = tokio::spawn(accepting.into_future());

    let started = async {
        let shells = Arc::new(OwnShells::open(shells).await?);
        // Now that the state directory is known to be ours. An editor that does not start is no reason not to serve
        // the rest; its token is then null.
        let editor = server.plugins.editor.as_ref().and_then(|it| Editor::start(it).ok());
        if let Some(editor) = editor {
            let _ = server.editor.set(editor);
        }
        let left = shells.get(&actions.main).await;
        let executor = Executor::new(actions, Arc::clone(&shells), left, Arc::default());
        executor.start_shell().await?;
        let executor = Arc::new(executor);
        let _ = server.executor.set(Arc::clone(&executor));
        let warming = Arc::clone(&executor);
        tokio::spawn(async move { warming.start_kernel().await });
        Ok::<_, ActionError>((executor, shells))
    };
    tokio::pin!(started, shutdown);
    let (executor, shells) = tokio::select! {
        started = &mut started => {
            let started = started?;
            shutdown.await;
            started
        }
        // A shell that is on its way has to arrive before it can be ended.
        () = &mut shutdown => match tokio::time::timeout(DRAIN, started).await {
            Ok(started) => started?,
            Err(_) => return Ok(()),
        },
    };
    drop(stop);
    // What waits for a command learns from its end that there is nothing to wait for.
    executor.end_kernel().await;
    shells.shut_down().await;
    if tokio::time::timeout(DRAIN, &mut accepting).await.is_err() {
        accepting.abort();
    }
    Ok(())
}

impl Server {
    /// What carries actions out, as soon as it is ready.
    pub(super) async fn executor(&self) -> &Arc<Executor<OwnShells>> {
        self.executor.wait().await
    }

    pub(super) fn is_ready(&self) -> bool {
        self.executor.get().is_some()
    }

    pub(super) fn started(&self) -> Instant {
        self.started
    }

    pub(super) fn last_action(&self) -> Instant {
        *self.last_action.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn note_action(&self) {
        *self.last_action.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }
}
