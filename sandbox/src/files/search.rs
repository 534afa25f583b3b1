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
    /// Lines of context before and after each match.
    pub context: usize,
    /// What to pass over.
    pub filter: Filter,
    /// At most so many matching lines.
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
    /// Whether there are more matches than the limit.
    pub truncated: bool,
    /// Files and directories that could not be read.
    pub unreadable: usize,
}

/// Finds files below a directory whose path relative to it matches: `*` stops at slashes, `**`
/// does not, `{a,b}` and `[ab]` choose.
pub fn glob(
    directory: &WorkspacePath,
    pattern: &str,
    filter: Filter,
    limit: usize,
) -> Result<Found, Error> {
    let matcher = glob_matcher(pattern)?;
    directory.open_directory()?;
    let mut found = Found::default();
    for relative in walk(directory, filter).flat_map(|entry| proposal(directory, entry).ok()) {
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
    let matcher = regex_matcher(query)?;
    let files = query.files.as_deref().map(glob_matcher).transpose()?;
    let mut searcher = SearcherBuilder::new()
        .binary_detection(BinaryDetection::quit(0))
        .before_context(query.context)
        .after_context(query.context)
        .build();
    let mut grepped = Grepped::default();
    let mut left = query.limit;
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

fn walk(directory: &WorkspacePath, filter: Filter) -> Walk {
    WalkBuilder::new(directory.absolute())
        .hidden(!filter.hidden)
        .git_ignore(!filter.ignored)
        .git_exclude(!filter.ignored)
        .ignore(!filter.ignored)
        // What is found should depend on the workspace, not on who looks.
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
    left: &mut usize,
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
    searched.map_err(|source| path.failed(source))
}

/// Collects lines until the limit is reached.
struct Lines<'a> {
    relative: &'a Path,
    left: &'a mut usize,
    grepped: &'a mut Grepped,
    is_binary: bool,
}

impl Lines<'_> {
    fn push(&mut self, line: Option<u64>, bytes: &[u8], matches: bool) {
        let text = String::from_utf8_lossy(bytes);
        let text = text.trim_end_matches(['\r', '\n']);
        self.grepped.lines.push(GrepLine {
            path: self.relative.to_path_buf(),
            line: line.unwrap_or(0),
            text: text.chars().take(LINE_CHARACTERS).collect(),
            matches,
        });
    }
}

impl Sink for Lines<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> Result<bool, io::Error> {
        if *self.left == 0 {
            self.grepped.truncated = true;
            return Ok(false);
        }
        *self.left -= 1;
        self.push(found.line_number(), found.bytes(), true);
        Ok(true)
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> Result<bool, io::Error> {
        // Context before a match that is no longer wanted is not wanted either.
        if *self.left > 0 || *context.kind() == SinkContextKind::After {
            self.push(context.line_number(), context.bytes(), false);
        }
        Ok(true)
    }

    fn binary_data(&mut self, _: &Searcher, _: u64) -> Result<bool, io::Error> {
        self.is_binary = true;
        Ok(false)
    }
}
