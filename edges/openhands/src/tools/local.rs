//! Calls tools in this process.

use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;

use bridge_protocol::methods::MethodType;
use bridge_protocol::{ErrorKind, WireError};
use sandbox_files::Workspace;
use sandbox_host::{Caller, FileService, Sandbox};
use sandbox_worker::Worker;
use serde_json::value::{RawValue, to_raw_value};

use super::{Listener, Tools};

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
        let params = printed::<M>(params)?;
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
        parsed::<M>(&answer?)
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
        let answer = self.0.answer(M::NAME, Some(&printed::<M>(params)?)).await;
        parsed::<M>(&answer?)
    }

    async fn directory(&self) -> Result<PathBuf, WireError> {
        Ok(PathBuf::from("/"))
    }
}

fn printed<M: MethodType>(params: &M::Params) -> Result<Box<RawValue>, WireError> {
    to_raw_value(params).map_err(|error| {
        ErrorKind::InvalidParams.error(format!("cannot print the params of {}: {error}", M::NAME))
    })
}

fn parsed<M: MethodType>(answer: &RawValue) -> Result<M::Result, WireError> {
    serde_json::from_str(answer.get()).map_err(|error| {
        ErrorKind::BadHostResponse.error(format!("the answer to {} is wrong: {error}", M::NAME))
    })
}
