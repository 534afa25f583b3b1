//! The keeper: ends what is left behind when no owner has come back within the lease.
//!
//! It is the one process of the tmux session that holds no shell, so it lives as long as the server; if
//! it is killed, the owner has tmux start another. It sleeps in the reading of a named pipe that the
//! owner holds open for writing, and wakes when the last owner is gone, however that happened. Then it
//! sleeps for the lease, and unless a new owner has come, it starts `sandbox sweep`. (A tmux hook on the
//! loss of the control client cannot do this: tmux 3.3 crashes when a hook writes to the client that was
//! just lost.)

use std::{
    env,
    fs::{self, File, OpenOptions},
    io::{self, Read as _},
    os::unix::{fs::OpenOptionsExt as _, process::CommandExt as _},
    path::Path,
    process::{Command, Stdio},
    thread,
    time::{Duration, SystemTime},
};

use rustix::fs::{CWD, FileType, Mode, OFlags, fcntl_setfl, mknodat};
use tokio::time;

use super::{process::ProcessId, tmux::Tmux};

/// The name of its tmux session.
pub(crate) const NAME: &str = "keeper";
/// How long to wait before looking again, when the files are not what they should be.
const PAUSE: Duration = Duration::from_secs(1);

/// Makes the owner's side of the pipe. It must be held for as long as the owner lives.
pub(crate) fn own(root: &Path) -> io::Result<File> {
    let path = root.join("alive");
    match mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0) {
        Ok(()) | Err(rustix::io::Errno::EXIST) => {}
        Err(error) => return Err(error.into()),
    }
    // Opened for reading too, or the opening would wait for the keeper.
    OpenOptions::new().read(true).write(true).open(path)
}

/// Sees to it that there is a keeper while there is an owner, whatever becomes of the former one.
pub(crate) async fn guard(tmux: Tmux) {
    loop {
        let Ok(pid) = tmux.ask(&format!("display-message -p -t ={NAME}: '#{{pane_pid}}'")).await
        else {
            return;
        };
        if let Some(keeper) = pid.parse().ok().and_then(ProcessId::of) {
            let _ = keeper.ended().await;
        }
        // tmux knows what it has started there.
        let _ = tmux.ask(&format!("respawn-pane -k -t ={NAME}:")).await;
        time::sleep(PAUSE).await;
    }
}

/// When the lease of a state directory ends, if its owner is gone.
pub(crate) fn lease_end(root: &Path) -> io::Result<SystemTime> {
    let path = root.join("owner.lock");
    let seconds = fs::read_to_string(&path)?.trim().parse().map_err(io::Error::other)?;
    Ok(fs::metadata(path)?.modified()? + Duration::from_secs(seconds))
}

/// Watches over a state directory until tmux ends this process, or the directory is gone.
pub fn keep(root: &Path) -> io::Result<()> {
    let alive = root.join("alive");
    loop {
        until_unowned(&alive)?;
        let lease =
            lease_end(root)?.duration_since(fs::metadata(root.join("owner.lock"))?.modified()?);
        let mut end = SystemTime::now() + lease.unwrap_or_default();
        while !is_owned(&alive) {
            // Another owner may have come and gone while we slept.
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

/// Reads until the owner ends. There may be none any more, and an opening that waited for one would
/// wait for ever.
fn until_unowned(alive: &Path) -> io::Result<()> {
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let mut pipe = OpenOptions::new().read(true).custom_flags(flags).open(alive)?;
    fcntl_setfl(&pipe, OFlags::empty())?;
    pipe.read_to_end(&mut Vec::new()).map(drop)
}

/// An owner has the pipe open for reading too, so that it can be opened for writing at once.
fn is_owned(alive: &Path) -> bool {
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    OpenOptions::new().write(true).custom_flags(flags).open(alive).is_ok()
}

/// In a process group of its own and without our terminal, or it would end with the server it ends.
fn sweep(root: &Path) -> io::Result<()> {
    let mut command = Command::new(env::current_exe()?);
    command.arg("sweep").arg(root).process_group(0);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn()?.wait().map(drop)
}
