//! Finds a Python that can run a kernel.

use std::{
    path::{Path, PathBuf},
    process::Stdio,
};

use tokio::process::Command;

use super::error::{Error, Result};
use sandbox_isolation::Confinement;

/// Checks that all modules exist that the helper and the kernel import. It does not import them,
/// since that takes half a second.
const PROBE: &str = "import importlib.util, sys
sys.exit(0 if all(map(importlib.util.find_spec, ('ipykernel', 'jupyter_client', 'zmq'))) else 77)";
/// The probe's exit code if a module is missing. Python's own failures exit with 1 or 2.
const LACKS_KERNEL: i32 = 77;

/// Programs to try on the `PATH`.
const USUAL: [&str; 2] = ["python3", "python"];

/// Finds the first Python that can run a kernel: the preferred one (such as the `python` of a
/// shell), then those on the `PATH`.
///
/// They are tried under the same policy as the kernel, because a Python may lie in a workspace.
pub async fn find_python(
    preferred: Option<&Path>,
    confinement: Option<&Confinement>,
) -> Result<PathBuf> {
    let usual = USUAL.map(PathBuf::from);
    let candidates: Vec<_> = preferred.map(Path::to_owned).into_iter().chain(usual).collect();
    for candidate in &candidates {
        if check(candidate, confinement).await.is_ok() {
            return Ok(candidate.clone());
        }
    }
    let names: Vec<_> = candidates.iter().map(|path| path.display().to_string()).collect();
    Err(Error::Missing { tried: names.join(", "), install: names[0].clone() })
}

/// Fails unless this Python can run a kernel.
pub(super) async fn check(python: &Path, confinement: Option<&Confinement>) -> Result<()> {
    let mut command = command(python, confinement);
    // Not in a workspace, where a file could be taken for one of the modules.
    command.args(["-c", PROBE]).current_dir("/").kill_on_drop(true);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let reason = match command.status().await {
        Ok(status) if status.success() => return Ok(()),
        Ok(status) if status.code() == Some(LACKS_KERNEL) => {
            let install = format!("`{} -m pip install ipykernel`", python.display());
            format!("it has no IPython kernel: install one with {install}")
        }
        Ok(status) => format!("it is not a working Python 3 ({status}): repair it"),
        Err(error) => format!("it cannot be started ({error}): correct the path"),
    };
    Err(Error::Unusable { python: python.to_owned(), reason })
}

/// The command line of a Python, confined if there is a policy.
pub(super) fn command(python: &Path, confinement: Option<&Confinement>) -> Command {
    match confinement {
        Some(confinement) => confinement.command(python).into(),
        None => Command::new(python),
    }
}
