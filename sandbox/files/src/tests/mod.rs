//! Tests on a real file system, one module for each subject.

mod edit;
mod escape;
mod exclusive;
mod hash;
mod list;
mod read;
mod search;
mod tree;
mod version;
mod write;

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::{Workspace, WorkspacePath};

/// A temporary directory for each test: a workspace, and beside it files that must not be reached.
struct Fixture {
    base: TempDir,
    workspace: Workspace,
}

impl Fixture {
    fn new() -> Self {
        let base = tempfile::tempdir().unwrap();
        for directory in ["workspace", "outside"] {
            fs::create_dir(base.path().join(directory)).unwrap();
        }
        fs::write(base.path().join("outside/secret.txt"), "outside").unwrap();
        let workspace = Workspace::confined(&base.path().join("workspace")).unwrap();
        Self { base, workspace }
    }

    fn path(&self, name: impl AsRef<Path>) -> WorkspacePath {
        self.workspace.path(name).unwrap()
    }

    /// The real path of a file of the workspace.
    fn inside(&self, name: &str) -> PathBuf {
        self.base.path().join("workspace").join(name)
    }

    fn outside(&self, name: &str) -> PathBuf {
        self.base.path().join("outside").join(name)
    }

    /// Creates a file in the workspace.
    fn put(&self, name: &str, bytes: impl AsRef<[u8]>) -> WorkspacePath {
        let real = self.inside(name);
        fs::create_dir_all(real.parent().unwrap()).unwrap();
        fs::write(real, bytes).unwrap();
        self.path(name)
    }

    fn content(&self, name: &str) -> Vec<u8> {
        fs::read(self.inside(name)).unwrap()
    }

    /// Names in a directory of the workspace, sorted.
    fn names(&self, directory: &str) -> Vec<String> {
        names(&self.inside(directory))
    }
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}
