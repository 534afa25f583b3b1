//! Where the shells of a daemon lie on disk, and the helper programs that keep them.
//!
//! The state directory lies beside the connection files, is as private as they are, and has a name made
//! of the session and the workspace: whoever starts a daemon for both again finds the shells of one
//! that was killed. tmux runs this very program as recorder of each shell, and as keeper that ends
//! them when no daemon has come back within the lease; so there is no second program to be found.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use anyhow::Context;
use bridge_protocol::SessionId;
use clap::Subcommand;
use sandbox::isolation::{Level, confine};
use sandbox::shell::{Config, Shells, enter, keep, record};
use sha2::{Digest, Sha256};

/// What tmux, the keeper and kernels run us for. Not for people.
#[derive(Debug, Subcommand)]
pub enum Helper {
    /// Record a shell
    #[command(hide = true)]
    Record {
        /// Bytes that the log may hold
        #[arg(long)]
        quota: u64,
        /// The shell's directory
        directory: PathBuf,
    },
    /// Watch over shells whose daemon was killed
    #[command(hide = true)]
    Keep {
        /// The state directory
        root: PathBuf,
    },
    /// Take on a shell's policy and become it
    #[command(hide = true)]
    Enter {
        /// The shell's directory
        directory: PathBuf,
        /// The shell and its arguments
        #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
        command: Vec<OsString>,
    },
    /// Take on a policy and become a command
    #[command(hide = true)]
    Confine {
        /// The policy, `--`, and the command with its arguments
        #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
    /// End shells whose lease is over
    #[command(hide = true)]
    Sweep {
        /// The state directory
        root: PathBuf,
    },
}

impl Helper {
    /// Does what it is for. There is no runtime and no log: recorders are many, and must be small.
    pub fn run(self) -> anyhow::Result<()> {
        match self {
            Self::Record { quota, directory } => {
                record(&directory, quota, io::stdin().lock()).context("recording")
            }
            Self::Enter { directory, command } => {
                match enter(&directory, command).context("confining the shell")? {}
            }
            Self::Confine { arguments } => match confine(arguments).context("confining")? {},
            Self::Keep { root } => keep(&root).context("keeping"),
            Self::Sweep { root } => {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
                runtime.block_on(Shells::sweep(config(root.clone())?))?;
                // Empty only if the lease was over and no daemon has come back.
                let _ = std::fs::remove_dir(&root);
                Ok(())
            }
        }
    }
}

/// The state directory of a session's shells in a workspace. Short, since it holds a socket. Free shells
/// and confined ones are never in the same: a daemon that confines must not find free ones.
pub(super) fn root(runtime: &Path, session: &SessionId, workspace: &Path, level: Level) -> PathBuf {
    let mut digest = Sha256::new();
    digest.update(session.as_str());
    digest.update([0]);
    digest.update(workspace.as_os_str().as_bytes());
    if level != Level::None {
        digest.update([0]);
        digest.update(level.name());
    }
    let digest = digest.finalize();
    let name: String = digest[..8].iter().map(|byte| format!("{byte:02x}")).collect();
    runtime.join(format!("sandbox-{name}"))
}

/// Settings of the shells.
pub(super) fn config(root: PathBuf) -> anyhow::Result<Config> {
    Ok(Config::new(root, std::env::current_exe().context("finding this program")?))
}

/// Removes the state directory of shells that its owner has ended. A failure leaves private files behind
/// that the next daemon of this session clears away.
pub(super) fn remove(root: &Path) {
    let _ = std::fs::remove_dir_all(root);
}

/// Removes a state directory that was prepared in vain, unless a killed daemon has left shells in it.
pub(super) fn remove_unused(root: &Path) {
    if std::fs::remove_dir(root.join("sessions")).is_ok() {
        remove(root);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn session_and_workspace_make_the_name() {
        let session = "a".parse().unwrap();
        let confined = root("/run".as_ref(), &session, "/w".as_ref(), Level::Landlock);
        let root = |session: &str, workspace: &str| {
            let session = session.parse().unwrap();
            root(Path::new("/run"), &session, Path::new(workspace), Level::None)
        };
        assert_ne!(root("a", "/w"), confined);
        assert_eq!(root("a", "/w"), root("a", "/w"));
        assert_ne!(root("a", "/w"), root("b", "/w"));
        assert_ne!(root("a", "/w"), root("a", "/v"));
        assert_eq!(root("a", "/w").as_os_str().len(), "/run/sandbox-0123456789abcdef".len());
    }
}
