//! Ways out through files.

use std::ffi::CString;
use std::fs::{self, File, FileTimes, OpenOptions, Permissions};
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, chown, symlink};
use std::path::Path;
use std::time::SystemTime;

use crate::calls::{address, attempt, call, got_out};
use crate::stage::Stage;
use crate::{Attempt, Way};

pub(crate) const WAYS: &[Way] = &[
    ("write-a-file", |stage| got_out(fs::write(stage.outside(), "changed"))),
    ("empty-a-file", |stage| got_out(File::create(stage.outside()))),
    ("make-a-file", |stage| got_out(fs::write(stage.outside().with_file_name("new"), ""))),
    ("remove-a-file", |stage| got_out(fs::remove_file(stage.outside().with_file_name("other")))),
    ("write-through-a-link", |stage| {
        let link = stage.workspace().join("link");
        // It may be left from an earlier run.
        let _ = fs::remove_file(&link);
        symlink(stage.outside(), &link).map_err(|error| error.to_string())?;
        got_out(OpenOptions::new().append(true).open(link))
    }),
    ("change-mode", |stage| {
        got_out(fs::set_permissions(stage.outside(), Permissions::from_mode(0o666)))
    }),
    ("change-owner", |stage| got_out(chown(stage.outside(), Some(stage.user.uid()), None))),
    ("change-times", |stage| {
        let times = FileTimes::new().set_modified(SystemTime::UNIX_EPOCH);
        got_out(File::open(stage.outside()).and_then(|file| file.set_times(times)))
    }),
    ("change-attributes", |stage| {
        let (path, name) = (text(&stage.outside()), *b"user.out\0");
        attempt(libc::SYS_setxattr, &[path.as_ptr() as i64, address(&name), address(&name), 3, 0])
    }),
    ("give-a-file-away", |stage| {
        let given = got_out(chown(stage.outside(), Some(65_533), None));
        // Only if it was given away, to attack it again.
        let _ = chown(stage.outside(), Some(stage.user.uid()), None);
        given
    }),
    ("read-a-connection-file", |stage| got_out(fs::read(stage.connection_file()))),
    ("read-state", |stage| got_out(fs::read(stage.hidden().join("state/shells/a/log")))),
    ("read-a-later-connection-file", |stage| got_out(fs::read(stage.later_connection_file()))),
    ("read-through-proc", |stage| {
        let relative = stage.connection_file();
        let relative = relative.strip_prefix("/").unwrap();
        got_out(fs::read(Path::new("/proc/self/root").join(relative)))
    }),
    ("read-through-a-link", |stage| {
        let link = stage.workspace().join("door");
        // It may be left from an earlier run.
        let _ = fs::remove_file(&link);
        symlink(stage.hidden(), &link).map_err(|error| error.to_string())?;
        got_out(fs::read(link.join("connection.json")))
    }),
    ("read-through-a-hard-link", |stage| {
        let link = stage.workspace().join("hard");
        // It may be left from an earlier run.
        let _ = fs::remove_file(&link);
        fs::hard_link(stage.connection_file(), &link).map_err(|error| error.to_string())?;
        got_out(fs::read(link))
    }),
    ("read-by-moving", |stage| {
        let moved = stage.workspace().join("moved");
        let hidden = stage.hidden();
        fs::rename(&hidden, &moved).map_err(|error| error.to_string())?;
        let read = got_out(fs::read(moved.join("connection.json")));
        fs::rename(moved, hidden).map_err(|error| error.to_string())?;
        read
    }),
    ("read-by-handle", read_by_handle),
    ("hold-a-lock", |stage| lock(&stage.hidden().join("lock"))),
    ("lock-a-directory", |stage| lock(&stage.hidden())),
    ("replace-a-directory", |stage| {
        let hidden = stage.hidden();
        got_out(
            fs::rename(&hidden, hidden.with_extension("old"))
                .and_then(|()| fs::rename(hidden.with_extension("old"), &hidden)),
        )
    }),
    ("make-a-block-device", |stage| make_device(stage, libc::S_IFBLK, libc::makedev(7, 0))),
    ("make-a-character-device", |stage| make_device(stage, libc::S_IFCHR, libc::makedev(1, 1))),
    ("read-a-disk", |_| {
        let disks = fs::read_dir("/sys/block").map_err(|error| error.to_string())?;
        let opened = disks.flatten().filter_map(|disk| {
            let path = Path::new("/dev").join(disk.file_name());
            File::open(&path).is_ok().then(|| path.display().to_string())
        });
        opened.into_iter().next().ok_or_else(|| "no disk can be opened".into())
    }),
    ("read-the-kernels-log", |_| got_out(File::open("/dev/kmsg"))),
    ("change-a-setting-of-linux", |_| {
        got_out(OpenOptions::new().write(true).open("/proc/sys/kernel/domainname"))
    }),
    ("change-a-group-of-processes", |_| {
        got_out(OpenOptions::new().write(true).open("/sys/fs/cgroup/cgroup.procs"))
    }),
];

fn text(path: &Path) -> CString {
    CString::new(path.as_os_str().as_bytes()).unwrap()
}

/// Takes a lock for which programs outside would wait.
fn lock(path: &Path) -> Attempt {
    let file = File::open(path).map_err(|error| error.to_string())?;
    let exclusive = i64::from(libc::LOCK_EX | libc::LOCK_NB);
    attempt(libc::SYS_flock, &[file.as_raw_fd().into(), exclusive])
}

fn make_device(stage: &Stage, kind: u32, device: libc::dev_t) -> Attempt {
    let path = stage.workspace().join("device");
    let name = text(&path);
    let here = i64::from(libc::AT_FDCWD);
    let arguments = [here, name.as_ptr() as i64, (kind | 0o600).into(), device as i64];
    let made = attempt(libc::SYS_mknodat, &arguments);
    // A device that was not made cannot be removed.
    let _ = fs::remove_file(path);
    made
}

/// Opens a file by its number in the file system, without a path.
fn read_by_handle(stage: &Stage) -> Attempt {
    let failed = |error: std::io::Error| error.to_string();
    let name = text(&stage.connection_file());
    let (mut handle, mount) = ([0_u32; 34], 0_i32);
    handle[0] = 128;
    let arguments =
        [libc::AT_FDCWD.into(), name.as_ptr() as i64, address(&handle), address(&mount), 0];
    call(libc::SYS_name_to_handle_at, &arguments).map_err(failed)?;
    let directory = File::open(stage.workspace()).map_err(failed)?;
    let directory = i64::from(directory.as_raw_fd());
    attempt(libc::SYS_open_by_handle_at, &[directory, address(&handle), libc::O_RDONLY.into()])
}
