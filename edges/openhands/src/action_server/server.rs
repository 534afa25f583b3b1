//! Starts and stops the server.

use std::{
    future::Future,
    path::PathBuf,
    sync::{Arc, Mutex, OnceLock, PoisonError},
    time::{Duration, Instant},
};

use tokio::{net::TcpListener, sync::SetOnce};

use super::{
    Access,
    entrance::GatedListener,
    router,
    vscode::{Editor, EditorSettings, remove_token},
};
use crate::{
    action::{ActionError, Executor, Settings},
    event::ErrorForm,
    tools::LocalTools,
};
use sandbox_files::Workspace;
use sandbox_host::Sandbox;

/// How long running requests may take to end after the signal to stop.
const DRAIN: Duration = Duration::from_secs(5);

/// The settings of a server.
#[derive(Debug)]
pub struct Config {
    /// The shells, files, cells and pages that actions use.
    pub sandbox: sandbox_host::Settings,
    /// How actions are carried out.
    pub actions: Settings,
    /// The access rules.
    pub access: Access,
    /// Whether errors contain where they come from.
    pub traces: bool,
    /// Optional features.
    pub plugins: Plugins,
}

/// Optional features of a server.
#[derive(Debug, Default)]
pub struct Plugins {
    /// Cells.
    pub jupyter: bool,
    /// An editor in the browser.
    pub editor: Option<EditorSettings>,
}

/// State that all requests share.
#[derive(Debug)]
pub(super) struct Server {
    /// The directory in which the main shell starts.
    pub(super) directory: PathBuf,
    /// The files that uploads and downloads may touch.
    pub(super) workspace: Workspace,
    pub(super) access: Access,
    pub(super) error_form: ErrorForm,
    pub(super) plugins: Plugins,
    pub(super) editor: OnceLock<Editor>,
    executor: SetOnce<Arc<Executor<LocalTools>>>,
    started: Instant,
    last_action: Mutex<Instant>,
}

/// Serves until `shutdown` completes, then ends the shells and everything in them. Fails if the
/// shell cannot be started.
pub async fn serve(
    config: Config,
    listener: TcpListener,
    shutdown: impl Future<Output = ()>,
) -> Result<(), ActionError> {
    let Config { sandbox, actions, access, traces, plugins } = config;
    let root = sandbox.shells.root.clone();
    let now = Instant::now();
    let server = Arc::new(Server {
        directory: sandbox.directory.clone(),
        workspace: sandbox.workspace.clone(),
        access,
        error_form: ErrorForm { typed: false, traces },
        plugins,
        editor: OnceLock::new(),
        executor: SetOnce::new(),
        started: now,
        last_action: Mutex::new(now),
    });
    let listener = GatedListener::new(listener, server.access.clone())
        .map_err(|error| ActionError::Unavailable(error.to_string()))?;
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let accepting = axum::serve(listener, router::router(Arc::clone(&server)))
        .with_graceful_shutdown(async { drop(stopped.await) });
    let mut accepting = tokio::spawn(accepting.into_future());

    let started = async {
        let sandbox = Sandbox::open(sandbox)
            .await
            .map_err(|error| ActionError::Unavailable(error.to_string()))?;
        // The state directory belongs to this server now. If the editor does not start, the rest is
        // served anyway, and the editor's token is null.
        if let Some(settings) = &server.plugins.editor {
            match Editor::start(settings) {
                // Set only here, so it cannot fail.
                Ok(editor) => drop(server.editor.set(editor)),
                Err(error) => tracing::warn!(%error, "the editor did not start"),
            }
        }
        let main = actions.main.clone();
        let tools = LocalTools::new(sandbox.clone(), &server.directory);
        let executor = Arc::new(Executor::new(actions, tools));
        if let Err(error) = executor.start_shell().await {
            remove_token(&root);
            sandbox.shut_down().await;
            return Err(error);
        }
        // Set only here, so it cannot fail.
        let _ = server.executor.set(executor);
        if server.plugins.jupyter {
            let warming = sandbox.clone();
            tokio::spawn(async move {
                // The first cell reports why its kernel does not start.
                if let Err(error) = warming.warm_up(&main).await {
                    tracing::debug!(%error, "the kernel did not start in advance");
                }
            });
        }
        Ok::<_, ActionError>(sandbox)
    };
    tokio::pin!(started, shutdown);
    let sandbox = tokio::select! {
        started = &mut started => {
            let started = started?;
            shutdown.await;
            started
        }
        // A shell that is starting must be complete before it can be ended.
        () = &mut shutdown => match tokio::time::timeout(DRAIN, started).await {
            Ok(started) => started?,
            Err(_) => return Ok(()),
        },
    };
    drop(stop);
    remove_token(&root);
    // Requests that wait for a command get its end, and end themselves.
    sandbox.shut_down().await;
    if tokio::time::timeout(DRAIN, &mut accepting).await.is_err() {
        accepting.abort();
    }
    Ok(())
}

impl Server {
    /// The executor of actions. Waits until the shell is ready.
    pub(super) async fn executor(&self) -> &Arc<Executor<LocalTools>> {
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
