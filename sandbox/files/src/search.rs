//! Finding files by name and lines by pattern.
//!
//! Directories are walked as `ripgrep` walks them: rules of `.gitignore` and `.ignore` files are
//! respected, hidden entries are left out unless asked for, links are not followed. The walk goes
//! by names and therefore only proposes: whatever it finds is then looked up or opened through
//! the workspace, under confinement, and dropped if that fails. A directory that is swapped for a
//! link during the walk cannot bring anything from outside into a result.

use std::io;
use std::path::{Path, PathBuf};

use globset::{GlobBuilder, GlobMatcher};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{
    BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkContextKind, SinkMatch,
};
use ignore::{Walk, WalkBuilder};

use super::{Error, Kind, Links, WorkspacePath, open_file, stat};

/// A longer line is cut in the result.
pub const LINE_CHARACTERS: usize = 2000;

/// Most that one search or listing can be asked for.
pub const MOST_FOUND: usize = 100_000;

/// Most lines of context that can be asked for.
pub const MOST_CONTEXT: usize = 1000;

/// Bytes of lines that [`grep`] returns at most, so that many long ones do not fill the memory.
pub const GREPPED_BYTES: usize = 16 * 1024 * 1024;

/// Bytes of a file that are searched at once: a line with its context must fit in.
const SEARCHED_AT_ONCE: usize = 16 * 1024 * 1024;

/// What a search passes over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Whether to look at entries whose name begins with a dot.
    pub hidden: bool,
    /// Whether to look at what `.gitignore` and `.ignore` exclude.
    pub ignored: bool,
}

/// Paths that match, relative to the directory that was searched, in order of names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// The paths.
    pub paths: Vec<PathBuf>,
    /// Whether there are more than the limit.
    pub truncated: bool,
    /// Directories that could not be read.
    pub unreadable: usize,
}

/// How upper and lower case compare.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Case {
    /// They differ.
    #[default]
    Sensitive,
    /// They are the same.
    Insensitive,
    /// They are the same unless the pattern has an upper-case letter.
    Smart,
}

/// What to look for in files.
#[derive(Clone, Debug)]
pub struct Grep {
    /// A regular expression, in the syntax of the `regex` crate.
    pub pattern: String,
    /// Whether the pattern is plain text instead.
    pub literal: bool,
    /// How case compares.
    pub case: Case,
    /// Only files whose path below the directory matches this glob.
    pub files: Option<String>,
    /// Lines of context before and after each match, at most [`MOST_CONTEXT`].
    pub context: usize,
    /// What to pass over.
    pub filter: Filter,
    /// At most so many matching lines, which are at most [`MOST_FOUND`].
    pub limit: usize,
}

/// A line that matches, or one beside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrepLine {
    /// Relative to the directory that was searched; empty if a file was.
    pub path: PathBuf,
    /// Its number, from 1.
    pub line: u64,
    /// The line without its end; bytes that are no UTF-8 are replaced, length is cut.
    pub text: String,
    /// Whether it matches; otherwise it is context.
    pub matches: bool,
}

/// What [`grep`] found, in order of names and lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grepped {
    /// The lines.
    pub lines: Vec<GrepLine>,
    /// Whether there are more matches than the limit, or than [`GREPPED_BYTES`] hold.
    pub truncated: bool,
    /// Files and directories that could not be read, or not to their end, as files with extremely long
    /// lines.
    pub unreadable: usize,
}

