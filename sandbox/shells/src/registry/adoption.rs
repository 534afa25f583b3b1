//! Shells that earlier owners have left: taken over, or cleared away.

use std::{fs, io};

use tracing::info;

use super::{Shells, kill_pane, lock, now, remove_files};
use crate::{
    Error, Result,
    launch::SecretPipe,
    ledger::{ShellDir, ShellId},
    marker::Expected,
    output::index::{IndexReader, Line, What},
    owner::{Found, Owner},
    shell::Shell,
};
use process_identity::ProcessId;
use sandbox_members::Members;

impl Shells {
    /// Takes over what earlier owners have left.
    pub(super) async fn find_shells(&self) -> Result<()> {
        let entries =
            fs::read_dir(self.config.shells()).map_err(Error::io("reading the ledger"))?;
        for directory in entries {
            let path = directory.map_err(Error::io("reading the ledger"))?.path();
            let Some(id) = path.file_name().and_then(|name| name.to_str()?.parse().ok()) else {
                continue;
            };
            // What could not be found out now may be found out by the next owner; until then nothing is lost.
            match self.adopt(&id).await? {
                Some(shell) => drop(lock(&self.shells).insert(id, shell)),
                None => self.clear_away(&id).await,
            }
        }
        Ok(())
    }

    /// Takes over a shell; there is none if it was half made, or is of a server that has died.
    async fn adopt(&self, id: &ShellId) -> Result<Option<Shell>> {
        let mut launcher = self.launcher(id, String::new());
        let entry = readable(launcher.dir.load()).map_err(Error::io("reading the ledger"))?;
        let server = self.server().await?;
        let Some(mut entry) = entry.filter(|entry| entry.server == server) else {
            return Ok(None);
        };
        let ask = "list-panes -a -F '#{pane_id} #{pane_dead} #{pane_pid} #{pane_pipe}'";
        let panes = launcher.tmux.ask(ask).await?;
        let mut panes = panes.lines().filter_map(|line| line.split_once(' '));
        let Some((_, about)) = panes.find(|(pane, _)| *pane == entry.pane) else {
            return Ok(None);
        };
        let (is_dead, about) = about.split_once(' ').unwrap_or_default();
        let (pid, is_piped) = about.split_once(' ').unwrap_or_default();
        // The former owner may have been killed while it replaced the shell. The number of a dead one may have been
        // used again.
        let leader = pid.parse().ok().and_then(ProcessId::of).filter(|_| is_dead == "0");
        entry.leader = leader.unwrap_or(entry.leader);
        launcher.mark.clone_from(&entry.mark);
        let past =
            readable(read_past(&launcher.dir)).map_err(Error::io("reading what has happened"))?;
        let Some((index, lines, expected)) = past else { return Ok(None) };
        let shell = launcher.shell(entry.leader).filter(ProcessId::is_alive);
        let pipe = SecretPipe::find(shell, &launcher.dir.pipe())
            .map_err(Error::io("finding the shell's secret pipe"))?;
        let found = Found {
            shell: shell.unwrap_or(entry.leader),
            // tmux may not have noticed yet that it has died.
            recorder: recorder(&lines).filter(|it| it.is_alive() && is_piped == "1"),
            entry,
            expected,
            lines,
            start_limit: self.config.start_limit,
        };
        let adopted = Owner::adopt(found, now(&launcher.dir)?);
        self.spawn(launcher, pipe, index, adopted).map(Some)
    }

    /// Removes a shell that is not there any more, or has never quite been.
    async fn clear_away(&self, id: &ShellId) {
        let launcher = self.launcher(id, String::new());
        info!(shell = %id, "its shell is gone; what is left is removed");
        kill_pane(&launcher).await;
        if let Ok(entry) = launcher.dir.load() {
            Members::of(entry.leader, &entry.mark).end(self.config.grace).await;
        }
        remove_files(&launcher);
    }
}

/// The index so far, with the reader that goes on from there, and what the latest command or start-up was.
fn read_past(dir: &ShellDir) -> io::Result<(IndexReader, Vec<Line>, Expected)> {
    let mut index = IndexReader::open(&dir.index())?;
    let lines = index.read_new()?;
    let expected = fs::read_to_string(dir.expected())?;
    let expected = Expected::parse(&expected).ok_or(io::ErrorKind::InvalidData)?;
    // A shell without its log is damaged.
    fs::metadata(dir.log())?;
    Ok((index, lines, expected))
}

/// The latest recorder, unless it has said that it has ended.
fn recorder(lines: &[Line]) -> Option<ProcessId> {
    let latest = lines.iter().rev().find_map(|line| match line.what {
        What::Opened { recorder } => Some(Some(recorder)),
        What::Closed => Some(None),
        What::Marker(_) | What::Lost { .. } => None,
    });
    latest.flatten()
}

/// A file that is not there, or that nobody will ever be able to read, was half made or is damaged. Any other trouble
/// may pass.
fn readable<T>(read: io::Result<T>) -> io::Result<Option<T>> {
    use io::ErrorKind::{InvalidData, NotFound, UnexpectedEof};
    match read {
        Ok(content) => Ok(Some(content)),
        Err(error) if matches!(error.kind(), InvalidData | NotFound | UnexpectedEof) => Ok(None),
        Err(error) => Err(error),
    }
}
