//! Serves `file/*`: the files of the workspace. Each operation runs on a blocking thread, except
//! those in [`long`], which helper processes carry out.

mod long;

use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use base64::prelude::{BASE64_STANDARD, Engine};
use bridge_protocol::answer::{Answer, print_result, read_params, unknown_method};
use bridge_protocol::methods::file::{
    self, CopyResult, FileEntry, FileKind, HashResult, MakeDirectoryParams, PathParams,
    RemoveParams, StatParams, StatResult, TransferParams,
};
use bridge_protocol::methods::{Empty, MethodType};
use bridge_protocol::{ErrorKind, WireError};
use sandbox_files::{
    Content, Depth, Destination, Edit, Edited, Editor, Existing, FileOwner, Kind, LineRange, Links,
    ListOptions, Parents, READ_BYTES, Removal, Undo, Version, Workspace, WorkspacePath,
    WriteOptions, check_limit, create_directory, hash, list, read_any_versioned, read_bytes,
    remove_directory, set_mode, stat, unified_diff,
};
use sandbox_worker::Worker;
use serde_json::value::RawValue;
use tokio::sync::Semaphore;

pub(crate) use long::LongJob;

use crate::error::{self, invalid};

/// How many operations run at once; further ones wait.
const MAX_OPERATIONS: usize = 8;
/// How many helper processes run at once. They do not count as operations: searches that take long
/// must not hold up everything else.
const MAX_HELPERS: usize = 4;
/// Limit of a read, whatever the caller asks for. A connection refuses answers long before that.
const MAX_READ_BYTES: u64 = file::VERSIONED_BYTES;
/// Lines of context in a diff.
const CONTEXT: usize = 3;

/// The files of one workspace.
#[derive(Debug)]
pub struct FileService {
    workspace: Workspace,
    /// Changes files one at a time, and remembers former contents for undo as long as this process
    /// lives.
    editor: Arc<Editor>,
    permits: Arc<Semaphore>,
    worker: Worker,
    helpers: Semaphore,
}

impl FileService {
    /// Serves the files of this workspace. The worker's program must know [`work`](crate::work).
    pub fn new(workspace: Workspace, worker: Worker) -> Self {
        Self {
            workspace,
            editor: Arc::default(),
            permits: Arc::new(Semaphore::new(MAX_OPERATIONS)),
            worker,
            helpers: Semaphore::new(MAX_HELPERS),
        }
    }

    /// Answers one call of a `file/*` tool.
    pub async fn answer(self: &Arc<Self>, method: &str, params: Option<&RawValue>) -> Answer {
        use file::{
            Copy, Edit, Hash, List, MakeDirectory, Move, Read, Remove, RemoveDirectory, Stat, Undo,
            Write,
        };

        if long::takes_long(&self.workspace, method, params) {
            return self.run_helper(method, params).await;
        }
        match method {
            Read::NAME => self.carry_out::<Read>(params, FileService::read).await,
            Write::NAME => self.carry_out::<Write>(params, FileService::write).await,
            Edit::NAME => self.carry_out::<Edit>(params, FileService::edit).await,
            Undo::NAME => self.carry_out::<Undo>(params, FileService::undo).await,
            List::NAME => self.carry_out::<List>(params, FileService::list).await,
            Stat::NAME => self.carry_out::<Stat>(params, FileService::stat).await,
            Hash::NAME => self.carry_out::<Hash>(params, FileService::hash).await,
            MakeDirectory::NAME => {
                self.carry_out::<MakeDirectory>(params, FileService::make_directory).await
            }
            RemoveDirectory::NAME => {
                self.carry_out::<RemoveDirectory>(params, FileService::remove_directory).await
            }
            Remove::NAME => self.carry_out::<Remove>(params, FileService::remove).await,
            Move::NAME => self.carry_out::<Move>(params, FileService::move_entry).await,
            Copy::NAME => self.carry_out::<Copy>(params, FileService::copy).await,
            _ => Err(unknown_method(method)),
        }
    }

