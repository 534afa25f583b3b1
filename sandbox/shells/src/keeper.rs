//! The keeper: ends all shells if no owner has come back within the lease.
//!
//! It runs in the one tmux session that has no shell, so it lives as long as the tmux server; if it is killed, the
//! owner makes tmux start another. It blocks on reading a named pipe that the owner holds open for writing, and wakes
//! when the last owner is gone, for whatever reason. Until then it is a `sh`, which starts faster and is smaller than
//! our program; then it becomes `sandbox keep`, which sleeps for the lease and, unless a new owner has come, starts
//! `sandbox sweep`. (A tmux hook on the loss of the control client cannot do this: tmux 3.3 crashes when a hook
//! writes to the client that was just lost.)

use std::{
    env,
    ffi::{OsStr, OsString},
    fs::{self, File, OpenOptions},
    io::{self, Read as _},
    os::unix::{fs::OpenOptionsExt as _, process::CommandExt as _},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
    time::{Duration, SystemTime},
};

use rustix::fs::{OFlags, fcntl_setfl};
use tokio::time;
use tracing::{info, warn};

use super::tmux::Tmux;
use crate::Error;
use crate::config::lock_file;
use process_identity::ProcessId;

/// The name of the keeper's tmux session.
pub(crate) const NAME: &str = "keeper";
/// The script that tmux starts: reads the pipe `$1` until the owner ends, and then executes the remaining arguments.
/// It first opens the pipe for writing as well; otherwise opening it would block if there is no owner any more.
const WAIT_SCRIPT: &str = r#"exec 3<>"$1" 4<"$1" 3<&-; read -r _ <&4; exec 4<&-; shift; exec "$@""#;
/// The pause before a retry, if the state directory or tmux is not as expected.
const PAUSE: Duration = Duration::from_secs(1);

/// Creates and opens the owner's end of the pipe. The owner must hold it open for as long as it lives.
pub(crate) fn open_owner_pipe(root: &Path) -> io::Result<File> {
    let path = owner_pipe(root);
    match private_files::create_pipe(&path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    // Opened for reading too; otherwise opening would block until the keeper reads.
    OpenOptions::new().read(true).write(true).open(path)
}

/// The command line with which tmux starts the keeper of a state directory.
pub(crate) fn command(program: &Path, root: &Path) -> [OsString; 8] {
    let pipe = owner_pipe(root);
    let words: [&OsStr; 8] = [
        "/bin/sh".as_ref(),
        "-c".as_ref(),
        WAIT_SCRIPT.as_ref(),
        "keeper".as_ref(),
        pipe.as_ref(),
        program.as_ref(),
        "keep".as_ref(),
        root.as_ref(),
    ];
    words.map(OsStr::to_owned)
}

/// Replaces the keeper whenever it ends, for as long as the owner lives.
pub(crate) async fn keep_running(tmux: Tmux) {
    loop {
        match tmux.ask(&format!("display-message -p -t ={NAME}: '#{{pane_pid}}'")).await {
            Ok(pid) => {
                if let Some(keeper) = pid.parse().ok().and_then(ProcessId::of)
                    && let Err(error) = keeper.ended().await
                {
                    warn!(%error, "cannot wait for the end of the keeper");
                }
                // Without a command, `respawn-pane` repeats the one that the pane was started with.
                match tmux.ask(&format!("respawn-pane -k -t ={NAME}:")).await {
                    Ok(_) => info!("the keeper ended and was replaced"),
                    Err(Error::ServerGone) => return,
                    Err(error) => warn!(%error, "the keeper could not be replaced; retrying"),
                }
            }
            Err(Error::ServerGone) => return,
            // The cause may be temporary; retry after the pause.
            Err(error) => warn!(%error, "tmux did not report the keeper's process; retrying"),
        }
        time::sleep(PAUSE).await;
    }
}

fn owner_pipe(root: &Path) -> PathBuf {
    root.join("alive")
}

/// When the lease of a state directory ends, if its owner is gone.
pub(crate) fn lease_end(root: &Path) -> io::Result<SystemTime> {
    let path = lock_file(root);
    let text = fs::read_to_string(&path)?;
    let seconds = text.lines().next().unwrap_or_default().parse();
    let seconds = seconds.map_err(|_| io::ErrorKind::InvalidData)?;
    Ok(fs::metadata(path)?.modified()? + Duration::from_secs(seconds))
}

/// Sweeps a state directory whenever its lease is over, until tmux ends this process or the directory is gone.
pub fn keep(root: &Path) -> io::Result<()> {
    let pipe = owner_pipe(root);
    loop {
        wait_for_owner_end(&pipe)?;
        let lease = lease_end(root)?.duration_since(fs::metadata(lock_file(root))?.modified()?);
        let mut end = SystemTime::now() + lease.unwrap_or_default();
        while !is_owned(&pipe) {
            // Another owner may have come and gone during the sleep.
            end = end.max(lease_end(root)?);
            match end.duration_since(SystemTime::now()) {
                Ok(left) if !left.is_zero() => thread::sleep(left),
                _ => {
                    sweep(root)?;
                    thread::sleep(PAUSE);
                }
            }
        }
    }
}

/// Blocks until there is no owner. The pipe is opened without blocking, because there may be no owner any more, and
/// then a blocking open would never return.
fn wait_for_owner_end(pipe: &Path) -> io::Result<()> {
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let mut pipe = OpenOptions::new().read(true).custom_flags(flags).open(pipe)?;
    fcntl_setfl(&pipe, OFlags::empty())?;
    pipe.read_to_end(&mut Vec::new()).map(drop)
}

/// Whether there is an owner. An owner holds the pipe open for reading too, so opening it for writing succeeds at
/// once.
fn is_owned(pipe: &Path) -> bool {
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    OpenOptions::new().write(true).custom_flags(flags).open(pipe).is_ok()
}

/// Runs `sandbox sweep` in a process group of its own and without our terminal; otherwise it would end together with
/// the tmux server that it ends.
fn sweep(root: &Path) -> io::Result<()> {
    let mut command = Command::new(env::current_exe()?);
    command.arg("sweep").arg(root).process_group(0);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn()?.wait().map(drop)
}
