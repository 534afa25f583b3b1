//! Rules of `.gitignore`, `.ignore` and `.git/info/exclude` files.
//!
//! A repository is hostile input, and so are these files: one can be a pipe, a link to a device, or
//! a text that a parser of patterns cannot survive. So they are opened and read here, under limits,
//! and never by the library that walks the directories. A file or a line beyond the limits has no
//! rules.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use rustix::fs::OFlags;

use super::pattern::is_plain_glob;
use super::search::Filter;

/// The largest file of rules in bytes.
const FILE_BYTES: u64 = 256 << 10;
/// The largest number of rules in one file.
const RULES: usize = 10_000;

/// Decides which entries a walk leaves out. The walk must ask about a directory before it asks
/// about the entries below it, as a depth-first walk does.
#[derive(Debug)]
pub(super) struct IgnoreRules {
    filter: Filter,
    /// The rules of the directories from the root of the file system to the latest one that the
    /// walk has entered.
    directories: Vec<Directory>,
}

#[derive(Debug)]
struct Directory {
    path: PathBuf,
    ignore: Gitignore,
    gitignore: Gitignore,
    exclude: Gitignore,
    is_repository: bool,
}

impl IgnoreRules {
    /// The rules for a walk that begins in this directory. Rules in directories above it count, as
    /// for git: it may be a part of a repository.
    pub(super) fn new(top: &Path, filter: Filter) -> Self {
        let mut rules = Self { filter, directories: Vec::new() };
        if !filter.ignored {
            let mut above: Vec<_> = top.ancestors().skip(1).collect();
            above.reverse();
            rules.directories = above.into_iter().map(Directory::read).collect();
        }
        rules
    }

    /// Whether the walk shows this entry and, if it is a directory, enters it.
    pub(super) fn includes(&mut self, path: &Path, is_directory: bool) -> bool {
        let is_hidden = path.file_name().is_some_and(|name| name.as_bytes().starts_with(b"."));
        if self.filter.ignored {
            return self.filter.hidden || !is_hidden;
        }
        while self.directories.last().is_some_and(|last| !path.starts_with(&last.path)) {
            self.directories.pop();
        }
        match self.decide(path, is_directory) {
            Decision::Exclude => return false,
            Decision::None if is_hidden && !self.filter.hidden => return false,
            Decision::None | Decision::Include => {}
        }
        if is_directory {
            self.enter(path);
        }
        true
    }

    /// Reads the rules of a directory that the walk enters.
    pub(super) fn enter(&mut self, path: &Path) {
        if !self.filter.ignored {
            self.directories.push(Directory::read(path));
        }
    }

    /// The nearest rule decides. Rules of `.ignore` come before those of `.gitignore`, which count
    /// inside of a repository only, up to its top.
    fn decide(&self, path: &Path, is_directory: bool) -> Decision {
        let is_in_repository = self.directories.iter().any(|directory| directory.is_repository);
        let (mut by_gitignore, mut by_exclude) = (Decision::None, Decision::None);
        let mut is_above_repository = !is_in_repository;
        for directory in self.directories.iter().rev() {
            let by_ignore = Decision::of(&directory.ignore, path, is_directory);
            if by_ignore != Decision::None {
                return by_ignore;
            }
            if !is_above_repository {
                let of = |rules| Decision::of(rules, path, is_directory);
                by_gitignore = by_gitignore.or_else(|| of(&directory.gitignore));
                by_exclude = by_exclude.or_else(|| of(&directory.exclude));
            }
            is_above_repository |= directory.is_repository;
        }
        by_gitignore.or_else(|| by_exclude)
    }
}

impl Directory {
    fn read(path: &Path) -> Self {
        let git = path.join(".git");
        Self {
            path: path.to_path_buf(),
            ignore: rules(path, &path.join(".ignore")),
            gitignore: rules(path, &path.join(".gitignore")),
            exclude: rules(path, &git.join("info/exclude")),
            is_repository: [git, path.join(".jj")].iter().any(|mark| mark.exists()),
        }
    }
}

/// The decision of a set of rules about an entry; `None` if no rule matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Decision {
    None,
    Exclude,
    Include,
}

impl Decision {
    fn of(rules: &Gitignore, path: &Path, is_directory: bool) -> Self {
        match rules.matched(path, is_directory) {
            Match::None => Self::None,
            Match::Ignore(_) => Self::Exclude,
            Match::Whitelist(_) => Self::Include,
        }
    }

    fn or_else(self, other: impl FnOnce() -> Self) -> Self {
        if self == Self::None { other() } else { self }
    }
}

/// The rules of one file, for entries below `directory`.
fn rules(directory: &Path, file: &Path) -> Gitignore {
    let Some(text) = read(file) else { return Gitignore::empty() };
    let mut builder = GitignoreBuilder::new(directory);
    let lines = text.lines().filter(|line| is_plain_glob(line)).take(RULES);
    for line in lines {
        // A line that is no pattern is no rule.
        let _ = builder.add_line(None, line);
    }
    builder.build().unwrap_or_else(|_| Gitignore::empty())
}

/// The text of a small regular file. Links are not followed, as git does not follow them: they
/// could lead to a device, for which opening is already an act.
fn read(path: &Path) -> Option<String> {
    let is_small = |file: &fs::Metadata| file.is_file() && file.len() <= FILE_BYTES;
    if !fs::symlink_metadata(path).is_ok_and(|file| is_small(&file)) {
        return None;
    }
    // Between the two checks the file may have been replaced.
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file =
        File::options().read(true).custom_flags(flags.bits().cast_signed()).open(path).ok()?;
    if !is_small(&file.metadata().ok()?) {
        return None;
    }
    let mut bytes = Vec::new();
    file.take(FILE_BYTES).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    Some(text.strip_prefix('\u{feff}').unwrap_or(&text).to_owned())
}