    /// Runs one operation on a blocking thread. Once begun it runs to its end, even if nobody waits
    /// for it.
    async fn carry_out<M: MethodType>(
        self: &Arc<Self>,
        params: Option<&RawValue>,
        act: fn(&Self, M::Params) -> Result<M::Result, WireError>,
    ) -> Answer
    where
        M::Params: Send + 'static,
        M::Result: Send + 'static,
    {
        let params = read_params::<M>(params)?;
        let permit = Arc::clone(&self.permits).acquire_owned().await;
        let service = Arc::clone(self);
        let work = move || {
            // Released at the end of the operation, even if nobody waits for it any more.
            let _permit = permit;
            print_result::<M>(&act(&service, params)?)
        };
        tokio::task::spawn_blocking(work).await.unwrap_or_else(|_| {
            Err(ErrorKind::InternalError.error("the operation on this file panicked"))
        })
    }

    /// Runs an operation in a helper process, which is killed when the future is dropped.
    async fn run_helper(&self, method: &str, params: Option<&RawValue>) -> Answer {
        let _permit = self.helpers.acquire().await;
        long::in_helper(&self.worker, &self.workspace, method, params).await
    }

    fn read(&self, params: file::ReadParams) -> Result<file::ReadResult, WireError> {
        read(&self.workspace, params)
    }

    fn write(&self, params: file::WriteParams) -> Result<file::WriteResult, WireError> {
        let path = self.path(&params.path)?;
        let bytes = match (params.text, params.base64) {
            (Some(text), None) => text.into_bytes(),
            (None, Some(base64)) => BASE64_STANDARD
                .decode(base64)
                .map_err(|error| invalid(format!("base64 is malformed: {error}")))?,
            _ => return Err(invalid("give the content as either text or base64")),
        };
        let options =
            WriteOptions { existing: existing(params.replace), ..WriteOptions::default() };
        let expected = params.if_version.as_ref().map(|version| version.0.as_str());
        let written = self.editor.write(&path, &bytes, options, expected).map_err(error::file)?;
        if let Some(mode) = params.mode.filter(|_| written.created) {
            set_mode(&path, mode & 0o777).map_err(error::file)?;
        }
        Ok(file::WriteResult {
            created: written.created,
            version: wire_version(Version::of(&bytes)),
            owner_kept: is_kept(written.owner),
        })
    }

    fn edit(&self, params: file::EditParams) -> Result<file::EditResult, WireError> {
        let path = self.path(&params.path)?;
        let (new, expected) = (&params.new_text, params.if_version.as_ref());
        let edit = match (&params.old_text, params.insert_after) {
            (Some(old), None) => Edit::Replace { old, new },
            (None, Some(after)) => Edit::Insert { after, text: new },
            (None, None) if expected.is_none() => {
                let created = self.editor.create(&path, new, WriteOptions::default());
                return Ok(edit_result(&params.path, &created.map_err(error::file)?));
            }
            (None, None) => return Err(invalid("ifVersion is for a file that exists")),
            (Some(_), Some(_)) => return Err(invalid("give either oldText or insertAfter")),
        };
        let expected = expected.map(|version| version.0.as_str());
        let edited = self.editor.edit(&path, edit, expected).map_err(error::file)?;
        Ok(edit_result(&params.path, &edited))
    }

    fn undo(&self, params: file::UndoParams) -> Result<file::EditResult, WireError> {
        let path = self.path(&params.path)?;
        let undo = if params.force { Undo::Anyway } else { Undo::IfUnchanged };
        Ok(edit_result(&params.path, &self.editor.undo(&path, undo).map_err(error::file)?))
    }

