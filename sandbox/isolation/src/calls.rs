//! A filter on system calls (seccomp), for what Landlock does not govern.
//!
//! Landlock lets anybody connect to a Unix socket whose path they know. The filter sees no paths,
//! so it forbids such sockets altogether; pairs of connected sockets, which lead nowhere else, stay.
//! Typing into another terminal (`TIOCSTI`) is forbidden too, and `io_uring`, with which all of this
//! could be done unseen.

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, apply_filter,
};

/// On x86-64 every call has a second number, for programs of the x32 kind.
const X32: i64 = 0x4000_0000;

/// Puts the filter in force for the calling thread and what it starts. Programs for another
/// architecture are killed, since their calls have other numbers.
pub(super) fn forbid(unix_sockets_allowed: bool) -> Result<(), String> {
    let filter = filter(unix_sockets_allowed).map_err(|error| error.to_string())?;
    apply_filter(&filter).map_err(|error| error.to_string())
}

fn filter(unix_sockets_allowed: bool) -> Result<BpfProgram, seccompiler::BackendError> {
    let mut rules = vec![(libc::SYS_ioctl, when(1, &[libc::TIOCSTI, libc::TIOCLINUX])?)];
    if !unix_sockets_allowed {
        rules.push((libc::SYS_socket, when(0, &[libc::AF_UNIX as u64])?));
        rules.push((libc::SYS_io_uring_setup, Vec::new()));
    }
    if cfg!(target_arch = "x86_64") {
        rules.extend(rules.clone().into_iter().map(|(call, rule)| (call | X32, rule)));
    }
    let denied = SeccompAction::Errno(libc::EACCES as u32);
    let here = TargetArch::try_from(std::env::consts::ARCH)?;
    SeccompFilter::new(rules.into_iter().collect(), SeccompAction::Allow, denied, here)?.try_into()
}

/// The rules for calls whose argument has one of these values.
fn when(argument: u8, values: &[u64]) -> Result<Vec<SeccompRule>, seccompiler::BackendError> {
    let rule = |&value: &u64| {
        let length = SeccompCmpArgLen::Dword;
        let equal = SeccompCondition::new(argument, length, SeccompCmpOp::Eq, value)?;
        SeccompRule::new(vec![equal])
    };
    values.iter().map(rule).collect()
}
