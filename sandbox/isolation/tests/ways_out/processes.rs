//! Ways out through other processes, and through what processes share.

use std::fs;
use std::io::Write as _;

use crate::calls::{address, attempt, attempt_unless_denied, call, got_out};
use crate::stage::{SECRET_VARIABLES, Stage};
use crate::{Attempt, Way};

pub(crate) const WAYS: &[Way] = &[
    ("limits-of-others", |stage| {
        let limit = libc::rlimit { rlim_cur: 1000, rlim_max: 1000 };
        let resource = i64::from(libc::RLIMIT_SIGPENDING);
        attempt(libc::SYS_prlimit64, &[stage.victim, resource, address(&limit), 0])
    }),
    ("priority", |stage| attempt(libc::SYS_setpriority, &[0, stage.victim, 19])),
    ("priority-of-a-group", |stage| attempt(libc::SYS_setpriority, &[1, stage.group, 19])),
    // A user without processes: the attempt must not slow the machine down.
    ("priority-of-a-user", |_| attempt_unless_denied(libc::SYS_setpriority, &[2, 65_533, 19])),
    ("affinity", |stage| {
        let processors = u64::MAX;
        attempt(libc::SYS_sched_setaffinity, &[stage.victim, 8, address(&processors)])
    }),
    ("scheduling", |stage| {
        let parameters = 0_i32;
        let batch = i64::from(libc::SCHED_BATCH);
        attempt(libc::SYS_sched_setscheduler, &[stage.victim, batch, address(&parameters)])
    }),
    ("scheduling-parameters", |stage| {
        let parameters = 0_i32;
        attempt(libc::SYS_sched_setparam, &[stage.victim, address(&parameters)])
    }),
    ("scheduling-attributes", |stage| {
        let mut attributes = [0_u32; 12];
        (attributes[0], attributes[1]) = (size_of_val(&attributes) as u32, 3);
        attempt(libc::SYS_sched_setattr, &[stage.victim, address(&attributes), 0])
    }),
    ("io-priority", |stage| attempt(libc::SYS_ioprio_set, &[1, stage.victim, (2 << 13) | 7])),
    ("signal", |stage| attempt(libc::SYS_kill, &[stage.victim, libc::SIGCONT.into()])),
    ("signal-a-thread", |stage| {
        attempt(libc::SYS_tgkill, &[stage.victim, stage.victim, libc::SIGCONT.into()])
    }),
    ("signal-by-descriptor", |stage| {
        let process = open_process(stage)?;
        attempt(libc::SYS_pidfd_send_signal, &[process, libc::SIGCONT.into(), 0, 0])
    }),
    ("signal-with-a-value", |stage| {
        let mut details = [0_i32; 32];
        (details[0], details[2]) = (libc::SIGCONT, libc::SI_QUEUE);
        let signal = i64::from(libc::SIGCONT);
        attempt(libc::SYS_rt_sigqueueinfo, &[stage.victim, signal, address(&details)])
    }),
    ("trace", |stage| attempt(libc::SYS_ptrace, &[libc::PTRACE_SEIZE.into(), stage.victim, 0, 0])),
    ("write-memory", |stage| memory(libc::SYS_process_vm_writev, stage)),
    ("read-memory", |stage| memory(libc::SYS_process_vm_readv, stage)),
    ("open-memory", |stage| got_out(fs::File::open(format!("/proc/{}/mem", stage.victim)))),
    ("environment", |stage| match fs::read(format!("/proc/{}/environ", stage.victim)) {
        Ok(bytes) if bytes.is_empty() => Err("it is empty".into()),
        read => got_out(read),
    }),
    ("files-through-another-process", |stage| {
        got_out(fs::read_dir(format!("/proc/{}/root/", stage.victim)))
    }),
    ("descriptors-of-others", |stage| {
        let process = open_process(stage)?;
        attempt(libc::SYS_pidfd_getfd, &[process, 0, 0])
    }),
    ("out-of-memory-score", |stage| {
        let path = format!("/proc/{}/oom_score_adj", stage.victim);
        got_out(
            fs::OpenOptions::new()
                .write(true)
                .open(path)
                .and_then(|mut file| file.write_all(b"1000")),
        )
    }),
    ("inherited-descriptors", |stage| match &*stage.inherited {
        [] => Err("none".into()),
        numbers => Ok(format!("{numbers:?}")),
    }),
    ("variables-with-tokens", |_| {
        let found = SECRET_VARIABLES.iter().find(|name| std::env::var_os(name).is_some());
        found.map(|name| format!("{name} is there")).ok_or_else(|| "none is there".into())
    }),
    ("shared-memory-files", |stage| {
        let path = format!("/dev/shm/run-bridge-test-{}", stage.victim);
        let made = fs::write(&path, "out");
        // A file that was not made cannot be removed.
        let _ = fs::remove_file(path);
        got_out(made)
    }),
    ("system-v-memory", |_| {
        let private = attempt(libc::SYS_shmget, &[0x5eed_0001, 4096, 0o1600]);
        remove_system_v(libc::SYS_shmget, libc::SYS_shmctl, &[0x5eed_0001, 0, 0]);
        private
    }),
    ("system-v-messages", |_| {
        let made = attempt(libc::SYS_msgget, &[0x5eed_0002, 0o1600]);
        remove_system_v(libc::SYS_msgget, libc::SYS_msgctl, &[0x5eed_0002, 0]);
        made
    }),
    ("system-v-semaphores", |_| {
        let made = attempt(libc::SYS_semget, &[0x5eed_0003, 1, 0o1600]);
        remove_system_v(libc::SYS_semget, libc::SYS_semctl, &[0x5eed_0003, 0, 0]);
        made
    }),
    ("message-queue", |_| {
        let name = *b"run-bridge-test\0";
        let flags = i64::from(libc::O_CREAT | libc::O_RDWR);
        let made = attempt(libc::SYS_mq_open, &[address(&name), flags, 0o600, 0]);
        // A queue that was not made cannot be removed.
        let _ = call(libc::SYS_mq_unlink, &[address(&name)]);
        made
    }),
    ("add-a-key", |_| {
        let (kind, name, value) = (*b"user\0", *b"run-bridge-test\0", *b"out");
        let process_keyring = -2;
        let arguments = [address(&kind), address(&name), address(&value), 3, process_keyring];
        attempt(libc::SYS_add_key, &arguments)
    }),
    ("keys-of-the-user", |_| attempt(libc::SYS_keyctl, &[0, -4, 0])),
];

fn open_process(stage: &Stage) -> Result<i64, String> {
    call(libc::SYS_pidfd_open, &[stage.victim, 0]).map_err(|error| error.to_string())
}

/// Copies between this process and an address that the other process does not have.
fn memory(number: libc::c_long, stage: &Stage) -> Attempt {
    let byte = [0_u8; 1];
    let here = libc::iovec { iov_base: address(&byte) as *mut _, iov_len: 1 };
    let there = libc::iovec { iov_base: 16 as *mut _, iov_len: 1 };
    attempt_unless_denied(number, &[stage.victim, address(&here), 1, address(&there), 1, 0])
}

/// Removes an object of System V, by the command 0 (`IPC_RMID`).
fn remove_system_v(get: libc::c_long, control: libc::c_long, arguments: &[i64]) {
    if let Ok(id) = call(get, arguments) {
        // An object that cannot be removed was made by somebody else.
        let _ = call(control, &[id, 0, 0]);
    }
}
