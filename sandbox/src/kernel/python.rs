//! Finds a Python that can run a kernel.

use std::{
    path::{Path, PathBuf},
    process::Stdio,
};

use tokio::process::Command;

use super::error::{Error, Result};
use crate::isolation::Confinement;

/// Succeeds if everything is there that the helper and the kernel import. It only looks, since
/// importing takes half a second.
const PROBE: &str = "import importlib.util, sys
sys.exit(not all(map(importlib.util.find_spec, ('ipykernel', 'jupyter_client', 'zmq'))))";

/// Where to look when nobody has named a Python.
const USUAL: [&str; 2] = ["python3", "python"];

/// The first of these that can run a kernel: the preferred one (the `python` of a shell, say), then
/// those on the `PATH`.
///
/// They are tried under the same policy as the kernel: a Python may lie in a workspace.
pub async fn find_python(
    preferred: Option<&Path>,
    confinement: Option<&Confinement>,
) -> Result<PathBuf> {
    let usual = USUAL.map(PathBuf::from);
    let candidates: Vec<_> = preferred.map(Path::to_owned).into_iter().chain(usual).collect();
    for candidate in &candidates {
        if has_kernel(candidate, confinement).await {
            return Ok(candidate.clone());
        }
    }
    Err(missing(&candidates))
}

/// Fails unless this Python can run a kernel.
pub(super) async fn check(python: &Path, confinement: Option<&Confinement>) -> Result<()> {
    if has_kernel(python, confinement).await { Ok(()) } else { Err(missing(&[python.to_owned()])) }
}

async fn has_kernel(python: &Path, confinement: Option<&Confinement>) -> bool {
    let mut command = command(python, confinement);
    // Elsewhere than in a workspace, whose files could pass for the modules.
    command.args(["-c", PROBE]).current_dir("/").kill_on_drop(true);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().await.is_ok_and(|status| status.success())
}

/// Starts a Python, under a policy if there is one.
pub(super) fn command(python: &Path, confinement: Option<&Confinement>) -> Command {
    match confinement {
        Some(confinement) => confinement.command(python).into(),
        None => Command::new(python),
    }
}

fn missing(candidates: &[PathBuf]) -> Error {
    let names: Vec<_> = candidates.iter().map(|path| path.display().to_string()).collect();
    Error::Missing { tried: names.join(", "), install: names[0].clone() }
}
