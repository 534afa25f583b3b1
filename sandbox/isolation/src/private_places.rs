//! Where programs of this user keep connection files, sockets and state, which no confined program may read.

use std::path::{Path, PathBuf};

/// The directory of runtime directories on systems with a login manager.
const RUNTIME_DIRECTORIES: &str = "/run/user";
/// The name of our directory below the directories of the user.
const OURS: &str = "run-bridge";

/// The directories of this user in which daemons and sandboxes keep connection files, sockets and state.
///
/// A program that reads a connection file can act through its daemon, outside of the walls. `get` reads an environment
/// variable. The directory below the home directory counts only if it exists, or if there is no runtime
/// directory: to keep it from being read has the price that files which appear later in the home directory cannot be
/// read either.
pub fn private_places(get: impl Fn(&str) -> Option<PathBuf>) -> Vec<PathBuf> {
    let variable = |name: &str| get(name).filter(|path| path.is_absolute());
    let runtime = variable("XDG_RUNTIME_DIR");
    let state = variable("XDG_STATE_HOME");
    let home = variable("HOME").map(|home| home.join(".local/state"));
    let has_runtime = runtime.as_deref().is_some_and(Path::is_dir);
    let below_home = [state, home].into_iter().flatten().map(|path| path.join(OURS));
    let below_home = below_home.filter(|path| !has_runtime || path.exists());
    let mut places = vec![PathBuf::from(RUNTIME_DIRECTORIES)];
    places.extend(runtime);
    places.extend(below_home);
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_home_directory_counts_if_something_is_or_will_be_there() {
        let base = tempfile::tempdir().unwrap();
        let places = |runtime: bool| {
            private_places(|name| match name {
                "XDG_RUNTIME_DIR" => runtime.then(|| base.path().join("run")),
                "HOME" => Some(base.path().join("home")),
                _ => Some("relative".into()),
            })
        };
        let all = PathBuf::from(RUNTIME_DIRECTORIES);
        let runtime = base.path().join("run");
        let state = base.path().join("home/.local/state/run-bridge");
        assert_eq!(places(false), [all.clone(), state.clone()]);
        assert_eq!(places(true), [all.clone(), runtime.clone(), state.clone()], "it is missing");
        std::fs::create_dir(&runtime).unwrap();
        assert_eq!(places(true), [all.clone(), runtime.clone()]);
        std::fs::create_dir_all(&state).unwrap();
        assert_eq!(places(true), [all, runtime, state]);
    }
}
