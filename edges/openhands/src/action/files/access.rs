//! Reads files, and finds out why a file cannot be read.

use std::path::Path;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use bridge_protocol::methods::{MethodType, file};

use super::{Files, path_string};
use crate::action::{ActionError, FileError, FileProblem};
use crate::tools::{Listener, Tools};

/// The largest file that is read as a whole.
const READ_BYTES: u64 = 64 << 20;
/// The largest file that is edited.
const EDIT_BYTES: u64 = 10 << 20;

/// The text of a file with its version.
pub(super) struct Document {
    /// With `\n` for every line end.
    pub(super) text: String,
    /// The version, if the runtime returned one.
    pub(super) version: Option<file::Version>,
    /// Whether it is encoded in UTF-8.
    pub(super) is_utf8: bool,
}

impl<T: Tools> Files<T> {
    /// Reads a text file for editing: any encoding, with `\n` for every line end.
    pub(super) async fn document(&self, path: &Path) -> Result<Document, ActionError> {
        let params = file::ReadParams {
            path: path_string(path),
            limit_bytes: Some(EDIT_BYTES),
            ..file::ReadParams::default()
        };
        match self.call::<file::Read>(&params).await {
            Ok(file::ReadResult::Text { text, encoding, version, .. }) => {
                let is_utf8 = encoding == "UTF-8";
                let text = if text.contains('\r') { text.replace("\r\n", "\n") } else { text };
                Ok(Document { text, version, is_utf8 })
            }
            Ok(_) => {
                let text = format!("{} is binary: read it as bytes", path.display());
                Err(FileError::new(FileProblem::Binary, text).into())
            }
            Err(error) => Err(self.with_size(path, EDIT_BYTES, error).await),
        }
    }

    /// The text of a file; empty if it does not exist or is not text.
    pub(super) async fn text_or_empty(&self, path: &Path) -> Result<String, ActionError> {
        match self.document(path).await {
            Ok(document) => Ok(document.text),
            Err(ActionError::File(FileError {
                problem: FileProblem::NotFound | FileProblem::Binary | FileProblem::TooLarge { .. },
                ..
            })) => Ok(String::new()),
            Err(error) => Err(error),
        }
    }

    /// The text of a UTF-8 file with its byte order mark: the mark belongs to the lines that are
    /// kept.
    pub(super) async fn utf8(&self, path: &Path) -> Result<String, ActionError> {
        let (bytes, _) = self.bytes(path).await?;
        match String::from_utf8(bytes) {
            Ok(text) if !text.contains('\0') => return Ok(text),
            _ => {}
        }
        // Not UTF-8, or not text at all: the runtime decides.
        match self.document(path).await {
            Ok(Document { is_utf8: true, text, .. }) => Ok(text),
            Ok(_) => Err(ActionError::NotUtf8(path.to_owned())),
            Err(error) => Err(error),
        }
    }

    pub(super) async fn bytes(
        &self,
        path: &Path,
    ) -> Result<(Vec<u8>, Option<file::Version>), ActionError> {
        let params = file::ReadParams {
            path: path_string(path),
            raw: true,
            limit_bytes: Some(READ_BYTES),
            ..file::ReadParams::default()
        };
        match self.call::<file::Read>(&params).await {
            Ok(file::ReadResult::Raw { base64, version }) => {
                let bytes = BASE64_STANDARD.decode(base64).map_err(|error| {
                    ActionError::Internal(format!("the content cannot be decoded: {error}"))
                })?;
                Ok((bytes, version))
            }
            Ok(_) => Err(ActionError::Internal("the runtime did not return raw bytes".into())),
            Err(error) => Err(self.with_size(path, READ_BYTES, error).await),
        }
    }

    /// Adds the size of the file to a `TooLarge` error.
    pub(super) async fn with_size(
        &self,
        path: &Path,
        limit: u64,
        error: ActionError,
    ) -> ActionError {
        match error {
            ActionError::File(FileError { problem: FileProblem::TooLarge { .. }, text }) => {
                let size = self.stat(path).await.map_or(0, |found| found.size);
                FileError::new(FileProblem::TooLarge { size, limit }, text).into()
            }
            error => error,
        }
    }

    pub(super) async fn stat(&self, path: &Path) -> Result<file::StatResult, ActionError> {
        self.call::<file::Stat>(&file::StatParams { path: path_string(path), follow: true }).await
    }

    /// Calls a `file/*` tool.
    pub(in crate::action) async fn call<M: MethodType>(
        &self,
        params: &M::Params,
    ) -> Result<M::Result, ActionError>
    where
        M::Params: Sync,
        M::Result: Send,
    {
        self.tools.call::<M>(params, Listener::default()).await.map_err(ActionError::of_file)
    }
}
