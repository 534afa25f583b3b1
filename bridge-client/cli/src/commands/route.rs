//! The members of the parameters by which the daemon chooses a runtime.

use std::path::{Component, Path, PathBuf};

use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use crate::cli::target::Target;
use crate::failure::Failure;

/// The choice of a runtime: by its id, by a directory that it has open, by both or by neither.
#[derive(Clone, Debug, Default)]
pub struct Route {
    runtime_id: Option<String>,
    directory: Option<PathBuf>,
}

impl Route {
    /// Reads the flags. A directory that exists here is replaced by its real absolute path. A directory that does not
    /// exist here may be one of another machine, so it only has to be absolute.
    pub fn to(target: &Target) -> Result<Self, Failure> {
        let directory = target.directory.as_deref().map(real).transpose()?;
        Ok(Self { runtime_id: target.runtime.clone(), directory })
    }

    /// The path of a file as it is sent. A relative path begins at the directory of `--in`, if that was given. `..` at
    /// its beginning is resolved here, because only a path without `..` chooses a runtime. This is safe because the
    /// directory is a real path without links. A `..` behind other names, which may be links, stays.
    pub fn file(&self, path: &str) -> String {
        let Some(directory) = &self.directory else { return path.to_owned() };
        let (mut base, mut rest) = (directory.as_path(), Path::new(path).components());
        loop {
            let before = rest.clone();
            match rest.next() {
                Some(Component::ParentDir) => base = base.parent().unwrap_or(base),
                Some(Component::CurDir) => {}
                Some(_) => return text(&base.join(before.as_path())),
                None => return text(base),
            }
        }
    }

    /// The choice of the runtime that has this file, if its path is absolute. For methods whose parameters have no
    /// `path`.
    pub fn by(&self, file: &str) -> Self {
        let file = PathBuf::from(file);
        match file.is_absolute() {
            true => Self { directory: Some(file), ..self.clone() },
            false => self.clone(),
        }
    }

    /// The parameters with the members that choose the runtime. If the method has a `path` of its own, that stays and
    /// chooses the runtime.
    pub fn added_to(&self, params: &impl Serialize) -> Box<RawValue> {
        const PRINTS: &str = "our own types always print";
        let directory = self.directory.as_deref().map(text);
        if self.runtime_id.is_none() && directory.is_none() {
            return to_raw_value(params).expect(PRINTS);
        }
        let mut params = serde_json::to_value(params).expect(PRINTS);
        if let Value::Object(members) = &mut params {
            for (name, value) in [("runtimeId", &self.runtime_id), ("path", &directory)] {
                if let Some(value) = value {
                    members.entry(name).or_insert_with(|| json!(value));
                }
            }
        }
        to_raw_value(&params).expect(PRINTS)
    }
}

fn real(path: &Path) -> Result<PathBuf, Failure> {
    let unusable =
        |reason: &str| Failure::File { path: path.to_owned(), reason: reason.to_owned() };
    let real = match path.canonicalize() {
        Ok(real) if real.is_dir() => real,
        Ok(_) => return Err(unusable("--in needs a directory")),
        Err(_) if path.is_absolute() => path.to_owned(),
        Err(_) => {
            return Err(unusable("there is no such directory here: give --in an absolute path"));
        }
    };
    match real.to_str() {
        Some(_) => Ok(real),
        None => Err(unusable("its name is not valid UTF-8, so it cannot be sent")),
    }
}

/// The path as text. All paths here have been checked to be UTF-8.
fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route(runtime: Option<&str>, directory: Option<&str>) -> Route {
        let target =
            Target { runtime: runtime.map(str::to_owned), directory: directory.map(Into::into) };
        Route::to(&target).unwrap()
    }

    fn sent(route: &Route, params: Value) -> Value {
        serde_json::from_str(route.added_to(&params).get()).unwrap()
    }

    #[test]
    fn members_that_choose_the_runtime_are_added() {
        let params = json!({"shell": "main"});
        assert_eq!(sent(&route(None, None), params.clone()), params);
        assert_eq!(
            sent(&route(Some("w1"), Some("/no/such")), params),
            json!({"shell": "main", "runtimeId": "w1", "path": "/no/such"})
        );
        let own = json!({"path": "/elsewhere/a"});
        assert_eq!(sent(&route(None, Some("/no/such")), own.clone()), own, "the file's own path");
    }

    #[test]
    fn relative_files_begin_at_the_directory() {
        let here = route(None, Some("/no/such"));
        assert_eq!(here.file("a/b"), "/no/such/a/b");
        assert_eq!(here.file("."), "/no/such");
        assert_eq!(here.file("/abs"), "/abs");
        assert_eq!(here.file("../a"), "/no/a");
        assert_eq!(here.file("./../../../a"), "/a");
        assert_eq!(here.file("a/../b"), "/no/such/a/../b", "a may be a link");
        assert_eq!(route(Some("w1"), None).file("a"), "a");
    }

    #[test]
    fn an_absolute_file_chooses_the_runtime() {
        let moved = json!({"from": "/w/a", "to": "b"});
        for directory in [None, Some("/no/such")] {
            let by_file = sent(&route(None, directory).by("/w/a"), moved.clone());
            assert_eq!(by_file["path"], "/w/a");
        }
        assert_eq!(sent(&route(None, None).by("a"), moved.clone()), moved);
    }

    #[test]
    fn directories_are_sent_by_their_real_path() {
        let folder = tempfile::tempdir().unwrap();
        let real = folder.path().canonicalize().unwrap();
        std::fs::create_dir(real.join("to")).unwrap();
        std::os::unix::fs::symlink("to", real.join("link")).unwrap();
        let link = real.join("link");
        assert_eq!(
            route(None, link.to_str()).file("a"),
            real.join("to/a").to_str().unwrap(),
            "links are resolved here"
        );
        std::fs::write(real.join("file"), "").unwrap();
        for wrong in [real.join("file"), PathBuf::from("no/such")] {
            let target = Target { runtime: None, directory: Some(wrong) };
            assert!(matches!(Route::to(&target), Err(Failure::File { .. })));
        }
    }
}
