//! Operations that can take long, carried out by a helper process, which is killed when nobody waits
//! any more: searches, which take as long as a tree is large and whose patterns, names and contents
//! are hostile input; and reading through a large file.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::time::Duration;

use bridge_protocol::WireError;
use bridge_protocol::answer::{Answer, print_result, read_params, unknown_method};
use bridge_protocol::methods::MethodType as _;
use bridge_protocol::methods::file::{
    self, GlobResult, GrepLine, GrepParams, GrepResult, SearchParams,
};
use sandbox_files::{Case, Filter, Grep, Links, Workspace, glob, grep, stat};
use sandbox_worker::{Job, Worker};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::shown;
use crate::error;

/// Default limit of a search.
const DEFAULT_RESULTS: usize = 1000;
/// Files with more bytes than this are large.
const LARGE: u64 = file::VERSIONED_BYTES;
/// How long an operation may take, whatever the caller's deadline is.
const TIME: Duration = Duration::from_secs(120);

/// An operation on a workspace that can take long. The helper runs in the directory of a confined workspace.
#[derive(Debug)]
pub(crate) struct LongJob;

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct LongRequest {
    /// The path of the confined workspace, as bytes because it need not be UTF-8; `None` for the
    /// whole file system.
    confined: Option<Vec<u8>>,
    method: String,
    params: Option<Box<RawValue>>,
}

impl Job for LongJob {
    type Request = LongRequest;
    type Answer = Answer;

    const NAME: &'static str = "file";
    const MEMORY: Option<u64> = Some(1 << 30);
    const ANSWER_BYTES: u64 = 128 << 20;

    fn carry_out(request: LongRequest) -> Answer {
        let workspace = match request.confined {
            Some(at) => Workspace::of_current_directory(OsString::from_vec(at).into())
                .map_err(error::file)?,
            None => Workspace::whole_file_system(),
        };
        let params = request.params.as_deref();
        match request.method.as_str() {
            file::Glob::NAME => print_result::<file::Glob>(&find_files(
                &workspace,
                read_params::<file::Glob>(params)?,
            )?),
            file::Grep::NAME => print_result::<file::Grep>(&find_lines(
                &workspace,
                read_params::<file::Grep>(params)?,
            )?),
            file::Read::NAME => print_result::<file::Read>(&super::read(
                &workspace,
                read_params::<file::Read>(params)?,
            )?),
            file::Hash::NAME => print_result::<file::Hash>(&super::hash_file(
                &workspace,
                read_params::<file::Hash>(params)?,
            )?),
            method => Err(unknown_method(method)),
        }
    }
}

/// Whether a call can take long: a search, or reading through a large file.
pub(super) fn takes_long(workspace: &Workspace, method: &str, params: Option<&RawValue>) -> bool {
    let path = match method {
        file::Glob::NAME | file::Grep::NAME => return true,
        file::Hash::NAME => read_params::<file::Hash>(params).map(|params| params.path),
        file::Read::NAME => match read_params::<file::Read>(params) {
            // Only the lines before the first one are read without a limit.
            Ok(params) if params.first_line.is_some_and(|first| first > 1) => Ok(params.path),
            _ => return false,
        },
        _ => return false,
    };
    // An error is reported by the operation itself.
    let stat = path.ok().and_then(|path| stat(&workspace.path(path).ok()?, Links::Follow).ok());
    stat.is_some_and(|stat| stat.size > LARGE)
}

/// Answers a call in a helper process.
pub(super) async fn in_helper(
    worker: &Worker,
    workspace: &Workspace,
    method: &str,
    params: Option<&RawValue>,
) -> Answer {
    let directory = workspace.directory();
    let request = LongRequest {
        confined: directory.map(|(_, at)| at.as_os_str().as_bytes().to_vec()),
        method: method.to_owned(),
        params: params.map(ToOwned::to_owned),
    };
    let directory = directory.map(|(handle, _)| handle);
    let done = worker.run_in::<LongJob>(directory, &request, TIME).await;
    done.unwrap_or_else(|failed| {
        let remedy = "ask for less (a smaller directory, a simpler pattern), or use a shell";
        Err(error::work(method, failed, remedy))
    })
}

fn find_files(workspace: &Workspace, params: SearchParams) -> Result<GlobResult, WireError> {
    let path = workspace.path(&params.path).map_err(error::file)?;
    let filter = Filter { hidden: params.hidden, ignored: params.ignored };
    let limit = params.limit.unwrap_or(DEFAULT_RESULTS);
    let found = glob(&path, &params.pattern, filter, limit).map_err(error::file)?;
    let paths = found.paths.iter().map(|path| shown(path)).collect();
    Ok(GlobResult { paths, truncated: found.truncated, unreadable: found.unreadable })
}

fn find_lines(workspace: &Workspace, params: GrepParams) -> Result<GrepResult, WireError> {
    let SearchParams { path, pattern, hidden, ignored, limit } = params.search;
    let query = Grep {
        pattern,
        literal: params.literal,
        case: if params.ignore_case { Case::Insensitive } else { Case::Sensitive },
        files: params.files,
        context: params.context,
        filter: Filter { hidden, ignored },
        limit: limit.unwrap_or(DEFAULT_RESULTS),
    };
    let path = workspace.path(&path).map_err(error::file)?;
    let grepped = grep(&path, &query).map_err(error::file)?;
    let lines = grepped.lines.into_iter().map(|line| GrepLine {
        path: shown(&line.path),
        line: line.line,
        text: line.text,
        matches: line.matches,
    });
    Ok(GrepResult {
        lines: lines.collect(),
        truncated: grepped.truncated,
        unreadable: grepped.unreadable,
    })
}
