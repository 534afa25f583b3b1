//! Compiles the builtin that the shells load; the crate embeds it.

use std::{env, error::Error, path::Path};

const SOURCE: &str = "src/launch/builtin.c";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed={SOURCE}");
    let library = Path::new(&env::var("OUT_DIR")?).join("builtin.so");
    // Linked with no library: bash provides all functions that it calls, whatever C library bash was built with.
    let status = cc::Build::new()
        .opt_level(2)
        .pic(true)
        .get_compiler()
        .to_command()
        .args(["-shared", "-nostdlib", "-fvisibility=hidden", "-U_FORTIFY_SOURCE", "-s"])
        // Not even `enable -d` can unload it while it runs.
        .args(["-Wl,-z,nodelete", "-o"])
        .args([library.as_path(), Path::new(SOURCE)])
        .status()?;
    if !status.success() {
        return Err(format!("the C compiler failed on {SOURCE}: {status}").into());
    }
    Ok(())
}
