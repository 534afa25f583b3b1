//! Views of files and directories for display.

use std::path::Path;

use bridge_protocol::methods::file;
use sandbox_files::{line_count, select_lines};

use super::{Files, path_string};
use crate::action::{ActionError, ReadContent};
use crate::tools::Tools;

impl<T: Tools> Files<T> {
    /// Views a file, some lines of it, or a directory.
    pub(super) async fn view(
        &self,
        path: &Path,
        range: Option<[i64; 2]>,
    ) -> Result<ReadContent, ActionError> {
        let is_directory = self.stat(path).await?.kind == file::FileKind::Directory;
        let Some([first, last]) = range else {
            return if is_directory {
                self.view_directory(path).await
            } else {
                self.view_whole(path).await
            };
        };
        let wrong = |hint: String| ActionError::Argument {
            name: "view_range",
            value: format!("[{first}, {last}]"),
            hint,
        };
        if is_directory {
            return Err(wrong("A directory has no lines; omit the range.".into()));
        }
        let text = self.document(path).await?.text;
        let lines = line_count(&text);
        let from = usize::try_from(first).unwrap_or(0);
        if from < 1 || from > lines {
            return Err(wrong(format!("The first line must be in the range 1 to {lines}.")));
        }
        if last != -1 && last < first {
            return Err(wrong("The last line must not come before the first.".into()));
        }
        let to = usize::try_from(last).unwrap_or(lines);
        let chosen = select_lines(&text, from, to.min(lines));
        let chosen = chosen.strip_suffix('\n').unwrap_or(chosen);
        Ok(ReadContent::Lines {
            text: chosen.to_owned(),
            first: from,
            only: (to > lines).then_some(lines),
        })
    }

    async fn view_whole(&self, path: &Path) -> Result<ReadContent, ActionError> {
        Ok(ReadContent::Lines { text: self.document(path).await?.text, first: 1, only: None })
    }

    async fn view_directory(&self, path: &Path) -> Result<ReadContent, ActionError> {
        let params =
            file::ListParams { path: path_string(path), nested: true, hidden: false, limit: None };
        let listing = self.call::<file::List>(&params).await?;
        let top = path_string(path);
        let top = top.trim_end_matches('/');
        let show = |entry: &file::FileEntry| {
            let is_directory = entry.target.unwrap_or(entry.kind) == file::FileKind::Directory;
            format!("{top}/{}{}", entry.path, if is_directory { "/" } else { "" })
        };
        let mut entries = vec![format!("{top}/")];
        entries.extend(listing.entries.iter().map(show));
        Ok(ReadContent::Directory { entries, hidden: listing.hidden_left_out })
    }
}
