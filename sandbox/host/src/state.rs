//! Where the state of a sandbox's shells is on disk.
//!
//! The state directory is in the private directory of the connection files. Its name is made of the
//! session, the workspace and the policy: a sandbox that is started again with the same three
//! adopts the shells of one that was killed. tmux runs this same program as the recorder of each
//! shell, and as the keeper that ends the shells when no owner has come back within the lease; so
//! no second program must be found.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use bridge_protocol::SessionId;
use connection_file::Directory;
use sandbox_isolation::Policy;
use sha2::{Digest, Sha256};

/// The private directory of this user in which state directories are, unless the user names another: the directory of
/// the connection files. It is created if it is missing. There is no fallback in the directory for temporary files,
/// where another user could take the name first.
pub fn runtime_directory() -> Result<PathBuf, connection_file::Error> {
    let directory = Directory::locate(|name| std::env::var(name).ok())?;
    directory.prepare()?;
    Ok(directory.path().to_owned())
}

/// The state directory of a session's shells in a workspace. Its path is short, since it holds a
/// socket. Shells with different policies are never in the same directory: a sandbox with a policy
/// must not adopt shells without it.
pub fn root(runtime: &Path, session: &SessionId, workspace: &Path, policy: &Policy) -> PathBuf {
    let mut digest = Sha256::new();
    digest.update(session.as_str());
    digest.update([0]);
    digest.update(workspace.as_os_str().as_bytes());
    if !policy.is_empty() {
        for argument in policy.to_arguments() {
            digest.update([0]);
            digest.update(argument.as_bytes());
        }
    }
    let digest = digest.finalize();
    let name: String = digest[..8].iter().map(|byte| format!("{byte:02x}")).collect();
    runtime.join(format!("sandbox-{name}"))
}

/// Removes a state directory if it is empty. If it is not, its content belongs to shells of a
/// killed owner, or to an owner that has come meanwhile.
pub(crate) fn remove_unused(root: &Path) {
    // Fails if the directory is not empty, or gone: both are fine.
    let _ = std::fs::remove_dir(root);
}

#[cfg(test)]
mod tests {
    use sandbox_isolation::{Level, Limits};

    use super::*;

    #[test]
    fn session_and_workspace_make_the_name() {
        let session = "a".parse().unwrap();
        let limits = Limits { processes: Some(9), ..Limits::default() };
        let limited = Policy { limits, ..Policy::default() };
        let confined = Policy { level: Level::Landlock, ..Policy::default() };
        let [limited, confined] = [limited, confined]
            .map(|policy| root("/run".as_ref(), &session, "/w".as_ref(), &policy));
        let root = |session: &str, workspace: &str| {
            let session = session.parse().unwrap();
            root(Path::new("/run"), &session, Path::new(workspace), &Policy::default())
        };
        assert_ne!(root("a", "/w"), confined);
        assert_ne!(root("a", "/w"), limited);
        assert_eq!(root("a", "/w"), root("a", "/w"));
        assert_ne!(root("a", "/w"), root("b", "/w"));
        assert_ne!(root("a", "/w"), root("a", "/v"));
        assert_eq!(root("a", "/w").as_os_str().len(), "/run/sandbox-0123456789abcdef".len());
    }
}
