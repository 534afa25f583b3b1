//! Starts a shell in a pane, with its recorder.

pub(crate) mod confine;

use std::{
    ffi::OsString,
    fs::{self, File, OpenOptions},
    io::{self, Read as _, Write as _},
    os::unix::{ffi::OsStrExt as _, fs::OpenOptionsExt as _},
    path::{Path, PathBuf},
    sync::Weak,
};

use rustix::fs::OFlags;

use crate::{Error, Result};
use crate::{
    config::Config,
    ledger::{ShellDir, ShellId, Size},
    marker::{Expected, Kind, Nonce, Seq},
    tmux::{Tmux, protect_format, quote},
};
use process_identity::{self as process, ProcessId};
use sandbox_members::MARK_VARIABLE;

/// What tmux runs in a pane: the shell, and a short sleep after it. tmux closes a pane when its process ends, even if
/// Linux has not delivered the last output of the terminal yet; that output would be lost. The traps prevent a Ctrl-C
/// for the shell from ending this script; the shell does not inherit them.
const LEADER_SCRIPT: &str = r#"trap : INT QUIT TSTP; "$@"; code=$?; sleep 0.05; exit $code"#;

/// The length of a nonce in the pipe with its prefix: a letter for its kind, `;`, the number of the command, `;` and
/// the nonce itself.
const NONCE_LENGTH: usize = 55;

/// A shell that has been started and is not at its prompt yet.
#[derive(Debug)]
pub(crate) struct Launched {
    pub(crate) pane: String,
    pub(crate) leader: ProcessId,
    pub(crate) pipe: NoncePipe,
}

/// Where to start the shell.
pub(crate) enum LaunchTarget<'a> {
    NewPane {
        size: Size,
    },
    /// In a pane whose shell has died. Its recorder continues, if there is one.
    DeadPane {
        pane: &'a str,
        is_recorded: bool,
    },
}

/// The settings with which a shell is started in its pane, and replaced there.
#[derive(Debug, Clone)]
pub(crate) struct PaneSetup {
    pub(crate) config: Config,
    pub(crate) tmux: Tmux,
    pub(crate) id: ShellId,
    pub(crate) mark: String,
    pub(crate) dir: ShellDir,
    /// The lock of the state directory. It keeps other owners out while a file is being written on another thread.
    pub(crate) lock: Weak<File>,
}

/// The owner's end of the pipe through which the shell gets its nonces.
#[derive(Debug)]
pub(crate) struct NoncePipe(File);

impl PaneSetup {
    /// The tmux target of the shell. The names of tmux sessions with shells have a prefix that the keeper's has not.
    pub(crate) fn target(&self) -> String {
        format!("=s-{}:", self.id)
    }

    /// The shell that this leader has started: the process that the file `pid` names, unless the file is damaged and
    /// names a process that is no child of the leader. Then it is the child that has the nonce pipe open.
    pub(crate) fn shell(&self, leader: ProcessId) -> Option<ProcessId> {
        let is_child = |shell: &ProcessId| shell.stat().is_some_and(|it| it.is_child_of(leader));
        let is_shell = |child: &ProcessId| find_descriptor(*child, &self.dir.pipe()).is_ok();
        self.dir
            .shell()
            .filter(is_child)
            .or_else(|| process::children(leader).into_iter().find(is_shell))
    }

    /// Writes the file `start`: directory and environment.
    pub(crate) fn write_start(
        &self,
        cwd: &Path,
        environment: &[(OsString, OsString)],
    ) -> Result<()> {
        let mut start = cwd.as_os_str().as_bytes().to_vec();
        start.push(0);
        for (name, value) in environment {
            start.extend_from_slice(name.as_bytes());
            start.push(b'=');
            start.extend_from_slice(value.as_bytes());
            start.push(0);
        }
        private_files::overwrite(&self.dir.start(), &start)
            .map_err(Error::io("writing the start file"))
    }

    /// Changes the directory in the file `start` for a replacement of the shell; the environment stays.
    pub(crate) fn rewrite_start(&self, cwd: &Path) -> Result<()> {
        let old = fs::read(self.dir.start()).map_err(Error::io("reading the start file"))?;
        let environment = old.splitn(2, |&byte| byte == 0).nth(1).unwrap_or_default();
        let mut start = cwd.as_os_str().as_bytes().to_vec();
        start.push(0);
        start.extend_from_slice(environment);
        private_files::overwrite(&self.dir.start(), &start)
            .map_err(Error::io("writing the start file"))
    }

