//! The keeper: ends what is left behind when no owner has come back within the lease.
//!
//! It is the one process of the tmux session that holds no shell, so it lives as long as the server; if
//! it is killed, the owner has tmux start another. It sleeps in the reading of a named pipe that the
//! owner holds open for writing, and wakes when the last owner is gone, however that happened. So long it
//! is a `sh`, which starts faster than we do and is smaller; then it becomes `sandbox keep`, which
//! sleeps for the lease, and unless a new owner has come, starts `sandbox sweep`. (A tmux hook on the
//! loss of the control client cannot do this: tmux 3.3 crashes when a hook writes to the client that was
//! just lost.)

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
use process_identity::ProcessId;

/// The name of its tmux session.
pub(crate) const NAME: &str = "keeper";
/// What tmux starts: reads the pipe `$1` until the owner ends, and becomes what follows. The pipe is opened for
/// writing as well at first, or the opening would wait for an owner, and there may be none any more.
const FRONT: &str = r#"exec 3<>"$1" 4<"$1" 3<&-; read -r _ <&4; exec 4<&-; shift; exec "$@""#;
/// How long to wait before looking again, when the files are not what they should be.
const PAUSE: Duration = Duration::from_secs(1);

/// Makes the owner's side of the pipe. It must be held for as long as the owner lives.
pub(crate) fn own(root: &Path) -> io::Result<File> {
    let path = alive(root);
    match private_files::create_pipe(&path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    // Opened for reading too, or the opening would wait for the keeper.
    OpenOptions::new().read(true).write(true).open(path)
}

/// The command line by which tmux starts the keeper of a state directory.
pub(crate) fn command(program: &Path, root: &Path) -> [OsString; 8] {
    let alive = alive(root);
    let words: [&OsStr; 8] = [
        "/bin/sh".as_ref(),
        "-c".as_ref(),
        FRONT.as_ref(),
        "keeper".as_ref(),
        alive.as_ref(),
        program.as_ref(),
        "keep".as_ref(),
        root.as_ref(),
    ];
    words.map(OsStr::to_owned)
}

/// Sees to it that there is a keeper while there is an owner, whatever becomes of the former one.
pub(crate) async fn guard(tmux: Tmux) {
    loop {
        match tmux.ask(&format!("display-message -p -t ={NAME}: '#{{pane_pid}}'")).await {
            Ok(pid) => {
                if let Some(keeper) = pid.parse().ok().and_then(ProcessId::of)
                    && let Err(error) = keeper.ended().await
                {
                    warn!(%error, "the end of the keeper cannot be awaited");
                }
                // tmux knows what it has started there.
                match tmux.ask(&format!("respawn-pane -k -t ={NAME}:")).await {
                    Ok(_) => info!("the keeper had ended, and has a successor"),
                    Err(Error::ServerGone) => return,
                    Err(error) => warn!(%error, "the keeper has no successor yet"),
                }
            }
            Err(Error::ServerGone) => return,
            // The reason may pass.
            Err(error) => warn!(%error, "tmux does not say which process the keeper is"),
        }
        time::sleep(PAUSE).await;
    }
}

fn alive(root: &Path) -> PathBuf {
    root.join("alive")
}

/// When the lease of a state directory ends, if its owner is gone.
pub(crate) fn lease_end(root: &Path) -> io::Result<SystemTime> {
    let path = root.join("owner.lock");
    let text = fs::read_to_string(&path)?;
    let seconds = text.lines().next().unwrap_or_default().parse();
    let seconds = seconds.map_err(|_| io::ErrorKind::InvalidData)?;
    Ok(fs::metadata(path)?.modified()? + Duration::from_secs(seconds))
}

/// Watches over a state directory until tmux ends this process, or the directory is gone.
pub fn keep(root: &Path) -> io::Result<()> {
    let alive = alive(root);
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
