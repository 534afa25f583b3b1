//! Ways out through Linux itself: namespaces, mounts, privileges and everything that concerns the whole machine.

use std::fs;

use crate::calls::{address, attempt, attempt_unless_denied, call};
use crate::stage::User;
use crate::{Attempt, Way};

pub(crate) const WAYS: &[Way] = &[
    ("capabilities", |stage| {
        let status = fs::read_to_string("/proc/self/status").map_err(|error| error.to_string())?;
        let sets = status.lines().filter_map(|line| line.strip_prefix("Cap")?.split_once(":\t"));
        let held = sets.filter(|(_, set)| set.contains(|it| it != '0'));
        // Only root can empty the bounding set, which means nothing where programs give no privileges.
        let held: Vec<_> =
            held.filter(|(name, _)| stage.user == User::Root || *name != "Bnd").collect();
        match held.is_empty() {
            true => Err("none".into()),
            false => Ok(format!("{held:?}")),
        }
    }),
    ("new-privileges", |_| {
        let status = fs::read_to_string("/proc/self/status").map_err(|error| error.to_string())?;
        match status.contains("NoNewPrivs:\t1") {
            true => Err("programs give no privileges".into()),
            false => Ok("a program can give privileges".into()),
        }
    }),
    ("raise-a-limit", |_| {
        let limit = libc::rlimit { rlim_cur: 2 << 30, rlim_max: 2 << 30 };
        attempt(libc::SYS_prlimit64, &[0, libc::RLIMIT_FSIZE.into(), address(&limit), 0])
    }),
    ("change-user", |stage| {
        let other = if stage.user.uid() == 0 { 65_533 } else { 0 };
        in_a_child(|| call(libc::SYS_setuid, &[other]).is_ok())
    }),
    ("change-groups", |_| {
        let groups = [0_u32];
        in_a_child(|| call(libc::SYS_setgroups, &[1, address(&groups)]).is_ok())
    }),
    ("change-root", |_| {
        let root = *b"/\0";
        in_a_child(|| call(libc::SYS_chroot, &[address(&root)]).is_ok())
    }),
    ("user-namespace", |_| unshare(libc::CLONE_NEWUSER)),
    ("mount-namespace", |_| unshare(libc::CLONE_NEWNS)),
    ("network-namespace", |_| unshare(libc::CLONE_NEWNET)),
    ("process-namespace", |_| unshare(libc::CLONE_NEWPID)),
    ("ipc-namespace", |_| unshare(libc::CLONE_NEWIPC)),
    ("cgroup-namespace", |_| unshare(libc::CLONE_NEWCGROUP)),
    ("time-namespace", |_| unshare(0x80)),
    ("user-namespace-by-clone", |_| {
        let flags = i64::from(libc::CLONE_NEWUSER | libc::SIGCHLD);
        child(call(libc::SYS_clone, &[flags, 0, 0, 0, 0]))
    }),
    ("user-namespace-by-clone3", |_| {
        let mut arguments = [0_u64; 11];
        (arguments[0], arguments[4]) = (libc::CLONE_NEWUSER as u64, libc::SIGCHLD as u64);
        child(call(libc::SYS_clone3, &[address(&arguments), size_of_val(&arguments) as i64]))
    }),
    ("enter-a-namespace", |stage| {
        let process = call(libc::SYS_pidfd_open, &[stage.victim, 0]);
        let process = process.map_err(|error| error.to_string())?;
        in_a_child(|| call(libc::SYS_setns, &[process, libc::CLONE_NEWNS.into()]).is_ok())
    }),
    ("mount", |stage| {
        let kind = *b"tmpfs\0";
        let target = std::ffi::CString::new(stage.workspace().to_str().unwrap()).unwrap();
        let target = target.as_ptr() as i64;
        let mounted = attempt(libc::SYS_mount, &[address(&kind), target, address(&kind), 0, 0]);
        // Nothing to remove if nothing was mounted.
        let _ = call(libc::SYS_umount2, &[target, 0]);
        mounted
    }),
    ("new-mount", |_| {
        let kind = *b"tmpfs\0";
        attempt(libc::SYS_fsopen, &[address(&kind), 0])
    }),
    ("copy-a-mount", |_| {
        let root = *b"/\0";
        attempt(libc::SYS_open_tree, &[libc::AT_FDCWD.into(), address(&root), 1])
    }),
    ("unmount", |_| {
        // Nothing is mounted there.
        let place = *b"/etc\0";
        attempt_unless_denied(libc::SYS_umount2, &[address(&place), 0])
    }),
    ("load-a-module", |_| attempt_unless_denied(libc::SYS_init_module, &[0, 0, 0])),
    ("load-a-module-file", |_| attempt_unless_denied(libc::SYS_finit_module, &[-1, 0, 0])),
    ("load-another-linux", |_| attempt_unless_denied(libc::SYS_kexec_load, &[0, 1 << 20, 0, 0])),
    // The magic numbers are wrong.
    ("reboot", |_| attempt_unless_denied(libc::SYS_reboot, &[0, 0, 0, 0])),
    // Without a time, Linux checks the permission and changes nothing.
    ("set-the-clock", |_| attempt(libc::SYS_settimeofday, &[0, 0])),
    ("swap", |_| {
        let nowhere = *b"/no-such-file\0";
        attempt_unless_denied(libc::SYS_swapon, &[address(&nowhere), 0])
    }),
    ("account-processes", |_| {
        let nowhere = *b"/no-such-file\0";
        attempt_unless_denied(libc::SYS_acct, &[address(&nowhere)])
    }),
    ("name-the-machine", |_| attempt_unless_denied(libc::SYS_sethostname, &[0, 100_000])),
    // In a session of its own, which has no terminal to lose.
    ("hang-up", |_| {
        in_a_child(|| call(libc::SYS_setsid, &[]).is_ok() && call(libc::SYS_vhangup, &[]).is_ok())
    }),
    ("messages-of-linux", |_| {
        let text = [0_u8; 64];
        attempt(libc::SYS_syslog, &[3, address(&text), 64])
    }),
    ("programs-in-linux", |_| {
        let attributes = [0_u64; 16];
        attempt_unless_denied(libc::SYS_bpf, &[0, address(&attributes), 128])
    }),
    ("measure-processes", |_| {
        let mut attributes = [0_u32; 32];
        (attributes[0], attributes[1]) = (1, 128);
        attempt(libc::SYS_perf_event_open, &[address(&attributes), 0, -1, -1, 0])
    }),
    ("page-faults", |_| attempt(libc::SYS_userfaultfd, &[1])),
    ("io-uring", |_| {
        let parameters = [0_u8; 120];
        attempt(libc::SYS_io_uring_setup, &[1, address(&parameters)])
    }),
    ("type-into-a-terminal", |_| {
        // SAFETY: opens a new terminal; the pointer is to a byte that lives until the call returns.
        unsafe {
            let terminal = libc::open(c"/dev/ptmx".as_ptr(), libc::O_RDWR);
            let typed = libc::ioctl(terminal, libc::TIOCSTI, &b'x');
            let error = std::io::Error::last_os_error();
            libc::close(terminal);
            if typed == 0 { Ok("it was typed".into()) } else { Err(error.to_string()) }
        }
    }),
];