    pub(crate) async fn launch(
        &self,
        launch_target: LaunchTarget<'_>,
        seq: Seq,
    ) -> Result<Launched> {
        let mut pipe = NoncePipe::create(&self.dir.pipe())
            .map_err(Error::io("creating the shell's nonce pipe"))?;
        pipe.write_nonces(&self.dir, seq, Kind::StartUp)?;

        let shell = self.shell_arguments()?;
        let (start, target, fix_size) = match &launch_target {
            LaunchTarget::NewPane { size: Size { columns, rows } } => {
                let target = self.target();
                // A tmux window that was resized by command keeps its size, whoever attaches. (tmux 3.3 crashes if
                // `window-size manual` is a global option.)
                let fix_size = format!("resize-window -t {target} -x {columns} -y {rows}");
                let start =
                    format!("new-session -d -s s-{} -x {columns} -y {rows} {shell}", self.id);
                (start, target, Some(fix_size))
            }
            LaunchTarget::DeadPane { pane, .. } => {
                (format!("respawn-pane -k -t {pane} {shell}"), (*pane).to_owned(), None)
            }
        };
        let is_recorded = match launch_target {
            LaunchTarget::DeadPane { is_recorded, .. } => is_recorded,
            LaunchTarget::NewPane { .. } => false,
        };
        let record = (!is_recorded).then(|| self.pipe_command(&target));
        let ask = format!("display-message -p -t {target} '#{{pane_id}} #{{pane_pid}}'");
        let mut commands = vec![start.as_str()];
        commands.extend(record.as_deref());
        commands.extend(fix_size.as_deref());
        commands.push(&ask);
        let answers = self.tmux.ask_all(&commands).await?;
        let answer = answers.last().map(String::as_str).unwrap_or_default();
        let (pane, pid) = answer.split_once(' ').unwrap_or_default();
        let leader =
            pid.parse().ok().and_then(ProcessId::of).ok_or_else(|| Error::ShellDidNotStart {
                shell: self.id.clone(),
                reason: format!("{} ended immediately", self.config.bash.display()),
            })?;
        Ok(Launched { pane: pane.to_owned(), leader, pipe })
    }

    /// The tmux command that starts the recorder of a pane.
    pub(crate) fn pipe_command(&self, target: &str) -> String {
        let program = self.config.program.to_string_lossy();
        let directory = self.dir.path().to_string_lossy();
        let quota = self.config.log_quota.to_string();
        let words = ["exec", &*program, "record", "--quota", &quota, &*directory];
        let command = shlex::try_join(words).expect("no path has a NUL byte");
        format!("pipe-pane -O -t {target} {}", quote(&protect_format(&command)))
    }

    fn shell_arguments(&self) -> Result<String> {
        let directory = self.dir.path().to_string_lossy();
        // A shell without a policy file is not confined. If the file cannot be checked, the start fails.
        let is_confined = self.dir.policy().try_exists();
        let launcher = if is_confined.map_err(Error::io("looking at the shell's policy"))? {
            let program = self.config.program.to_string_lossy();
            format!("{} enter {}", quote(&program), quote(&directory))
        } else {
            String::new()
        };
        Ok(format!(
            "-c {} -e {} -e {} /bin/sh -c {} sh {launcher} {} --rcfile {} -i",
            quote(&protect_format(&self.config.root.to_string_lossy())),
            quote(&format!("SANDBOX_DIR={directory}")),
            quote(&format!("{MARK_VARIABLE}={}", self.mark)),
            quote(LEADER_SCRIPT),
            quote(&self.config.bash.to_string_lossy()),
            quote(&self.config.init_file().to_string_lossy()),
        ))
    }
}

impl NoncePipe {
    fn create(path: &Path) -> io::Result<Self> {
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        private_files::create_pipe(path)?;
        Self::open(path)
    }

