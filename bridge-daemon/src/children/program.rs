//! Where the programs of the daemon's children are.

use std::env;
use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Finds a program beside this one, or else on the PATH.
pub fn find(name: &str) -> Option<PathBuf> {
    let own = env::current_exe().ok();
    let beside = own.as_deref().and_then(Path::parent);
    find_in(name, beside, env::var_os("PATH").as_deref())
}

fn find_in(name: &str, beside: Option<&Path>, path: Option<&OsStr>) -> Option<PathBuf> {
    let listed = path.map(|path| env::split_paths(path).collect::<Vec<_>>()).unwrap_or_default();
    let folders = beside.map(Path::to_owned).into_iter().chain(listed);
    folders.map(|folder| folder.join(name)).find(|file| is_program(file))
}

fn is_program(file: &Path) -> bool {
    file.metadata().is_ok_and(|facts| facts.is_file() && facts.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_program_beside_ours_comes_before_one_on_the_path() {
        let [beside, listed] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let install = |folder: &Path, name: &str, mode: u32| {
            let file = folder.join(name);
            fs::write(&file, "").unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
            file
        };
        let path = env::join_paths([Path::new("/nonexistent"), listed.path()]).unwrap();
        let find = |name: &str| find_in(name, Some(beside.path()), Some(&path));
        let on_path = install(listed.path(), "both", 0o755);
        install(beside.path(), "both", 0o644);
        assert_eq!(find("both"), Some(on_path), "a file that cannot be executed is none");
        let near = install(beside.path(), "both", 0o755);
        assert_eq!(find("both"), Some(near));
        assert_eq!(find("nothing"), None);
    }
}
