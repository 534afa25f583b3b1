//! A Python with IPython, in an environment that `scripts/setup-kernel` creates.

use std::{
    process::{Command, Stdio},
    sync::OnceLock,
};

/// Returns the path of a Python that can run kernels, and creates its environment if necessary.
pub fn kernel_python() -> &'static str {
    static PYTHON: OnceLock<String> = OnceLock::new();
    PYTHON.get_or_init(|| {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/setup-kernel");
        let output = Command::new(script).stderr(Stdio::inherit()).output().unwrap();
        assert!(output.status.success(), "scripts/setup-kernel failed: {}", output.status);
        String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
    })
}