    /// Opens the pipe that an earlier owner has created. It has a name until the shell has started, and after that
    /// only a descriptor of the shell. If there is neither, the shell is dead or was replaced by another program
    /// (`exec`): the next shell gets another pipe, and until then `/dev/null` stands in for it.
    pub(crate) fn find(shell: Option<ProcessId>, path: &Path) -> io::Result<Self> {
        let opened = match Self::open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => match shell {
                Some(shell) => find_descriptor(shell, path).and_then(|link| Self::open(&link)),
                None => Err(error),
            },
            opened => opened,
        };
        match opened {
            Err(error) if is_temporary(&error) => Err(error),
            opened => opened.or_else(|_| Self::open("/dev/null".as_ref())),
        }
    }

    /// Whether a shell has the pipe open and does not signal that it evaluates a text (see `builtin.c`). A program
    /// that has replaced the shell does not have the pipe.
    pub(crate) fn is_ready(shell: ProcessId, path: &Path) -> bool {
        let flags = find_descriptor(shell, path).and_then(|link| {
            let number = link.file_name().unwrap_or_default().to_string_lossy().into_owned();
            fs::read_to_string(format!("/proc/{}/fdinfo/{number}", shell.pid))
        });
        let flags = flags.ok().and_then(|info| {
            let flags = info.lines().find_map(|line| line.strip_prefix("flags:"))?;
            u32::from_str_radix(flags.trim(), 8).ok()
        });
        flags.is_some_and(|flags| !OFlags::from_bits_retain(flags).contains(OFlags::APPEND))
    }

    fn open(path: &Path) -> io::Result<Self> {
        // Opened for reading too; otherwise opening would block until the shell reads.
        let flags = OFlags::NONBLOCK.bits().cast_signed();
        OpenOptions::new().read(true).write(true).custom_flags(flags).open(path).map(Self)
    }

    /// Gives the shell the nonces for its next markers, and the recorder their digests.
    pub(crate) fn write_nonces(&mut self, dir: &ShellDir, seq: Seq, kind: Kind) -> Result<()> {
        let (start, end) = (Nonce::fresh(), Nonce::fresh());
        let expected = Expected { seq, kind, start: start.digest(), end: end.digest() };
        // `builtin.c` expects this fixed length.
        let nonces = format!("S;{seq:020};{}E;{seq:020};{}", start.as_str(), end.as_str());
        // The pipe comes first: digests on disk prove that the nonces were in the pipe.
        self.0
            .write_all(nonces.as_bytes())
            .map_err(Error::io("writing to the shell's nonce pipe"))?;
        private_files::overwrite_beginning(&dir.expected(), expected.print().as_bytes())
            .map_err(Error::io("writing the digests"))
            .map(drop)
    }

    /// Empties the pipe, and returns whether a start nonce was in it. Only then is it certain that the shell has not
    /// begun, and will not: an end nonce alone may be a replacement ([`Self::write_end_nonce_again`]) for a command
    /// that has begun.
    pub(crate) fn take_nonces_back(&mut self) -> bool {
        let (mut old, mut held_start) = ([0; 8 * NONCE_LENGTH], false);
        // The read fails with EAGAIN when the pipe is empty.
        while let Ok(length @ 1..) = self.0.read(&mut old) {
            held_start |= old[..length].chunks(NONCE_LENGTH).any(|nonce| nonce.starts_with(b"S;"));
        }
        held_start
    }

    /// Replaces the nonces of something that the shell has not begun. The old ones may be in the pipe, may never have
    /// been written, or may have been lost with a killed owner.
    pub(crate) fn replace_nonces(&mut self, dir: &ShellDir, seq: Seq, kind: Kind) -> Result<()> {
        self.take_nonces_back();
        self.write_nonces(dir, seq, kind)
    }

    /// Gives the shell another nonce for the end of its command, in case it has lost the first.
    pub(crate) fn write_end_nonce_again(&mut self, dir: &ShellDir) -> Result<()> {
        let end = Nonce::fresh();
        let text = fs::read_to_string(dir.expected()).map_err(Error::io("reading the digests"))?;
        let expected = Expected::parse(&text)
            .ok_or_else(|| Error::Invalid("the file with the digests is damaged".into()))?;
        let expected = Expected { end: end.digest(), ..expected };
        private_files::overwrite_beginning(&dir.expected(), expected.print().as_bytes())
            .map_err(Error::io("writing the digests"))?;
        let nonce = format!("E;{:020};{}", expected.seq, end.as_str());
        self.0.write_all(nonce.as_bytes()).map_err(Error::io("writing to the shell's nonce pipe"))
    }
}

/// Whether the error is temporary resource exhaustion (EMFILE, ENFILE, ENOMEM).
pub(crate) fn is_temporary(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let errno = Errno::from_io_error(error);
    matches!(errno, Some(Errno::MFILE | Errno::NFILE | Errno::NOMEM))
}

/// The link in `/proc` to a shell's end of its nonce pipe.
fn find_descriptor(shell: ProcessId, path: &Path) -> io::Result<PathBuf> {
    let named = path.as_os_str().as_bytes();
    for entry in fs::read_dir(format!("/proc/{}/fd", shell.pid))? {
        let link = entry?.path();
        let target = fs::read_link(&link).unwrap_or_default();
        let target = target.as_os_str().as_bytes();
        if target.strip_suffix(b" (deleted)").unwrap_or(target) == named {
            return Ok(link);
        }
    }
    Err(io::Error::new(io::ErrorKind::NotFound, "the shell has closed its nonce pipe"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_start_nonce_shows_that_a_command_has_not_begun() {
        let temporary = tempfile::tempdir().unwrap();
        let dir = ShellDir::new(temporary.path().to_owned());
        let mut pipe = NoncePipe::create(&dir.pipe()).unwrap();
        assert!(!pipe.take_nonces_back(), "nothing was given");
        for seq in 0..10 {
            pipe.write_nonces(&dir, seq, Kind::Command).unwrap();
        }
        assert!(pipe.take_nonces_back());
        assert!(!pipe.take_nonces_back(), "all was taken back");
        // The shell has taken both nonces, and gets a second one for its end.
        pipe.write_nonces(&dir, 11, Kind::Command).unwrap();
        let mut taken = [0; 2 * NONCE_LENGTH];
        pipe.0.read_exact(&mut taken).unwrap();
        pipe.write_end_nonce_again(&dir).unwrap();
        assert!(!pipe.take_nonces_back());
    }
}
