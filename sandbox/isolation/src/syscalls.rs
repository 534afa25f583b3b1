//! A filter on system calls (seccomp), for what Landlock does not restrict.
//!
//! Landlock allows connections to any Unix socket whose path is known. The filter sees no paths, so it forbids Unix
//! sockets altogether; connected pairs of sockets, which lead nowhere else, remain allowed. The filter also forbids
//! typing into another terminal (`TIOCSTI`), and `io_uring`, which could do all of this without system calls that a
//! filter sees.

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, apply_filter,
};

/// On x86-64 every system call has a second number, for x32 programs.
const X32: i64 = 0x4000_0000;

/// Applies the filter to the calling thread and what it starts. Programs for another architecture are killed, since
/// their system calls have other numbers.
pub(super) fn restrict(unix_sockets_allowed: bool) -> Result<(), String> {
    let filter = filter(unix_sockets_allowed).map_err(|error| error.to_string())?;
    apply_filter(&filter).map_err(|error| error.to_string())
}

fn filter(unix_sockets_allowed: bool) -> Result<BpfProgram, seccompiler::BackendError> {
    let mut rules = vec![(libc::SYS_ioctl, rules_for(1, &[libc::TIOCSTI, libc::TIOCLINUX])?)];
    if !unix_sockets_allowed {
        rules.push((libc::SYS_socket, rules_for(0, &[libc::AF_UNIX as u64])?));
        rules.push((libc::SYS_io_uring_setup, Vec::new()));
    }
    if cfg!(target_arch = "x86_64") {
        rules.extend(rules.clone().into_iter().map(|(call, rule)| (call | X32, rule)));
    }
    let denied = SeccompAction::Errno(libc::EACCES as u32);
    let here = TargetArch::try_from(std::env::consts::ARCH)?;
    SeccompFilter::new(rules.into_iter().collect(), SeccompAction::Allow, denied, here)?.try_into()
}

/// Rules that match a system call if its argument has one of these values.
fn rules_for(argument: u8, values: &[u64]) -> Result<Vec<SeccompRule>, seccompiler::BackendError> {
    let rule = |&value: &u64| {
        let length = SeccompCmpArgLen::Dword;
        let equal = SeccompCondition::new(argument, length, SeccompCmpOp::Eq, value)?;
        SeccompRule::new(vec![equal])
    };
    values.iter().map(rule).collect()
}