/// Finds files below a directory whose path relative to it matches: `*` stops at slashes, `**`
/// does not, `{a,b}` and `[ab]` choose. The limit is at most [`MOST_FOUND`].
pub fn glob(
    directory: &WorkspacePath,
    pattern: &str,
    filter: Filter,
    limit: usize,
) -> Result<Found, Error> {
    check_limit(limit)?;
    let matcher = glob_matcher(pattern)?;
    directory.open_directory()?;
    let mut found = Found::default();
    for entry in walk(directory, filter) {
        let Ok(relative) = proposal(directory, entry) else {
            found.unreadable += 1;
            continue;
        };
        let Some(relative) = relative.filter(|path| matcher.is_match(path)) else { continue };
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

/// Finds lines in a file, or in the files below a directory. Binary files are passed over.
pub fn grep(path: &WorkspacePath, query: &Grep) -> Result<Grepped, Error> {
    check_limit(query.limit)?;
    check_most("lines of context", query.context, MOST_CONTEXT)?;
    let matcher = regex_matcher(query)?;
    let files = query.files.as_deref().map(glob_matcher).transpose()?;
    let mut searcher = SearcherBuilder::new()
        .binary_detection(BinaryDetection::quit(0))
        .before_context(query.context)
        .after_context(query.context)
        .heap_limit(Some(SEARCHED_AT_ONCE))
        .build();
    let mut grepped = Grepped::default();
    let mut left = Left { matches: query.limit, bytes: GREPPED_BYTES };
    if stat(path, Links::Follow)?.kind != Kind::Directory {
        search_file(path, Path::new(""), &mut searcher, &matcher, &mut left, &mut grepped)?;
        return Ok(grepped);
    }
    for entry in walk(path, query.filter) {
        let Ok(relative) = proposal(path, entry) else {
            grepped.unreadable += 1;
            continue;
        };
        let wanted = |path: &PathBuf| files.as_ref().is_none_or(|files| files.is_match(path));
        let Some(relative) = relative.filter(wanted) else { continue };
        let file = path.join(&relative);
        match search_file(&file, &relative, &mut searcher, &matcher, &mut left, &mut grepped) {
            Ok(()) => {}
            // It was removed or replaced since the walk saw it.
            Err(Error::NotFound { .. } | Error::IsDirectory { .. } | Error::Escapes { .. }) => {}
            Err(_) => grepped.unreadable += 1,
        }
        if grepped.truncated {
            break;
        }
    }
    Ok(grepped)
}

/// Fails if more is asked for than one search or listing gives.
pub fn check_limit(limit: usize) -> Result<(), Error> {
    check_most("results", limit, MOST_FOUND)
}

fn check_most(what: &'static str, asked: usize, most: usize) -> Result<(), Error> {
    match asked > most {
        true => Err(Error::TooMany { what, asked, most }),
        false => Ok(()),
    }
}

fn walk(directory: &WorkspacePath, filter: Filter) -> Walk {
    WalkBuilder::new(directory.absolute())
        .hidden(!filter.hidden)
        .git_ignore(!filter.ignored)
        .git_exclude(!filter.ignored)
        .ignore(!filter.ignored)
        // What is found should depend on where it lies, not on who looks. Rules in directories above
        // count, as for git: a workspace, or the directory to search, may be a part of a repository.
        .git_global(false)
        .sort_by_file_name(Ord::cmp)
        .build()
}

/// The path of a file that the walk met, relative to the directory; none for directories.
fn proposal(
    directory: &WorkspacePath,
    entry: Result<ignore::DirEntry, ignore::Error>,
) -> Result<Option<PathBuf>, ignore::Error> {
    let entry = entry?;
    if entry.file_type().is_none_or(|kind| kind.is_dir()) {
        return Ok(None);
    }
    Ok(entry.path().strip_prefix(directory.absolute()).ok().map(Path::to_path_buf))
}

fn glob_matcher(pattern: &str) -> Result<GlobMatcher, Error> {
    let built = GlobBuilder::new(pattern).literal_separator(true).build();
    built.map(|glob| glob.compile_matcher()).map_err(|error| bad_pattern(pattern, &error))
}

fn regex_matcher(query: &Grep) -> Result<RegexMatcher, Error> {
    RegexMatcherBuilder::new()
        .case_insensitive(query.case == Case::Insensitive)
        .case_smart(query.case == Case::Smart)
        .fixed_strings(query.literal)
        .line_terminator(Some(b'\n'))
        .build(&query.pattern)
        .map_err(|error| bad_pattern(&query.pattern, &error))
}

fn bad_pattern(pattern: &str, error: &dyn std::error::Error) -> Error {
    Error::BadPattern { pattern: pattern.to_owned(), reason: error.to_string() }
}

fn search_file(
    path: &WorkspacePath,
    relative: &Path,
    searcher: &mut Searcher,
    matcher: &RegexMatcher,
    left: &mut Left,
    grepped: &mut Grepped,
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
        // What the system did not say, the searcher did, which has only this to complain of.
        None => {
            Error::LongLines { path: path.as_path().to_path_buf(), limit: SEARCHED_AT_ONCE as u64 }
        }
    })
}

/// What a search may still return.
#[derive(Clone, Copy)]
struct Left {
    matches: usize,
    bytes: usize,
}

/// Collects lines until the limit is reached.
struct Lines<'a> {
    relative: &'a Path,
    left: &'a mut Left,
    grepped: &'a mut Grepped,
    is_binary: bool,
}

impl Lines<'_> {
    /// Takes a line and says whether there is room for more.
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
        // Context before a match that is no longer wanted is not wanted either.
        let is_wanted = self.left.matches > 0 || *context.kind() == SinkContextKind::After;
        Ok(!is_wanted || self.push(context.line_number(), context.bytes(), false))
    }

    fn binary_data(&mut self, _: &Searcher, _: u64) -> Result<bool, io::Error> {
        self.is_binary = true;
        Ok(false)
    }
}