fn unshare(flag: i32) -> Attempt {
    in_a_child(|| call(libc::SYS_unshare, &[flag.into()]).is_ok())
}

/// Tries something in a child, because it would change this process for the ways that follow.
fn in_a_child(succeeds: impl FnOnce() -> bool) -> Attempt {
    // SAFETY: the child makes one system call and ends, without locks and memory of other threads.
    match unsafe { libc::fork() } {
        0 => {
            let code = if succeeds() { 7 } else { 0 };
            // SAFETY: ends the child at once.
            unsafe { libc::_exit(code) }
        }
        process => {
            let mut status = 0;
            // SAFETY: waits for the child and writes to a variable of ours.
            unsafe { libc::waitpid(process, &raw mut status, 0) };
            match libc::WEXITSTATUS(status) {
                7 => Ok("it succeeded".into()),
                _ => Err("it failed".into()),
            }
        }
    }
}

/// The result of a call that returns twice.
fn child(result: std::io::Result<i64>) -> Attempt {
    match result {
        // SAFETY: ends the child at once.
        Ok(0) => unsafe { libc::_exit(0) },
        Ok(process) => {
            // SAFETY: waits for the child; no status is wanted.
            unsafe { libc::waitpid(process as i32, std::ptr::null_mut(), 0) };
            Ok("a child is in a namespace of its own".into())
        }
        Err(error) => Err(error.to_string()),
    }
}
