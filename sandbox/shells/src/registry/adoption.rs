//! Shells that earlier owners have left: adopts the living ones and removes the rest.

use std::{fs, io};

use tracing::{info, warn};

use super::{Shells, kill_pane, lock, now, remove_files};
use crate::{
    Error, Result,
    launch::{NoncePipe, is_temporary},
    ledger::{ShellDir, ShellId},
    marker::Expected,
    output::index::{IndexEvent, IndexLine, IndexReader},
    owner::{Inherited, Owner},
    shell::Shell,
};
use process_identity::ProcessId;
use sandbox_members::Members;

impl Shells {
    /// Adopts the shells that earlier owners have left, and removes what is left of dead ones. A shell whose files
    /// cannot be read keeps them and is left to the next owner. An error that concerns all shells removes nothing.
    pub(super) async fn adopt_shells(&self) -> Result<()> {
        let entries =
            fs::read_dir(self.config.shells()).map_err(Error::io("reading the ledger"))?;
        for directory in entries {
            let path = directory.map_err(Error::io("reading the ledger"))?.path();
            let Some(id) = path.file_name().and_then(|name| name.to_str()?.parse().ok()) else {
                continue;
            };
            match self.adopt(&id).await {
                Ok(Some(shell)) => drop(lock(&self.shells).insert(id, shell)),
                Ok(None) => self.remove_dead_shell(&id).await,
                // The files of this shell are not as they should be; the other shells are not affected.
                Err(Error::Io { what, source }) if !is_temporary(&source) => {
                    warn!(shell = %id, what, error = %source, "a shell could not be adopted; the next owner tries again");
                }
                // tmux does not answer, or descriptors or memory are lacking: no shell can be adopted now.
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Adopts a shell. Returns `None` if it was not created completely, or belonged to a tmux server that has died.
    async fn adopt(&self, id: &ShellId) -> Result<Option<Shell>> {
        let mut setup = self.pane_setup(id, String::new());
        let entry = unless_damaged(setup.dir.load()).map_err(Error::io("reading the ledger"))?;
        let server = self.server().await?;
        let Some(mut entry) = entry.filter(|entry| entry.server == server) else {
            return Ok(None);
        };
        let ask = "list-panes -a -F '#{pane_id} #{pane_dead} #{pane_pid} #{pane_pipe}'";
        let panes = setup.tmux.ask(ask).await?;
        let mut panes = panes.lines().filter_map(|line| line.split_once(' '));
        let Some((_, about)) = panes.find(|(pane, _)| *pane == entry.pane) else {
            return Ok(None);
        };
        let (is_dead, about) = about.split_once(' ').unwrap_or_default();
        let (pid, is_piped) = about.split_once(' ').unwrap_or_default();
        // The earlier owner may have been killed while it replaced the shell, so tmux knows the leader better than
        // the entry. The process number of a dead pane may have been reused.
        let leader = pid.parse().ok().and_then(ProcessId::of).filter(|_| is_dead == "0");
        entry.leader = leader.unwrap_or(entry.leader);
        setup.mark.clone_from(&entry.mark);
        let history = unless_damaged(read_history(&setup.dir))
            .map_err(Error::io("reading the index and the digests"))?;
        let Some((index, lines, expected)) = history else { return Ok(None) };
        let shell = setup.shell(entry.leader).filter(ProcessId::is_alive);
        let pipe = NoncePipe::find(shell, &setup.dir.pipe())
            .map_err(Error::io("finding the shell's nonce pipe"))?;
        let found = Inherited {
            shell: shell.unwrap_or(entry.leader),
            // tmux may not have noticed yet that the recorder has died.
            recorder: recorder(&lines).filter(|it| it.is_alive() && is_piped == "1"),
            entry,
            expected,
            lines,
            start_limit: self.config.start_limit,
        };
        let adopted = Owner::adopt(found, now(&setup.dir)?);
        self.spawn(setup, pipe, index, adopted).map(Some)
    }

    /// Removes what is left of a shell that has died or was not created completely.
    async fn remove_dead_shell(&self, id: &ShellId) {
        let setup = self.pane_setup(id, String::new());
        let entry = match unless_damaged(setup.dir.load()) {
            Ok(entry) => entry,
            // The entry is the only record of the shell's processes, so it stays until they are ended.
            Err(error) => {
                warn!(shell = %id, %error, "a dead shell could not be removed; the next owner tries again");
                return;
            }
        };
        info!(shell = %id, "removing what is left of a dead shell");
        kill_pane(&setup).await;
        if let Some(entry) = entry {
            Members::of(entry.leader, &entry.mark).end(self.config.grace).await;
        }
        remove_files(&setup);
    }
}

/// Reads the index so far, and the digests of the latest command or start-up. The returned reader continues after
/// these lines.
fn read_history(dir: &ShellDir) -> io::Result<(IndexReader, Vec<IndexLine>, Expected)> {
    let mut index = IndexReader::open(&dir.index())?;
    let lines = index.read_new()?;
    let expected = fs::read_to_string(dir.expected())?;
    let expected = Expected::parse(&expected).ok_or(io::ErrorKind::InvalidData)?;
    // Without its log, a shell counts as damaged.
    fs::metadata(dir.log())?;
    Ok((index, lines, expected))
}

/// The latest recorder, unless it has recorded its own end.
fn recorder(lines: &[IndexLine]) -> Option<ProcessId> {
    let latest = lines.iter().rev().find_map(|line| match line.event {
        IndexEvent::Opened { recorder } => Some(Some(recorder)),
        IndexEvent::Closed => Some(None),
        IndexEvent::Marker(_) | IndexEvent::Lost { .. } => None,
    });
    latest.flatten()
}

/// Returns `None` for a file that is missing or can never be parsed: its shell was not created completely, or is
/// damaged. Any other error may be temporary.
fn unless_damaged<T>(read: io::Result<T>) -> io::Result<Option<T>> {
    use io::ErrorKind::{InvalidData, NotFound, UnexpectedEof};
    match read {
        Ok(content) => Ok(Some(content)),
        Err(error) if matches!(error.kind(), InvalidData | NotFound | UnexpectedEof) => Ok(None),
        Err(error) => Err(error),
    }
}