    fn list(&self, params: file::ListParams) -> Result<file::ListResult, WireError> {
        let limit = params.limit.unwrap_or(ListOptions::default().limit);
        check_limit(limit).map_err(error::file)?;
        let depth = if params.nested { Depth::Two } else { Depth::One };
        let options = ListOptions { depth, hidden: params.hidden, limit };
        let listing = list(&self.path(&params.path)?, options).map_err(error::file)?;
        let entries = listing.entries.into_iter().map(|entry| FileEntry {
            path: shown(&entry.path),
            kind: kind(entry.kind),
            target: entry.target.map(kind),
        });
        Ok(file::ListResult {
            entries: entries.collect(),
            hidden_left_out: listing.hidden_left_out,
            truncated: listing.truncated,
            unreadable: listing.unreadable.iter().map(|path| shown(path)).collect(),
        })
    }

    fn stat(&self, params: StatParams) -> Result<StatResult, WireError> {
        let links = if params.follow { Links::Follow } else { Links::Keep };
        let stat = stat(&self.path(&params.path)?, links).map_err(error::file)?;
        let age = stat.modified.duration_since(SystemTime::UNIX_EPOCH);
        let modified_ms = match age {
            Ok(since) => since.as_secs_f64() * 1000.0,
            Err(before) => before.duration().as_secs_f64() * -1000.0,
        };
        Ok(StatResult {
            kind: kind(stat.kind),
            size: stat.size,
            mode: stat.mode,
            user: stat.user,
            group: stat.group,
            modified_ms: modified_ms.round(),
            link: stat.link.as_deref().map(shown),
        })
    }

    fn hash(&self, params: PathParams) -> Result<HashResult, WireError> {
        hash_file(&self.workspace, params)
    }

    fn make_directory(&self, params: MakeDirectoryParams) -> Result<Empty, WireError> {
        let parents = if params.parents { Parents::Create } else { Parents::MustExist };
        done(create_directory(&self.path(&params.path)?, parents))
    }

    fn remove_directory(&self, params: PathParams) -> Result<Empty, WireError> {
        done(remove_directory(&self.path(&params.path)?))
    }

    fn remove(&self, params: RemoveParams) -> Result<Empty, WireError> {
        let removal = if params.recursive { Removal::Recursive } else { Removal::File };
        done(self.editor.remove(&self.path(&params.path)?, removal))
    }

    fn move_entry(&self, params: TransferParams) -> Result<Empty, WireError> {
        let (from, to) = (self.path(&params.from)?, self.path(&params.to)?);
        done(self.editor.move_entry(&from, &to, destination(&params)))
    }

    fn copy(&self, params: TransferParams) -> Result<CopyResult, WireError> {
        let (from, to) = (self.path(&params.from)?, self.path(&params.to)?);
        let owner = self.editor.copy(&from, &to, destination(&params)).map_err(error::file)?;
        Ok(CopyResult { owner_kept: is_kept(owner) })
    }

    fn path(&self, path: &str) -> Result<WorkspacePath, WireError> {
        self.workspace.path(path).map_err(error::file)
    }
}

fn read(workspace: &Workspace, params: file::ReadParams) -> Result<file::ReadResult, WireError> {
    let path = workspace.path(&params.path).map_err(error::file)?;
    let limit = params.limit_bytes.unwrap_or(READ_BYTES).min(MAX_READ_BYTES);
    if params.raw {
        let bytes = read_bytes(&path, limit).map_err(error::file)?;
        let version = Some(wire_version(Version::of(&bytes)));
        return Ok(file::ReadResult::Raw { base64: BASE64_STANDARD.encode(bytes), version });
    }
    let range = match (params.first_line, params.last_line, params.tail) {
        (None, None, None) => LineRange::All,
        (None, None, Some(count)) => LineRange::Last(count),
        (first, last, None) => LineRange::Between { first: first.unwrap_or(1), last },
        _ => return Err(invalid("give either tail, or firstLine and lastLine")),
    };
    let read = read_any_versioned(&path, range, limit).map_err(error::file)?;
    let version = read.version.map(wire_version);
    Ok(match read.content {
        Content::Text(text) => file::ReadResult::Text {
            text: text.content,
            first_line: text.first_line,
            total_lines: text.total_lines,
            encoding: text.encoding.name().to_owned(),
            version,
        },
        Content::Media { media_type, bytes } => file::ReadResult::Media {
            media_type: media_type.to_owned(),
            base64: BASE64_STANDARD.encode(bytes),
            version,
        },
        Content::Binary { media_type, size } => {
            file::ReadResult::Binary { media_type: media_type.to_owned(), size, version }
        }
    })
}

