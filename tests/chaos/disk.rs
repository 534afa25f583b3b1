//! A small disk that the test can fill.
//!
//! It is mounted in a mount namespace that only this process and its descendants see, and disappears with them.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use harness::wait_until;
use nix::mount::{MntFlags, MsFlags, mount, umount, umount2};
use nix::sched::{CloneFlags, unshare};
use nix::unistd::{getgid, getuid};

const SIZE: &str = "size=24m,mode=700";

/// Whether this process can mount disks, or why not.
pub type Mounting = Result<(), String>;

/// Enters a mount namespace of its own. Call it before the process has a second thread.
pub fn allow_mounting() -> Mounting {
    let (user, group) = (getuid(), getgid());
    let enter = || -> io::Result<()> {
        if unshare(CloneFlags::CLONE_NEWNS).is_err() {
            // Without root, a user namespace gives the privilege to mount. User and group keep their ids.
            unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNS)?;
            fs::write("/proc/self/setgroups", "deny")?;
            fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
            fs::write("/proc/self/gid_map", format!("{group} {group} 1"))?;
        }
        let nothing = None::<&str>;
        let flags = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
        Ok(mount(nothing, "/", nothing, flags, nothing)?)
    };
    enter().map_err(|error| format!("no mount namespace: {error}"))
}

/// A directory on a small disk of its own, or an ordinary directory if mounting is not possible.
pub struct Disk {
    at: PathBuf,
    is_small: bool,
}

impl Disk {
    pub fn new(at: &Path, mounting: &Mounting) -> Self {
        let is_small = mounting.is_ok();
        if is_small {
            let source = Some("chaos");
            mount(source, at, Some("tmpfs"), MsFlags::empty(), Some(SIZE)).unwrap();
        }
        Self { at: at.to_owned(), is_small }
    }

    /// Fills the disk. False if it is not the small disk, which is then left alone.
    pub fn fill(&self) -> bool {
        if !self.is_small {
            return false;
        }
        let mut filler = File::create(self.filler()).unwrap();
        loop {
            match filler.write(&[0; 4096]) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::StorageFull => return true,
                Err(error) => panic!("cannot fill the disk: {error}"),
            }
        }
    }

    pub fn free(&self) {
        fs::remove_file(self.filler()).unwrap();
    }

    fn filler(&self) -> PathBuf {
        self.at.join("filler")
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        if self.is_small && std::thread::panicking() {
            // Processes that still use the disk are being killed.
            let _ = umount2(&self.at, MntFlags::MNT_DETACH);
        } else if self.is_small {
            wait_until("the disk to be unused", || umount(&self.at).is_ok());
        }
    }
}
