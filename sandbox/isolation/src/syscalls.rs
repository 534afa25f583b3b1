//! A filter on system calls (seccomp), for what Landlock does not restrict.
//!
//! The filter sees numbers, not paths or structures. So it forbids what cannot be told apart by numbers, and the
//! calls for which a confined program has no use. [`sockets`](super::sockets) has the rules for sockets. The others
//! are here:
//!
//! - calls that change another process, unless they name the calling one by 0. Linux allows them for every process of
//!   the same user, and Landlock does not restrict them. A program cannot name itself by its number either, because
//!   the filter is the same for all of them.
//! - shared memory, queues, semaphores and keys that have no path: they would be shared with programs outside.
//! - namespaces and mounts, which would give a program privileges to attack Linux with.
//! - calls that concern the whole machine.
//! - `io_uring`, which does things without system calls that a filter sees, and typing into another terminal.

use std::collections::BTreeMap;

use seccompiler::{
    BackendError, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, apply_filter,
};

use super::{Network, sockets};

/// On x86-64 every system call has a second number, for x32 programs.
const X32: i64 = 0x4000_0000;

/// Calls that are forbidden whatever their arguments are.
const FORBIDDEN: &[i64] = &[
    // Shared with programs outside, without a path.
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_semctl,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    // Namespaces and mounts.
    libc::SYS_setns,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_mount_setattr,
    // Files without a path, which Landlock could not judge.
    libc::SYS_open_by_handle_at,
    // Ways around system calls, and observation of other programs and of Linux.
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_userfaultfd,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_syslog,
    // The whole machine.
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_reboot,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_vhangup,
];

/// Calls that may change only the calling process, with the number of the argument that names a process.
const OF_THE_CALLER: &[(i64, u8)] = &[
    (libc::SYS_setpriority, 1),
    (libc::SYS_ioprio_set, 1),
    (libc::SYS_sched_setaffinity, 0),
    (libc::SYS_sched_setparam, 0),
    (libc::SYS_sched_setattr, 0),
];

/// The value of the first argument of `ioprio_set` that means a single process.
const IOPRIO_WHO_PROCESS: u64 = 1;
/// `CLONE_NEWTIME`, which `clone` reads as a part of a signal number.
const NEW_TIME_NAMESPACE: u64 = 0x80;

/// The flags of new namespaces.
const NAMESPACES: &[i32] = &[
    libc::CLONE_NEWNS,
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
];

/// Forbidden system calls, each with the rules of which one must match; without rules it is always forbidden.
pub(super) type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// A comparison of an argument.
#[derive(Clone, Copy)]
pub(super) enum Argument {
    /// The lower 32 bits are equal.
    Is(u8, u64),
    /// The lower 32 bits are not equal.
    IsNot(u8, u64),
    /// The bits of the mask are equal.
    Masked(u8, u64, u64),
    /// A pointer is not null.
    NotNull(u8),
}

/// Applies the filter to the calling thread and what it starts. Programs for another architecture are killed, since
/// their system calls have other numbers.
pub(super) fn restrict(network: &Network, unix_sockets: bool) -> Result<(), String> {
    let rules = rules(network, unix_sockets).map_err(|error| error.to_string())?;
    apply(rules, libc::EACCES)?;
    // The flags of `clone3` are in memory, which the filter does not see. Programs that are told that it does not
    // exist use `clone`.
    apply(BTreeMap::from([(libc::SYS_clone3, Vec::new())]), libc::ENOSYS)
}

fn apply(mut rules: Rules, error: i32) -> Result<(), String> {
    if cfg!(target_arch = "x86_64") {
        rules.extend(rules.clone().into_iter().map(|(call, rule)| (call | X32, rule)));
    }
    let denied = SeccompAction::Errno(error.cast_unsigned());
    let compiled = TargetArch::try_from(std::env::consts::ARCH)
        .and_then(|here| SeccompFilter::new(rules, SeccompAction::Allow, denied, here))
        .and_then(TryInto::try_into);
    let compiled: seccompiler::BpfProgram = compiled.map_err(|error| error.to_string())?;
    apply_filter(&compiled).map_err(|error| error.to_string())
}

fn rules(network: &Network, unix_sockets: bool) -> Result<Rules, BackendError> {
    use Argument::{Is, IsNot, Masked, NotNull};
    let mut rules: Rules = FORBIDDEN.iter().map(|&call| (call, Vec::new())).collect();
    if cfg!(target_arch = "x86_64") {
        // Access to the ports of devices. Other architectures have no such calls.
        const IOPL_AND_IOPERM: [i64; 2] = [172, 173];
        rules.extend(IOPL_AND_IOPERM.map(|call| (call, Vec::new())));
    }
    sockets::forbid(&mut rules, network, unix_sockets)?;
    for &(call, process) in OF_THE_CALLER {
        forbid_if(&mut rules, call, &[IsNot(process, 0)])?;
    }
    // Threads name themselves by their numbers when they set the usual scheduling, as those of ZeroMQ do, which abort if
    // that fails. For any process that has it already, it changes nothing.
    let usual = IsNot(1, libc::SCHED_OTHER as u64);
    forbid_if(&mut rules, libc::SYS_sched_setscheduler, &[IsNot(0, 0), usual])?;
    let one_process = libc::PRIO_PROCESS as u64;
    forbid_if(&mut rules, libc::SYS_setpriority, &[IsNot(0, one_process)])?;
    forbid_if(&mut rules, libc::SYS_ioprio_set, &[IsNot(0, IOPRIO_WHO_PROCESS)])?;
    // Reading the limits of others is harmless.
    forbid_if(&mut rules, libc::SYS_prlimit64, &[IsNot(0, 0), NotNull(2)])?;
    for &flag in NAMESPACES {
        let flag = u64::from(flag.cast_unsigned());
        forbid_if(&mut rules, libc::SYS_clone, &[Masked(0, flag, flag)])?;
        forbid_if(&mut rules, libc::SYS_unshare, &[Masked(0, flag, flag)])?;
    }
    let time = Masked(0, NEW_TIME_NAMESPACE, NEW_TIME_NAMESPACE);
    forbid_if(&mut rules, libc::SYS_unshare, &[time])?;
    for request in [libc::TIOCSTI, libc::TIOCLINUX] {
        forbid_if(&mut rules, libc::SYS_ioctl, &[Is(1, request)])?;
    }
    Ok(rules)
}

/// Forbids a call if all comparisons hold.
pub(super) fn forbid_if(
    rules: &mut Rules,
    call: i64,
    comparisons: &[Argument],
) -> Result<(), BackendError> {
    let conditions = comparisons.iter().map(|comparison| {
        let (argument, length, operator, value) = match *comparison {
            Argument::Is(argument, value) => {
                (argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, value)
            }
            Argument::IsNot(argument, value) => {
                (argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, value)
            }
            Argument::Masked(argument, mask, value) => {
                (argument, SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(mask), value)
            }
            Argument::NotNull(argument) => (argument, SeccompCmpArgLen::Qword, SeccompCmpOp::Ne, 0),
        };
        SeccompCondition::new(argument, length, operator, value)
    });
    let rule = SeccompRule::new(conditions.collect::<Result<_, _>>()?)?;
    rules.entry(call).or_default().push(rule);
    Ok(())
}