fn hash_file(workspace: &Workspace, params: PathParams) -> Result<HashResult, WireError> {
    let hashed = hash(&workspace.path(&params.path).map_err(error::file)?).map_err(error::file)?;
    Ok(HashResult {
        sha256: hashed.sha256.to_string(),
        size: hashed.size,
        version: hashed.version.map(wire_version),
    })
}

fn edit_result(path: &str, edited: &Edited) -> file::EditResult {
    let [before, after] =
        [&edited.before, &edited.after].map(|text| text.as_deref().unwrap_or_default());
    file::EditResult {
        line: edited.line,
        lines_removed: edited.lines_removed,
        lines_added: edited.lines_added,
        diff: unified_diff(before, after, (path, path), CONTEXT),
        version: edited.version().map(wire_version),
        owner_kept: is_kept(edited.owner),
    }
}

fn wire_version(version: Version) -> file::Version {
    file::Version(version.to_string())
}

fn is_kept(owner: FileOwner) -> bool {
    owner == FileOwner::Kept
}

fn done(outcome: Result<(), sandbox_files::Error>) -> Result<Empty, WireError> {
    outcome.map(|()| Empty {}).map_err(error::file)
}

fn destination(params: &TransferParams) -> Destination {
    Destination { existing: existing(params.replace), ..Destination::default() }
}

fn existing(replace: bool) -> Existing {
    if replace { Existing::Replace } else { Existing::Refuse }
}

fn kind(kind: Kind) -> FileKind {
    match kind {
        Kind::File => FileKind::File,
        Kind::Directory => FileKind::Directory,
        Kind::Symlink => FileKind::Symlink,
        Kind::Pipe => FileKind::Pipe,
        Kind::Socket => FileKind::Socket,
        Kind::Device => FileKind::Device,
        Kind::Other => FileKind::Other,
    }
}

fn shown(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use std::sync::{Mutex, PoisonError};

    use bridge_protocol::methods::file::Stat;

    use super::*;

    /// The operation in the test runs as long as the test holds this lock.
    static GATE: Mutex<()> = Mutex::new(());

    #[tokio::test]
    #[allow(clippy::await_holding_lock, reason = "the other holder has a thread of its own")]
    async fn an_abandoned_operation_counts_until_it_has_ended() {
        let service =
            Arc::new(FileService::new(Workspace::whole_file_system(), Worker::new("none")));
        let gate = GATE.lock().unwrap_or_else(PoisonError::into_inner);
        let caller = {
            let service = Arc::clone(&service);
            let work = async move {
                let params = serde_json::value::to_raw_value(&serde_json::json!({"path": "."}));
                let act = |_: &FileService, _: StatParams| {
                    drop(GATE.lock().unwrap_or_else(PoisonError::into_inner));
                    Err(invalid("never reported"))
                };
                service.carry_out::<Stat>(Some(&params.unwrap()), act).await
            };
            tokio::spawn(work)
        };
        while service.permits.available_permits() == MAX_OPERATIONS {
            tokio::task::yield_now().await;
        }
        caller.abort();
        assert!(caller.await.unwrap_err().is_cancelled());
        assert_eq!(service.permits.available_permits(), MAX_OPERATIONS - 1);
        drop(gate);
        let all = u32::try_from(MAX_OPERATIONS).unwrap();
        assert!(service.permits.acquire_many(all).await.is_ok());
    }
}
