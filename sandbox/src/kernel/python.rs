//! Finds a Python that can run a kernel.

use std::{
    path::{Path, PathBuf},
    process::Stdio,
};

use tokio::process::Command;

use super::error::{Error, Result};

/// Succeeds if everything is there that the helper and the kernel import. It only looks, since
/// importing takes half a second.
const PROBE: &str = "import importlib.util, sys
sys.exit(not all(map(importlib.util.find_spec, ('ipykernel', 'jupyter_client', 'zmq'))))";

/// Where to look when nobody has named a Python.
const USUAL: [&str; 2] = ["python3", "python"];

/// The first of these that can run a kernel: the preferred one (the `python` of a shell, say), then
/// those on the `PATH`.
pub async fn find_python(preferred: Option<&Path>) -> Result<PathBuf> {
    let usual = USUAL.map(PathBuf::from);
    let candidates: Vec<_> = preferred.map(Path::to_owned).into_iter().chain(usual).collect();
    for candidate in &candidates {
        if has_kernel(candidate).await {
            return Ok(candidate.clone());
        }
    }
    Err(missing(&candidates))
}

/// Fails unless this Python can run a kernel.
pub(super) async fn check(python: &Path) -> Result<()> {
    if has_kernel(python).await { Ok(()) } else { Err(missing(&[python.to_owned()])) }
}

async fn has_kernel(python: &Path) -> bool {
    let mut command = Command::new(python);
    // Elsewhere than in a workspace, whose files could pass for the modules.
    command.args(["-c", PROBE]).current_dir("/").kill_on_drop(true);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().await.is_ok_and(|status| status.success())
}

fn missing(candidates: &[PathBuf]) -> Error {
    let names: Vec<_> = candidates.iter().map(|path| path.display().to_string()).collect();
    Error::Missing { tried: names.join(", "), install: names[0].clone() }
}
