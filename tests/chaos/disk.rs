//! A small disk of our own, to be filled.
//!
//! It is mounted in a mount namespace that only we and what we start can see, and is gone with us.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use harness::wait_until;
use nix::mount::{MntFlags, MsFlags, mount, umount, umount2};
use nix::sched::{CloneFlags, unshare};
use nix::unistd::{getgid, getuid};

const SIZE: &str = "size=24m,mode=700";

/// Whether disks can be mounted here, or why not. Must be called before there is a second thread.
pub type Mounting = Result<(), String>;

pub fn allow_mounting() -> Mounting {
    let (user, group) = (getuid(), getgid());
    let enter = || -> io::Result<()> {
        if unshare(CloneFlags::CLONE_NEWNS).is_err() {
            // Who is not root may be in a user namespace; everybody keeps the number that they have.
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

/// A directory on a disk of its own, or an ordinary one where that cannot be.
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

    /// Leaves no room, if the disk is ours to fill.
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

    pub fn make_room(&self) {
        fs::remove_file(self.filler()).unwrap();
    }

    fn filler(&self) -> PathBuf {
        self.at.join("filler")
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        if self.is_small && std::thread::panicking() {
            // Whoever still uses it is being killed.
            let _ = umount2(&self.at, MntFlags::MNT_DETACH);
        } else if self.is_small {
            wait_until("everybody to let go of the disk", || umount(&self.at).is_ok());
        }
    }
}
