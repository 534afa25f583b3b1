//! Finds files by name and lines by pattern.
//!
//! Directories are walked as `ripgrep` walks them: rules of `.gitignore` and `.ignore` files are
//! respected, hidden entries are left out unless asked for, links are not followed. The walk uses
//! path names, so its results are only candidates. Each candidate is looked up or opened through
//! the workspace, under confinement, and dropped if that fails. So a directory that is replaced by
//! a link during the walk cannot bring anything from outside into a result.
//!
//! A search can take as long as a tree is large. Callers that must not wait for it run it in a
//! process that they can kill.

use std::io;
use std::path::{Path, PathBuf};

use grep_regex::RegexMatcher;
use grep_searcher::{
    BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkContextKind, SinkMatch,
};
use walkdir::{DirEntry, WalkDir};

use super::ignore_rules::IgnoreRules;
use super::pattern::{glob_matcher, regex_matcher};
use super::{Error, Kind, Links, WorkspacePath, open_file, stat};

/// Longer lines are cut in the result.
pub const LINE_CHARACTERS: usize = 2000;

/// The largest limit that one search or listing accepts.
pub const MAX_RESULTS: usize = 100_000;

/// The largest number of context lines that a search accepts.
pub const MAX_CONTEXT: usize = 1000;

/// Limit in bytes for the lines that [`grep`] returns, so that many long lines do not fill the
/// memory.
pub const MAX_GREP_BYTES: usize = 16 * 1024 * 1024;

/// Size of the search buffer in bytes: a line with its context must fit in.
const SEARCHED_AT_ONCE: usize = 16 * 1024 * 1024;

/// Which entries a search leaves out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Whether to include entries whose name begins with a dot.
    pub hidden: bool,
    /// Whether to include entries that `.gitignore` and `.ignore` exclude.
    pub ignored: bool,
}

/// The result of [`glob`]: matching paths relative to the searched directory, sorted by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GlobResult {
    /// The paths.
    pub paths: Vec<PathBuf>,
    /// Whether there are more paths than the limit.
    pub truncated: bool,
    /// Directories that could not be read.
    pub unreadable: usize,
}

/// How upper and lower case compare.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Case {
    /// Upper and lower case differ.
    #[default]
    Sensitive,
    /// Upper and lower case are the same.
    Insensitive,
    /// Like `Insensitive`, but `Sensitive` if the pattern has an upper-case letter.
    Smart,
}

/// What to look for in files.
#[derive(Clone, Debug)]
pub struct Grep {
    /// A regular expression, in the syntax of the `regex` crate.
    pub pattern: String,
    /// Whether the pattern is plain text instead.
    pub literal: bool,
    /// How upper and lower case compare.
    pub case: Case,
    /// Only files whose path below the directory matches this glob.
    pub files: Option<String>,
    /// Lines of context before and after each match, at most [`MAX_CONTEXT`].
    pub context: usize,
    /// Which entries to leave out.
    pub filter: Filter,
    /// The largest number of matching lines to return; at most [`MAX_RESULTS`].
    pub limit: usize,
}

/// A matching line, or a line of context.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrepLine {
    /// Relative to the searched directory; empty if a single file was searched.
    pub path: PathBuf,
    /// The line number, from 1.
    pub line: u64,
    /// The line without its end. Bytes that are not UTF-8 are replaced, and long lines are cut.
    pub text: String,
    /// Whether it matches; otherwise it is context.
    pub matches: bool,
}

/// The result of [`grep`], sorted by file name and line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GrepResult {
    /// The lines.
    pub lines: Vec<GrepLine>,
    /// Whether there are more matches than the limit, or than fit into [`MAX_GREP_BYTES`].
    pub truncated: bool,
    /// Files and directories that could not be read completely, such as files with extremely long
    /// lines.
    pub unreadable: usize,
}

/// Finds files below a directory by a pattern for their path relative to it: `*` stops at slashes,
/// `**` does not, `{a,b}` and `[ab]` choose. The limit is at most [`MAX_RESULTS`].
pub fn glob(
    directory: &WorkspacePath,
    pattern: &str,
    filter: Filter,
    limit: usize,
) -> Result<GlobResult, Error> {
    check_limit(limit)?;
    let matcher = glob_matcher(pattern)?;
    directory.open_directory()?;
    let mut found = GlobResult::default();
    for relative in walk(directory, filter)? {
        let Ok(relative) = relative else {
            found.unreadable += 1;
            continue;
        };
        if !matcher.is_match(&relative) {
            continue;
        }
        if stat(&directory.join(&relative), Links::Keep).is_err() {
            continue;
        }
        if found.paths.len() == limit {
            found.truncated = true;
            break;
        }
        found.paths.push(relative);
    }
    Ok(found)
}

