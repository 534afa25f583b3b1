//! The rule by which a path chooses a runtime: the deepest workspace folder that contains the path.
//!
//! Paths are compared by whole names, as text. A path with `..` chooses nothing, because text alone does not say where
//! it leads.

/// The candidates with the deepest folder that contains the path: several if they have equally deep folders, none if no
/// folder contains it.
pub fn innermost<'a, T>(
    candidates: impl Iterator<Item = T> + Clone,
    folders: impl Fn(&T) -> &'a [String],
    path: &str,
) -> Vec<T> {
    let depth = |candidate: &T| deepest(folders(candidate), path);
    let best = candidates.clone().filter_map(|candidate| depth(&candidate)).max();
    candidates.filter(|candidate| best.is_some() && depth(candidate) == best).collect()
}

/// The number of names in the deepest of these folders that contains the path.
pub fn deepest(folders: &[String], path: &str) -> Option<usize> {
    folders.iter().filter_map(|folder| depth_if_inside(folder, path)).max()
}

/// Whether a path can be compared by its names: it is absolute and has no `..`.
pub fn is_comparable(path: &str) -> bool {
    path.starts_with('/') && names(path).all(|name| name != "..")
}

/// The number of names in a folder's path, if `path` is that folder or lies below it.
fn depth_if_inside(folder: &str, path: &str) -> Option<usize> {
    if !is_comparable(folder) || !is_comparable(path) {
        return None;
    }
    let mut below = names(path);
    let mut depth = 0;
    for name in names(folder) {
        if below.next() != Some(name) {
            return None;
        }
        depth += 1;
    }
    Some(depth)
}

fn names(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter(|name| !name.is_empty() && *name != ".")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_contains_paths_by_whole_names() {
        for (folder, path, depth) in [
            ("/a/b", "/a/b", Some(2)),
            ("/a/b", "/a/b/c", Some(2)),
            ("/a/b/", "/a//b/./c", Some(2)),
            ("/", "/a", Some(0)),
            ("/a/b", "/a/bc", None),
            ("/a/b", "/a", None),
            ("/a/b/c", "/a/b", None),
            ("a/b", "/a/b", None),
            ("/a/../b", "/b", None),
            ("/a", "/a/../b", None),
            ("", "/a", None),
        ] {
            assert_eq!(depth_if_inside(folder, path), depth, "{folder} {path}");
        }
    }

    #[test]
    fn the_deepest_folder_wins_and_equals_stay() {
        let all = [("a", vec!["/w"]), ("b", vec!["/x", "/w/in"]), ("c", vec!["/w/in/", "/w"])]
            .map(|(id, folders)| (id, folders.into_iter().map(str::to_owned).collect::<Vec<_>>()));
        let chosen = |path: &str| {
            let best = innermost(all.iter(), |(_, folders)| folders, path);
            best.into_iter().map(|(id, _)| *id).collect::<Vec<_>>()
        };
        assert_eq!(chosen("/w/in/file"), ["b", "c"]);
        assert_eq!(chosen("/w/inner"), ["a", "c"]);
        assert_eq!(chosen("/x"), ["b"]);
        assert_eq!(chosen("/other"), [""; 0]);
    }

    #[test]
    fn only_absolute_paths_without_parents_are_comparable() {
        for path in ["a", "", "./a", "/a/../b", "file:///a"] {
            assert!(!is_comparable(path), "{path}");
        }
        assert!(is_comparable("/") && is_comparable("/a/..b"));
    }
}
