//! Lists a directory, one or two levels deep.

use std::collections::VecDeque;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use cap_std::fs::{FileType, FileTypeExt};

use super::{Error, Kind, Links, WorkspacePath, stat};

/// How many levels to list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// The entries of the directory.
    One,
    /// Also the entries of directories among them.
    Two,
}

/// How to list.
#[derive(Clone, Copy, Debug)]
pub struct ListOptions {
    /// How many levels to list.
    pub depth: Depth,
    /// Whether to show entries whose name begins with a dot.
    pub hidden: bool,
    /// The largest number of entries. If there are more, [`Listing::truncated`] is set.
    pub limit: usize,
}

/// One entry of a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedEntry {
    /// The path relative to the listed directory.
    pub path: PathBuf,
    /// The kind of the entry; links are not followed.
    pub kind: Kind,
    /// The kind of a link's target; `None` if it does not exist or is outside the workspace.
    pub target: Option<Kind>,
}

/// The entries of a directory, sorted by path, byte by byte.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing {
    /// The entries.
    pub entries: Vec<ListedEntry>,
    /// Hidden entries of the directory itself that were left out.
    pub hidden_left_out: usize,
    /// Whether there are more entries than the limit.
    pub truncated: bool,
    /// Directories on the second level that could not be read.
    pub unreadable: Vec<PathBuf>,
}

impl Default for ListOptions {
    fn default() -> Self {
        Self { depth: Depth::One, hidden: false, limit: 10_000 }
    }
}

/// Lists a directory. Links to directories are followed for the second level.
pub fn list(path: &WorkspacePath, options: ListOptions) -> Result<Listing, Error> {
    let mut listing = Listing {
        entries: Vec::new(),
        hidden_left_out: 0,
        truncated: false,
        unreadable: Vec::new(),
    };
    listing.hidden_left_out = listing.add(path, PathBuf::new(), options)?;
    if options.depth == Depth::Two {
        let leads_into =
            |entry: &&ListedEntry| entry.target.unwrap_or(entry.kind) == Kind::Directory;
        let directories = listing.entries.iter().filter(leads_into);
        let mut directories: VecDeque<_> = directories.map(|entry| entry.path.clone()).collect();
        while let Some(directory) = directories.pop_front().filter(|_| !listing.truncated) {
            if listing.add(&path.join(&directory), directory.clone(), options).is_err() {
                listing.unreadable.push(directory);
            }
        }
    }
    listing
        .entries
        .sort_by(|a, b| a.path.as_os_str().as_bytes().cmp(b.path.as_os_str().as_bytes()));
    Ok(listing)
}

impl Listing {
    /// Adds the entries of one directory. Returns how many hidden entries were left out.
    fn add(
        &mut self,
        path: &WorkspacePath,
        prefix: PathBuf,
        options: ListOptions,
    ) -> Result<usize, Error> {
        let directory = path.open_directory()?;
        let mut left_out = 0;
        for entry in directory.entries().map_err(|source| path.failed(source))? {
            let entry = entry.map_err(|source| path.failed(source))?;
            let name = entry.file_name();
            if !options.hidden && name.as_bytes().starts_with(b".") {
                left_out += 1;
                continue;
            }
            if self.entries.len() == options.limit {
                self.truncated = true;
                continue;
            }
            let kind = entry.file_type().map_or(Kind::Other, kind_of);
            let target = match kind {
                Kind::Symlink => stat(&path.join(&name), Links::Follow).ok().map(|stat| stat.kind),
                _ => None,
            };
            self.entries.push(ListedEntry { path: prefix.join(name), kind, target });
        }
        Ok(left_out)
    }
}

fn kind_of(kind: FileType) -> Kind {
    match kind {
        kind if kind.is_file() => Kind::File,
        kind if kind.is_dir() => Kind::Directory,
        kind if kind.is_symlink() => Kind::Symlink,
        kind if kind.is_fifo() => Kind::Pipe,
        kind if kind.is_socket() => Kind::Socket,
        kind if kind.is_char_device() || kind.is_block_device() => Kind::Device,
        _ => Kind::Other,
    }
}