/// Finds lines in a file, or in all files below a directory. Binary files are left out.
pub fn grep(path: &WorkspacePath, query: &Grep) -> Result<GrepResult, Error> {
    check_limit(query.limit)?;
    check_maximum("lines of context", query.context, MAX_CONTEXT)?;
    let matcher = regex_matcher(query)?;
    let files = query.files.as_deref().map(glob_matcher).transpose()?;
    let mut searcher = SearcherBuilder::new()
        .binary_detection(BinaryDetection::quit(0))
        .before_context(query.context)
        .after_context(query.context)
        .heap_limit(Some(SEARCHED_AT_ONCE))
        .build();
    let mut grepped = GrepResult::default();
    let mut left = Remaining { matches: query.limit, bytes: MAX_GREP_BYTES };
    if stat(path, Links::Follow)?.kind != Kind::Directory {
        search_file(path, Path::new(""), &mut searcher, &matcher, &mut left, &mut grepped)?;
        return Ok(grepped);
    }
    for relative in walk(path, query.filter)? {
        let Ok(relative) = relative else {
            grepped.unreadable += 1;
            continue;
        };
        if files.as_ref().is_some_and(|files| !files.is_match(&relative)) {
            continue;
        }
        let file = path.join(&relative);
        match search_file(&file, &relative, &mut searcher, &matcher, &mut left, &mut grepped) {
            Ok(()) => {}
            // The file was removed or replaced after the walk saw it.
            Err(Error::NotFound { .. } | Error::IsDirectory { .. } | Error::Escapes { .. }) => {}
            Err(_) => grepped.unreadable += 1,
        }
        if grepped.truncated {
            break;
        }
    }
    Ok(grepped)
}

/// Refuses a limit that is larger than [`MAX_RESULTS`].
pub fn check_limit(limit: usize) -> Result<(), Error> {
    check_maximum("results", limit, MAX_RESULTS)
}

fn check_maximum(what: &'static str, asked: usize, most: usize) -> Result<(), Error> {
    match asked > most {
        true => Err(Error::TooMany { what, asked, most }),
        false => Ok(()),
    }
}

/// The paths of the files below a directory, relative to it, sorted by name.
fn walk(
    directory: &WorkspacePath,
    filter: Filter,
) -> Result<impl Iterator<Item = Result<PathBuf, walkdir::Error>>, Error> {
    let top = directory.absolute().canonicalize().map_err(|source| directory.failed(source))?;
    let mut rules = IgnoreRules::new(&top, filter);
    let includes = move |entry: &DirEntry| match entry.depth() {
        0 => {
            rules.enter(entry.path());
            true
        }
        _ => rules.includes(entry.path(), entry.file_type().is_dir()),
    };
    let entries = WalkDir::new(&top).sort_by_file_name().into_iter().filter_entry(includes);
    Ok(entries.filter_map(move |entry| match entry {
        Ok(entry) if entry.file_type().is_dir() => None,
        Ok(entry) => Some(Ok(entry.path().strip_prefix(&top).ok()?.to_path_buf())),
        Err(error) => Some(Err(error)),
    }))
}

fn search_file(
    path: &WorkspacePath,
    relative: &Path,
    searcher: &mut Searcher,
    matcher: &RegexMatcher,
    left: &mut Remaining,
    grepped: &mut GrepResult,
) -> Result<(), Error> {
    let (file, _) = open_file(path)?;
    let kept = (grepped.lines.len(), *left);
    let mut sink = Lines { relative, left, grepped, is_binary: false };
    let searched = searcher.search_file(matcher, &file, &mut sink);
    if sink.is_binary {
        grepped.lines.truncate(kept.0);
        *left = kept.1;
    }
    searched.map_err(|source| match source.raw_os_error() {
        Some(_) => path.failed(source),
        // An error without an OS code comes from the searcher, which has only this one.
        None => {
            Error::LongLines { path: path.as_path().to_path_buf(), limit: SEARCHED_AT_ONCE as u64 }
        }
    })
}

/// How many matches and bytes a search may still return.
#[derive(Clone, Copy)]
struct Remaining {
    matches: usize,
    bytes: usize,
}

/// Collects lines until the limit is reached.
struct Lines<'a> {
    relative: &'a Path,
    left: &'a mut Remaining,
    grepped: &'a mut GrepResult,
    is_binary: bool,
}

impl Lines<'_> {
    /// Adds a line. Returns false if there was no room for it.
    fn push(&mut self, line: Option<u64>, bytes: &[u8], matches: bool) -> bool {
        let text = String::from_utf8_lossy(bytes);
        let text = text.trim_end_matches(['\r', '\n']);
        let text: String = text.chars().take(LINE_CHARACTERS).collect();
        let path = self.relative.to_path_buf();
        let size = size_of::<GrepLine>() + path.as_os_str().len() + text.len();
        let Some(left) = self.left.bytes.checked_sub(size) else {
            self.grepped.truncated = true;
            return false;
        };
        self.left.bytes = left;
        self.grepped.lines.push(GrepLine { path, line: line.unwrap_or(0), text, matches });
        true
    }
}

impl Sink for Lines<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> Result<bool, io::Error> {
        if self.left.matches == 0 {
            self.grepped.truncated = true;
            return Ok(false);
        }
        self.left.matches -= 1;
        Ok(self.push(found.line_number(), found.bytes(), true))
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> Result<bool, io::Error> {
        // Leave out context before a match that is itself over the limit.
        let is_wanted = self.left.matches > 0 || *context.kind() == SinkContextKind::After;
        Ok(!is_wanted || self.push(context.line_number(), context.bytes(), false))
    }

    fn binary_data(&mut self, _: &Searcher, _: u64) -> Result<bool, io::Error> {
        self.is_binary = true;
        Ok(false)
    }
}
