//! What a confined program may read: everything except for certain directories.
//!
//! Landlock rules only allow, and a rule for a directory holds for everything below it. So to keep a directory from
//! being read, the rules allow its siblings, the siblings of its parent, and so on up to the root. An entry that
//! appears later beside one of these directories is not readable for a program that is already confined. Directories
//! can be listed everywhere: only the contents of files are kept.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

/// Devices are not readable as a whole: root owns the disks, which contain all files.
const DEVICES: &str = "/dev";

/// The paths below which, or at which, everything may be read, so that these directories are not readable. Links
/// are left out: their targets count.
pub(super) fn readable_paths(unreadable: &[PathBuf]) -> Vec<PathBuf> {
    let mut hidden: Vec<_> = unreadable.iter().map(|path| real_path(path)).collect();
    hidden.push(DEVICES.into());
    let mut found = Vec::new();
    visit(PathBuf::from("/"), &hidden, &mut found);
    found
}

fn visit(path: PathBuf, hidden: &[PathBuf], found: &mut Vec<PathBuf>) {
    if hidden.contains(&path) {
        return;
    }
    let below: BTreeSet<OsString> = hidden
        .iter()
        .filter_map(|it| Some(first_component(it.strip_prefix(&path).ok()?)))
        .collect();
    if below.is_empty() {
        found.push(path);
        return;
    }
    // A directory that may be entered but not listed: what is beside the hidden paths is unknown, and not readable.
    let entries = fs::read_dir(&path).map(|entries| entries.flatten().map(|it| it.file_name()));
    let names: BTreeSet<_> = entries.into_iter().flatten().chain(below).collect();
    for name in names {
        let entry = path.join(name);
        if fs::symlink_metadata(&entry).is_ok_and(|metadata| !metadata.is_symlink()) {
            visit(entry, hidden, found);
        }
    }
}

fn first_component(path: &Path) -> OsString {
    path.iter().next().unwrap_or_default().to_owned()
}

/// The path without links, as far as it exists.
fn real_path(path: &Path) -> PathBuf {
    for above in path.ancestors() {
        if let (Ok(real), Ok(rest)) = (above.canonicalize(), path.strip_prefix(above)) {
            return if rest.as_os_str().is_empty() { real } else { real.join(rest) };
        }
    }
    path.to_owned()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn siblings_at_each_level_are_readable_and_links_do_not_count() {
        let base = tempfile::tempdir().unwrap();
        let base = base.path().canonicalize().unwrap();
        for name in ["run/bridge/state", "run/other", "home", "run-more"] {
            fs::create_dir_all(base.join(name)).unwrap();
        }
        fs::write(base.join("run/file"), "").unwrap();
        symlink(base.join("run/bridge"), base.join("link")).unwrap();
        for hidden in ["run/bridge", "link", "run/missing/deeper"] {
            let paths = readable_paths(&[base.join(hidden)]);
            let paths: Vec<_> =
                paths.iter().filter_map(|path| path.strip_prefix(&base).ok()?.to_str()).collect();
            let mut expected = vec!["home", "run/bridge", "run/file", "run/other", "run-more"];
            expected.retain(|path| *path != "run/bridge" || hidden == "run/missing/deeper");
            assert_eq!(paths, expected, "{hidden}");
        }
        let paths = readable_paths(&[]);
        assert!(paths.contains(&"/usr".into()) && !paths.contains(&"/".into()));
        assert!(!paths.iter().any(|path| path.starts_with("/dev")));
    }
}
