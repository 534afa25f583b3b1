//! Calls tools in this process.

use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;

use bridge_protocol::methods::MethodType;
use bridge_protocol::{ErrorKind, WireError};
use sandbox_files::Workspace;
use sandbox_host::{Caller, FileService, Sandbox};
use sandbox_worker::Worker;

use super::{Listener, Tools, print_params, read_result};

/// Calls the tools of a sandbox in this process. The caller that opened the sandbox shuts it down.
#[derive(Debug, Clone)]
pub struct LocalTools {
    sandbox: Sandbox,
    directory: Arc<Path>,
}

impl LocalTools {
    /// Calls this sandbox, whose shells start in `directory`.
    pub fn new(sandbox: Sandbox, directory: &Path) -> Self {
        Self { sandbox, directory: directory.into() }
    }
}

impl Tools for LocalTools {
    async fn call<M: MethodType>(
        &self,
        params: &M::Params,
        listener: Listener<'_>,
    ) -> Result<M::Result, WireError>
    where
        M::Params: Sync,
        M::Result: Send,
    {
        let params = print_params::<M>(params)?;
        let caller = match listener.progress {
            Some(progress) => Caller::new(progress),
            None => Caller::without_progress(),
        };
        let mut answer = pin!(self.sandbox.answer(M::NAME, Some(&params), &caller));
        let answer = match listener.cancellation {
            None => answer.await,
            Some(cancellation) => tokio::select! {
                answer = &mut answer => answer,
                () = cancellation.cancelled() => {
                    // Must come before the answer is dropped: the tool checks it then.
                    caller.cancel();
                    Err(ErrorKind::RequestCancelled.error("the caller has cancelled"))
                }
            },
        };
        read_result::<M>(&answer?)
    }

    async fn directory(&self) -> Result<PathBuf, WireError> {
        Ok(self.directory.to_path_buf())
    }
}

/// Calls `file/*` for the whole file system in this process, without shells.
#[derive(Debug, Clone)]
pub(crate) struct FileTools(Arc<FileService>);

impl FileTools {
    pub(crate) fn new(worker: Worker) -> Self {
        Self(Arc::new(FileService::new(Workspace::whole_file_system(), worker)))
    }
}

impl Tools for FileTools {
    async fn call<M: MethodType>(
        &self,
        params: &M::Params,
        _listener: Listener<'_>,
    ) -> Result<M::Result, WireError>
    where
        M::Params: Sync,
        M::Result: Send,
    {
        let answer = self.0.answer(M::NAME, Some(&print_params::<M>(params)?)).await;
        read_result::<M>(&answer?)
    }

    async fn directory(&self) -> Result<PathBuf, WireError> {
        Ok(PathBuf::from("/"))
    }
}
